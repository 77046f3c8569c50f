//! The runtime: it knows workspaces, streams, queues and writes, and no provider.

mod clock;
mod finalizer;
pub mod queue;
mod raw;
mod rest;
mod status;
mod transport;
pub mod watch;
