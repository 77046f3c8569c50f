//! What a server answered, in normal form, to be compared with another server later: compressed lines of JSON, the first about the run, then one
//! for each operation.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::plan::Operation;

/// Writes a recording.
pub(crate) struct Recorder(GzEncoder<std::fs::File>);

impl Recorder {
    pub(crate) fn create(path: &Path, seed: u64, lanes: u64, operations: u64) -> anyhow::Result<Self> {
        let mut recorder = Self(GzEncoder::new(std::fs::File::create(path)?, Compression::best()));
        writeln!(recorder.0, "{}", json!({"seed": seed, "lanes": lanes, "operations": operations}))?;
        Ok(recorder)
    }

    pub(crate) fn write(&mut self, lane: u64, operation: &Operation, answers: &[Value]) -> anyhow::Result<()> {
        writeln!(self.0, "{}", json!({"lane": lane, "operation": operation.to_string(), "answers": answers}))?;
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        Ok(self.0.try_finish()?)
    }
}

/// A recording: what it says of its run, and the lines of its operations.
pub(crate) struct Recording {
    pub(crate) seed: u64,
    pub(crate) lanes: u64,
    pub(crate) operations: u64,
    lines: Vec<Value>,
}

impl Recording {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(path).with_context(|| path.display().to_string())?).read_to_string(&mut text)?;
        let mut lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?.into_iter();
        let head = lines.next().unwrap_or_default();
        let number = |name: &str| head[name].as_u64().unwrap_or_default();
        Ok(Self { seed: number("seed"), lanes: number("lanes"), operations: number("operations"), lines: lines.collect() })
    }

    /// How many operations were recorded, set-up and all.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }
}

/// The answers of one lane of a recording.
pub(crate) struct Recorded {
    operations: VecDeque<(String, VecDeque<Value>)>,
    now: VecDeque<Value>,
}

impl Recorded {
    /// One lane; none when the recording has none of this number.
    pub(crate) fn of(recording: &Recording, lane: u64) -> Self {
        let mut operations = VecDeque::new();
        for entry in recording.lines.iter().filter(|entry| entry["lane"] == lane) {
            let answers: VecDeque<Value> = entry["answers"].as_array().into_iter().flatten().cloned().collect();
            operations.push_back((entry["operation"].as_str().unwrap_or_default().to_owned(), answers));
        }
        Self { operations, now: VecDeque::new() }
    }

    /// Goes on to the next operation; not if the recording ends here or is of another plan.
    pub(crate) fn next(&mut self, operation: &Operation) -> bool {
        match self.operations.pop_front() {
            Some((text, answers)) if first(&text) == first(&operation.to_string()) => {
                self.now = answers;
                true
            }
            Some((text, _)) => {
                super::run::say(&format!("the recording is of another plan: {text}\nnow {operation}"));
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
