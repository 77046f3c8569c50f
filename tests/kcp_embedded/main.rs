//! What users see of the platform, on the embedded server: the tests of the target `kcp`, which asks the real one.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../kcp/absence.rs"]
mod absence;
#[path = "../kcp/access.rs"]
mod access;
#[path = "../kcp/asked.rs"]
mod asked;
mod backend;
#[path = "../kcp/bindings.rs"]
mod bindings;
#[path = "../kcp/claims.rs"]
mod claims;
#[path = "../kcp/configured.rs"]
mod configured;
#[path = "../kcp/deletion.rs"]
mod deletion;
#[path = "../kcp/direct.rs"]
mod direct;
#[path = "../kcp/doctor.rs"]
mod doctor;
#[path = "../kcp/door.rs"]
mod door;
#[path = "../kcp/events.rs"]
mod events;
#[path = "../kcp/explain.rs"]
mod explain;
#[path = "../kcp/init.rs"]
mod init;
#[path = "../kcp/isolation.rs"]
mod isolation;
#[path = "../reports/kinds.rs"]
mod kinds;
#[path = "../kcp/leaving.rs"]
mod leaving;
#[path = "../kcp/manage.rs"]
mod manage;
#[path = "../kcp/objects.rs"]
mod objects;
#[path = "../kcp/paths.rs"]
mod paths;
#[path = "../kcp/permissions.rs"]
mod permissions;
#[path = "../kcp/pins.rs"]
mod pins;
#[path = "../kcp/pools.rs"]
mod pools;
#[path = "../kcp/readiness.rs"]
mod readiness;
#[path = "../kcp/reasons.rs"]
mod reasons;
#[path = "../kcp/requeue.rs"]
mod requeue;
#[path = "../kcp/rolls.rs"]
mod rolls;
#[path = "../kcp/schedule.rs"]
mod schedule;
#[path = "../kcp/secured.rs"]
mod secured;
#[path = "../kcp/support/mod.rs"]
mod support;
#[path = "../kcp/turnover.rs"]
mod turnover;
#[path = "../kcp/workload.rs"]
mod workload;
#[path = "../kcp/workspaces.rs"]
mod workspaces;
