//! Many seeds, on every core, and what came of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kcp_provider_runtime::kit::trial::Played;
use parking_lot::Mutex;

use crate::swarm::Swarm;

/// Failures that are told; the rest are counted.
const TOLD: usize = 3;
/// Between two lines about how far it is.
const PROGRESS: Duration = Duration::from_secs(30);

/// Plays seeds on every core until all are played or the time is over; returns how many were, in order of their seeds what failed.
fn play<T: Send>(from: u64, seeds: u64, limit: Option<Duration>, each: impl Fn(u64) -> Option<T> + Sync) -> (u64, Vec<(u64, T)>) {
    let (began, next, done) = (Instant::now(), AtomicU64::new(from), AtomicU64::new(0));
    let (found, said) = (Mutex::new(Vec::new()), Mutex::new(began));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while limit.is_none_or(|limit| began.elapsed() < limit) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        return;
                    }
                    if let Some(what) = each(seed) {
                        found.lock().push((seed, what));
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let mut said = said.lock();
                    if said.elapsed() >= PROGRESS {
                        *said = Instant::now();
                        eprintln!("{done} of {seeds} seeds after {} s, {} failed", began.elapsed().as_secs(), found.lock().len());
                    }
                }
            });
        }
    });
    let mut found = found.into_inner();
    found.sort_by_key(|(seed, _)| *seed);
    (done.into_inner(), found)
}

/// Plays these seeds and tells of them; whether nothing was wrong.
pub(crate) fn swarm(swarm: &Swarm, from: u64, seeds: u64, limit: Option<Duration>) -> bool {
    let (began, lives) = (Instant::now(), AtomicU64::new(0));
    let (played, failed) = play(from, seeds, limit, |seed| {
        let Played { problem, digest, .. } = swarm.play(seed);
        lives.fetch_add(1, Ordering::Relaxed);
        let problem = problem?;
        let again = swarm.play(seed).digest;
        Some(if again == digest { problem } else { format!("{problem}\nand it is not the same when it is played again") })
    });
    let took = began.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(played).unwrap_or(u32::MAX)) / took;
    println!("swarm: seeds {from} to {}: {played} worlds in {took:.1} s ({rate:.0}/s), {} failed", from + played - 1, failed.len());
    for (seed, problem) in failed.iter().take(TOLD) {
        println!("\nseed {seed} at {}:\n{problem}", commit());
    }
    failed.is_empty()
}

/// Plays these seeds twice; whether each was the same both times.
pub(crate) fn digests(swarm: &Swarm, seeds: u64) -> bool {
    let all = AtomicU64::new(0);
    let (played, differ) = play(1, seeds, None, |seed| {
        let (first, second) = (swarm.play(seed).digest, swarm.play(seed).digest);
        all.fetch_xor(first.rotate_left(u32::try_from(seed % 64).unwrap_or_default()), Ordering::Relaxed);
        (first != second).then_some(())
    });
    println!(
        "digests: {} of {played} seeds are equal when played again; all together {:016x}",
        played - differ.len() as u64,
        all.into_inner()
    );
    for (seed, ()) in differ.iter().take(TOLD) {
        println!("seed {seed} is not");
    }
    differ.is_empty()
}

/// The commit that is simulated, as git names it.
pub(crate) fn commit() -> String {
    let asked = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let told = asked.ok().filter(|asked| asked.status.success()).map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned());
    told.unwrap_or_else(|| "an unknown commit".into())
}
