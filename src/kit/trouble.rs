//! What a failed test says.
//!
//! Pure: text from what was seen.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::journal::Sent;

/// Requests that are shown.
const SHOWN: usize = 12;

/// Everything that helps to see why something did not come.
pub(super) struct Trouble {
    /// What was waited for, as a statement.
    pub(super) statement: String,
    /// Where the test waits for it.
    pub(super) place: String,
    pub(super) waited: Duration,
    /// The object; `None` where none was waited for.
    pub(super) seen: Option<Result<Value, String>>,
    /// Why the object that was seen cannot be taken for one of its kind.
    pub(super) unreadable: Option<String>,
    pub(super) runtimes: Vec<String>,
    pub(super) sent: Vec<Sent>,
    pub(super) lines: Vec<String>,
}

impl Trouble {
    pub(super) fn text(&self) -> String {
        let Self { statement, place, waited, seen, unreadable, runtimes, sent, lines } = self;
        let mut text = format!("\n{place}: not within {} s: {statement}\n", waited.as_secs());
        match seen {
            None => {}
            Some(Err(absent)) => section(&mut text, "last seen", std::slice::from_ref(absent)),
            Some(Ok(object)) => {
                section(&mut text, "its conditions", &conditions(object));
                section(&mut text, "last seen", &[pretty(object)]);
            }
        }
        if let Some(problem) = unreadable {
            section(&mut text, "it cannot be read as its kind", std::slice::from_ref(problem));
        }
        section(&mut text, "runtimes", runtimes);
        let telling: Vec<String> = sent.iter().filter(|sent| !sent.is_stream() || sent.code >= 300).map(ToString::to_string).collect();
        let left_out = telling.len().saturating_sub(SHOWN);
        section(&mut text, "last requests, without lists and watches that went well", &telling[left_out..]);
        section(&mut text, "last lines of the log", lines);
        text
    }
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{title}:");
    if lines.is_empty() {
        text.push_str("  none\n");
    }
    for line in lines.iter().flat_map(|line| line.lines()) {
        let _ = writeln!(text, "  {line}");
    }
}

fn conditions(object: &Value) -> Vec<String> {
    let all = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |condition: &Value, field: &str| condition[field].as_str().unwrap_or("?").to_owned();
    let line = |condition: &Value| {
        let stale = condition["observedGeneration"].as_i64() != object["metadata"]["generation"].as_i64();
        let of = if stale { format!(" [of generation {}]", condition["observedGeneration"]) } else { String::new() };
        let [type_, status, reason, message] = ["type", "status", "reason", "message"].map(|field| word(condition, field));
        format!("{type_}={status} {reason}{of}: {message}")
    };
    all.iter().map(line).collect()
}

fn pretty(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_says_what_was_waited_for_what_was_seen_and_what_was_asked() {
        let object = json!({"metadata": {"name": "car", "generation": 2, "managedFields": [{}]}, "status": {"conditions": [
            {"type": "Painted", "status": "False", "reason": "Wet", "message": "it is wet", "observedGeneration": 1}]}});
        let request = |verb, code| Sent { at: Duration::from_millis(1500), verb, target: "/toys".into(), body: Value::Null, code };
        let trouble = Trouble {
            statement: "toys.test default/car in acme is red".into(),
            place: "tests/toys.rs:7".into(),
            waited: Duration::from_mins(10),
            seen: Some(Ok(object)),
            unreadable: None,
            runtimes: vec!["the runtime is not ready: toys.test is forbidden".into()],
            sent: vec![request("list", 200), request("list", 403), request("apply", 200)],
            lines: Vec::new(),
        };
        let text = trouble.text();
        for part in [
            "\ntests/toys.rs:7: not within 600 s: toys.test default/car in acme is red\n",
            "\n  Painted=False Wet [of generation 1]: it is wet\n",
            "\n  the runtime is not ready: toys.test is forbidden\n",
            "\n     1.500 s  list    403  /toys\n     1.500 s  apply   200  /toys\n",
            "\nlast lines of the log:\n  none\n",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
        assert!(!text.contains("managedFields"), "{text}");
    }
}
