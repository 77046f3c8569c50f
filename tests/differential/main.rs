//! The differential test: seeded random operations against two servers that must answer the same.
//!
//! Every lane has workspaces of its own on both servers: a provider `p` with the exports `lab` and `store`, the tenants `t1` and `t2`, and
//! `t3` who never binds. Lanes run side by side, so that waiting in one does not stop the others. An operation names everything by
//! symbols (`⟦rv:t1/Widget/default/a⟧`), which each side replaces by what its own server said: thus one plan fits both servers, and
//! still makes sense when parts of it are left out. Answers are compared in a normal form ([`normal`]): what a server chooses freely,
//! such as uids, times and logical clusters, becomes a symbol numbered by first appearance, so that equal symbols mean equal entities;
//! codes, headers that matter, words, bodies, managed fields and sequences of events are compared as they are.
//!
//! Settling windows: none for requests on objects; 5 s for what comes from a cache; up to 20 s for what controllers follow (labels of
//! claimed objects, rights); up to 90 s for binding, unbinding, schema rolls, workspaces and namespaces, each until a stated condition
//! holds on both sides. What does not hold in time is a difference.
//!
//! Environment:
//! - `DIFFERENTIAL_OPERATIONS`: how many random operations (10 000).
//! - `DIFFERENTIAL_SEED`: where the dice begin (1).
//! - `DIFFERENTIAL_LANES`: how many lanes (6).
//! - `DIFFERENTIAL_SHRINK`: 0 shows differences as they were found, without looking for the fewest operations that lead to each (1).
//! - `DIFFERENTIAL_RECORD`: a file for the answers of a real kcp that is compared with itself; without it that is not done.
//! - `DIFFERENTIAL_REPLAY`: such a file, to compare the embedded control plane with it in seconds and without a kcp; seed, lanes and number
//!   of operations are those of the recording.
//! - `KCP_TEST_KUBECONFIG`: the admin kubeconfig of a kcp that runs already, started with the users of [`target::TOKENS`].

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod dice;
mod embedded;
mod generate;
mod lane;
mod memory;
mod normal;
mod plan;
mod recording;
mod report;
mod setup;
mod shrink;
mod target;
mod wrong;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use embedded::Embedded;
use generate::Generator;
use kcp_provider_runtime::cli::kcp_server::{KcpOptions, KcpServer};
use kcp_provider_runtime::cli::servers;
use lane::{Counts, Difference, Lane};
use plan::Operation;
use recording::{Recorded, Recorder};
use target::{Https, TOKENS, Target};

/// How long the shrinking of all differences may take together.
const SHRINK_WITHIN: Duration = Duration::from_mins(5);
/// A lane that differs so often tells nothing new.
const ENOUGH: usize = 40;

/// Writes to standard error, which the test harness does not swallow.
fn say(text: &str) {
    // A closed standard error fails no test.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// The real kcp: one that runs, or one that is started here and ends with the returned value.
async fn real_kcp() -> (Option<KcpServer>, Arc<dyn Target>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(kubeconfig) = std::env::var_os("KCP_TEST_KUBECONFIG") {
        return (None, Arc::new(Https::from_kubeconfig(kubeconfig.as_ref()).await.unwrap()), folder);
    }
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, TOKENS).unwrap();
    let binary = servers::KCP.binary().await.unwrap();
    let options = KcpOptions::new(binary).with_argument(format!("--token-auth-file={}", tokens.display()));
    let server = KcpServer::start(&options, |_| {}).await.unwrap();
    let target = Https::from_kubeconfig(&server.admin_kubeconfig()).await.unwrap();
    (Some(server), Arc::new(target), folder)
}

/// A difference, and the random operations of its lane up to and with the one that differs.
struct Found {
    operations: Vec<Operation>,
    difference: Difference,
}

/// What one lane found.
struct Outcome {
    lane: u64,
    counts: Counts,
    found: Vec<Found>,
    failed: Option<String>,
}

/// Differences that look like one fault.
struct Sort<'a> {
    count: usize,
    lane: u64,
    first: &'a Found,
}

/// How a run is to be.
#[derive(Clone)]
struct Run {
    /// What its workspaces are called by.
    name: String,
    seed: u64,
    lanes: u64,
    /// Of each lane, without the set-up.
    operations: u64,
    recorder: Option<Arc<parking_lot::Mutex<Recorder>>>,
}

impl Run {
    fn new(name: &str) -> Self {
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

async fn run_lane(lane: anyhow::Result<Lane>, run: Run, number: u64) -> Outcome {
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
async fn compare(targets: [Arc<dyn Target>; 2], run: Run) {
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
            (first.operations.last().cloned().into_iter().collect(), first.difference.clone())
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
fn tell(run: &Run, outcomes: &[Outcome], began: Instant) -> Vec<String> {
    let counts: Vec<Counts> = outcomes.iter().map(|outcome| outcome.counts.clone()).collect();
    say(&format!("seed {}, {} lanes\n{}", run.seed, run.lanes, report::table(&counts, began.elapsed())));
    for (signature, sort) in sorts(outcomes) {
        say(&format!("{} × {signature}", sort.count));
    }
    outcomes.iter().filter_map(|outcome| outcome.failed.as_ref().map(|why| format!("lane {}: {why}", outcome.lane))).collect()
}

/// The differences by what they have in common, in the order in which they were first seen: later ones may follow from earlier ones.
fn sorts(outcomes: &[Outcome]) -> Vec<(String, Sort<'_>)> {
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
async fn first_difference(targets: &[Arc<dyn Target>; 2], name: &str, operations: &[Operation]) -> Option<(usize, Difference)> {
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

/// The same operations in two sets of workspaces of one kcp: what differs here is luck, and the comparison must not see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_kcp_answers_as_itself() {
    let Some(file) = std::env::var_os("DIFFERENTIAL_RECORD").map(PathBuf::from) else { return };
    let (server, kcp, _folder) = real_kcp().await;
    let recorder = Arc::new(parking_lot::Mutex::new(Recorder::create(&file).unwrap()));
    compare([kcp.clone(), kcp], Run { recorder: Some(recorder.clone()), ..Run::new("self") }).await;
    recorder.lock().finish().unwrap();
    drop(server);
}

/// The embedded control plane beside a real kcp.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_control_plane_answers_as_a_real_kcp() {
    if ["DIFFERENTIAL_RECORD", "DIFFERENTIAL_REPLAY"].iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    let (server, kcp, _folder) = real_kcp().await;
    compare([kcp, Arc::new(Embedded::start())], Run::new("both")).await;
    drop(server);
}

/// The same with what a real kcp answered before, on a clock of its own: in seconds, and without a kcp.
#[tokio::test(start_paused = true)]
async fn the_embedded_control_plane_answers_as_a_real_kcp_did() {
    let Some(file) = std::env::var_os("DIFFERENTIAL_REPLAY").map(PathBuf::from) else { return };
    let (began, run) = (Instant::now(), Run::new("replay"));
    let target: Arc<dyn Target> = Arc::new(Embedded::start());
    let mut outcomes = Vec::new();
    for number in 0..run.lanes {
        let recorded = Recorded::read(&file, number).unwrap();
        let lane = Lane::replay(target.clone(), &format!("{}-{number}", run.name), recorded).await;
        outcomes.push(run_lane(lane, run.clone(), number).await);
    }
    let mut failures = tell(&run, &outcomes, began);
    for (signature, Sort { count, lane, first }) in sorts(&outcomes) {
        let last = first.operations.last().cloned();
        failures.push(format!("{count} × {signature}\n{}", report::difference(run.seed, lane, last.as_slice(), &first.difference)));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}
