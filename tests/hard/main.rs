//! Hard days on a real kcp: processes that are killed, networks that lie, servers that go away. Every request and every commit of these days is
//! in kcp's audit log (`RequestResponse`, `blocking-strict`), and the checker of `tests/invariants` reads it.
//!
//! Reading order: `backend` (the kcp of this process), `stage` (a platform, its managers as processes, and its part of the log), then the days.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../invariants/audit/mod.rs"]
mod audit;
mod backend;
#[path = "../invariants/checker/mod.rs"]
#[allow(dead_code, reason = "each target uses its part of the checker")]
mod checker;
#[path = "../differential/dice.rs"]
#[allow(dead_code, reason = "each target uses its part of the dice")]
mod dice;
mod fixpoint;
mod kills;
mod network;
mod outages;
mod scenario;
mod stage;
#[path = "../kcp/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses its part of the support")]
mod support;
mod tenants;
