//! What the scheduler asks of the server before it destroys or releases anything, over a server of three answers.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::api::names::LogicalCluster;
use crate::api::tenant::ProviderRef;
use crate::kcm::project::desired;
use crate::kcm::schedule::PoolType;
use crate::reconciler::{
    Answer, AnyView, Call, ClusterContext, Inside, Mode, PlatformClient, Port, Seen, Sight, Snapshot, TenantIdentity, Verb, Workspace,
    WorkspaceClient,
};

/// A server with one tenant object and one projection, which may refuse to delete; it notes what it is asked.
struct Server {
    cluster: Option<Value>,
    projection: Option<Value>,
    refuses: bool,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Port for Server {
    async fn call(&self, call: Call) -> Result<Answer, CallError> {
        let what = if call.kind == Projection::REF { "projection" } else { "cluster" };
        self.asked.lock().push(format!("{} {what}", call.verb.word()));
        let stored = if call.kind == Projection::REF { &self.projection } else { &self.cluster };
        match call.verb {
            Verb::Get => stored.clone().map(Answer::Object).ok_or_else(|| CallError::new("get", Failure::NotFound)),
            Verb::Delete { .. } if self.refuses => Err(CallError::new("delete", Failure::Forbidden("no rule allows it".to_owned()))),
            Verb::Delete { .. } => Ok(Answer::Gone),
            verb => panic!("{verb:?} is not expected"),
        }
    }
}

fn cluster(uid: &str) -> KubernetesCluster {
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "namespace": "default", "uid": uid, "generation": 1, "finalizers": [PROJECTION_FINALIZER]},
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": [
            {"name": "web", "replicas": 3, "capabilities": {"cpu": "4", "memory": "16Gi"}}]},
    }))
    .unwrap()
}

fn projection_of(uid: &str) -> Projection {
    let mut projection = desired(&cluster(uid), "otc", &[PoolType { name: "web".to_owned(), type_: "m".to_owned() }]);
    projection.metadata.uid = Some("p1".to_owned());
    projection
}

/// A projection that nobody of ours made.
fn foreign() -> Projection {
    let mut projection = projection_of("u1");
    projection.metadata.owner_references.clear();
    projection
}

