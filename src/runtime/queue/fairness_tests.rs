//! The bound on waiting, held against a simulation in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::api::names::{ObjectKey, ObjectName};

/// Work that arrives: when (ms), in which workspace, in which class.
type Arrival = (u64, u16, Class);

/// Workers that take work as soon as they are free. Every work that becomes the first of its workspace and class is timed from then on, and the
/// simulation fails at the first that waits longer than promised.
struct Simulation {
    workers: u64,
    longest: u64,
    /// Takes the attempt's index and gives its length, from 0 to `longest` ms.
    service: fn(u64, u64) -> u64,
    queue: Queue,
    attempts: u64,
    running: BTreeMap<(u64, u64), Work>,
    /// Work of each workspace that waits or runs.
    busy: BTreeMap<String, usize>,
    waiting: BTreeMap<(Class, String), usize>,
    /// When the first work of a lane became the first, and how many workspaces were busy then.
    heads: BTreeMap<(Class, String), (u64, u64)>,
    /// The longest wait of a first fresh change, in ms.
    worst: u64,
}

impl Simulation {
    fn new(workers: u64, cap: usize, longest: u64, service: fn(u64, u64) -> u64) -> Self {
        let settings = Settings::new(usize::try_from(workers).expect("few")).with_per_workspace(cap);
        Self {
            workers,
            longest,
            service,
            queue: Queue::new(settings),
            attempts: 0,
            running: BTreeMap::new(),
            busy: BTreeMap::new(),
            waiting: BTreeMap::new(),
            heads: BTreeMap::new(),
            worst: 0,
        }
    }

    /// Runs until nothing is left, and returns how much was served.
    fn run(&mut self, arrivals: &[Arrival]) -> u64 {
        let mut arrivals = arrivals.to_vec();
        arrivals.sort_by_key(|(time, ..)| *time);
        let mut arrivals = arrivals.into_iter().enumerate().peekable();
        loop {
            let arrives = arrivals.peek().map(|(_, (time, ..))| *time);
            let ends = self.running.first_key_value().map(|((time, _), _)| *time);
            let now = match (arrives, ends) {
                (Some(time), end) if end.is_none_or(|end| time < end) => {
                    let (index, (_, workspace, class)) = arrivals.next().expect("peeked");
                    self.arrive(time, index, workspace, class);
                    time
                }
                (_, Some(time)) => {
                    self.end(time);
                    time
                }
                _ => return self.attempts,
            };
            while let Some(turn) = self.queue.next(Duration::from_millis(now)) {
                self.start(now, turn);
            }
        }
    }

    fn arrive(&mut self, now: u64, index: usize, workspace: u16, class: Class) {
        let name = format!("w{workspace}");
        let key = ObjectKey::new(LogicalCluster::new(name.as_str()), ObjectName::cluster_scoped(format!("k{index}")));
        self.queue.add(Duration::from_millis(now), &Work { actor: 0, key }, class);
        *self.busy.entry(name.clone()).or_default() += 1;
        let waiting = self.waiting.entry((class, name.clone())).or_default();
        *waiting += 1;
        if *waiting == 1 {
            self.heads.insert((class, name), (now, self.busy.len() as u64));
        }
    }

    fn start(&mut self, now: u64, turn: Turn) {
        let lane = (turn.class, turn.work.key.workspace.to_string());
        let (since, busy) = self.heads.remove(&lane).expect("only the first of a lane is handed out");
        let slots = if turn.class == Class::Fresh { (5 * busy).div_ceil(4) } else { 5 * busy };
        let bound = slots.div_ceil(self.workers) * self.longest + self.longest;
        let waited = now - since;
        assert!(
            waited <= bound,
            "{lane:?} waited {waited} ms, promised {bound} ms with {} workers and {busy} busy workspaces",
            self.workers
        );
        if turn.class == Class::Fresh {
            self.worst = self.worst.max(waited);
        }
        let waiting = self.waiting.get_mut(&lane).expect("it waited");
        *waiting -= 1;
        if *waiting > 0 {
            self.heads.insert(lane, (now, self.busy.len() as u64));
        }
        self.attempts += 1;
        let length = (self.service)(self.attempts, self.longest);
        self.running.insert((now + length, self.attempts), turn.work);
    }

