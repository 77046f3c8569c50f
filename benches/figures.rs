//! What the other benchmarks have measured, one JSON object a line, with the machine's load beside it: `make bench` runs it last.
//!
//! A figure without the load it was taken under says little: `load` are the averages over 1, 5 and 15 minutes, the last of which covers the run.

use std::path::Path;

use serde_json::{Value, json};

fn main() {
    let measured = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
    let load: Vec<f64> = std::fs::read_to_string("/proc/loadavg")
        .map(|text| text.split(' ').take(3).filter_map(|number| number.parse().ok()).collect())
        .unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut lines = Vec::new();
    found(&measured, &mut |name, estimates| {
        let nanoseconds = |of: &str| estimates[of]["point_estimate"].as_f64().unwrap_or_default();
        lines.push(json!({"benchmark": name, "median_ns": nanoseconds("median"), "mean_ns": nanoseconds("mean"), "std_dev_ns": nanoseconds("std_dev"),
            "load": load, "cores": cores}).to_string());
    });
    lines.sort();
    for line in &lines {
        println!("{line}");
    }
    if lines.is_empty() {
        eprintln!("nothing was measured yet: run `cargo bench` first");
    }
}

/// Every result below a folder.
fn found(folder: &Path, tell: &mut impl FnMut(&str, &Value)) {
    let read = |name: &str| -> Option<Value> { serde_json::from_slice(&std::fs::read(folder.join(name)).ok()?).ok() };
    if let (Some(benchmark), Some(estimates)) = (read("benchmark.json"), read("estimates.json"))
        && folder.ends_with("new")
    {
        tell(benchmark["full_id"].as_str().unwrap_or_default(), &estimates);
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        found(&entry.path(), tell);
    }
}
