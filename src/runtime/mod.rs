//! The runtime: it knows workspaces, streams, queues and writes, and no provider.

pub mod queue;
pub mod watch;
