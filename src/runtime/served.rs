//! A reconciler without its types: what the core needs to know of it, and what one call of it takes and comes to.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tracing::error;

use crate::api::config::FieldError;
use crate::api::meta::KindRef;
use crate::api::names::{ObjectKey, ObjectName};
use crate::api::reason::Reason;
use crate::reconciler::{Actor, External, Fold, NameChange, Raised, Seen, Topic, Workspace};

use super::access::Minter;
use super::clock::Moment;
use super::events::Recorder;
use super::external::ExternalWork;
use super::fence;
use super::port::{LivePort, Refused, Written};
use super::queue::Outcome;
use super::raw::Raw;

/// Where a topic comes from: topics of two inputs with the same text are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Feed {
    /// The n-th names input; its topics are heard in one workspace only.
    Names(usize),
    /// The n-th platform input.
    Platform(usize),
    /// The configuration.
    Config,
}

/// A names input without its types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamesSpec {
    pub(crate) kind: KindRef,
    pub(crate) raised: fn(&NameChange) -> Vec<Topic>,
}

/// A platform input without its types.
#[derive(Clone)]
pub(crate) struct ViewSpec {
    pub(crate) id: std::any::TypeId,
    pub(crate) kinds: Vec<KindRef>,
    pub(crate) fold: Fold,
    pub(crate) raised: Raised,
}

/// A configuration in force.
#[derive(Clone)]
pub(crate) struct AnyConfig {
    pub(crate) value: Arc<dyn Any + Send + Sync>,
    pub(crate) poll: Option<Duration>,
    /// The rules for who is served.
    pub(crate) allowed: Arc<[String]>,
    /// The address of kcp as a workload sees it.
    pub(crate) external_url: Option<Arc<str>>,
    /// The purpose of the workload clusters that new work is begun on.
    pub(crate) purpose: Arc<str>,
}

/// Whom the change of an input concerns.
pub(crate) enum Concerned {
    /// Whoever listens to one of these.
    Topics(Vec<Topic>),
    Everybody,
}

impl Concerned {
    /// Asks the provider's function; where it panics nobody can be left out.
    pub(crate) fn of(controller: &str, input: &str, raised: impl FnOnce() -> Vec<Topic>) -> Self {
        fence::called(raised).map_or_else(
            |panic| {
                error!(controller, input, panic, "whom a change concerns cannot be told, for that panicked: everybody is looked at");
                Self::Everybody
            },
            Self::Topics,
        )
    }
}

/// What an object listens to: one topic of a feed, or whatever its changes are about.
pub(crate) type Subscription = (Feed, Option<Topic>);

/// Everything one call needs.
pub(crate) struct Job {
    pub(crate) key: ObjectKey,
    pub(crate) raw: Arc<Raw>,
    pub(crate) seen: Seen,
    /// `None` when none was ever valid; the text says why.
    pub(crate) config: Result<AnyConfig, String>,
    /// The last configuration that was in force, which a deletion does with.
    pub(crate) last_config: Option<AnyConfig>,
    /// Which object counts in place of this one.
    pub(crate) superseded_by: Option<ObjectName>,
    /// The other objects of the kind in the workspace; only where access to it is asked for.
    pub(crate) others: Vec<ObjectName>,
    /// The claims that the workspace's bindings grant, as JSON; likewise.
    pub(crate) claims: Arc<str>,
    pub(crate) port: LivePort,
    /// The base URL of the workspace behind its virtual workspace.
    pub(crate) base: String,
    /// Where kubeconfigs of workspaces come from.
    pub(crate) minter: Option<Arc<Minter>>,
    /// Where its events go.
    pub(crate) recorder: Recorder,
    pub(crate) path: Option<String>,
    pub(crate) external: Option<ExternalWork>,
    pub(crate) moment: Moment,
}

/// What one call came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Wait for this long, then look with inputs listed afresh.
    pub(crate) recheck: Option<Duration>,
    /// What was handed out is to be replaced at this time.
    pub(crate) refresh: Option<Duration>,
    /// An input could not be read: look again as soon as it can.
    pub(crate) starved: bool,
    pub(crate) written: Vec<Written>,
    /// The writes that were refused since their objects are not as the cache has them.
    pub(crate) refused: Vec<Refused>,
    /// `None` for success; the reason otherwise.
    pub(crate) failed: Option<Reason>,
}

/// A reconciler without its types.
#[async_trait]
pub(crate) trait Served: Send + Sync {
    fn actor(&self) -> Actor;
    fn kind(&self) -> KindRef;
    fn children(&self) -> &[KindRef];
    fn names(&self) -> Vec<NamesSpec>;
    fn views(&self) -> Vec<ViewSpec>;
    /// Whether kubeconfigs of workspaces are asked for.
    fn wants_access(&self) -> bool;
    /// Whether one object of the kind counts in each workspace.
    fn is_single(&self) -> bool;
    /// What it makes outside of its tenants' workspaces.
    fn external(&self) -> External;
    /// Whether it keeps secrets for the end of that.
    fn secures(&self) -> bool;
    fn config_kind(&self) -> Option<KindRef>;
    fn read_config(&self, raw: Option<&Raw>) -> Result<Option<AnyConfig>, Vec<FieldError>>;
    fn config_change(&self, before: &AnyConfig, after: &AnyConfig) -> Concerned;
    /// What the object listens to; `None` when the object is not this reconciler's.
    fn topics(&self, raw: &Raw) -> Option<BTreeSet<Subscription>>;
    async fn run(&self, job: Job) -> Ended;
    /// Hears that a workspace has bound, or has unbound; ends in time whatever happens there.
    async fn hear(&self, _workspace: &Workspace, _bound: bool) {}
}
