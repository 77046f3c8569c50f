//! The explorers: every single fault at every place, and pairs of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::faults::{Fault, Plan, Site, Target};
use super::super::world::World;
use super::{Played, Trial};

/// Failures that are told; the rest are counted.
const TOLD: usize = 12;
/// Events of one watch that are struck: what goes wrong with the tenth goes wrong with the ninth.
const LINES: u64 = 6;

/// A run that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What plays it again.
    pub plan: Plan,
    /// What was wrong.
    pub problem: String,
}

/// How many runs there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Runs with this fault.
    pub runs: usize,
    /// Of these, runs that went wrong.
    pub failed: usize,
}

/// What an exploration has found.
#[derive(Clone, Debug)]
pub struct Explored {
    /// What was explored.
    pub what: &'static str,
    /// Places that were struck.
    pub places: usize,
    /// All runs.
    pub runs: usize,
    /// Runs by fault; a pair counts for both.
    pub faults: BTreeMap<Fault, Count>,
    /// The first failures, in order.
    pub failures: Vec<Failure>,
    /// All failures.
    pub failed: usize,
    /// How long it took, in real time.
    pub took: Duration,
}

impl Explored {
    /// # Panics
    /// When a run went wrong: with what was wrong first, and the plan that plays it again.
    pub fn assert(&self) {
        assert!(self.failed == 0, "{self}");
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, places, runs, faults, failures, failed, took } = self;
        let rate = f64::from(u32::try_from(*runs).unwrap_or(u32::MAX)) / took.as_secs_f64().max(0.001);
        write!(
            f,
            "{what}: {runs} runs over {places} places with {} faults in {:.1} s ({rate:.0}/s), {failed} failed",
            faults.len(),
            took.as_secs_f64()
        )?;
        for Failure { plan, problem } in failures {
            write!(f, "\n\nwith the faults \"{plan}\":\n{problem}")?;
        }
        Ok(())
    }
}

impl<S: AsyncFn(&World) + Sync> Trial<S> {
    /// Every fault at every place that the story reaches without faults, one at a time.
    ///
    /// # Panics
    /// When the story does not come true without faults, or is another one when it is told again.
    pub fn singles(&self) -> Explored {
        let (reference, places) = self.reference();
        let plans: Vec<Plan> = self.strikes(&places).into_iter().map(|strike| Plan(vec![strike])).collect();
        self.explore("single faults", &reference, places.len(), &plans)
    }

    /// Two of the telling faults (those for which [`Fault::is_telling`] holds), the second at a later place than the first, in all combinations of
    /// places; at most this many of them, evenly chosen.
    ///
    /// # Panics
    /// As [`Self::singles`].
    pub fn pairs(&self, at_most: usize) -> Explored {
        let (reference, places) = self.reference();
        let strikes: Vec<(Site, Fault)> = self.strikes(&places).into_iter().filter(|(_, fault)| fault.is_telling()).collect();
        let all = strikes.len() * strikes.len().saturating_sub(1) / 2;
        let pair = |at: usize| {
            // The pairs in order: (0, 1), (0, 2), (1, 2), (0, 3), …
            let mut second = 1;
            let mut before = 0;
            while before + second <= at {
                before += second;
                second += 1;
            }
            [strikes[at - before], strikes[second]]
        };
        let chosen = all.min(at_most);
        let plans = (0..chosen).map(|at| pair(at * all / chosen)).filter(|[first, second]| first.0 != second.0);
        let plans: Vec<Plan> = plans.map(|pair| Plan(pair.to_vec())).collect();
        self.explore("pairs of faults", &reference, places.len(), &plans)
    }

