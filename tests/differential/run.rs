//! A run: lanes side by side, counts, and what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::generate::Generator;
use super::lane::{Counts, Difference, Lane};
use super::plan::Operation;
use super::recording::Recorder;
use super::target::Target;
use super::{report, setup, shrink};

/// How long the shrinking of all differences may take together.
const SHRINK_WITHIN: Duration = Duration::from_mins(5);
/// A lane that differs so often tells nothing new.
const ENOUGH: usize = 40;

/// Writes to standard error, which the test harness does not swallow.
pub(crate) fn say(text: &str) {
    // A closed standard error fails no test.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// A difference, and the random operations of its lane up to and with the one that differs.
pub(crate) struct Found {
    pub(crate) operations: Vec<Operation>,
    pub(crate) difference: Difference,
}

/// What one lane found.
pub(crate) struct Outcome {
    pub(crate) lane: u64,
    pub(crate) counts: Counts,
    pub(crate) found: Vec<Found>,
    pub(crate) failed: Option<String>,
}

/// Differences that look like one fault.
pub(crate) struct Sort<'a> {
    pub(crate) count: usize,
    pub(crate) lane: u64,
    pub(crate) first: &'a Found,
}

/// How a run is to be.
#[derive(Clone)]
pub(crate) struct Run {
    /// What its workspaces are called by.
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) lanes: u64,
    /// Of each lane, without the set-up.
    pub(crate) operations: u64,
    pub(crate) recorder: Option<Arc<parking_lot::Mutex<Recorder>>>,
}

impl Run {
    pub(crate) fn new(name: &str) -> Self {
        let lanes = number("DIFFERENTIAL_LANES", 6);
        let operations = number("DIFFERENTIAL_OPERATIONS", 10_000).div_ceil(lanes);
        // A kcp that is reused has the workspaces of earlier runs.
        let name = format!("{name}{}", std::process::id());
        Self { name, seed: number("DIFFERENTIAL_SEED", 1), lanes, operations, recorder: None }
    }

    /// Set-up (true) and random operations of one lane.
    fn plan(&self, lane: u64) -> impl Iterator<Item = (bool, Operation)> + use<> {
        let mut generator = Generator::new(self.seed, lane);
        let random = std::iter::repeat_with(move || generator.next()).take(usize::try_from(self.operations).unwrap());
        setup::operations().into_iter().map(|operation| (true, operation)).chain(random.map(|operation| (false, operation)))
    }
}

pub(crate) async fn run_lane(lane: anyhow::Result<Lane>, run: Run, number: u64) -> Outcome {
    let mut outcome = Outcome { lane: number, counts: Counts::default(), found: Vec::new(), failed: None };
    let mut lane = match lane {
        Ok(lane) => lane,
        Err(problem) => {
            outcome.failed = Some(format!("{problem:#}"));
            return outcome;
        }
    };
    let mut done = Vec::new();
    // Where a recording and a server went apart, they stay apart.
    let mut apart = BTreeSet::new();
    for (index, (is_setup, operation)) in run.plan(number).enumerate() {
        if index % 250 == 249 {
            say(&format!("lane {number}: {index} operations"));
        }
        match lane.run(&operation).await {
            Ok(None) => {
                if let Some(recorder) = &run.recorder {
                    recorder.lock().write(number, &operation, &lane.answers).unwrap();
                }
            }
            Ok(Some(difference)) => {
                let operations = done.iter().chain([&operation]).cloned().collect();
                let objects = operation.objects();
                if objects.is_disjoint(&apart) {
                    outcome.found.push(Found { operations, difference });
                }
                if lane.is_replay() {
                    apart.extend(objects);
                } else if let Err(problem) = lane.heal(&operation).await {
                    outcome.failed = Some(format!("{problem:#}"));
                    break;
                }
            }
            Err(problem) => {
                outcome.failed = Some(format!("{problem:#}"));
                break;
            }
        }
        // After a difference the two sides no longer have the same history.
        if outcome.found.len() >= ENOUGH || (run.recorder.is_some() && !outcome.found.is_empty()) {
            break;
        }
        if !is_setup {
            done.push(operation);
        }
    }
    outcome.counts = lane.counts.clone();
    outcome
}

