//! Pure: the part of the queue that belongs to one workspace.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::mutants::{Mutant, mutated};

use super::backoff::Failures;
use super::{Class, Turn, Work};

/// When delayed work is due, made unique and ordered by the number it was given.
pub(super) type Due = (Duration, u64);

/// Where waiting work stands: its class, its number in the order of arrival, and since when it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) class: Class,
    pub(super) number: u64,
    pub(super) since: Duration,
}

/// An attempt that was handed out and has not come back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    class: Class,
    pub(super) started: Duration,
    /// The dirty bit: the most urgent class that was added meanwhile, and when.
    pub(super) again: Option<(Class, Duration)>,
    /// The workspace was forgotten meanwhile; the result means nothing.
    pub(super) orphaned: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    Waiting(Spot),
    Running(Run),
}

/// All that is known of one piece of work; dropped as soon as it says nothing.
#[derive(Debug, Default)]
pub(super) struct Item {
    state: State,
    blocked: bool,
    pub(super) timer: Option<Due>,
    pub(super) failures: Option<Failures>,
}

impl Item {
    fn says_nothing(&self) -> bool {
        matches!(self.state, State::Idle) && !self.blocked && self.timer.is_none() && self.failures.is_none()
    }
}

/// The work of one class in one workspace.
#[derive(Debug, Default)]
struct Lane {
    /// Waiting and not blocked, in order of arrival.
    ready: BTreeMap<u64, Work>,
    in_flight: usize,
    /// The lane's place among the lanes of its class in all workspaces: the lowest is next.
    turn: u64,
}

impl Lane {
    /// A lane that becomes ready stands where its work arrived, but not before its own last turn: that is what keeps the round fair.
    fn push(&mut self, number: u64, work: Work) {
        if self.ready.is_empty() {
            self.turn = self.turn.max(number);
        }
        self.ready.insert(number, work);
    }
}

/// Two lanes, and what is known of each piece of work. `Default` is the workspace nothing is known of.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    items: BTreeMap<Work, Item>,
    lanes: [Lane; 2],
}

/// What forgetting a workspace released.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    pub(super) dropped: usize,
    pub(super) unblocked: usize,
    pub(super) timers: Vec<Due>,
}

impl Workspace {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The lane's place in the ring of its class, if something in it may be handed out now.
    ///
    /// Of the `cap` places of a workspace the last free one is kept for the class that has none. Without that, the two classes of a workspace
    /// at its cap can fall into step with the slots so that one of them is never served.
    pub(super) fn offer(&self, class: Class, cap: usize) -> Option<u64> {
        let lane = self.lane(class);
        let total: usize = self.lanes.iter().map(|lane| lane.in_flight).sum();
        let free = total < cap && lane.in_flight + 1 < cap;
        (free && !lane.ready.is_empty()).then_some(lane.turn)
    }

    /// Adds work, and returns the timer that this made moot.
    pub(super) fn add(&mut self, work: &Work, spot: Spot) -> Option<Due> {
        let item = self.items.entry(work.clone()).or_default();
        match &mut item.state {
            State::Idle => {}
            State::Waiting(old) if spot.class < old.class => {
                self.lanes[old.class as usize].ready.remove(&old.number);
            }
            State::Waiting(_) => return item.timer.take(),
            State::Running(run) => {
                if run.again.is_none_or(|(class, _)| spot.class < class) && !mutated(Mutant::LoseDirty) {
                    run.again = Some((spot.class, spot.since));
                }
                return item.timer.take();
            }
        }
        item.state = State::Waiting(spot);
        if !item.blocked {
            self.lanes[spot.class as usize].push(spot.number, work.clone());
        }
        item.timer.take()
    }

    /// Sets the timer of work to `due`, and returns the one of `due` and its earlier timer that no longer counts.
    pub(super) fn delay(&mut self, work: &Work, due: Due) -> Option<Due> {
        let item = self.items.entry(work.clone()).or_default();
        let moot = match item.state {
            State::Waiting(_) => true,
            State::Running(run) => run.again.is_some(),
            State::Idle => false,
        };
        match item.timer {
            _ if moot => Some(due),
            Some(earlier) if earlier <= due => Some(due),
            later => {
                item.timer = Some(due);
                later
            }
        }
    }

    /// Hands out the first ready work of a lane; `number` becomes the lane's next place in its ring.
    pub(super) fn start(&mut self, class: Class, now: Duration, number: u64) -> Option<Turn> {
        let lane = &mut self.lanes[class as usize];
        let (_, work) = lane.ready.pop_first()?;
        let item = self.items.get_mut(&work)?;
        lane.turn = number;
        lane.in_flight += 1;
        let since = if let State::Waiting(spot) = item.state { spot.since } else { now };
        item.state = State::Running(Run { class, started: now, again: None, orphaned: false });
        Some(Turn { work, class, waited: now.saturating_sub(since) })
    }

    /// Takes back work that was handed out, or `None` if it is not in flight.
    pub(super) fn finish(&mut self, work: &Work) -> Option<(Run, &mut Item)> {
        let item = self.items.get_mut(work)?;
        let State::Running(run) = item.state else { return None };
        item.state = State::Idle;
        self.lanes[run.class as usize].in_flight -= 1;
        Some((run, item))
    }

    /// Blocks or unblocks work in its place, and says whether that changed anything.
    pub(super) fn set_blocked(&mut self, work: &Work, blocked: bool) -> bool {
        let item = self.items.entry(work.clone()).or_default();
        if item.blocked == blocked {
            return false;
        }
        item.blocked = blocked;
        if let State::Waiting(spot) = item.state {
            let lane = &mut self.lanes[spot.class as usize];
            if blocked {
                lane.ready.remove(&spot.number);
            } else {
                lane.push(spot.number, work.clone());
            }
        }
        true
    }

    /// When delayed work is due.
    pub(super) fn due(&self, work: &Work) -> Option<Duration> {
        self.items.get(work)?.timer.map(|(due, _)| due)
    }

    /// Drops what is known of a piece of work if it says nothing, which is what bounds the memory.
    pub(super) fn tidy(&mut self, work: &Work) {
        if self.items.get(work).is_some_and(Item::says_nothing) {
            self.items.remove(work);
        }
    }

    /// Drops everything but the attempts in flight, which stay so that the same work is never in flight twice.
    pub(super) fn forget(&mut self) -> Forgotten {
        let mut forgotten = Forgotten::default();
        for lane in &mut self.lanes {
            lane.ready.clear();
        }
        self.items.retain(|_, Item { state, blocked, timer, failures }| {
            let pending = match state {
                State::Idle => false,
                State::Waiting(_) => true,
                State::Running(run) => {
                    run.orphaned = true;
                    run.again.take().is_some()
                }
            };
            forgotten.dropped += usize::from(pending || timer.is_some());
            forgotten.unblocked += usize::from(std::mem::take(blocked));
            forgotten.timers.extend(timer.take());
            *failures = None;
            matches!(state, State::Running(_))
        });
        forgotten
    }

    /// How much of a class is ready to be handed out.
    pub(super) fn ready(&self, class: Class) -> usize {
        self.lane(class).ready.len()
    }

    /// Since when the first ready work of a class waits.
    pub(super) fn oldest(&self, class: Class) -> Option<Duration> {
        let (_, work) = self.lane(class).ready.first_key_value()?;
        if let State::Waiting(spot) = self.items.get(work)?.state { Some(spot.since) } else { None }
    }

    fn lane(&self, class: Class) -> &Lane {
        &self.lanes[class as usize]
    }
}