    fn end(&mut self, now: u64) {
        let (_, work) = self.running.pop_first().expect("an attempt ends");
        self.queue.done(Duration::from_millis(now), 1.0, &work, Outcome::Settled);
        let name = work.key.workspace.to_string();
        let left = self.busy.get_mut(&name).expect("it ran");
        *left -= 1;
        if *left == 0 {
            self.busy.remove(&name);
        }
    }
}

fn always_longest(_: u64, longest: u64) -> u64 {
    longest
}

/// Lengths without a pattern, but the same ones in every run.
fn scattered(attempt: u64, longest: u64) -> u64 {
    attempt.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) % (longest + 1)
}

/// One attempt in seven takes its time.
fn mostly_instant(attempt: u64, longest: u64) -> u64 {
    if attempt.is_multiple_of(7) { longest } else { 0 }
}

#[test]
fn a_tenant_with_ten_thousand_queued_does_not_delay_ninety_nine_quiet_ones() {
    for (workers, class) in [(1, Class::Fresh), (4, Class::Fresh), (16, Class::Fresh), (4, Class::Resync)] {
        let mut simulation = Simulation::new(workers, 4, 100, always_longest);
        let hog = (0..10_000).map(|_| (0, 0, class));
        let quiet = (1..100).map(|workspace| (u64::from(workspace) * 737, workspace, Class::Fresh));
        simulation.run(&hog.chain(quiet).collect::<Vec<_>>());
        // Beside the hog's own, at most one change of a quiet tenant is waiting at a time.
        assert!(simulation.worst <= 400, "{workers} workers, a hog of {class:?}: {} ms", simulation.worst);
    }
}

#[test]
fn all_tenants_at_once_wait_one_round() {
    for workers in [1, 3, 16] {
        let mut simulation = Simulation::new(workers, 4, 100, always_longest);
        let storm = (0..100).flat_map(|workspace| (0..40).map(move |_| (0, workspace, Class::Resync)));
        let changes = (0..100).map(|workspace| (5, workspace, Class::Fresh));
        assert_eq!(simulation.run(&storm.chain(changes).collect::<Vec<_>>()), 4100);
    }
}

#[test]
fn the_classes_of_deep_tenants_do_not_fall_into_step_with_the_slots() {
    // As many tenants as workers or a multiple of five is where a shared place starves one class for ever.
    for (workers, tenants, cap) in [(5, 5, 2), (5, 10, 2), (2, 2, 2), (4, 5, 2), (10, 5, 3), (20, 5, 4)] {
        let mut simulation = Simulation::new(workers, cap, 100, always_longest);
        let deep = (0..tenants).flat_map(|workspace| (0..50).flat_map(move |_| Class::ALL.map(|class| (0, workspace, class))));
        assert_eq!(simulation.run(&deep.collect::<Vec<_>>()), u64::from(tenants) * 100, "{workers} workers, {tenants} tenants");
    }
}

#[test]
fn the_same_calls_give_the_same_order() {
    let arrivals: Vec<Arrival> = (0..500)
        .map(|index| (scattered(index, 90), u16::try_from(scattered(index, 12)).expect("small"), Class::ALL[usize::from(index % 2 == 1)]))
        .collect();
    let order = || {
        let mut queue = Queue::new(Settings::new(4));
        for (index, (time, workspace, class)) in arrivals.iter().enumerate() {
            let key = ObjectKey::new(LogicalCluster::new(format!("w{workspace}")), ObjectName::cluster_scoped(format!("k{index}")));
            queue.add(Duration::from_millis(*time), &Work { actor: 0, key }, *class);
        }
        std::iter::from_fn(|| {
            let turn = queue.next(Duration::ZERO)?;
            queue.done(Duration::ZERO, 0.5, &turn.work, Outcome::Settled);
            Some(turn.work)
        })
        .collect::<Vec<_>>()
    };
    let first = order();
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 500);
    assert_eq!(first, order());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_first_change_of_a_workspace_waits_no_longer_than_promised(
        workers in 1_u64..12,
        cap in 2_usize..6,
        longest in 1_u64..30,
        service in prop::sample::select(vec![always_longest as fn(u64, u64) -> u64, scattered, mostly_instant]),
        // Half of the arrivals go to three workspaces, so that some are deep and many are quiet.
        arrivals in prop::collection::vec((0_u64..200, prop_oneof![0_u16..3, 0_u16..40], prop::sample::select(Class::ALL.to_vec())), 1..400),
    ) {
        let served = Simulation::new(workers, cap, longest, service).run(&arrivals);
        prop_assert_eq!(served, arrivals.len() as u64);
    }
}
