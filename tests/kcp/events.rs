//! Kubernetes Events: what a tenant reads beside its cluster, and that nobody needs them.

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::kcp_admin::Resource;
use serde_json::{Value, json};

use crate::support::expect::refused;
use crate::support::platform::{BINDINGS, CLUSTERS, Tenant, eventually, served};

const EVENTS: Resource = Resource::new("", "v1", "events");

/// The Events about a cluster.
async fn events(tenant: &Tenant, name: &str) -> Vec<Value> {
    let all = tenant.client().list(&EVENTS, "default").await.unwrap();
    let about = |event: &Value| event["involvedObject"]["kind"] == "KubernetesCluster" && event["involvedObject"]["name"] == name;
    all.into_iter().filter(about).collect()
}

#[tokio::test]
async fn a_cluster_that_nobody_offers_has_an_event_and_a_manager_that_starts_anew_tells_what_is_new_and_nothing_twice() {
    let (platform, manager, tenant) = served().await;
    // The first order may be seen before the Provider, which is told; then the Provider is known.
    tenant.order("first", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("first").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.order("late", "eu-de", "9.9.0", "4", "16Gi").await;
    let message = refused(&tenant, "late", "OfferingNotFound").await;
    eventually("the cluster has an event", async || !events(&tenant, "late").await.is_empty()).await;
    let [event] = <[Value; 1]>::try_from(events(&tenant, "late").await).unwrap();
    let cluster = tenant.cluster("late").await;
    let about = json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "namespace": "default", "name": "late",
        "uid": cluster["metadata"]["uid"]});
    assert_eq!(event["involvedObject"], about);
    assert_eq!([&event["type"], &event["reason"], &event["message"]], ["Warning", "OfferingNotFound", &message]);
    assert_eq!((&event["count"], &event["source"]["component"]), (&json!(1), &json!("cluster-scheduler")));
    manager.stop().await;

    let manager = platform.manager().await;
    tenant.client().patch(&CLUSTERS, "default", "late", &json!({"spec": {"version": "9.9.1"}})).await.unwrap();
    let message = refused(&tenant, "late", "OfferingNotFound").await;
    // Where kcp hides the first one from whoever has the claim alone, as v0.28 does after a moment, another follows it.
    let told = async || {
        let all = events(&tenant, "late").await;
        let count: i64 = all.iter().filter_map(|event| event["count"].as_i64()).sum();
        count == 2 && all.len() <= 2 && all.iter().any(|event| event["message"] == message)
    };
    eventually("the new message is told, and counted", told).await;
    tenant.scheduled("demo").await;
    assert!(events(&tenant, "demo").await.is_empty(), "nothing is told of what goes its way");
    manager.stop().await;
}

#[tokio::test]
async fn a_workspace_that_rejects_the_claim_on_events_is_served_all_the_same() {
    let (_platform, manager, tenant) = served().await;
    let mut claims = tenant.client().get(&BINDINGS, "", export::EXPORT).await.unwrap()["spec"]["permissionClaims"].clone();
    let of_events = claims.as_array_mut().unwrap().iter_mut().find(|claim| claim["resource"] == "events").unwrap();
    of_events["state"] = "Rejected".into();
    tenant.client().patch(&BINDINGS, "", export::EXPORT, &json!({"spec": {"permissionClaims": claims}})).await.unwrap();
    let rejected = |binding: &Value| {
        let applied = binding["status"]["appliedPermissionClaims"].as_array().cloned().unwrap_or_default();
        applied.iter().all(|claim| claim["resource"] != "events")
    };
    eventually("the claim is taken back", async || rejected(&tenant.client().get(&BINDINGS, "", export::EXPORT).await.unwrap())).await;

    tenant.order("late", "eu-de", "9.9.0", "4", "16Gi").await;
    refused(&tenant, "late", "OfferingNotFound").await;
    eventually("the event was refused", async || manager.requests().contains_key(&("create an event".to_owned(), 403))).await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    tenant.client().patch(&CLUSTERS, "default", "late", &json!({"spec": {"version": "1.34.2"}})).await.unwrap();
    tenant.scheduled("late").await;
    assert!(events(&tenant, "late").await.is_empty());
    manager.stop().await;
}
