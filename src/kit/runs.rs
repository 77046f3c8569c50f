//! The runtimes of a world: each is what a process would be, and can be started again as one.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::runtime::{Handle, Options, RunError, Runtime};

/// Puts reconcilers into a runtime.
pub(super) type Build = Arc<dyn Fn(Runtime) -> Runtime + Send + Sync>;

struct Run {
    handle: Handle,
    task: JoinHandle<Result<(), RunError>>,
    options: Options,
    build: Build,
}

impl Run {
    fn start(options: Options, build: Build) -> Self {
        let runtime = build(Runtime::new(options.clone()));
        Self { handle: runtime.handle(), task: tokio::spawn(runtime.run()), options, build }
    }
}

/// All runtimes that were started.
#[derive(Default)]
pub(super) struct Runs(Mutex<Vec<Run>>);

impl Runs {
    pub(super) fn start(&self, options: Options, build: Build) {
        self.0.lock().push(Run::start(options, build));
    }

    /// Stops all of them in order, and returns how each of them came to be.
    pub(super) async fn stop(&self) -> Vec<(Options, Build)> {
        let runs = std::mem::take(&mut *self.0.lock());
        let mut stopped = Vec::with_capacity(runs.len());
        for Run { handle, task, options, build } in runs {
            handle.stop();
            match task.await {
                Ok(Ok(())) => stopped.push((options, build)),
                Ok(Err(error)) => panic!("the runtime had ended before it was stopped: {error}"),
                Err(error) => panic!("the runtime did not end in order: {error}"),
            }
        }
        stopped
    }

    pub(super) fn handles(&self) -> Vec<Handle> {
        self.0.lock().iter().map(|run| run.handle.clone()).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.0.lock().iter().all(|run| run.handle.is_idle() && run.handle.missing().is_some_and(|missing| missing.is_empty()))
    }

    /// Whether one has ended, so that nothing is worth waiting for.
    pub(super) fn have_ended(&self) -> bool {
        self.0.lock().iter().any(|run| run.task.is_finished())
    }

    /// How each of them is, in a sentence.
    pub(super) fn describe(&self) -> Vec<String> {
        let of = |run: &Run| match run.handle.missing() {
            _ if run.task.is_finished() => "the runtime has ended".to_owned(),
            None => "the runtime has only just begun".to_owned(),
            Some(missing) if missing.is_empty() => "the runtime is ready".to_owned(),
            Some(missing) => format!("the runtime is not ready: {}", missing.join("; ")),
        };
        let all: Vec<String> = self.0.lock().iter().map(of).collect();
        if all.is_empty() { vec!["no reconciler is served".into()] } else { all }
    }
}
