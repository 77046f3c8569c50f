//! THE SEAM: everything a provider team writes for one Service API kind.
//!
//! A provider brings a [`Reconciler`]; the runtime watches, queues, calls it, writes its status, keeps its finalizer and retries. Objects come
//! in by shared reference, answers go out by value. What a reconciler reads beside its object it declares when it is built, in [`Inputs`].
//!
//! ```
//! use async_trait::async_trait;
//! use kcp_provider_runtime::api::projection::Projection;
//! use kcp_provider_runtime::api::reason::Reason;
//! use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Reconciler, Report, ReportedCondition};
//!
//! /// Says of every projection that it is ready.
//! struct Optimist;
//!
//! #[async_trait]
//! impl Reconciler for Optimist {
//!     type Object = Projection;
//!     type Config = ();
//!     type Status = ();
//!     type Error = CallError;
//!
//!     fn actor(&self) -> Actor {
//!         Actor { name: "optimist", finalizer: None, conditions: &["Ready"] }
//!     }
//!
//!     async fn create_or_update(&self, _: &Context<()>, _: &Projection) -> Result<Report, CallError> {
//!         Ok(Report::new(()).with(ReportedCondition::new("Ready", true, Reason::Ready, "as good as done")))
//!     }
//!
//!     async fn delete(&self, _: &Context<()>, _: &Projection) -> Result<Deletion, CallError> {
//!         Ok(Deletion::Done)
//!     }
//! }
//! ```

mod access;
mod clients;
mod config;
mod context;
mod event;
mod inputs;
mod merge;
mod port;
mod report;
mod secured;

use async_trait::async_trait;

use crate::api::meta::ServiceObject;
use crate::api::reason::Reason;

pub use access::{AccessRule, Kubeconfig};
pub use clients::{Held, PlatformClient, Removal, WorkloadClient, WorkspaceClient};
pub use config::{ProviderConfig, no_settings};
pub use context::{ClusterContext, Context, Mode, TenantIdentity, Workspace};
pub use event::{Event, EventType};
pub use inputs::{Child, Inputs, NameChange, Names, Objects, Platform, Topic, Unavailable, View};
pub use port::{CallError, Failure};
pub use report::{Deletion, Recheck, Report, ReportedCondition, StatusFields};

pub(crate) use clients::{decode_text, describe};
pub(crate) use context::{AnyView, Inside, Seen, Sight, Snapshot, Trouble, add_finalizer};
pub(crate) use inputs::{Declared, External, Fold, PlatformInput, Raised};
pub(crate) use port::{Answer, Call, Port, Target, Verb};
pub(crate) use report::cut;
pub(crate) use secured::Safe;

/// Everything a provider team writes for one Service API kind.
///
/// # Contract
/// The two verbs are idempotent, may be cancelled at any `.await` (a deadline, a shutdown), and never run twice at once for one object and one
/// reconciler. What they read through [`Context`] and the declared inputs is one consistent snapshot taken when the call began.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// What tenants write.
    type Object: ServiceObject;
    /// What platform operators write; `()` for a provider without configuration.
    type Config: ProviderConfig;
    /// The status fields this reconciler alone owns; `()` for conditions only.
    type Status: StatusFields;
    /// For the operator; what a tenant should read is a [`Report`].
    type Error: ReconcileError;

    /// Who this is; asked once, when it is served.
    fn actor(&self) -> Actor;

    /// Makes the world as the object says, and reports how far it is.
    async fn create_or_update(&self, ctx: &Context<Self::Config>, object: &Self::Object) -> Result<Report<Self::Status>, Self::Error>;

    /// Called whenever `deletionTimestamp` is set, finalizer or not; [`Deletion::Done`] without a finalizer is a no-op.
    async fn delete(&self, ctx: &Context<Self::Config>, object: &Self::Object) -> Result<Deletion<Self::Status>, Self::Error>;

    /// The status fields while it cannot be called, for the object cannot be read or there is no configuration; `generation` is the object's.
    /// `None`, the default, leaves them as they are: right where none of them tells of success.
    fn unevaluated(&self, generation: i64) -> Option<Self::Status> {
        let _ = generation;
        None
    }

    /// A workspace has bound the export. Nothing unless you write it.
    ///
    /// Told of every bound workspace after each start, and of each that binds later: more than once of one that has not changed, so let it be
    /// idempotent, and compare what you keep for workspaces with what you are told after a start. It is told beside the calls about objects, in
    /// no order with them: a cluster of this workspace may be reconciled first.
    ///
    /// Eight of one reconciler run at once, for one workspace one after the other. What takes more than 60 s is dropped, and that, like a panic,
    /// is logged and not repeated: what must come to be belongs into a reconcile.
    async fn bound(&self, workspace: &Workspace) {
        let _ = workspace;
    }

    /// A workspace has unbound the export: its last binding is gone, and its service objects were before. Nothing unless you write it.
    ///
    /// Told once, under the terms of [`Self::bound`], by the word of the server alone: of a binding that was deleted, or that a complete list does
    /// not have. What cannot be reached has not unbound, and neither has whoever is behind an endpoint that leaves the slice: that is asked once more
    /// who is bound there, for an hour at most where it does not answer. Nothing is told of who left while no process ran.
    async fn unbound(&self, workspace: &Workspace) {
        let _ = workspace;
    }
}

/// Who a reconciler is towards the server, the logs and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Field manager, metric label and log field; a DNS label. Where kubeconfigs are asked for, the account in a tenant's workspace is called after it:
    /// no other provider that the workspace binds may have the same.
    pub name: &'static str,
    /// The finalizer that [`Context::hold`] adds and [`Deletion::Done`] drops.
    pub finalizer: Option<&'static str>,
    /// The condition types it owns, at least one, the first of which also carries what the runtime has to say when it does not call the reconciler.
    pub conditions: &'static [&'static str],
}

/// An error of a reconciler: it is logged and counted by its reason, and the object is tried again with backoff.
pub trait ReconcileError: std::error::Error + Send + Sync + 'static {
    /// One word of a closed list, used as the metric label.
    fn reason(&self) -> Reason;
}
