//! A cluster stays with its provider: what could move it does not, and what takes its provider away is reported.

use serde_json::{Value, json};

use crate::support::expect::{as_manager, cleared, newly_placed, projected_as, refused, take_rules};
use crate::support::platform::{
    CLUSTERS, MACHINE_TYPES, Manager, OFFERINGS, PROJECTIONS, PROVIDERS, Platform, Tenant, condition, eventually,
};

const PROVIDER: &str = "mid";

/// A platform where `mid` offers eu-de, a manager, and a tenant whose cluster `demo` runs there.
async fn pinned() -> (Platform, Manager, Tenant) {
    let platform = Platform::new().await;
    platform.machine_type("m-4-16", "4", "16Gi", &["eu-de"]).await;
    offered(&platform).await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider(PROVIDER).await;
    tenant.order("demo", "eu-de", "1.34.2", "2", "8Gi").await;
    tenant.scheduled("demo").await;
    (platform, manager, tenant)
}

async fn offered(platform: &Platform) {
    platform.offering("mid-standard", PROVIDER, &["eu-de"], &["1.34.2"], &["m-4-16"]).await;
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

#[tokio::test]
async fn a_pinned_cluster_stays_when_better_offerings_come_and_when_its_offering_goes() {
    let (platform, manager, tenant) = pinned().await;
    let projection = tenant.projection("demo").await.unwrap();

    // A provider that comes first by name, with a type that fits better: a new cluster goes there.
    platform.machine_type("a-2-8", "2", "8Gi", &["eu-de"]).await;
    platform.offering("aaa-best", "aaa", &["eu-de"], &["1.34.2"], &["a-2-8"]).await;
    platform.offering("aaa-mid", PROVIDER, &["eu-de"], &["1.34.2"], &["a-2-8", "m-4-16"]).await;
    tenant.provider("aaa").await;
    let at_aaa = |cluster: &Value, _: &Value| cluster["spec"]["providerRef"]["name"] == "aaa";
    newly_placed(&tenant, "a new cluster goes to aaa", ["2", "8Gi"], at_aaa).await;
    let moved = json!({"metadata": {"labels": {"looked-at": "again"}}});
    tenant.client().patch(&CLUSTERS, "default", "demo", &moved).await.unwrap();
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": {"nodePools": [pool(4)]}})).await.unwrap();
    let scaled = projected_as(&tenant, "demo", &json!([{"name": "workers", "replicas": 4, "type": "m-4-16"}])).await;
    assert_eq!(scaled["spec"]["providerRef"], projection["spec"]["providerRef"]);
    let demo = tenant.scheduled("demo").await;
    assert_eq!(demo["spec"]["providerRef"]["name"], PROVIDER);

    for name in ["mid-standard", "aaa-mid"] {
        platform.client().delete(&OFFERINGS, "", name).await.unwrap();
    }
    let message = refused(&tenant, "demo", "OfferingNotFound").await;
    let expected = "provider mid has no offering for region eu-de and version 1.34.2, nor any other; they are served by: aaa";
    assert_eq!(message, expected);
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&scaled), "what runs stays as it is");
    offered(&platform).await;
    let back = cleared(&tenant, "demo", "the offering is back").await;
    assert_eq!(back["spec"]["providerRef"]["name"], PROVIDER);
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&scaled));
    manager.stop().await;
}

fn pool(replicas: u32) -> Value {
    json!({"name": "workers", "replicas": replicas, "capabilities": {"cpu": "2", "memory": "8Gi"}})
}

#[tokio::test]
async fn a_pinned_cluster_whose_provider_went_says_so_until_it_is_back() {
    let (platform, manager, tenant) = pinned().await;
    platform.offering("aaa-best", "aaa", &["eu-de"], &["1.34.2"], &["m-4-16"]).await;
    tenant.provider("aaa").await;
    let projection = tenant.projection("demo").await.unwrap();

    tenant.client().delete(&PROVIDERS, "", PROVIDER).await.unwrap();
    let message = refused(&tenant, "demo", "ProviderNotConfigured").await;
    assert_eq!(message, "region eu-de and version 1.34.2 are served by: mid; this workspace holds no Provider of that name");
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&projection), "what runs stays as it is");

    tenant.provider(PROVIDER).await;
    cleared(&tenant, "demo", "the Provider is back").await;
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&projection));
    manager.stop().await;
}

#[tokio::test]
async fn a_tenant_can_move_its_cluster_neither_by_its_spec_nor_by_projection_or_status() {
    let (_platform, manager, tenant) = pinned().await;
    let own = tenant.client();
    let spec = |spec: Value| json!({"spec": spec});
    let kept = "it is set by the scheduler, keep it or use kubectl apply";
    let cases = [
        ("another region", json!({"region": "eu-nl"}), "region is fixed once providerRef is set"),
        ("another provider", json!({"providerRef": {"name": "aaa"}}), kept),
        ("no provider", json!({"providerRef": null}), kept),
    ];
    for (why, change, message) in cases {
        let refused = own.patch(&CLUSTERS, "default", "demo", &spec(change)).await.expect_err(why);
        assert_eq!(refused.code(), Some(422), "{why}: {refused}");
        assert!(refused.to_string().contains(message), "{why}: {refused}");
    }
    let refused = [
        own.patch(&PROJECTIONS, "default", "demo", &spec(json!({"providerRef": {"name": "aaa"}}))).await,
        own.patch(&PROJECTIONS.subresource("status"), "default", "demo", &json!({"status": {"ready": true}})).await,
        own.patch(&CLUSTERS.subresource("status"), "default", "demo", &json!({"status": {"ready": true}})).await,
        own.delete(&PROJECTIONS, "default", "demo").await.map(|()| Value::Null),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), Some(403));
    }
    manager.stop().await;
}

