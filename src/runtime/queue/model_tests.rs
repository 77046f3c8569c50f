//! Any sequence of calls, held against a specification that is one list and no cleverness.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::api::names::{ObjectKey, ObjectName};

const WORKERS: usize = 5;
const CAP: usize = 3;
const FOREVER: Duration = Duration::from_secs(1_000_000);

#[derive(Clone, Debug)]
enum Call {
    Add(Work, Class),
    AddAfter(Work, Duration),
    Block(Work),
    Unblock(Work),
    Next,
    /// Ends the n-th attempt in flight.
    Done(prop::sample::Index, Outcome),
    Forget(LogicalCluster),
    Pass(Duration),
}

/// What the specification knows of one piece of work.
#[derive(Clone, Debug)]
struct Known {
    work: Work,
    /// Its class and when it came to wait, as a number.
    waits: Option<(Class, usize)>,
    runs: Option<Class>,
    again: Option<Class>,
    /// When it is due, and the order in which delays were asked for.
    due: Option<(Duration, usize)>,
    blocked: bool,
    orphaned: bool,
}

#[derive(Default)]
struct Specification {
    all: Vec<Known>,
    order: usize,
}

impl Specification {
    fn of(&mut self, work: &Work) -> &mut Known {
        let index = self.all.iter().position(|known| known.work == *work).unwrap_or_else(|| {
            let work = work.clone();
            self.all.push(Known { work, waits: None, runs: None, again: None, due: None, blocked: false, orphaned: false });
            self.all.len() - 1
        });
        &mut self.all[index]
    }

    fn add(&mut self, work: &Work, class: Class) {
        self.order += 1;
        let order = self.order;
        let known = self.of(work);
        known.due = None;
        if known.runs.is_some() {
            known.again = Some(known.again.map_or(class, |old| old.min(class)));
        } else if known.waits.is_none_or(|(old, _)| class < old) {
            known.waits = Some((class, order));
        }
    }

    fn delay(&mut self, work: &Work, due: Duration) {
        self.order += 1;
        let due = (due, self.order);
        let known = self.of(work);
        if known.waits.is_none() && known.again.is_none() {
            known.due = Some(known.due.map_or(due, |old| old.min(due)));
        }
    }

    fn pass(&mut self, now: Duration) {
        let due = |known: &Known| Some((known.due.filter(|(due, _)| *due <= now)?, known.work.clone()));
        let mut due: Vec<_> = self.all.iter().filter_map(due).collect();
        due.sort_by_key(|(due, _)| *due);
        for (_, work) in due {
            self.add(&work, Class::Resync);
        }
    }

    fn in_flight(&self, workspace: &LogicalCluster, class: Class) -> usize {
        self.all.iter().filter(|known| known.work.key.workspace == *workspace && known.runs == Some(class)).count()
    }

    /// Whether this work may be handed out now in the class it waits in.
    fn may_run(&self, known: &Known) -> bool {
        let Some((class, _)) = known.waits else { return false };
        let of_class = |class| self.in_flight(&known.work.key.workspace, class);
        let total: usize = Class::ALL.into_iter().map(of_class).sum();
        let everywhere = self.all.iter().filter(|known| known.runs.is_some()).count();
        !known.blocked && known.runs.is_none() && everywhere < WORKERS && total < CAP && of_class(class) < CAP - 1
    }

    /// Checks what was handed out, and notes that it runs.
    fn handed_out(&mut self, turn: Option<&Turn>) {
        let Some(turn) = turn else {
            let left: Vec<_> = self.all.iter().filter(|known| self.may_run(known)).collect();
            assert!(left.is_empty(), "nothing was handed out, but these may run: {left:?}");
            return;
        };
        let known = self.of(&turn.work).clone();
        assert!(self.may_run(&known), "must not run: {known:?}");
        let (class, order) = known.waits.expect("it may run");
        assert_eq!(class, turn.class);
        let overtaken = |other: &&Known| {
            let same = other.work.key.workspace == known.work.key.workspace;
            same && !other.blocked && other.waits.is_some_and(|(of, earlier)| of == class && earlier < order)
        };
        assert_eq!(self.all.iter().find(overtaken).map(|known| &known.work), None, "first come, first served before {known:?}");
        let known = self.of(&turn.work);
        (known.waits, known.runs) = (None, Some(class));
    }

    fn done(&mut self, work: &Work, wait: Option<Duration>, outcome: Outcome, now: Duration) {
        self.order += 1;
        let order = self.order;
        let known = self.of(work);
        (known.runs, known.waits) = (None, known.again.take().map(|class| (class, order)));
        let orphaned = std::mem::take(&mut known.orphaned);
        if known.waits.is_some() {
            assert_eq!(wait, None, "it is ready");
            return;
        }
        let pending = known.due.map(|(due, _)| due.saturating_sub(now));
        let asked = match outcome {
            _ if orphaned => None,
            Outcome::Settled => None,
            Outcome::After(asked) => Some(asked),
            // The specification knows the bounds of a backoff; its steps have tests of their own.
            Outcome::Backoff => {
                let wait = wait.expect("a failure is tried again");
                assert!(pending == Some(wait) || (Duration::from_millis(125)..=Duration::from_mins(5)).contains(&wait), "{wait:?}");
                Some(wait)
            }
        };
        known.due = asked.map(|asked| (now + asked, order)).into_iter().chain(known.due).min();
        assert_eq!(wait, known.due.map(|(due, _)| due.saturating_sub(now)));
    }

