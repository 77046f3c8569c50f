//! A provider's controller at its door: it sees the projections of tenants that let it in, and its report makes their clusters ready.

#[path = "../../examples/provider-otc/provider.rs"]
mod provider;

use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Event, Reconciler, Report, ReportedCondition};
use kcp_provider_runtime::runtime::{Handle, RunError, Runtime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::platform::{BINDINGS, EXPORTS, PROJECTIONS, Platform, SOON, Tenant, condition, eventually};
use provider::Provider;

const EVENTS: Resource = Resource::new("", "v1", "events");

/// The example's controller in this process, as the identity that `init --provider otc` issued.
async fn controller(platform: &Platform) -> (Handle, JoinHandle<Result<(), RunError>>) {
    let runtime = Runtime::new(platform.door("otc").await).serve(|inputs| Provider::new(inputs, "otc", Duration::from_secs(1)));
    (runtime.handle(), tokio::spawn(runtime.run()))
}

#[tokio::test]
async fn a_cluster_is_ready_once_its_provider_says_so_through_its_door() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    let (mut handle, task) = controller(&platform).await;
    tokio::time::timeout(SOON, handle.ready()).await.expect("a door that nobody has opened is ready and quiet");
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.wait("demo", "ProviderClusterReady", "False", "ProviderNotReady").await;

    platform.bind_door(&tenant.workspace, "otc").await;

    let cluster = tenant.wait("demo", "Ready", "True", "Ready").await;
    assert_eq!(cluster["status"]["ready"], true);
    let projection = tenant.projection("demo").await.unwrap();
    assert_eq!(projection["status"]["conditions"][0]["message"], "3 nodes run 1.34.2 in eu-de of otc");

    // A change is built anew, and reported for its own generation.
    let more = serde_json::json!({"spec": {"version": "1.34.2", "nodePools": [
        {"name": "workers", "replicas": 5, "capabilities": {"cpu": "4", "memory": "16Gi"}}]}});
    tenant.client().patch(&crate::support::platform::CLUSTERS, "default", "demo", &more).await.unwrap();
    let cluster = tenant.wait("demo", "Ready", "True", "Ready").await;
    assert_eq!(cluster["status"]["observedGeneration"], cluster["metadata"]["generation"]);
    let projection = tenant.projection("demo").await.unwrap();
    assert_eq!(projection["status"]["conditions"][0]["message"], "5 nodes run 1.34.2 in eu-de of otc");

    // Shown out, it hears of nothing more, and the controller goes on.
    tenant.client().delete(&BINDINGS, "", &Platform::door_export("otc")).await.unwrap();
    tenant.client().wait_gone(&BINDINGS, "", &Platform::door_export("otc"), SOON).await.unwrap();
    handle.stop();
    task.await.unwrap().unwrap();
    manager.stop().await;
}

/// A provider whose tenants have spent all that they may have, which it tells them.
struct Frugal;

#[async_trait]
impl Reconciler for Frugal {
    type Object = Projection;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "frugal", finalizer: None, conditions: &["Ready"] }
    }

    async fn create_or_update(&self, _: &Context<()>, _: &Projection) -> Result<Report, CallError> {
        let (reason, message) = (Reason::Custom("QuotaExceeded"), "the account has no machines left");
        Ok(Report::new(()).with(ReportedCondition::new("Ready", false, reason, message)).with_event(Event::warning(reason, message)))
    }

    async fn delete(&self, _: &Context<()>, _: &Projection) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

/// The Events about projections in a tenant's workspace.
async fn events(tenant: &Tenant) -> Vec<Value> {
    let all = tenant.client().list(&EVENTS, "default").await.unwrap();
    all.into_iter().filter(|event| event["involvedObject"]["apiVersion"] == PROJECTIONS.api_version()).collect()
}

#[tokio::test]
async fn what_a_provider_tells_through_its_door_is_an_event_beside_the_projection_unless_its_tenant_rejects_that() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    let runtime = Runtime::new(platform.door("otc").await).serve(|_| Frugal);
    let (handle, task) = (runtime.handle(), tokio::spawn(runtime.run()));
    let tenants = [platform.tenant().await, platform.tenant().await];
    let [willing, silent] = &tenants;
    platform.bind_door(&willing.workspace, "otc").await;
    let export = Platform::door_export("otc");
    let claims = platform.client().get(&EXPORTS, "", &export).await.unwrap()["spec"]["permissionClaims"].as_array().unwrap().clone();
    let mut bound = binding::binding(&platform.connection.path, &export, &claims);
    for claim in bound["spec"]["permissionClaims"].as_array_mut().unwrap().iter_mut().filter(|claim| claim["resource"] == "events") {
        claim["state"] = "Rejected".into();
    }
    silent.client().create(&BINDINGS, "", &bound).await.unwrap();
    let in_force = |binding: &Value| {
        let applied = binding["status"]["appliedPermissionClaims"].as_array();
        applied.is_some_and(|claims| claims.iter().any(|claim| claim["resource"] == "events"))
    };
    willing.client().wait_for(&BINDINGS, "", &export, "to have the claim on events in force", SOON, in_force).await.unwrap();

    for tenant in &tenants {
        tenant.provider("otc").await;
        tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
        tenant.scheduled("demo").await;
        let told = |projection: &Value| condition(projection, "Ready").is_some_and(|ready| ready["reason"] == "QuotaExceeded");
        tenant.client().wait_for(&PROJECTIONS, "default", "demo", "to be told of the quota", SOON, told).await.unwrap();
    }
    eventually("the tenant who lets it has an event", async || !events(willing).await.is_empty()).await;
    let [event] = <[Value; 1]>::try_from(events(willing).await).unwrap();
    let projection = willing.projection("demo").await.unwrap();
    let about = json!({"apiVersion": PROJECTIONS.api_version(), "kind": "KubernetesCluster", "namespace": "default", "name": "demo",
        "uid": projection["metadata"]["uid"]});
    assert_eq!(event["involvedObject"], about);
    assert_eq!([&event["type"], &event["reason"], &event["message"]], ["Warning", "QuotaExceeded", "the account has no machines left"]);
    assert_eq!(event["source"]["component"], "frugal");
    eventually("the other one was asked and refused", async || {
        handle.metrics().text().contains("kcp_provider_requests_total{verb=\"create an event\",code=\"403\"}")
    })
    .await;
    assert!(events(silent).await.is_empty());
    handle.stop();
    task.await.unwrap().unwrap();
    manager.stop().await;
}
