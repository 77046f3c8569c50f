//! How clusters end: nothing of them stays, and nothing of anybody else goes.

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::kcp_admin::WORKSPACES;
use serde_json::{Value, json};

use crate::support::kcp;
use crate::support::platform::{BINDINGS, CLUSTERS, Manager, PROJECTIONS, Platform, SOON, Tenant, condition, eventually, served};
use crate::support::provider::MACHINES;

const FINALIZER: &str = "kubernetes.edge-connect.eu/cluster-projection";
/// What somebody else keeps a tenant's cluster with.
const HOLD: &str = "tenant.example.org/hold";

/// A platform with the small catalog, a running manager, and a tenant of provider otc.
async fn set_up() -> (Platform, Manager, Tenant) {
    let (platform, manager, tenant) = served().await;
    (platform, manager, tenant)
}

impl Tenant {
    async fn delete(&self, name: &str) {
        self.client().delete(&CLUSTERS, "default", name).await.unwrap();
    }

    async fn gone(&self, name: &str) {
        self.client().wait_gone(&CLUSTERS, "default", name, SOON).await.unwrap();
    }

    async fn set_finalizers(&self, name: &str, finalizers: Value) {
        self.client().patch(&CLUSTERS, "default", name, &json!({"metadata": {"finalizers": finalizers}})).await.unwrap();
    }
}

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_cluster_waits_for_what_its_provider_still_takes_down() {
    let (platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    assert_eq!(finalizers(&tenant.scheduled("demo").await), [FINALIZER]);
    let inside = platform.inside(&tenant).await;
    tenant.keep_projection(&inside, "demo", true).await;

    tenant.delete("demo").await;

    // The manager may hear of the deletion before it hears what keeps the projection.
    let names = |cluster: &Value, type_: &str| condition(cluster, type_).unwrap()["message"].as_str().unwrap().contains(MACHINES);
    for type_ in ["Projected", "Ready"] {
        tenant.wait("demo", type_, "False", "Deleting").await;
        eventually("what keeps it is named", async || names(&tenant.cluster("demo").await, type_)).await;
    }
    assert_eq!(tenant.cluster("demo").await["status"]["ready"], false);
    tenant.leaving_projection("demo").await;
    assert_eq!(finalizers(&tenant.cluster("demo").await), [FINALIZER], "it is released when the server has the projection no longer");

    tenant.keep_projection(&inside, "demo", false).await;
    tenant.gone("demo").await;
    assert!(tenant.projection("demo").await.is_none(), "the projection went first");
    manager.stop().await;
}

#[tokio::test]
async fn a_manager_that_was_away_finishes_a_deletion() {
    let (platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    manager.stop().await;

    tenant.delete("demo").await;
    assert_eq!(finalizers(&tenant.cluster("demo").await), [FINALIZER]);

    let manager = platform.manager().await;
    tenant.gone("demo").await;
    assert!(tenant.projection("demo").await.is_none());
    manager.stop().await;
}

#[tokio::test]
async fn a_stripped_finalizer_leaves_no_orphan() {
    let (_platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    // Without the manager nobody puts the finalizer back, and nobody but the workspace can clean up.
    manager.stop().await;

    tenant.set_finalizers("demo", Value::Null).await;
    tenant.delete("demo").await;

    tenant.gone("demo").await;
    tenant.client().wait_gone(&PROJECTIONS, "default", "demo", SOON).await.expect("the workspace collects what has lost its owner");
}

#[tokio::test]
async fn a_stripped_finalizer_comes_back_though_the_cluster_cannot_be_placed_as_it_is_now() {
    let (_platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let finalizers = tenant.scheduled("demo").await["metadata"]["finalizers"].clone();
    let greedy = json!([{"name": "workers", "replicas": 3, "capabilities": {"cpu": "64", "memory": "16Gi"}}]);
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": {"nodePools": greedy}})).await.unwrap();
    tenant.wait("demo", "Scheduled", "False", "CapabilityMismatch").await;

    tenant.set_finalizers("demo", Value::Null).await;

    let is_held = |cluster: &Value| cluster["metadata"]["finalizers"] == finalizers;
    tenant.client().wait_for(&CLUSTERS, "default", "demo", "to be held again", SOON, is_held).await.unwrap();
    manager.stop().await;
}

#[tokio::test]
async fn an_orphan_of_an_earlier_cluster_goes_before_the_new_one_is_scheduled() {
    let (platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "8", "32Gi").await;
    let earlier = tenant.scheduled("demo").await;
    let inside = platform.inside(&tenant).await;
    tenant.keep_projection(&inside, "demo", true).await;
    manager.stop().await;
    tenant.set_finalizers("demo", Value::Null).await;
    tenant.delete("demo").await;
    tenant.gone("demo").await;
    let later = tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;

    let manager = platform.manager().await;

    let waiting = tenant.wait("demo", "Projected", "False", "Pending").await;
    assert_eq!(condition(&waiting, "Scheduled").unwrap()["status"], "Unknown", "nothing is decided yet: {waiting}");
    assert!(condition(&waiting, "Projected").unwrap()["message"].as_str().unwrap().contains("earlier cluster"), "{waiting}");
    assert!(waiting["spec"].get("providerRef").is_none(), "nothing of the orphan is taken over");
    let orphan = tenant.leaving_projection("demo").await;
    assert_eq!(orphan["metadata"]["ownerReferences"][0]["uid"], earlier["metadata"]["uid"]);
    tenant.keep_projection(&inside, "demo", false).await;
    tenant.scheduled("demo").await;
    let projection = tenant.projection("demo").await.unwrap();
    assert_eq!(projection["metadata"]["ownerReferences"][0]["uid"], later["metadata"]["uid"]);
    assert_eq!(projection["spec"]["nodePools"][0]["type"], "m-4-16");
    manager.stop().await;
}

#[tokio::test]
async fn a_projection_that_somebody_else_made_is_left_alone() {
    let (platform, manager, tenant) = set_up().await;
    let inside = platform.inside(&tenant).await;
    let body = json!({"apiVersion": PROJECTIONS.api_version(), "kind": "KubernetesCluster", "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2", "nodePools": [{"name": "x", "replicas": 1, "type": "m-8-32"}]}});
    eventually("a foreign projection", async || inside.create(&PROJECTIONS, "default", &body).await.is_ok()).await;
    let foreign = tenant.projection("demo").await.unwrap();

    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;

    tenant.wait("demo", "Projected", "False", "ForeignProjection").await;
    assert_eq!(tenant.projection("demo").await.unwrap(), foreign, "it is not overwritten");
    tenant.delete("demo").await;
    tenant.gone("demo").await;
    assert_eq!(tenant.projection("demo").await.unwrap(), foreign, "nor deleted");

    // Once it is out of the way, the name is free.
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.wait("demo", "Projected", "False", "ForeignProjection").await;
    inside.delete(&PROJECTIONS, "default", "demo").await.unwrap();
    tenant.scheduled("demo").await;
    manager.stop().await;
}

#[tokio::test]
async fn unbinding_with_live_clusters_ends_clean() {
    let (platform, manager, tenant) = set_up().await;
    for name in ["one", "two"] {
        tenant.order(name, "eu-de", "1.34.2", "4", "16Gi").await;
    }
    tenant.scheduled("one").await;
    tenant.scheduled("two").await;
    let inside = platform.inside(&tenant).await;
    tenant.keep_projection(&inside, "two", true).await;

    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();

    // A binding that is going is still served: the tenant reads what is waited for.
    tenant.wait("two", "Ready", "False", "Deleting").await;
    tenant.gone("one").await;
    tenant.keep_projection(&inside, "two", false).await;
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    manager.forgets().await;
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
    // Bound anew, the workspace shows whether anything was left.
    platform.bind(&tenant.workspace).await;
    tenant.served().await;
    for kind in [&CLUSTERS, &PROJECTIONS] {
        assert_eq!(tenant.client().list(kind, "").await.unwrap(), Vec::<Value>::new());
    }
    manager.stop().await;
}

#[tokio::test]
async fn nothing_is_created_in_a_workspace_whose_binding_is_going() {
    let (platform, manager, tenant) = set_up().await;
    tenant.order("placed", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("placed").await;
    tenant.order("unplaced", "eu-de", "1.33.6", "4", "16Gi").await;
    tenant.wait("unplaced", "Scheduled", "False", "OfferingNotFound").await;
    tenant.set_finalizers("placed", json!([FINALIZER, HOLD])).await;
    tenant.set_finalizers("unplaced", json!([HOLD])).await;
    let created = |manager: &Manager| manager.requests().into_iter().filter(|((verb, _), _)| verb == "create").collect::<Vec<_>>();
    let before = created(&manager);

    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();

    // Our finalizer goes as ever, though the binding is half gone: it is still served.
    let kept_by = |expected: &'static [&'static str]| move |cluster: &Value| finalizers(cluster) == expected;
    tenant.client().wait_for(&CLUSTERS, "default", "placed", "to be kept by its tenant only", SOON, kept_by(&[HOLD])).await.unwrap();
    assert!(tenant.projection("placed").await.is_none());
    let binding = tenant.client().get(&BINDINGS, "", export::EXPORT).await.unwrap();
    assert!(binding["metadata"]["deletionTimestamp"].is_string(), "{binding}");
    // What would let both be placed comes too late; the offering is seen when another tenant's cluster is placed by it.
    platform.offering("otc-old", "otc", &["eu-de"], &["1.33.6"], &["m-4-16"]).await;
    let witness = platform.tenant().await;
    witness.provider("otc").await;
    witness.order("witness", "eu-de", "1.33.6", "4", "16Gi").await;
    witness.scheduled("witness").await;
    assert_eq!(tenant.client().list(&PROJECTIONS, "").await.unwrap(), Vec::<Value>::new());
    let after = created(&manager);
    let sum = |counts: &[((String, u16), u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(sum(&after), sum(&before) + 1, "only the witness: {after:?}");

    for name in ["placed", "unplaced"] {
        tenant.set_finalizers(name, Value::Null).await;
    }
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    eventually("only the witness is left", async || manager.size("workspaces") == 1 && manager.size("objects") == 1).await;
    manager.stop().await;
}

#[tokio::test]
async fn deleting_a_workspace_with_live_clusters_ends_clean() {
    let (_platform, manager, tenant) = set_up().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    let name = tenant.name().await;
    let admin = kcp().await.admin;

    admin.delete_workspace("root", &name).await.unwrap();

    admin.wait_gone(&WORKSPACES, "", &name, SOON).await.unwrap();
    manager.forgets().await;
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
    manager.stop().await;
}
