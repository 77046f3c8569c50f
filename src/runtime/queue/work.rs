//! Pure: the nouns of the work queue: what is queued, how urgent it is, how it ended, and the limits.

use std::time::Duration;

use super::Backoff;
use crate::api::names::ObjectKey;

/// One object as one reconciler sees it: what is in flight once at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The index of the reconciler.
    pub actor: u8,
    /// The object.
    pub key: ObjectKey,
}

/// How urgent work is; the lower one is the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Something changed and somebody may be waiting.
    Fresh,
    /// A check without a known change: initial list, relist, recheck, retry.
    Resync,
}

impl Class {
    pub(super) const ALL: [Self; 2] = [Self::Fresh, Self::Resync];
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; nothing more until something is added.
    Settled,
    /// It succeeded and wants another look after this time; zero means as soon as possible.
    After(Duration),
    /// It failed and is tried again after the key's backoff.
    Backoff,
}

/// What is handed out: finish it with [`Queue::done`](super::Queue::done).
#[must_use = "work that is never given back blocks its key and a worker for ever"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The work.
    pub work: Work,
    /// The class it waited in.
    pub class: Class,
    /// How long it was ready, including the time it was blocked.
    pub waited: Duration,
}

/// The limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(super) workers: usize,
    pub(super) per_workspace: usize,
    pub(super) backoff: Backoff,
}

impl Settings {
    /// Limits for a number of workers (at least 1): a quarter of them per workspace, but from 2 to 4; the default [`Backoff`].
    pub fn new(workers: usize) -> Self {
        Self { workers: workers.max(1), per_workspace: (workers / 4).clamp(2, 4), backoff: Backoff::default() }
    }

    /// How many attempts of one workspace may be in flight together, one of them kept for each class; below 2 is raised to 2.
    #[must_use]
    pub fn with_per_workspace(self, per_workspace: usize) -> Self {
        Self { per_workspace: per_workspace.max(2), ..self }
    }

    /// How failing keys wait.
    #[must_use]
    pub fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }
}

/// Sizes for metrics; none of them names a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Fresh changes that are ready and not blocked.
    pub fresh: usize,
    /// Resyncs that are ready and not blocked.
    pub resync: usize,
    /// Keys that are blocked, whether they have work or not.
    pub blocked: usize,
    /// Work that waits for its time, including backoff.
    pub delayed: usize,
    /// Attempts that were handed out and are not done.
    pub in_flight: usize,
    /// Workspaces that have any of these.
    pub workspaces: usize,
    /// How long the oldest unblocked fresh change has waited; `None` without one.
    pub oldest_fresh: Option<Duration>,
}
