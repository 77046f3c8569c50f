//! A controller runtime for service providers on kcp, and KCM, the Kubernetes cluster manager built on it.

pub mod api;
pub mod cli;
pub mod reconciler;
pub mod runtime;