#[tokio::test]
async fn a_cluster_stored_without_its_provider_keeps_the_one_of_its_projection() {
    let platform = Platform::new().await;
    platform.machine_type("a-2-8", "2", "8Gi", &["eu-de"]).await;
    platform.machine_type("m-4-16", "4", "16Gi", &["eu-de"]).await;
    platform.offering("aaa-best", "aaa", &["eu-de"], &["1.34.2"], &["a-2-8"]).await;
    let tenant = platform.tenant().await;
    tenant.provider("aaa").await;
    tenant.provider(PROVIDER).await;
    let demo = tenant.order("demo", "eu-de", "1.34.2", "2", "8Gi").await;
    let writer = as_manager(&platform, &tenant).await;
    let pools = json!([{"name": "workers", "replicas": 3, "type": "m-4-16"}]);
    let owner = json!({"apiVersion": demo["apiVersion"], "kind": demo["kind"], "name": "demo", "uid": demo["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": false});
    let stored = json!({"apiVersion": PROJECTIONS.api_version(), "kind": "KubernetesCluster",
        "metadata": {"name": "demo", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"providerRef": {"name": PROVIDER}, "region": "eu-de", "version": "1.34.2", "nodePools": pools}});
    eventually("the projection is written", async || writer.create(&PROJECTIONS, "default", &stored).await.is_ok()).await;

    // While its provider offers nothing, the cluster waits for that one though another would do.
    let manager = platform.manager().await;
    let message = refused(&tenant, "demo", "OfferingNotFound").await;
    assert!(message.starts_with("provider mid has no offering for region eu-de and version 1.34.2"), "{message}");
    offered(&platform).await;
    let cluster = cleared(&tenant, "demo", "its provider offers it").await;
    assert_eq!(cluster["spec"]["providerRef"]["name"], PROVIDER);
    let projection = projected_as(&tenant, "demo", &pools).await;
    assert_eq!(projection["spec"], stored["spec"]);
    manager.stop().await;
}

#[tokio::test]
async fn clusters_that_are_ready_stay_ready_while_the_catalog_cannot_be_read() {
    let (platform, manager, tenant) = pinned().await;
    tenant.report(&as_manager(&platform, &tenant).await, "demo", true, "up").await;
    tenant.wait("demo", "Ready", "True", "Ready").await;
    manager.stop().await;
    let ready = tenant.cluster("demo").await;
    let projection = tenant.projection("demo").await.unwrap();

    // A manager that starts into it knows nothing but the objects themselves.
    let rules = take_rules(&platform, &[OFFERINGS, MACHINE_TYPES]).await;
    let manager = Manager::start_unready(platform.options().await, None);
    tenant.order("late", "eu-de", "1.34.2", "2", "8Gi").await;
    let message = refused(&tenant, "late", "CatalogUnavailable").await;
    eventually("what is missing for being ready is named", async || {
        let missing = manager.handle.missing().unwrap_or_default();
        missing.len() == 2 && missing.iter().all(|line| line.contains(" is forbidden: "))
    })
    .await;
    assert!(message.contains(" may not be read: LIST: ") && message.contains(" (since 20"), "what failed, since when: {message}");
    let changed = json!({"metadata": {"labels": {"looked-at": "again"}}});
    let touched = tenant.client().patch(&CLUSTERS, "default", "demo", &changed).await.unwrap();
    tenant.order("later", "eu-de", "1.34.2", "2", "8Gi").await;
    refused(&tenant, "later", "CatalogUnavailable").await;
    let after = tenant.cluster("demo").await;
    assert_eq!(after["status"], ready["status"]);
    assert_eq!(version(&after), version(&touched), "nobody wrote it");
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&projection));

    // A spec that changes needs a decision, and says that there is none; what runs stays.
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": {"nodePools": [pool(5)]}})).await.unwrap();
    refused(&tenant, "demo", "CatalogUnavailable").await;
    assert_eq!(version(&tenant.projection("demo").await.unwrap()), version(&projection));

    // Deleting needs no catalog.
    tenant.client().delete(&CLUSTERS, "default", "later").await.unwrap();
    eventually("a cluster is deleted without a catalog", async || {
        tenant.client().find(&CLUSTERS, "default", "later").await.unwrap().is_none()
    })
    .await;

    rules.give_back().await;
    cleared(&tenant, "late", "the rules are back").await;
    let demo = tenant.scheduled("demo").await;
    assert_eq!(condition(&demo, "Scheduled").unwrap()["observedGeneration"], demo["metadata"]["generation"]);
    projected_as(&tenant, "demo", &json!([{"name": "workers", "replicas": 5, "type": "m-4-16"}])).await;
    manager.stop().await;
}
