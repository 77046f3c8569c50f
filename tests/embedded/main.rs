//! The embedded control plane by itself: what its users see of it, without a real server beside it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod bindings;
mod ends;
mod invitations;
mod lives;
mod owners;
mod robust;
mod seldom;
mod shards;
mod support;
mod versions;
mod watches;
