//! Invariants of the scheduler and of the runtime: that each can be broken is shown by hand-made events, that none is broken by worlds of the kit.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod audit;
#[allow(dead_code, reason = "each target uses its part of the checker")]
mod checker;
mod embedded;
mod furnish;
mod log;
mod platform;
mod statements;
mod worlds;