    /// Prepares to look for a run that goes wrong when something was changed meanwhile; looks at nothing yet.
    ///
    /// # Panics
    /// As [`Self::singles`].
    pub fn hunt(&self) -> Hunt<'_, S> {
        let (reference, places) = self.reference();
        let strikes = self.strikes(&places);
        // Not in their order, so that every kind of fault comes soon.
        let stride = [97, 101, 103, 107].into_iter().find(|stride| !strikes.len().is_multiple_of(*stride)).unwrap_or(1);
        let plans = (0..strikes.len()).map(|at| Plan(vec![strikes[at * stride % strikes.len()]]));
        Hunt { trial: self, reference, plans: std::iter::once(Plan::default()).chain(plans).collect() }
    }

    /// The run without faults, which each other one is compared with, and the places that it reaches.
    fn reference(&self) -> (Played, Vec<(Site, Target)>) {
        let (first, second) = (self.play(&Plan::default()), self.play(&Plan::default()));
        assert!(first.problem.is_none(), "without faults: {}", first.problem.unwrap_or_default());
        assert!(first.digest == second.digest, "two runs without faults differ: the story, or what it runs, is not deterministic");
        let places = first.places.clone();
        (first, places)
    }

    /// What can go wrong where.
    fn strikes(&self, places: &[(Site, Target)]) -> Vec<(Site, Fault)> {
        let disturbances = (0..self.disturbances.len()).filter_map(|which| u8::try_from(which).ok()).map(Fault::Disturb);
        let mut strikes = Vec::new();
        for (site, target) in places {
            if matches!(site, Site::Line(_, line) if *line >= LINES) {
                continue;
            }
            strikes.extend(target.faults().map(|fault| (*site, fault)));
            if matches!(site, Site::Request(_)) {
                strikes.extend(disturbances.clone().map(|fault| (*site, fault)));
            }
        }
        strikes
    }

    fn explore(&self, what: &'static str, reference: &Played, places: usize, plans: &[Plan]) -> Explored {
        let (began, next) = (Instant::now(), AtomicUsize::new(0));
        let failures = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Some(problem) = self.try_plan(reference, plan) {
                            failures.lock().push(Failure { plan: plan.clone(), problem });
                        }
                    }
                });
            }
        });
        let mut failures = failures.into_inner();
        failures.sort_by(|a, b| a.plan.cmp(&b.plan));
        let mut faults: BTreeMap<Fault, Count> = BTreeMap::new();
        for (_, fault) in plans.iter().flat_map(|plan| &plan.0) {
            faults.entry(*fault).or_default().runs += 1;
        }
        for (_, fault) in failures.iter().flat_map(|failure| &failure.plan.0) {
            faults.entry(*fault).or_default().failed += 1;
        }
        let failed = failures.len();
        failures.truncate(TOLD);
        Explored { what, places, runs: plans.len(), faults, failures, failed, took: began.elapsed() }
    }

    /// What is wrong with a run.
    pub(crate) fn try_plan(&self, reference: &Played, plan: &Plan) -> Option<String> {
        let played = self.play(plan);
        let wrong = played.problem.clone().or_else(|| played.ending.difference(&reference.ending))?;
        let again = self.play(plan);
        let replayed = if again.digest == played.digest {
            ""
        } else {
            "\nand it is not the same when it is played again: something is not deterministic"
        };
        Some(format!("{wrong}{replayed}"))
    }
}

/// A look for one run that goes wrong. Made by [`Trial::hunt`].
pub struct Hunt<'a, S> {
    trial: &'a Trial<S>,
    reference: Played,
    plans: Vec<Plan>,
}

impl<S: AsyncFn(&World) + Sync> Hunt<'_, S> {
    /// The first run that goes wrong, without faults or with a single one, and how many were played; on this thread.
    pub fn first(&self) -> (usize, Option<Failure>) {
        for (at, plan) in self.plans.iter().enumerate() {
            let played = self.trial.play(plan);
            if let Some(problem) = played.problem.clone().or_else(|| played.ending.difference(&self.reference.ending)) {
                return (at + 1, Some(Failure { plan: plan.clone(), problem }));
            }
        }
        (self.plans.len(), None)
    }
}

/// Every single fault at every place of a story: see [`Trial::new`] for what the two closures do.
///
/// Blocks, on as many threads as there are cores, until all is tried. A test ends with [`Explored::assert`].
///
/// # Panics
/// As [`Trial::singles`].
pub fn under_every_fault<S: AsyncFn(&World) + Sync>(prepare: impl AsyncFnOnce() -> World, story: S) -> Explored {
    Trial::new(prepare, story).singles()
}