    fn forget(&mut self, workspace: &LogicalCluster) -> usize {
        let mut dropped = 0;
        for known in self.all.iter_mut().filter(|known| known.work.key.workspace == *workspace) {
            dropped += usize::from(known.waits.is_some() || known.again.is_some() || known.due.is_some());
            (known.waits, known.again, known.due, known.blocked) = (None, None, None, false);
            known.orphaned = known.runs.is_some();
        }
        dropped
    }

    fn check(&self, queue: &Queue, now: Duration) {
        let count = |test: &dyn Fn(&Known) -> bool| self.all.iter().filter(|known| test(known)).count();
        let waits = |of: Class| move |known: &Known| !known.blocked && known.waits.is_some_and(|(class, _)| class == of);
        let stats = queue.stats(now);
        assert_eq!(stats.fresh, count(&waits(Class::Fresh)));
        assert_eq!(stats.resync, count(&waits(Class::Resync)));
        assert_eq!(stats.blocked, count(&|known| known.blocked));
        assert_eq!(stats.delayed, count(&|known| known.due.is_some()));
        assert_eq!(stats.in_flight, count(&|known| known.runs.is_some()));
        assert_eq!(queue.next_due(), self.all.iter().filter_map(|known| Some(known.due?.0)).min());
    }
}

/// The queue and its specification, which see the same calls.
struct Both {
    queue: Queue,
    specification: Specification,
    now: Duration,
    running: Vec<Work>,
}

impl Both {
    fn new() -> Self {
        let queue = Queue::new(Settings::new(WORKERS).with_per_workspace(CAP));
        Self { queue, specification: Specification::default(), now: Duration::ZERO, running: Vec::new() }
    }

    fn call(&mut self, call: &Call) {
        let Self { queue, specification, now, running } = self;
        match call {
            Call::Add(work, class) => {
                queue.add(*now, work, *class);
                specification.add(work, *class);
            }
            Call::AddAfter(work, delay) => {
                queue.add_after(*now, work, *delay);
                specification.delay(work, *now + *delay);
            }
            Call::Block(work) => {
                queue.block(work);
                specification.of(work).blocked = true;
            }
            Call::Unblock(work) => {
                queue.unblock(work);
                specification.of(work).blocked = false;
            }
            Call::Next => {
                self.next();
            }
            Call::Done(index, outcome) => {
                if !running.is_empty() {
                    let work = running.swap_remove(index.index(running.len()));
                    let wait = queue.done(*now, 0.5, &work, *outcome);
                    specification.done(&work, wait, *outcome, *now);
                }
            }
            Call::Forget(workspace) => assert_eq!(queue.forget(workspace), specification.forget(workspace)),
            Call::Pass(time) => *now += *time,
        }
        self.specification.check(&self.queue, self.now);
    }

    fn next(&mut self) -> bool {
        let turn = self.queue.next(self.now);
        self.specification.pass(self.now);
        self.specification.handed_out(turn.as_ref());
        let Some(turn) = turn else { return false };
        assert!(!self.running.contains(&turn.work), "in flight twice: {turn:?}");
        self.running.push(turn.work);
        true
    }

    /// Lets everything settle, after which nothing may be left.
    fn settle(&mut self) {
        self.now = FOREVER;
        for work in self.specification.all.iter().map(|known| known.work.clone()).collect::<Vec<_>>() {
            self.call(&Call::Unblock(work));
        }
        while self.next() || !self.running.is_empty() {
            while let Some(work) = self.running.pop() {
                let wait = self.queue.done(self.now, 0.5, &work, Outcome::Settled);
                self.specification.done(&work, wait, Outcome::Settled, self.now);
            }
        }
        self.specification.check(&self.queue, self.now);
        assert_eq!(self.queue.stats(self.now), Stats::default());
    }
}

fn works() -> impl Strategy<Value = Work> {
    (0_u8..2, 0_u8..3, 0_u8..4).prop_map(|(actor, workspace, name)| {
        let workspace = LogicalCluster::new(format!("w{workspace}"));
        Work { actor, key: ObjectKey::new(workspace, ObjectName::cluster_scoped(format!("k{name}"))) }
    })
}

/// Few distinct times, so that delays often end at one instant.
fn times() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (1_u64..20).prop_map(|tenths| Duration::from_millis(100 * tenths))]
}

fn calls() -> impl Strategy<Value = Call> {
    let outcomes = prop_oneof![Just(Outcome::Settled), Just(Outcome::Backoff), times().prop_map(Outcome::After)];
    prop_oneof![
        6 => (works(), prop::sample::select(Class::ALL.to_vec())).prop_map(|(work, class)| Call::Add(work, class)),
        2 => (works(), times()).prop_map(|(work, delay)| Call::AddAfter(work, delay)),
        1 => works().prop_map(Call::Block),
        1 => works().prop_map(Call::Unblock),
        8 => Just(Call::Next),
        6 => (any::<prop::sample::Index>(), outcomes).prop_map(|(index, outcome)| Call::Done(index, outcome)),
        1 => (0_u8..3).prop_map(|workspace| Call::Forget(LogicalCluster::new(format!("w{workspace}")))),
        2 => times().prop_map(Call::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_work_is_lost_doubled_or_overtaken_whatever_is_called(calls in prop::collection::vec(calls(), 1..200)) {
        let mut both = Both::new();
        for call in &calls {
            both.call(call);
        }
        both.settle();
    }
}
