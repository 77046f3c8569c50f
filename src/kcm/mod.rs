//! KCM, the Kubernetes cluster manager: the first provider on the runtime.
//!
//! Its pure half decides and never acts: [`catalog`] is the platform's catalog as one immutable value, [`schedule`] is the one decision,
//! [`explain`] tells how it came about, [`project`] is what a provider then gets to see, and [`topics`] says which change concerns whom.

mod advice;
pub mod catalog;
pub mod explain;
mod judge;
mod message;
mod nearest;
pub mod plan;
pub mod project;
mod readiness;
pub mod ready;
mod refusal;
mod requests;
pub mod schedule;
mod scheduler;
pub mod topics;

pub use readiness::{Readiness, RolledUp};
pub use scheduler::{KcmError, Scheduler};
