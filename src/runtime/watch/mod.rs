//! Follows one kind on one endpoint, so that a cache equals what the server holds.
//!
//! # Guarantees
//! - A `Reset` is a complete list that carried a resourceVersion; nothing else says that what it does not name is gone.
//! - Between two resets the outputs follow the server's history from the reset's resourceVersion without a gap.
//! - Whatever the server does, one stream costs a bounded number of requests in a minute.
//! - Once the server behaves, the cache equals it within the longest deadline plus the longest wait.
//!
//! # Assumptions
//! - In one stream resourceVersions ascend, and a DELETED event carries that of the deletion (kcp and kube-apiserver on etcd do).
//! - The shell hands back what a request answered in order, under the attempt number of that request.
//!
//! # Caveats
//! - Health speaks of the stream. When a cache became stale is for the shell to stamp, when health leaves [`Health::Live`].

mod machine;
pub(crate) mod orders;
pub(crate) mod shell;
mod state;
#[cfg(test)]
mod tests;
mod types;

pub use machine::Machine;
pub use types::{Answer, Ending, Failure, Frame, Health, Input, Output, Page, Settings};
