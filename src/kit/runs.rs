//! The runtimes of a world: each is what a process would be, and can be started again as one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::runtime::{Credentials, Handle, Options, Origin, RunError, Runtime, Wire};

use super::faults::Mortal;

/// Puts reconcilers into a runtime.
pub(super) type Build = Arc<dyn Fn(Runtime) -> Runtime + Send + Sync>;

/// From the end of a process to its next start, as of a supervisor.
const RESTART: Duration = Duration::from_secs(1);
/// Between two looks at whether processes are back.
const LOOK: Duration = Duration::from_millis(100);

/// The wall clock of a world, which goes with tokio's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    pub(super) started: Timestamp,
    pub(super) began: Instant,
}

impl Wall {
    pub(super) fn now(self) -> Timestamp {
        let spent = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        self.started.checked_add(spent).unwrap_or(self.started)
    }
}

struct Run {
    handle: Handle,
    task: JoinHandle<Result<(), RunError>>,
    options: Options,
    build: Build,
    alive: Arc<AtomicBool>,
}

impl Run {
    fn start(options: Options, build: Build) -> Self {
        let alive = Arc::new(AtomicBool::new(true));
        let mut own = options.clone();
        if let Credentials::Service { wire, .. } = &mut own.credentials {
            *wire = Wire::new(Mortal::new(wire.clone(), alive.clone()));
        }
        for wire in own.wires.values_mut() {
            *wire = Wire::new(Mortal::new(wire.clone(), alive.clone()));
        }
        let runtime = build(Runtime::new(own));
        Self { handle: runtime.handle(), task: tokio::spawn(runtime.run()), options, build, alive }
    }
}

/// All runtimes that were started. Cheap to clone: clones are the same ones.
#[derive(Clone)]
pub(super) struct Runs {
    inner: Arc<Mutex<Inner>>,
    wall: Wall,
}

/// The same, which does not keep them: a runtime's own way to its server must not.
#[derive(Clone)]
pub(super) struct WeakRuns {
    inner: Weak<Mutex<Inner>>,
    wall: Wall,
}

#[derive(Default)]
struct Inner {
    runs: Vec<Run>,
    /// Groups of processes that died and are to be started again.
    dead: usize,
    crashes: u64,
    /// How far clocks of processes that start are ahead.
    skew: SignedDuration,
    on_crash: Option<OnCrash>,
}

/// Who wants to know that processes have died.
type OnCrash = Box<dyn Fn() + Send>;

impl WeakRuns {
    /// Ends every runtime where it stands, as SIGKILL does, and starts each anew a second later.
    pub(super) fn crash(&self) {
        if let Some(inner) = self.inner.upgrade() {
            Runs { inner, wall: self.wall }.crash();
        }
    }
}

impl Runs {
    pub(super) fn new(wall: Wall) -> Self {
        Self { inner: Arc::default(), wall }
    }

    pub(super) fn downgrade(&self) -> WeakRuns {
        WeakRuns { inner: Arc::downgrade(&self.inner), wall: self.wall }
    }

    pub(super) fn start(&self, options: Options, build: Build) {
        self.inner.lock().runs.push(Run::start(options, build));
    }

    /// Starts it at the time that its clock says it is now.
    pub(super) fn start_again(&self, options: Options, build: Build) {
        let (now, skew) = (self.wall.now(), self.inner.lock().skew);
        let wall = now.checked_add(skew).unwrap_or(now);
        let origin = options.origin.map(|origin| Origin { wall, ..origin });
        self.start(Options { origin, ..options }, build);
    }

    pub(super) fn skew(&self, by: SignedDuration) {
        self.inner.lock().skew = by;
    }

    pub(super) fn crash(&self) {
        let dead = {
            let mut inner = self.inner.lock();
            inner.dead += 1;
            inner.crashes += 1;
            if let Some(tell) = &inner.on_crash {
                tell();
            }
            std::mem::take(&mut inner.runs)
        };
        let bury = |Run { task, options, build, alive, .. }: Run| {
            alive.store(false, Ordering::Relaxed);
            task.abort();
            (options, build)
        };
        let dead: Vec<(Options, Build)> = dead.into_iter().map(bury).collect();
        let this = self.downgrade();
        drop(tokio::spawn(async move {
            tokio::time::sleep(RESTART).await;
            let Some(inner) = this.inner.upgrade() else { return };
            let runs = Self { inner, wall: this.wall };
            for (options, build) in dead {
                runs.start_again(options, build);
            }
            runs.inner.lock().dead -= 1;
        }));
    }

    pub(super) fn on_crash(&self, tell: impl Fn() + Send + 'static) {
        self.inner.lock().on_crash = Some(Box::new(tell));
    }

    /// How often processes have died.
    pub(super) fn crashes(&self) -> u64 {
        self.inner.lock().crashes
    }

    /// Stops all of them in order, and returns how each of them came to be.
    pub(super) async fn stop(&self) -> Vec<(Options, Build)> {
        while self.inner.lock().dead > 0 {
            tokio::time::sleep(LOOK).await;
        }
        let runs = std::mem::take(&mut self.inner.lock().runs);
        let mut stopped = Vec::with_capacity(runs.len());
        for Run { handle, task, options, build, .. } in runs {
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
        self.inner.lock().runs.iter().map(|run| run.handle.clone()).collect()
    }

    /// Whether every one of them has seen everything there is; not while one is to be started again.
    pub(super) fn are_ready(&self) -> bool {
        let inner = self.inner.lock();
        inner.dead == 0 && inner.runs.iter().all(|run| run.handle.missing().is_some_and(|missing| missing.is_empty()))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.are_ready() && self.inner.lock().runs.iter().all(|run| run.handle.is_idle())
    }

    /// Whether one has ended, so that nothing is worth waiting for.
    pub(super) fn have_ended(&self) -> bool {
        self.inner.lock().runs.iter().any(|run| run.task.is_finished())
    }

    /// How each of them is, in a sentence.
    pub(super) fn describe(&self) -> Vec<String> {
        let of = |run: &Run| match run.handle.missing() {
            _ if run.task.is_finished() => "the runtime has ended".to_owned(),
            None => "the runtime has only just begun".to_owned(),
            Some(missing) if missing.is_empty() => "the runtime is ready".to_owned(),
            Some(missing) => format!("the runtime is not ready: {}", missing.join("; ")),
        };
        let inner = self.inner.lock();
        let all: Vec<String> = inner.runs.iter().map(of).collect();
        match (all.is_empty(), inner.dead > 0) {
            (true, true) => vec!["the runtimes died and are to be started again".into()],
            (true, false) => vec!["no reconciler is served".into()],
            (false, _) => all,
        }
    }
}
