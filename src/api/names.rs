//! Names as types: what addresses a workspace and an object in it.
//!
//! Pure: parsed once at the border, cheap to clone, ordered by bytes so that every walk over them is deterministic.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a kcp logical cluster, for example `2hx7k1zvvxv5hcw0`.
///
/// It is what kcp writes into the annotation `kcp.io/cluster` and it is the only correct key of a tenant: a workspace that is
/// deleted and made anew under the same path has another one. In onboarding mode it is the `ControlPlane`'s key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogicalCluster(Arc<str>);

impl LogicalCluster {
    /// Takes the name as the server wrote it.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LogicalCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Namespace and name of an object inside one workspace; the namespace is empty for a cluster-scoped kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace, or `""` for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectName {
    /// A name in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The name of a cluster-scoped object.
    pub fn cluster_scoped(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Arc::from(""), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// What every cache, queue and log line is keyed by: the workspace, then the name inside it.
///
/// Two tenants may use the same namespace and name; a key without the workspace would merge them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The tenant's logical cluster.
    pub workspace: LogicalCluster,
    /// Namespace and name in it.
    pub name: ObjectName,
}

impl ObjectKey {
    /// Joins a workspace and a name in it.
    pub const fn new(workspace: LogicalCluster, name: ObjectName) -> Self {
        Self { workspace, name }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.workspace, self.name)
    }
}
