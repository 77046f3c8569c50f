//! The simulator: the unmodified manager in worlds of the kit, where everything goes wrong that can. `docs/SIMULATION.md` explains it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the run")]

#[path = "../invariants/checker/mod.rs"]
#[allow(dead_code, reason = "each target uses its part of the checker")]
mod checker;
#[path = "../differential/dice.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses its part of the dice")]
mod dice;
#[path = "../invariants/embedded.rs"]
mod embedded;
#[path = "../invariants/furnish.rs"]
mod furnish;
mod life;
#[cfg(mutants)]
mod mutants;
#[path = "../invariants/platform.rs"]
mod platform;
mod seeds;
mod speed;
mod swarm;

use std::process::ExitCode;

/// A third of a run is allocation, and the allocator of the C library is slow at it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::time::Duration;

use clap::{Parser, Subcommand};
use kcp_provider_runtime::kit::faults::Plan;
use kcp_provider_runtime::kit::trial::{Explored, Played};

use swarm::Swarm;

/// Whose life is told to single faults: one cluster that goes and one that stays.
const TWO: &[&str] = &["demo", "stays"];
/// Whose life is told to pairs of faults, of which there are very many.
const ONE: &[&str] = &["demo"];

/// The simulator: the unmodified manager in worlds where everything goes wrong that can.
///
/// Each command prints what it counted and ends with 1 when anything was wrong. A failure says what plays it again.
#[derive(Parser)]
#[command(after_help = "Examples:
  make sweep
  cargo test --profile sim --test simulation -- swarm --seeds 1000
  cargo test --profile sim --test simulation -- replay '17:crash-after 23.0:lost'
  cargo test --profile sim --test simulation -- replay-seed 4711")]
struct Arguments {
    /// The single faults, unless told otherwise.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Every single fault at every place of a cluster's life.
    Singles,
    /// Pairs of faults, evenly chosen.
    Pairs {
        /// How many.
        #[arg(long, default_value_t = 50_000)]
        runs: usize,
    },
    /// Random swarms: tenants, an evil one, and a platform that changes.
    Swarm {
        /// How many.
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
        /// The first.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Stops after this many minutes, however many were played.
        #[arg(long)]
        minutes: Option<u64>,
    },
    /// Every life and every swarm twice, and whether both are equal; prints a digest of all, which is equal in every process.
    Digests {
        /// How many seeds.
        #[arg(long, default_value_t = 1000)]
        seeds: u64,
    },
    /// How many lives of clusters there are in a second, on one core.
    Speed,
    /// Every named defect of our own protocol, one after the other: whether this finds it. Needs the build of `make mutants`.
    #[cfg(mutants)]
    Mutants,
    /// Plays a cluster's life with these faults.
    Replay {
        /// As a failure says it: `17:crash-after 23.0:lost`.
        plan: Plan,
        /// The life of a pair of faults, which is of one cluster.
        #[arg(long)]
        pair: bool,
        /// Prints every request too.
        #[arg(long)]
        trace: bool,
    },
    /// Plays one swarm.
    ReplaySeed {
        /// As a failure says it.
        seed: u64,
        /// Prints every request too.
        #[arg(long)]
        trace: bool,
    },
}

/// Prints what an exploration found; whether nothing was wrong.
fn told(explored: &Explored) -> bool {
    println!("{explored}");
    if explored.failed > 0 {
        println!("\nat {}", seeds::commit());
    }
    explored.failed == 0
}

fn replayed(played: Played, trace: bool) -> bool {
    let Played { digest, struck, problem, requests, .. } = played;
    for (at, sent) in requests.iter().enumerate().filter(|_| trace) {
        println!("{at:>4} {sent}");
    }
    println!("struck: {struck}\ndigest: {digest:016x}\n{}", problem.as_deref().unwrap_or("nothing was wrong"));
    problem.is_none()
}

fn main() -> ExitCode {
    let sound = match Arguments::parse().command.unwrap_or(Command::Singles) {
        Command::Singles => told(&life::trial(TWO).singles()),
        Command::Pairs { runs } => told(&life::trial(ONE).pairs(runs)),
        Command::Swarm { seeds, from, minutes } => seeds::swarm(&Swarm::new(), from, seeds, minutes.map(Duration::from_mins)),
        Command::Digests { seeds } => seeds::digests(&Swarm::new(), seeds),
        Command::Speed => speed::measure(),
        #[cfg(mutants)]
        Command::Mutants => mutants::all(),
        Command::Replay { plan, pair, trace } => replayed(life::trial(if pair { ONE } else { TWO }).play(&plan), trace),
        Command::ReplaySeed { seed, trace } => replayed(Swarm::new().play(seed), trace),
    };
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
