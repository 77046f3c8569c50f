//! The runtime: it knows workspaces, streams, queues and writes, and no provider.

mod clock;
mod finalizer;
mod port;
pub mod queue;
mod raw;
mod rest;
mod served;
mod status;
mod telemetry;
mod transport;
pub mod watch;
