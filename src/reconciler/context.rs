//! What a reconciler is handed beside its object: who the tenant is, the configuration, the clients, and the snapshot of its inputs.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::api::meta::{KindRef, ServiceObject};
use crate::api::names::LogicalCluster;

use super::clients::{Held, PlatformClient, WorkloadClient, WorkspaceClient, decode, describe};
use super::merge::merge;
use super::port::{Answer, Call, CallError, Port, Target, Verb};
use super::secured::Safe;
use super::{Actor, Failure};

/// Everything resolved for one call; made anew for each, valid while it lasts.
pub struct Context<C> {
    /// Where the object lives.
    pub workspace: Workspace,
    /// A stable identifier of the tenant, to derive names of things outside the workspace from.
    pub identity: TenantIdentity,
    /// Which way in the object came.
    pub mode: Mode,
    /// The configuration in force when the call began.
    pub config: Arc<C>,
    /// The wall clock when the call began. A reconciler that measures by it, and not by the machine's clock, can be tested in virtual time.
    pub now: jiff::Timestamp,
    /// The clients.
    pub clusters: ClusterContext,
    pub(crate) inside: Inside,
}

/// The runtime's own part of a context.
pub(crate) struct Inside {
    pub(crate) port: Arc<dyn Port>,
    pub(crate) actor: Actor,
    pub(crate) seen: Seen,
    /// Whether an input was asked for that could not be read.
    pub(crate) starved: AtomicBool,
    pub(crate) snapshot: Mutex<Snapshot>,
    /// Where secrets are kept for the end of the work; `None` for a reconciler that has not declared it.
    pub(crate) safe: Option<Arc<dyn Safe>>,
}

/// A tenant's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its logical cluster, the only key.
    pub logical_cluster: LogicalCluster,
    /// Its path, for people; kcp may not tell it.
    pub path: Option<String>,
}

impl std::fmt::Display for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{path} ({})", self.logical_cluster),
            None => self.logical_cluster.fmt(f),
        }
    }
}

/// A stable identifier of a tenant: the logical cluster's name, or the key of its control plane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantIdentity(Arc<str>);

impl TenantIdentity {
    pub(crate) fn of(logical_cluster: &LogicalCluster) -> Self {
        Self(logical_cluster.as_str().into())
    }

    /// The identifier as text: a DNS label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which way in an object came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Through the virtual workspace of an `APIExport`.
    Kcp,
}

/// The clients of one call. Three types that the compiler tells apart.
#[derive(Clone)]
pub struct ClusterContext {
    /// The tenant's workspace.
    pub control_plane: WorkspaceClient,
    /// The workload cluster; there in every call of a reconciler that declared [`Inputs::workload`](super::Inputs::workload), else `None`.
    pub workload: Option<WorkloadClient>,
    /// The provider workspace.
    pub platform: PlatformClient,
}

/// The object as the server has it, raw: what a whole-object write starts from, so that no unknown field is lost.
pub(crate) struct Snapshot {
    pub(crate) raw: Value,
}

/// Why an input cannot be read, and whether it still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    /// RFC 3339.
    pub(crate) since: String,
    pub(crate) lasted: Duration,
    /// Nothing can be read at all; otherwise the last good state may count for a while.
    pub(crate) hard: bool,
}

/// One input as it was when the call began.
#[derive(Clone, Debug)]
pub(crate) struct Sight<T> {
    pub(crate) value: T,
    pub(crate) trouble: Option<Trouble>,
}

/// A folded view, whatever its type.
pub(crate) type AnyView = Arc<dyn Any + Send + Sync>;

/// All declared inputs as they were when the call began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) children: BTreeMap<KindRef, Sight<Option<Arc<str>>>>,
    pub(crate) names: BTreeMap<KindRef, Sight<Arc<BTreeSet<String>>>>,
    pub(crate) views: BTreeMap<TypeId, Sight<Option<AnyView>>>,
}