impl Server {
    fn new(cluster: Option<KubernetesCluster>, projection: Option<Projection>) -> Self {
        let wire = |value: serde_json::Result<Value>| value.unwrap();
        Self {
            cluster: cluster.map(|cluster| wire(serde_json::to_value(cluster))),
            projection: projection.map(|projection| wire(serde_json::to_value(projection))),
            refuses: false,
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

/// The scheduler, and a context whose cache shows this projection.
fn context(server: &Arc<Server>, cached: Option<Projection>) -> (Scheduler, Context<ProviderConfig>) {
    let scheduler = Scheduler::new(&mut Inputs::new());
    let logical_cluster = LogicalCluster::new("2hx7k1z");
    let cached = cached.map(|projection| serde_json::to_string(&projection).unwrap().into());
    let seen = Seen { children: [(Projection::REF, Sight { value: cached, trouble: None })].into(), ..Seen::default() };
    let port: Arc<dyn Port> = server.clone();
    let context = Context {
        identity: TenantIdentity::of(&logical_cluster),
        mode: Mode::Kcp,
        config: Arc::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
        clusters: ClusterContext {
            control_plane: WorkspaceClient::new(port.clone(), &logical_cluster),
            workload: None,
            platform: PlatformClient::new(port.clone()),
        },
        workspace: Workspace { logical_cluster, path: None },
        inside: Inside {
            safe: None,
            port,
            actor: scheduler.actor(),
            seen,
            starved: AtomicBool::new(false),
            snapshot: Mutex::new(Snapshot { raw: Value::Null }),
        },
    };
    (scheduler, context)
}

/// The same, where provider otc offers what the cluster asks for.
fn offered(server: &Arc<Server>, cached: Projection) -> (Scheduler, Context<ProviderConfig>) {
    let (scheduler, mut ctx) = context(server, Some(cached));
    let offering = json!({"providerRef": {"name": "otc"}, "availableRegions": ["eu-de"], "availableVersions": ["1.34.2"],
        "availableVirtualMachineTypes": ["m"]});
    let type_ = json!({"providerMachineType": "any", "cpu": "4", "memory": "16Gi", "availableRegions": ["eu-de"]});
    let (offering, type_) = (serde_json::from_value(offering).unwrap(), serde_json::from_value(type_).unwrap());
    let catalog: AnyView =
        Arc::new(Catalog::default().apply([Change::Type("m", Some(&type_)), Change::Offering("otc-eu", Some(&offering))]));
    ctx.inside.seen.views = [(TypeId::of::<Catalog>(), Sight { value: Some(catalog), trouble: None })].into();
    let names = Arc::new(BTreeSet::from(["otc".to_owned()]));
    ctx.inside.seen.names = [(Provider::REF, Sight { value: names, trouble: None })].into();
    (scheduler, ctx)
}

#[tokio::test]
async fn a_foreign_projection_is_not_said_to_be_its_tenants_to_delete() {
    let server = Arc::new(Server::new(None, None));
    let (scheduler, ctx) = offered(&server, foreign());
    let report = scheduler.create_or_update(&ctx, &cluster("u1")).await.unwrap();
    let [decided, projected] = report.conditions() else { panic!("{report:?}") };
    assert_eq!((decided.reason, projected.reason), (Reason::Scheduled, Reason::ForeignProjection));
    assert!(projected.message.ends_with("order the cluster under another name, or ask the platform's operator"), "{projected:?}");
    assert_eq!(server.asked(), Vec::<String>::new(), "it is left alone");
}

#[tokio::test]
async fn a_projection_that_somebody_deletes_is_said_to_be_going_and_is_not_written() {
    let server = Arc::new(Server::new(None, None));
    let mut going = projection_of("u1");
    going.metadata.deletion_timestamp = Some("2026-11-30T00:00:00Z".to_owned());
    going.metadata.finalizers = vec!["otc.example.org/machines".to_owned()];
    going.spec.version = "1.33.6".to_owned();
    let (scheduler, ctx) = offered(&server, going);
    let mut demo = cluster("u1");
    demo.spec.provider_ref = Some(ProviderRef { name: "otc".to_owned() });
    ctx.inside.snapshot.lock().raw = serde_json::to_value(&demo).unwrap();
    let report = scheduler.create_or_update(&ctx, &demo).await.unwrap();
    let [decided, projected] = report.conditions() else { panic!("{report:?}") };
    assert_eq!((decided.reason, projected.status, projected.reason), (Reason::Scheduled, ConditionStatus::False, Reason::Pending));
    let message =
        "somebody is deleting the projection, which waits for: otc.example.org/machines; only once it is gone can it be created anew";
    assert_eq!(projected.message, message);
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cluster_that_names_a_provider_it_does_not_live_with_is_looked_at_by_the_clock() {
    let server = Arc::new(Server::new(None, None));
    let (scheduler, ctx) = offered(&server, projection_of("u1"));
    for (named, looked_at) in [("otc", Recheck::OnChange), ("aws", Recheck::After(Duration::from_mins(5)))] {
        let mut demo = cluster("u1");
        demo.spec.provider_ref = Some(ProviderRef { name: named.to_owned() });
        ctx.inside.snapshot.lock().raw = serde_json::to_value(&demo).unwrap();
        let report = scheduler.create_or_update(&ctx, &demo).await.unwrap();
        assert_eq!(report.next_look(), looked_at, "its topics are those of {named}, it lives with otc");
        assert_eq!(server.asked(), Vec::<String>::new(), "nothing is rewritten");
    }
}

#[tokio::test]
async fn an_orphan_is_deleted_when_the_server_confirms_whose_name_it_bears() {
    let server = Arc::new(Server::new(Some(cluster("u2")), None));
    let (scheduler, ctx) = context(&server, Some(projection_of("u1")));
    let report = scheduler.create_or_update(&ctx, &cluster("u2")).await.unwrap();
    assert_eq!(server.asked(), ["get cluster", "delete projection"]);
    let said: Vec<_> = report.conditions().iter().map(|said| (said.type_, said.status, said.reason)).collect();
    assert_eq!(
        said,
        [(SCHEDULED, ConditionStatus::Unknown, Reason::NotEvaluated), (PROJECTED, ConditionStatus::False, Reason::Pending)],
        "nothing was decided yet, and Projected says what goes first"
    );
}

#[tokio::test]
async fn what_looks_like_an_orphan_to_a_late_cache_stays() {
    for live in [Some(cluster("u1")), None] {
        // The cache still shows the incarnation u2, and the projection of the one that the server has by now.
        let server = Arc::new(Server::new(live, None));
        let (scheduler, ctx) = context(&server, Some(projection_of("u1")));
        let report = scheduler.create_or_update(&ctx, &cluster("u2")).await.unwrap();
        assert_eq!(server.asked(), ["get cluster"], "nothing is deleted");
        assert_eq!(report, Report::unchanged().recheck(Recheck::Backoff));
    }
}

#[tokio::test]
async fn a_finalizer_goes_only_on_the_servers_own_word() {
    for cached in [None, Some(foreign())] {
        let server = Arc::new(Server::new(None, Some(projection_of("u1"))));
        let (scheduler, ctx) = context(&server, cached.clone());
        let done = scheduler.delete(&ctx, &cluster("u1")).await.unwrap();
        assert_eq!(server.asked(), ["get projection", "delete projection"], "the cache shows {cached:?}, the server has ours");
        assert_eq!(done, Deletion::Done);

        let server = Arc::new(Server::new(None, Some(foreign())));
        let (scheduler, ctx) = context(&server, cached);
        assert_eq!(scheduler.delete(&ctx, &cluster("u1")).await.unwrap(), Deletion::Done);
        assert_eq!(server.asked(), ["get projection"], "another's projection is left alone");
    }
}

#[tokio::test]
async fn a_refused_deletion_is_said_once_and_then_fails() {
    let server = Arc::new(Server { refuses: true, ..Server::new(None, None) });
    let (scheduler, ctx) = context(&server, Some(projection_of("u1")));
    let mut demo = cluster("u1");
    let Deletion::Pending(report) = scheduler.delete(&ctx, &demo).await.unwrap() else { panic!("it is not gone") };
    let [said] = report.conditions() else { panic!("{report:?}") };
    assert_eq!((said.type_, said.reason), (PROJECTED, Reason::Deleting));
    assert!(said.message.starts_with("the projection cannot be deleted: ") && said.message.contains("no rule allows it"), "{said:?}");

    let written = json!({"conditions": [{"type": PROJECTED, "status": "False", "reason": "Deleting", "message": said.message,
        "observedGeneration": 1, "lastTransitionTime": "2026-11-30T00:00:00Z"}]});
    demo.status = Some(serde_json::from_value(written).unwrap());
    scheduler.delete(&ctx, &demo).await.expect_err("the operator's log and metrics hear of it from then on");
}