/// Runs all lanes, tells the counts, and fails with each sort of difference, shrunk.
pub(crate) async fn compare(targets: [Arc<dyn Target>; 2], run: Run) {
    let began = Instant::now();
    let tasks: Vec<_> = (0..run.lanes)
        .map(|number| {
            let (targets, run) = (targets.clone(), run.clone());
            tokio::spawn(async move {
                let lane = Lane::new(&targets, &format!("{}-{number}", run.name)).await;
                run_lane(lane, run, number).await
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    let mut failures = tell(&run, &outcomes, began);
    let shrinking = Instant::now();
    for (index, (signature, Sort { count, lane, first })) in sorts(&outcomes).iter().enumerate() {
        let left = SHRINK_WITHIN.saturating_sub(shrinking.elapsed());
        let rerun = async |operations: &[Operation]| first_difference(&targets, &format!("{}s{index}", run.name), operations).await;
        let (operations, difference) = if number("DIFFERENTIAL_SHRINK", 1) == 0 {
            (shrink::related(&first.operations), first.difference.clone())
        } else if let Some(shrunk) = shrink::shrink(first.operations.clone(), first.difference.clone(), left, rerun).await {
            shrunk
        } else {
            say(&format!(
                "came once, and not when all of its lane was played again: {}",
                report::difference(run.seed, *lane, &first.operations[first.operations.len() - 1..], &first.difference)
            ));
            continue;
        };
        failures.push(format!("{count} × {signature}\n{}", report::difference(run.seed, *lane, &operations, &difference)));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

/// Tells the counts and the sorts of differences; returns why lanes ended early.
pub(crate) fn tell(run: &Run, outcomes: &[Outcome], began: Instant) -> Vec<String> {
    let counts: Vec<Counts> = outcomes.iter().map(|outcome| outcome.counts.clone()).collect();
    say(&format!("seed {}, {} lanes\n{}", run.seed, run.lanes, report::table(&counts, began.elapsed())));
    for (signature, sort) in sorts(outcomes) {
        say(&format!("{} × {signature}", sort.count));
    }
    outcomes.iter().filter_map(|outcome| outcome.failed.as_ref().map(|why| format!("lane {}: {why}", outcome.lane))).collect()
}

/// The differences by what they have in common, in the order in which they were first seen: later ones may follow from earlier ones.
pub(crate) fn sorts(outcomes: &[Outcome]) -> Vec<(String, Sort<'_>)> {
    let mut sorts: BTreeMap<String, Sort<'_>> = BTreeMap::new();
    for outcome in outcomes {
        for found in &outcome.found {
            let sort = sorts.entry(report::signature(&found.difference)).or_insert(Sort { count: 0, lane: outcome.lane, first: found });
            sort.count += 1;
            if found.operations.len() < sort.first.operations.len() {
                (sort.lane, sort.first) = (outcome.lane, found);
            }
        }
    }
    let mut sorts: Vec<_> = sorts.into_iter().collect();
    sorts.sort_by_key(|(_, sort)| sort.first.operations.len());
    sorts
}

/// Runs operations on fresh workspaces, up to the first difference.
pub(crate) async fn first_difference(targets: &[Arc<dyn Target>; 2], name: &str, operations: &[Operation]) -> Option<(usize, Difference)> {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let name = format!("{name}-{}", RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let mut lane = Lane::new(targets, &name).await.ok()?;
    for operation in setup::operations() {
        if let Some(difference) = lane.run(&operation).await.ok()? {
            return Some((0, difference));
        }
    }
    for (index, operation) in operations.iter().enumerate() {
        if let Some(difference) = lane.run(operation).await.ok()? {
            return Some((index, difference));
        }
    }
    None
}