impl<C> Context<C> {
    /// Adds the actor's finalizer and a JSON merge patch to the object in one write, under uid and resourceVersion; sends nothing where the
    /// object has both already.
    ///
    /// Creating a child takes what this returns, so that no child can exist whose owner does not wait for it.
    ///
    /// # Errors
    /// A conflict when the object changed since it was read; the next look decides anew. [`Failure::Invalid`], and nothing is sent, for
    /// another object than the one the call is about.
    pub async fn hold<O: ServiceObject>(&self, object: &O, patch: Value) -> Result<Held<O>, CallError> {
        let name = object.object_name();
        let attempted = || format!("hold {}", describe(O::REF, &self.workspace.to_string(), &name));
        // The object's own code; no lock is held around that.
        let meant = object.meta().uid();
        let wanted = {
            let snapshot = self.inside.snapshot.lock();
            let uid = snapshot.raw.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
            if uid != meant {
                return Err(CallError::new(attempted(), Failure::Invalid("the call is about another object".into())));
            }
            let mut wanted = snapshot.raw.clone();
            merge(&mut wanted, &patch);
            if let Some(finalizer) = self.inside.actor.finalizer {
                add_finalizer(&mut wanted, finalizer);
            }
            (wanted != snapshot.raw).then_some(wanted)
        };
        let Some(wanted) = wanted else { return Ok(Held(object.clone())) };
        let call = Call { target: Target::Workspace, kind: O::REF, name: name.clone(), verb: Verb::Replace(wanted) };
        match self.inside.port.call(call).await? {
            Answer::Object(raw) => {
                let held = decode(&raw).map_err(|problem| CallError::new(attempted(), Failure::Undecodable(problem)))?;
                self.inside.snapshot.lock().raw = raw;
                Ok(Held(held))
            }
            Answer::Gone => Err(CallError::new(attempted(), Failure::NotFound)),
        }
    }
}

/// Puts a finalizer at the end of an object's list, unless it is there.
pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|have| have == finalizer)
    {
        list.push(finalizer.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::tenant::KubernetesCluster;

    /// A server that takes what it is told.
    struct Echo;

    #[async_trait::async_trait]
    impl Port for Echo {
        async fn call(&self, call: Call) -> Result<Answer, CallError> {
            match call.verb {
                Verb::Replace(body) => Ok(Answer::Object(body)),
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    fn context(raw: Value) -> Context<()> {
        let (port, workspace): (Arc<dyn Port>, _) = (Arc::new(Echo), LogicalCluster::new("1abc"));
        let clusters = ClusterContext {
            control_plane: WorkspaceClient::new(port.clone(), &workspace),
            workload: None,
            platform: PlatformClient::new(port.clone()),
        };
        let actor = Actor { name: "it", finalizer: Some("a/b"), conditions: &["Ready"] };
        let (starved, snapshot) = (AtomicBool::new(false), Mutex::new(Snapshot { raw }));
        let inside = Inside { port, actor, seen: Seen::default(), starved, snapshot, safe: None };
        let identity = TenantIdentity::of(&workspace);
        let workspace = Workspace { logical_cluster: workspace, path: None };
        Context { workspace, identity, mode: Mode::Kcp, config: Arc::new(()), now: jiff::Timestamp::UNIX_EPOCH, clusters, inside }
    }

    #[tokio::test]
    async fn only_the_object_of_the_call_is_held() {
        let raw = json!({"metadata": {"name": "demo", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
            "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": []}});
        let ours: KubernetesCluster = decode(&raw).unwrap();
        let ctx = context(raw);
        let mut other = ours.clone();
        other.metadata.uid = Some("u2".into());
        assert!(matches!(ctx.hold(&other, json!({})).await.unwrap_err().failure(), Failure::Invalid(_)));
        let held = ctx.hold(&ours, json!({})).await.unwrap();
        assert_eq!(held.object().metadata.finalizers, ["a/b"]);
    }

    #[test]
    fn a_finalizer_is_added_once() {
        let mut object = json!({"metadata": {"name": "demo"}});
        add_finalizer(&mut object, "a/b");
        add_finalizer(&mut object, "a/b");
        assert_eq!(object["metadata"]["finalizers"], json!(["a/b"]));
    }
}
