//! No leaks: the unmodified manager while workspaces bind and unbind, measured where nothing else allocates.
//!
//! The server and its tenants are a process of their own, this program once more, so that every byte that is counted here is the manager's.
//! `cargo test --test leaks` tells the story of a hundred workspaces, `make leaks` that of ten thousand.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the run")]

#[path = "../invariants/furnish.rs"]
mod furnish;
mod manager;
mod server;

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts what this process has allocated, which for the measuring one is the manager.
#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Workspaces unless told otherwise: what takes seconds where nothing is optimised.
const WORKSPACES: usize = 100;

/// Bytes that are allocated now.
fn allocated() -> usize {
    let stats = COUNTED.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// The number after a word of the command line; whatever else a test runner says is for others.
fn number(name: &str) -> Option<usize> {
    std::env::args().skip_while(|argument| argument != name).nth(1)?.parse().ok()
}

fn main() -> ExitCode {
    // One thread, as the binary has: `num_alive_tasks` and the counted bytes then belong to one moment.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(kubeconfig) = std::env::args().skip_while(|argument| argument != server::SERVE).nth(1) {
        runtime.block_on(server::serve(&kubeconfig));
        return ExitCode::SUCCESS;
    }
    let problems = runtime.block_on(manager::measure(number("--workspaces").unwrap_or(WORKSPACES)));
    for problem in &problems {
        eprintln!("{problem}");
    }
    println!("{} passed, {} failed", u8::from(problems.is_empty()), u8::from(!problems.is_empty()));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
