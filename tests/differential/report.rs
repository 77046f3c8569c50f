//! What a run tells: its counts, and each difference as a diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use super::lane::{Counts, Difference};
use super::plan::Operation;

/// One table of all lanes: operations, mean time of one, and answers by code.
pub(crate) fn table(all: &[Counts], took: Duration) -> String {
    let mut operations: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    let mut codes: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
    for counts in all {
        for (kind, count) in &counts.operations {
            let entry = operations.entry(kind).or_default();
            entry.0 += count;
            entry.1 += counts.time.get(kind).copied().unwrap_or_default();
        }
        for ((kind, code), count) in &counts.answers {
            *codes.entry(kind).or_default().entry(*code).or_default() += count;
        }
    }
    let mut text = format!("{:<26}{:>7} {:>9}  answers by code\n", "operations", "count", "mean ms");
    let mut totals: BTreeMap<u64, usize> = BTreeMap::new();
    for (kind, (count, time)) in &operations {
        let by_code = codes.remove(kind).unwrap_or_default();
        for (code, count) in &by_code {
            *totals.entry(*code).or_default() += count;
        }
        let mean = time.as_millis() / u128::try_from((*count).max(1)).unwrap_or(1);
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "{kind:<26}{count:>7} {mean:>9}  {}", by(&by_code));
    }
    let count: usize = operations.values().map(|(count, _)| count).sum();
    let answers: usize = totals.values().sum();
    let _ = writeln!(text, "{:<26}{count:>7} {:>9}  {}", "all", "", by(&totals));
    let _ = writeln!(text, "{answers} pairs of answers compared in {} s", took.as_secs());
    text
}

fn by(codes: &BTreeMap<u64, usize>) -> String {
    codes.iter().map(|(code, count)| format!("{code}: {count}")).collect::<Vec<_>>().join(", ")
}

/// The operations that lead to a difference, and both answers as a diff.
pub(crate) fn difference(seed: u64, lane: u64, operations: &[Operation], found: &Difference) -> String {
    let mut text = format!("seed {seed}, lane {lane}; after the set-up:\n");
    for operation in operations {
        let _ = writeln!(text, "  {operation}");
    }
    let _ = writeln!(text, "differs in {:?} at\n  {}\n{}", found.kind, found.step, diff(&found.answers));
    text
}

/// Lines of the one (`-`) and of the other (`+`), with some around them.
pub(crate) fn diff(answers: &[Value; 2]) -> String {
    let [one, other] = answers.each_ref().map(|answer| serde_json::to_string_pretty(answer).unwrap_or_default());
    TextDiff::from_lines(&one, &other).unified_diff().context_radius(3).header("one", "other").to_string()
}

/// What differences have in common that are one fault: the kind of operation, the codes, and where they differ first.
pub(crate) fn signature(found: &Difference) -> String {
    let [one, other] = &found.answers;
    format!("{} {}/{} {}", found.kind, one["code"], other["code"], first_difference(one, other, ""))
}

fn first_difference(one: &Value, other: &Value, path: &str) -> String {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            let differing = keys.into_iter().find(|key| left.get(*key) != right.get(*key));
            differing.map_or_else(
                || path.to_owned(),
                |key| {
                    first_difference(
                        left.get(key).unwrap_or(&Value::Null),
                        right.get(key).unwrap_or(&Value::Null),
                        &format!("{path}/{key}"),
                    )
                },
            )
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let differing = left.iter().zip(right).find(|(left, right)| left != right);
            differing.map_or_else(|| path.to_owned(), |(left, right)| first_difference(left, right, &format!("{path}/-")))
        }
        _ => path.to_owned(),
    }
}
