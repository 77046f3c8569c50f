//! What users of kcp and of its Go libraries reported, each asked of this runtime on the embedded control plane. `docs/RELIABILITY.md` has the list.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod access;
mod bindings;
mod claims;
#[path = "../seam/courier.rs"]
#[allow(dead_code, reason = "each target uses its part of it")]
mod courier;
mod endpoints;
mod events;
#[path = "../invariants/furnish.rs"]
mod furnish;
mod kinds;
mod leaving;
mod outages;
mod support;
mod told;
