//! A controller runtime for service providers on kcp, and KCM, the Kubernetes cluster manager built on it.
//!
//! ```text
//!  slice ──endpoints──▶ streams ──news──▶ core ──job──▶ Reconciler ──report──▶ status
//!                       (one wildcard     (caches, index,   gather ▶ decide ▶ apply    (one apply,
//!                        watch per shard   fair queue,      (I/O)    (pure)   (I/O)     or none)
//!                        and kind)         timers)              │
//!                           ▲                 ▲                 │ recheck, our own writes
//!                           └── refresh ──────┴─────────────────┘
//! ```
//!
//! Reading order:
//!
//! 1. [`reconciler`], the seam: all that a provider team writes against. Its items are here at the crate's root too.
//! 2. [`kcm`], a provider on that seam: it schedules tenants' clusters onto the offerings of providers.
//! 3. [`runtime`], which calls reconcilers: streams, caches, queue, writes, retries, configuration. It knows no provider.
//! 4. [`api`], the kinds on the wire, their values, and the manifests that are made from them. It knows nothing of the rest.
//! 5. [`kit`], with which a provider team tests its reconcilers, on [`embedded`], a kcp in memory.
//! 6. [`cli`], the command `kcm`: set-up, the manager, explanations, and a kcp with tenants to play with.
//!
//! `docs/ARCHITECTURE.md` has the code map and the invariants, `docs/CONDITIONS.md` every reason.

// The example's provider, which `kcm dev` runs, names this crate as any provider team does.
extern crate self as kcp_provider_runtime;

pub mod api;
pub mod cli;
pub mod embedded;
pub mod kcm;
pub mod kit;
#[cfg(mutants)]
pub mod mutants;
#[cfg(not(mutants))]
mod mutants;
pub mod reconciler;
pub mod runtime;

pub use reconciler::{
    AccessRule, Actor, CallError, Child, ClusterContext, Context, Deletion, Event, EventType, Failure, Held, Inputs, Kubeconfig, Mode,
    NameChange, Names, Objects, Platform, PlatformClient, ProviderConfig, Recheck, ReconcileError, Reconciler, Removal, Report,
    ReportedCondition, StatusFields, TenantIdentity, Topic, Unavailable, View, WorkloadClient, Workspace, WorkspaceClient,
};
