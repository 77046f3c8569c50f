//! What a server answered, in normal form, to be compared with another server later: one line of JSON for each operation.

use std::collections::VecDeque;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::normal;
use super::plan::Operation;

/// Writes a recording.
pub(crate) struct Recorder(BufWriter<std::fs::File>);

impl Recorder {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(BufWriter::new(std::fs::File::create(path)?)))
    }

    pub(crate) fn write(&mut self, lane: u64, operation: &Operation, answers: &[Value]) -> anyhow::Result<()> {
        writeln!(self.0, "{}", json!({"lane": lane, "operation": operation.to_string(), "answers": answers}))?;
        self.0.flush()?;
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        Ok(self.0.flush()?)
    }
}

/// The answers of one lane of a recording.
pub(crate) struct Recorded {
    operations: VecDeque<(String, VecDeque<Value>)>,
    now: VecDeque<Value>,
}

impl Recorded {
    /// One lane; none when the recording has none of this number.
    pub(crate) fn read(path: &Path, lane: u64) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut operations = VecDeque::new();
        for line in text.lines() {
            let mut entry: Value = serde_json::from_str(line)?;
            if entry["lane"] == lane {
                normal::recorded(&mut entry["answers"]);
                let answers = entry["answers"].as_array_mut().map(std::mem::take).unwrap_or_default();
                operations.push_back((entry["operation"].as_str().unwrap_or_default().to_owned(), answers.into()));
            }
        }
        Ok(Self { operations, now: VecDeque::new() })
    }

    /// Goes on to the next operation; not if the recording ends here or is of another plan.
    pub(crate) fn next(&mut self, operation: &Operation) -> bool {
        match self.operations.pop_front() {
            Some((text, answers)) if first(&text) == first(&operation.to_string()) => {
                self.now = answers;
                true
            }
            Some((text, _)) => {
                super::say(&format!("the recording is of another plan: {text}\nnow {operation}"));
                false
            }
            None => false,
        }
    }

    /// The answer to the step that is being compared.
    pub(crate) fn answer(&self) -> Value {
        self.now.front().cloned().unwrap_or_default()
    }

    /// Goes on to the next step.
    pub(crate) fn step_done(&mut self) {
        self.now.pop_front();
    }
}

/// What an operation begins with: how long its steps wait may change.
fn first(operation: &str) -> String {
    operation.lines().next().unwrap_or_default().split(" (within").next().unwrap_or_default().chars().take(200).collect()
}
