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
//! - `KCP_TEST_KUBECONFIG`: the admin kubeconfig of a kcp that runs already, started with the users of [`target::TOKENS`].

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod dice;
mod generate;
mod lane;
mod memory;
mod normal;
mod plan;
mod report;
mod setup;
mod shrink;
mod target;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use generate::Generator;
use kcp_provider_runtime::cli::kcp_server::{KcpOptions, KcpServer};
use kcp_provider_runtime::cli::servers;
use lane::{Counts, Difference, Lane};
use plan::Operation;
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

async fn run_lane(targets: [Arc<dyn Target>; 2], run: String, seed: u64, number: u64, operations: u64) -> Outcome {
    let mut outcome = Outcome { lane: number, counts: Counts::default(), found: Vec::new(), failed: None };
    let mut lane = match Lane::new(&targets, &format!("{run}-{number}")).await {
        Ok(lane) => lane,
        Err(problem) => {
            outcome.failed = Some(format!("{problem:#}"));
            return outcome;
        }
    };
    let mut generator = Generator::new(seed, number);
    let setup = setup::operations();
    let random = std::iter::repeat_with(|| generator.next()).take(usize::try_from(operations).unwrap());
    let mut done = Vec::new();
    for (index, operation) in
        setup.into_iter().map(|operation| (true, operation)).chain(random.map(|operation| (false, operation))).enumerate()
    {
        let (is_setup, operation) = operation;
        if index % 250 == 249 {
            say(&format!("lane {number}: {index} operations"));
        }
        match lane.run(&operation).await {
            Ok(None) => {}
            Ok(Some(difference)) => {
                let operations = done.iter().chain([&operation]).cloned().collect();
                outcome.found.push(Found { operations, difference });
                if let Err(problem) = lane.heal(&operation).await {
                    outcome.failed = Some(format!("{problem:#}"));
                    break;
                }
            }
            Err(problem) => {
                outcome.failed = Some(format!("{problem:#}"));
                break;
            }
        }
        if outcome.found.len() >= ENOUGH {
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
async fn compare(targets: [Arc<dyn Target>; 2], name: &str) {
    let (seed, lanes, operations) =
        (number("DIFFERENTIAL_SEED", 1), number("DIFFERENTIAL_LANES", 6), number("DIFFERENTIAL_OPERATIONS", 10_000));
    let began = Instant::now();
    // A kcp that is reused has the workspaces of earlier runs.
    let run = format!("{name}{}", std::process::id());
    let tasks: Vec<_> =
        (0..lanes).map(|lane| tokio::spawn(run_lane(targets.clone(), run.clone(), seed, lane, operations.div_ceil(lanes)))).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    let counts: Vec<Counts> = outcomes.iter().map(|outcome| outcome.counts.clone()).collect();
    say(&format!("seed {seed}, {lanes} lanes\n{}", report::table(&counts, began.elapsed())));
    let mut failures: Vec<String> =
        outcomes.iter().filter_map(|outcome| outcome.failed.as_ref().map(|why| format!("lane {}: {why}", outcome.lane))).collect();
    let sorts = sorts(&outcomes);
    for (signature, sort) in &sorts {
        say(&format!("{} × {signature}", sort.count));
    }
    let shrinking = Instant::now();
    for (index, (signature, Sort { count, lane, first })) in sorts.iter().enumerate() {
        let left = SHRINK_WITHIN.saturating_sub(shrinking.elapsed());
        let rerun = async |operations: &[Operation]| first_difference(&targets, &format!("{run}s{index}"), operations).await;
        let (operations, difference) = if number("DIFFERENTIAL_SHRINK", 1) == 0 {
            (first.operations.last().cloned().into_iter().collect(), first.difference.clone())
        } else {
            shrink::shrink(first.operations.clone(), first.difference.clone(), left, rerun).await
        };
        failures.push(format!("{count} × {signature}\n{}", report::difference(seed, *lane, &operations, &difference)));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
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
    let (server, kcp, _folder) = real_kcp().await;
    compare([kcp.clone(), kcp], "self").await;
    drop(server);
}
