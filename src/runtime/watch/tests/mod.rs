//! What the watcher's machine does, rule by rule, under constant failure, and against a model of a server.

mod converge;
mod model;
mod rules;
mod storm;

use std::time::Duration;

use super::{Answer, Ending, Failure, Frame, Health, Input, Machine, Output, Page, Settings};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A machine over numbers, with the clock that it is told and the number of its open request.
struct Drive {
    machine: Machine<u32>,
    now: Duration,
    attempt: u64,
    jitter: f64,
}

impl Drive {
    /// One that just asked for its first list.
    fn listing() -> Self {
        let mut drive = Self { machine: Machine::new(Settings::default()), now: Duration::ZERO, attempt: 0, jitter: 0.0 };
        assert_eq!(drive.step(Input::Elapsed), [list(1)]);
        drive
    }

    /// One that listed object 1 at resourceVersion 10 and asked for a watch.
    fn opening() -> Self {
        let mut drive = Self::listing();
        assert_eq!(drive.answer(complete(&[1])), [reset(&[1]), watch(2, "10")]);
        drive
    }

    /// One whose watch is open.
    fn live() -> Self {
        let mut drive = Self::opening();
        assert_eq!(drive.answer(Answer::Opened), [Output::Health(Health::Live)]);
        drive
    }

    fn step(&mut self, input: Input<u32>) -> Vec<Output<u32>> {
        let outputs = self.machine.step(self.now, self.jitter, input);
        for output in &outputs {
            if let Output::List { attempt, .. } | Output::Watch { attempt, .. } = output {
                self.attempt = *attempt;
            }
        }
        outputs
    }

    fn answer(&mut self, answer: Answer<u32>) -> Vec<Output<u32>> {
        self.step(Input::Answer { attempt: self.attempt, answer })
    }

    fn frame(&mut self, frame: Frame<u32>) -> Vec<Output<u32>> {
        self.answer(Answer::Frame(frame))
    }

    /// Asserts that nothing is due before `wait` is over, and lets it be over.
    fn after(&mut self, wait: Duration) -> Vec<Output<u32>> {
        assert_eq!(self.machine.wake_at().saturating_sub(self.now), wait, "the wait");
        self.now += wait.saturating_sub(MS);
        assert_eq!(self.step(Input::Elapsed), [], "an early timer does nothing");
        self.now += MS;
        self.step(Input::Elapsed)
    }
}

fn list(attempt: u64) -> Output<u32> {
    Output::List { attempt, cont: None, limit: 500 }
}

fn watch(attempt: u64, from: &str) -> Output<u32> {
    Output::Watch { attempt, resource_version: from.into() }
}

fn reset(items: &[u32]) -> Output<u32> {
    Output::Reset { items: items.to_vec(), resource_version: "10".into() }
}

fn page(items: &[u32], resource_version: &str, cont: &str) -> Answer<u32> {
    Answer::Page(Page { items: items.to_vec(), resource_version: Some(resource_version.into()), cont: Some(cont.into()) })
}

fn complete(items: &[u32]) -> Answer<u32> {
    page(items, "10", "")
}

fn server(code: u16) -> Failure {
    Failure::Server { code, message: "etcd".into() }
}

fn error(code: u16) -> Frame<u32> {
    Frame::Error { code, message: "over".into() }
}

fn broken(what: &str) -> Output<u32> {
    Output::Health(Health::Broken { what: what.into() })
}
