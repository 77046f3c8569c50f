//! What users see of the platform, on the real kcp. One kcp serves all tests of the process; each test makes workspaces of its own.
//!
//! The target `kcp_embedded` asks the same of the embedded server: these modules are its too, all but `backend`, which starts the server,
//! `leash`, which is about the real one's process, `guard`, which needs admission policies, and `kube`, whose workload cluster is a real one too.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod absence;
mod access;
mod asked;
mod backend;
mod bindings;
mod claims;
mod configured;
mod deletion;
mod direct;
mod doctor;
mod door;
mod events;
mod explain;
mod guard;
mod init;
mod isolation;
#[path = "../reports/kinds.rs"]
mod kinds;
mod kube;
mod leash;
mod leaving;
mod manage;
mod objects;
mod paths;
mod permissions;
mod pins;
mod pools;
mod readiness;
mod reasons;
mod requeue;
mod rolls;
mod schedule;
mod secured;
mod support;
mod turnover;
mod workload;
mod workspaces;
