//! The tester tested: each named defect of our own protocol has to be found.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kcp_provider_runtime::mutants::{Mutant, switch_on};
use parking_lot::Mutex;

use crate::life;
use crate::swarm::Swarm;

/// Swarms that a defect may survive before it counts as not found.
const SEEDS: u64 = 5000;

/// How a defect was found.
struct Found {
    mutant: Mutant,
    by: Option<(String, String)>,
    runs: u64,
}

/// Hunts all of them on every core, and tells by what each was found; whether all were.
pub(crate) fn all() -> bool {
    let (trial, swarm, began) = (life::trial(crate::TWO), Swarm::new(), Instant::now());
    let (hunt, next, found) = (trial.hunt(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    switch_on(Some(*mutant));
                    let (runs, failure) = hunt.first();
                    let mut one = Found {
                        mutant: *mutant,
                        by: failure.map(|failure| (format!("faults \"{}\"", failure.plan), failure.problem)),
                        runs: runs as u64,
                    };
                    for seed in 1..=SEEDS {
                        if one.by.is_some() {
                            break;
                        }
                        one.runs += 1;
                        one.by = swarm.play(seed).problem.map(|problem| (format!("seed {seed}"), problem));
                    }
                    let by = one.by.as_ref().map_or("NOT FOUND", |(by, _)| by);
                    eprintln!("{:<24} {:>5} runs  {by}", format!("{:?}", one.mutant), one.runs);
                    found.lock().push(one);
                }
            });
        }
    });
    let found = found.into_inner();
    let survived: Vec<Mutant> = found.iter().filter(|one| one.by.is_none()).map(|one| one.mutant).collect();
    for Found { mutant, by, .. } in &found {
        if let Some((by, problem)) = by {
            let first = problem.lines().find(|line| !line.is_empty()).unwrap_or_default();
            println!("{mutant:?}: {by}: {}", first.chars().take(160).collect::<String>());
        }
    }
    println!(
        "mutants: {} of {} found in {:.1} s{}",
        found.len() - survived.len(),
        found.len(),
        began.elapsed().as_secs_f64(),
        if survived.is_empty() { String::new() } else { format!("; NOT found: {survived:?}") }
    );
    survived.is_empty()
}
