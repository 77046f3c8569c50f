//! Pure: who is looked at again when, and who waits for inputs to be listed afresh before that.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::runtime::queue::Work;

/// How long a fresh list is waited for; after it the object is decided over what there is.
const REFRESH_PATIENCE: Duration = Duration::from_secs(10);

/// Why an object is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It asked for it: with inputs listed since this moment.
    Afresh(Duration),
    /// The poll interval is over: from the cache.
    Poll,
}

/// The timers of all objects: one each at most, so the bound of the cache is their bound.
#[derive(Debug, Default)]
pub(super) struct Rechecks {
    timers: BTreeMap<(Duration, u64), (Work, Why)>,
    by_work: BTreeMap<Work, (Duration, u64)>,
    waiting: BTreeMap<Work, (Duration, Duration)>,
    last: u64,
}

impl Rechecks {
    /// Sets the timer of a piece of work, in place of the one it had. Who waits for its inputs waits on.
    pub(super) fn set(&mut self, work: Work, due: Duration, why: Why) {
        self.stop(&work);
        self.last += 1;
        self.by_work.insert(work.clone(), (due, self.last));
        self.timers.insert((due, self.last), (work, why));
    }

    /// Sets the timer, unless there is one that is due before.
    pub(super) fn set_sooner(&mut self, work: Work, due: Duration, why: Why) {
        if self.by_work.get(&work).is_none_or(|(known, _)| *known > due) {
            self.set(work, due, why);
        }
    }

    /// Forgets timer and wait: the object is looked at now.
    pub(super) fn cancel(&mut self, work: &Work) {
        self.stop(work);
        self.waiting.remove(work);
    }

    fn stop(&mut self, work: &Work) {
        if let Some(at) = self.by_work.remove(work) {
            self.timers.remove(&at);
        }
    }

    /// Takes out what is due.
    pub(super) fn due(&mut self, now: Duration) -> Vec<(Work, Why)> {
        let later = self.timers.split_off(&(now, u64::MAX));
        let due: Vec<_> = std::mem::replace(&mut self.timers, later).into_values().collect();
        for (work, _) in &due {
            self.by_work.remove(work);
        }
        due
    }

    /// Lets work wait until its inputs were listed since `since`.
    pub(super) fn wait(&mut self, work: Work, since: Duration, now: Duration) {
        self.waiting.insert(work, (since, now + REFRESH_PATIENCE));
    }

    /// Takes out the work whose inputs are fresh by now, or that has waited too long.
    pub(super) fn refreshed(&mut self, now: Duration, fresh: impl Fn(&Work, Duration) -> bool) -> Vec<Work> {
        let done: Vec<Work> = self
            .waiting
            .iter()
            .filter(|(work, (since, deadline))| *deadline <= now || fresh(work, *since))
            .map(|(work, _)| work.clone())
            .collect();
        for work in &done {
            self.waiting.remove(work);
        }
        done
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Duration> {
        let timer = self.timers.keys().next().map(|(due, _)| *due);
        let patience = self.waiting.values().map(|(_, deadline)| *deadline).min();
        [timer, patience].into_iter().flatten().min()
    }
}
