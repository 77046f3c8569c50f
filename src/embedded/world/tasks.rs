//! What is still to be done, and when. The order is that of time and then of asking, so that the same requests have the same consequences.
//!
//! Pure: a queue over time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// One thing to be looked at. Each is told by name only: what is to be done is found out when its time has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A `Workspace` object, by the workspace it is in and its name.
    Workspace(Arc<str>, Arc<str>),
    /// A `Workspace` object whose logical cluster is there by now.
    Initialise(Arc<str>, Arc<str>),
    /// A `LogicalCluster` that is being deleted.
    Emptying(Arc<str>),
    /// An `APIExport`.
    Export(Arc<str>, Arc<str>),
    /// An `APIExportEndpointSlice`.
    Slice(Arc<str>, Arc<str>),
    /// An `APIBinding`: everything but its kinds.
    Binding(Arc<str>, Arc<str>),
    /// An `APIBinding`: its kinds are there by now.
    Bind(Arc<str>, Arc<str>),
    /// A `CustomResourceDefinition`.
    Definition(Arc<str>, Arc<str>),
    /// A `Namespace`.
    Namespace(Arc<str>, Arc<str>),
    /// A token `Secret`: namespace and name.
    Token(Arc<str>, Arc<str>, Arc<str>),
    /// Whatever is owned by this uid in this workspace.
    Orphans(Arc<str>, Arc<str>),
    /// One object that waits for its dependents: stored kind, workspace, namespace, name.
    Foreground(Arc<str>, Arc<str>, Arc<str>, Arc<str>),
    /// The labels of objects that are claimed in this workspace.
    Claims(Arc<str>),
    /// The annotations of roles that other shards need to know.
    Replicate(Arc<str>),
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    queue: BTreeMap<(Timestamp, u64), Task>,
    waiting: BTreeMap<Task, (Timestamp, u64)>,
    asked: u64,
}

impl Tasks {
    /// Asks for a task after `delay`; one that waits already is done at the earlier of both times.
    pub(crate) fn ask(&mut self, now: Timestamp, delay: Duration, task: Task) {
        let at = now.checked_add(SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX);
        match self.waiting.get(&task) {
            Some((before, _)) if *before <= at => return,
            Some(later) => drop(self.queue.remove(later)),
            None => {}
        }
        self.asked += 1;
        self.waiting.insert(task.clone(), (at, self.asked));
        self.queue.insert((at, self.asked), task);
    }

    /// The next task that is due.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Task> {
        let (at, asked) = *self.queue.first_key_value()?.0;
        if at > now {
            return None;
        }
        let task = self.queue.remove(&(at, asked))?;
        self.waiting.remove(&task);
        Some(task)
    }

    /// When the next task is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_in_the_order_of_time_and_once() {
        let mut tasks = Tasks::default();
        let task = |name: &str| Task::Emptying(name.into());
        let start = Timestamp::UNIX_EPOCH;
        tasks.ask(start, Duration::from_secs(2), task("late"));
        tasks.ask(start, Duration::from_secs(1), task("b"));
        tasks.ask(start, Duration::from_secs(1), task("a"));
        tasks.ask(start, Duration::from_secs(9), task("b"));
        let later = start + SignedDuration::from_secs(1);
        let due: Vec<_> = std::iter::from_fn(|| tasks.due(later)).collect();
        assert_eq!(due, [task("b"), task("a")]);
        assert_eq!(tasks.next(), Some(start + SignedDuration::from_secs(2)));
    }

    #[test]
    fn a_task_that_waits_is_done_at_the_earlier_time_that_was_asked_for() {
        let mut tasks = Tasks::default();
        let task = Task::Emptying("a".into());
        let start = Timestamp::UNIX_EPOCH;
        for seconds in [9, 1, 5] {
            tasks.ask(start, Duration::from_secs(seconds), task.clone());
        }
        assert_eq!(tasks.next(), Some(start + SignedDuration::from_secs(1)));
        assert_eq!(tasks.due(start + SignedDuration::from_secs(1)), Some(task));
        assert_eq!(tasks.next(), None);
    }
}
