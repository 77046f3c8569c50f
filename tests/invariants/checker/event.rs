//! One event: a request and what it changed.
//!
//! Pure: values.

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

/// The tenant's cluster.
pub(crate) const TENANT: &str = "kubernetesclusters.kubernetes.edge-connect.eu";
/// The projection.
pub(crate) const PROJECTION: &str = "kubernetesclusters.provider.kubernetes.edge-connect.eu";
/// A tenant's Provider.
pub(crate) const PROVIDER: &str = "providers.provider.edge-connect.eu";
/// An offering of the catalog.
pub(crate) const OFFERING: &str = "kubernetesclusterofferings.provider.kubernetes.edge-connect.eu";
/// A machine type of the catalog.
pub(crate) const TYPE: &str = "virtualmachinetypes.provider.edge-connect.eu";

/// Who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Principal {
    /// The manager, when it is not the status reconciler that speaks: its streams and reads too.
    Scheduler,
    /// The manager as the field manager `cluster-status`.
    Status,
    /// A provider's controller.
    Provider,
    /// Whoever uses a workspace.
    Tenant,
    /// The server's own controllers, and anybody else.
    #[default]
    Other,
}

impl Principal {
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Scheduler | Self::Status)
    }
}

/// Which object, or which kind of a workspace where the name is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The logical cluster, as the request wrote it.
    pub(crate) workspace: String,
    /// `<plural>.<group>`; the plural alone in the core group.
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(workspace: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { workspace: workspace.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The object of the same name of another kind.
    pub(crate) fn of(&self, kind: &str) -> Self {
        Self { kind: kind.into(), ..self.clone() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workspace, kind, namespace, name } = self;
        write!(f, "{kind} {namespace}/{name} in {workspace}")
    }
}

/// A request that was answered, or a change that followed from one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) at: Timestamp,
    pub(crate) principal: Principal,
    pub(crate) user: String,
    /// The field manager.
    pub(crate) manager: String,
    /// The verb of access rules; `""` for a change that no request named.
    pub(crate) verb: String,
    pub(crate) key: Key,
    pub(crate) subresource: String,
    /// As the source says; `None` where it does not know, and the state that was last seen counts.
    pub(crate) before: Option<Value>,
    /// The object after a write; `None` where it is gone, or nothing was written.
    pub(crate) after: Option<Value>,
    /// The HTTP status; 0 for a change that no request named.
    pub(crate) code: u16,
    /// The request's path.
    pub(crate) path: String,
    /// The request's body; null for none.
    pub(crate) body: Value,
    /// Whether the object was there before and is not after.
    pub(crate) gone: bool,
}

impl Event {
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "")
    }

    /// What becomes of the object: `Some(None)` is its end, `None` no change.
    #[allow(clippy::option_option, reason = "a change to nothing is another thing than no change")]
    pub(crate) fn change(&self, before: Option<&Value>) -> Option<Option<Value>> {
        match &self.after {
            Some(after) if before != Some(after) => Some(Some(after.clone())),
            None if self.gone => Some(None),
            _ => None,
        }
    }
}
