//! Pure: the fair work queue: which work of which workspace is next, whatever the others pile up.
//!
//! # Guarantees
//! - Work is in flight once at most. What is added while it runs makes it ready again when it comes back.
//! - What was added is handed out, unless its workspace is forgotten or it stays blocked.
//! - Workspaces take turns (deficit round-robin in which every attempt costs one); inside a workspace and class it is first come, first served.
//! - While both classes have work, one slot in five is the resync class's, and what a class does not use is the other's.
//! - A workspace never has more than its cap in flight, and never all of it by one class.
//! - With `W` workers, attempts of at most `s` and `T` workspaces that have work, the first fresh change of a workspace waits at most
//!   `⌈1.25·T/W⌉·s + s`, however deep the queue of any other is; the first resync of one `⌈5·T/W⌉·s + s`.
//! - The same calls give the same order.
//!
//! # Assumptions
//! `now` is monotonic, counted from any fixed start, and a free worker calls [`Queue::next`] at once. Every call is `O(log n)`, except that
//! [`Queue::forget`] visits the work of that workspace and [`Queue::stats`] visits the workspaces.
//!
//! # Caveats
//! The queue never refuses work: it holds one entry per object of the cache, so the bound of the cache is the bound of the queue.

mod backoff;
mod work;
mod workspace;

#[cfg(test)]
mod fairness_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::names::LogicalCluster;

pub use backoff::Backoff;
use backoff::Failures;
pub use work::{Class, Outcome, Settings, Stats, Turn, Work};
use workspace::{Due, Spot, Workspace};

/// After so many fresh slots in a row the next is the resync class's: one slot in five.
const FRESH_IN_A_ROW: u8 = 4;

