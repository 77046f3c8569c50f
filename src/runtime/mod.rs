//! The runtime: it knows workspaces, streams, queues and writes, and no provider.

pub mod queue;
mod raw;
mod rest;
mod transport;
pub mod watch;
