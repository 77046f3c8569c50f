//! A provider's controller at its door: it sees the projections of tenants that let it in, and its report makes their clusters ready.

#[path = "../../examples/provider-otc/provider.rs"]
mod provider;

use std::time::Duration;

use kcp_provider_runtime::runtime::{Handle, RunError, Runtime};
use tokio::task::JoinHandle;

use crate::support::platform::{BINDINGS, Platform, SOON};
use provider::Provider;

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
