//! A controller runtime for service providers on kcp, and KCM, the Kubernetes cluster manager built on it.

// The example's provider, which `kcm dev` runs, names this crate as any provider team does.
extern crate self as kcp_provider_runtime;

pub mod api;
pub mod cli;
pub mod kcm;
pub mod reconciler;
pub mod runtime;