/// The queue of all reconcilers and all workspaces; see the module for what it guarantees. No call blocks.
#[derive(Debug)]
pub struct Queue {
    settings: Settings,
    workspaces: BTreeMap<LogicalCluster, Workspace>,
    /// Per class, the workspaces that may be handed a slot of it now, in the order of their turns.
    rings: [BTreeSet<(u64, LogicalCluster)>; 2],
    delayed: BTreeMap<Due, Work>,
    in_flight: usize,
    blocked: usize,
    fresh_in_a_row: u8,
    last_number: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            workspaces: BTreeMap::new(),
            rings: [BTreeSet::new(), BTreeSet::new()],
            delayed: BTreeMap::new(),
            in_flight: 0,
            blocked: 0,
            fresh_in_a_row: 0,
            last_number: 0,
        }
    }

    /// Makes work ready. Work that already waits keeps its place, unless `Fresh` lifts it out of the resync class; work in flight becomes
    /// ready when it is done, in the most urgent class added meanwhile. A pending delay or backoff of the work is moot; its failures stay
    /// counted.
    pub fn add(&mut self, now: Duration, work: &Work, class: Class) {
        let number = self.number();
        self.edit(&work.key.workspace, |queue, workspace| {
            if let Some(moot) = workspace.add(work, Spot { class, number, since: now }) {
                queue.delayed.remove(&moot);
            }
        });
    }

    /// Makes work ready in the resync class once `delay` has passed. The earliest delay counts, and none if the work is ready already.
    pub fn add_after(&mut self, now: Duration, work: &Work, delay: Duration) {
        self.edit(&work.key.workspace, |queue, workspace| queue.delay(workspace, work, now.saturating_add(delay)));
    }

    /// Keeps work from being handed out until [`Self::unblock`], for example until its own write was seen. What is added meanwhile waits in
    /// its place and delays nobody. An attempt in flight goes on. Blocking twice is blocking once, and the caller owns the deadline.
    pub fn block(&mut self, work: &Work) {
        self.set_blocked(work, true);
    }

    /// Ends [`Self::block`]: the work stands where it stood, ahead of all that its workspace added later.
    pub fn unblock(&mut self, work: &Work) {
        self.set_blocked(work, false);
    }

    /// Hands out the next work, or `None` if none is ready or all workers are busy. After `None`, [`Self::next_due`] is later than `now`.
    pub fn next(&mut self, now: Duration) -> Option<Turn> {
        self.promote(now);
        if self.in_flight >= self.settings.workers {
            return None;
        }
        let class = self.class_of_next_slot();
        let (_, workspace) = self.rings[class as usize].first().cloned()?;
        let number = self.number();
        let turn = self.edit(&workspace, |_, workspace| workspace.start(class, now, number))?;
        self.fresh_in_a_row = if class == Class::Fresh { (self.fresh_in_a_row + 1).min(FRESH_IN_A_ROW) } else { 0 };
        self.in_flight += 1;
        Some(turn)
    }

    /// When [`Self::next`] has to be asked again even if nothing else happens.
    pub fn next_due(&self) -> Option<Duration> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes back work, and returns how long it now waits for its time, if it does: not if it was added meanwhile. `jitter` is from 0 to 1 and
    /// spreads the backoff. Work that is not in flight is ignored, and so is the outcome if its workspace was forgotten meanwhile.
    pub fn done(&mut self, now: Duration, jitter: f64, work: &Work, outcome: Outcome) -> Option<Duration> {
        let policy = self.settings.backoff;
        self.edit(&work.key.workspace, |queue, workspace| {
            let (run, item) = workspace.finish(work)?;
            queue.in_flight -= 1;
            let (failures, wait) = match outcome {
                _ if run.orphaned => (None, None),
                Outcome::Settled => (None, None),
                Outcome::After(wait) => (None, Some(wait)),
                Outcome::Backoff => {
                    let (failures, wait) = Failures::count(item.failures, policy, run.started, now, jitter);
                    (Some(failures), Some(wait))
                }
            };
            item.failures = failures;
            if let Some((class, since)) = run.again {
                let number = queue.number();
                workspace.add(work, Spot { class, number, since });
                return None;
            }
            if let Some(wait) = wait {
                queue.delay(workspace, work, now.saturating_add(wait));
            }
            workspace.tidy(work);
            workspace.due(work).map(|due| due.saturating_sub(now))
        })
    }

    /// Drops all that waits in a workspace that is gone, with its delays, blocks and failures, and returns how many pieces of work that were.
    /// The results of its attempts in flight will be ignored; until they are back, what is added anew waits for them.
    pub fn forget(&mut self, workspace: &LogicalCluster) -> usize {
        self.edit(workspace, |queue, workspace| {
            let forgotten = workspace.forget();
            for due in &forgotten.timers {
                queue.delayed.remove(due);
            }
            queue.blocked -= forgotten.unblocked;
            forgotten.dropped
        })
    }

    /// How many attempts are in flight; a queue that drains is done at zero.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The sizes at `now`.
    pub fn stats(&self, now: Duration) -> Stats {
        let ready = |class| self.workspaces.values().map(|workspace| workspace.ready(class)).sum();
        let oldest = self.workspaces.values().filter_map(|workspace| workspace.oldest(Class::Fresh)).min();
        Stats {
            fresh: ready(Class::Fresh),
            resync: ready(Class::Resync),
            blocked: self.blocked,
            delayed: self.delayed.len(),
            in_flight: self.in_flight,
            workspaces: self.workspaces.len(),
            oldest_fresh: oldest.map(|since| now.saturating_sub(since)),
        }
    }

    /// Resync if it alone has runnable work or if its share is due, else fresh.
    fn class_of_next_slot(&self) -> Class {
        let [fresh, resync] = &self.rings;
        let due = self.fresh_in_a_row >= FRESH_IN_A_ROW;
        if !resync.is_empty() && (due || fresh.is_empty()) { Class::Resync } else { Class::Fresh }
    }

    /// Makes ready what is due.
    fn promote(&mut self, now: Duration) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((due, _), work) = entry.remove_entry();
            self.add(due, &work, Class::Resync);
        }
    }

    fn delay(&mut self, workspace: &mut Workspace, work: &Work, due: Duration) {
        let due = (due, self.number());
        self.delayed.insert(due, work.clone());
        if let Some(moot) = workspace.delay(work, due) {
            self.delayed.remove(&moot);
        }
    }

    fn set_blocked(&mut self, work: &Work, blocked: bool) {
        self.edit(&work.key.workspace, |queue, workspace| {
            if workspace.set_blocked(work, blocked) {
                queue.blocked = if blocked { queue.blocked + 1 } else { queue.blocked - 1 };
            }
            workspace.tidy(work);
        });
    }

    /// The next number of the order in which all things happen.
    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Changes one workspace. It leaves the rings before and enters them after if it may, which is the only place where the rings change, so
    /// that they hold exactly the workspaces that may be served.
    fn edit<R>(&mut self, name: &LogicalCluster, change: impl FnOnce(&mut Self, &mut Workspace) -> R) -> R {
        let cap = self.settings.per_workspace;
        let (name, mut workspace) = self.workspaces.remove_entry(name).unwrap_or_else(|| (name.clone(), Workspace::default()));
        for class in Class::ALL {
            if let Some(turn) = workspace.offer(class, cap) {
                self.rings[class as usize].remove(&(turn, name.clone()));
            }
        }
        let result = change(self, &mut workspace);
        for class in Class::ALL {
            if let Some(turn) = workspace.offer(class, cap) {
                self.rings[class as usize].insert((turn, name.clone()));
            }
        }
        if !workspace.is_empty() {
            self.workspaces.insert(name, workspace);
        }
        result
    }
}
