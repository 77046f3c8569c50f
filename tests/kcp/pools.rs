//! What a change of the spec or of the catalog does to the node pools of a cluster that runs.

use serde_json::{Value, json};

use crate::support::expect::{cleared, newly_placed, projected_as, refused};
use crate::support::platform::{CLUSTERS, PROJECTIONS, Platform, Tenant, condition, served};

fn pool(name: &str, replicas: u32, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "replicas": replicas, "capabilities": {"cpu": cpu, "memory": memory}})
}

async fn change(tenant: &Tenant, name: &str, spec: Value) {
    tenant.client().patch(&CLUSTERS, "default", name, &json!({"spec": spec})).await.unwrap();
}

fn typed(name: &str, replicas: u32, type_: &str) -> Value {
    json!({"name": name, "replicas": replicas, "type": type_})
}

#[tokio::test]
async fn a_pool_that_is_removed_leaves_the_projection_and_a_version_of_the_offering_enters_it() {
    let platform = Platform::new().await;
    platform.machine_type("m-4-16", "4", "16Gi", &["eu-de"]).await;
    platform.machine_type("m-8-32", "8", "32Gi", &["eu-de"]).await;
    platform.offering("otc-standard", "otc", &["eu-de"], &["1.33.6", "1.34.2"], &["m-4-16", "m-8-32"]).await;
    let manager = platform.manager().await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    let pools = json!([pool("workers", 3, "4", "16Gi"), pool("large", 1, "8", "32Gi")]);
    tenant.order_spec("demo", json!({"region": "eu-de", "version": "1.33.6", "nodePools": pools})).await;
    tenant.scheduled("demo").await;
    projected_as(&tenant, "demo", &json!([typed("workers", 3, "m-4-16"), typed("large", 1, "m-8-32")])).await;

    change(&tenant, "demo", json!({"nodePools": [pool("large", 1, "8", "32Gi")]})).await;
    let left = projected_as(&tenant, "demo", &json!([typed("large", 1, "m-8-32")])).await;
    let record = left["metadata"]["annotations"]["kubernetes.edge-connect.eu/requests"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(record).unwrap(), json!({"large": {"cpu": "8", "memory": "32Gi"}}), "what it was chosen for");

    change(&tenant, "demo", json!({"version": "1.34.2"})).await;
    let cluster = tenant.scheduled("demo").await;
    let projection = tenant.projection("demo").await.unwrap();
    assert_eq!(projection["spec"]["version"], "1.34.2");
    assert_eq!(projection["spec"]["nodePools"], json!([typed("large", 1, "m-8-32")]));

    // A version that the provider does not offer is reported, and what runs stays as it is.
    change(&tenant, "demo", json!({"version": "1.99.0"})).await;
    let message = refused(&tenant, "demo", "OfferingNotFound").await;
    assert!(message.starts_with("provider otc has no offering for region eu-de and version 1.99.0"), "{message}");
    let refused = tenant.wait("demo", "Projected", "False", "NotScheduled").await;
    assert_eq!(refused["spec"]["providerRef"], cluster["spec"]["providerRef"]);
    assert_eq!(tenant.projection("demo").await.unwrap()["metadata"]["resourceVersion"], projection["metadata"]["resourceVersion"]);
    manager.stop().await;
}

#[tokio::test]
async fn scaling_changes_replicas_alone_and_a_changed_request_chooses_anew() {
    let (platform, manager, tenant) = served().await;
    tenant.order("demo", "eu-de", "1.34.2", "3", "8Gi").await;
    tenant.scheduled("demo").await;
    let before = projected_as(&tenant, "demo", &json!([typed("workers", 3, "m-4-16")])).await;

    platform.machine_type("m-3-8", "3", "8Gi", &["eu-de"]).await;
    platform.offering("otc-standard", "otc", &["eu-de"], &["1.34.2"], &["m-3-8", "m-4-16", "m-8-32"]).await;
    let fits = json!([typed("workers", 3, "m-3-8")]);
    newly_placed(&tenant, "a new cluster has the new type", ["3", "8Gi"], |_, projection| projection["spec"]["nodePools"] == fits).await;

    change(&tenant, "demo", json!({"nodePools": [pool("workers", 5, "3", "8Gi")]})).await;
    let scaled = projected_as(&tenant, "demo", &json!([typed("workers", 5, "m-4-16")])).await;
    let mut expected = before["spec"].clone();
    expected["nodePools"][0]["replicas"] = 5.into();
    assert_eq!(scaled["spec"], expected, "replicas and nothing else");
    assert_eq!(scaled["metadata"]["annotations"], before["metadata"]["annotations"]);

    // The same amounts in other words are no change of the request.
    change(&tenant, "demo", json!({"nodePools": [pool("workers", 6, "3000m", "8192Mi")]})).await;
    projected_as(&tenant, "demo", &json!([typed("workers", 6, "m-4-16")])).await;

    change(&tenant, "demo", json!({"nodePools": [pool("workers", 6, "2", "8Gi")]})).await;
    projected_as(&tenant, "demo", &json!([typed("workers", 6, "m-3-8")])).await;
    change(&tenant, "demo", json!({"nodePools": [pool("workers", 6, "5", "8Gi")]})).await;
    projected_as(&tenant, "demo", &json!([typed("workers", 6, "m-8-32")])).await;
    tenant.scheduled("demo").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_type_that_is_withdrawn_is_reported_and_nothing_moves() {
    let (platform, manager, tenant) = served().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    let before = tenant.projection("demo").await.unwrap();

    let offer = async |types: &[&str]| platform.offering("otc-standard", "otc", &["eu-de"], &["1.34.2"], types).await;
    let steps: [(&str, &str); 3] = [
        ("withdrawn", "is no longer offered; what runs stays as it is"),
        ("too small", "is too small now: it has 2 cpu and 16Gi memory, the pool needs 4 cpu and 16Gi memory; what runs stays as it is"),
        ("elsewhere", "does not exist in region eu-de any more; what runs stays as it is"),
    ];
    for (step, why) in steps {
        match step {
            "withdrawn" => offer(&["m-8-32"]).await,
            "too small" => platform.machine_type("m-4-16", "2", "16Gi", &["eu-de"]).await,
            _ => platform.machine_type("m-4-16", "4", "16Gi", &["eu-nl"]).await,
        }
        let message = refused(&tenant, "demo", "CapabilityMismatch").await;
        let expected = format!(
            "pool workers keeps machine type m-4-16, which {why}; the largest machine type on offer is m-8-32 (8 cpu, 32Gi memory)"
        );
        assert_eq!(message, expected, "{step}");
        // What is projected is what the spec asks for, so that part of the status holds.
        let cluster = tenant.wait("demo", "Projected", "True", "InSync").await;
        assert!(condition(&cluster, "Ready").is_some_and(|ready| ready["status"] == "False"), "{step}: {cluster}");
        let now = tenant.client().get(&PROJECTIONS, "default", "demo").await.unwrap();
        assert_eq!(now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "{step}: the projection stays");
        platform.machine_type("m-4-16", "4", "16Gi", &["eu-de"]).await;
        offer(&["m-4-16", "m-8-32"]).await;
        cleared(&tenant, "demo", step).await;
    }
    manager.stop().await;
}
