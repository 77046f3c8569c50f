//! What the requeue alone brings about, with watches that say nothing.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use crate::support::expect::{all, configure, refused, within};
use crate::support::platform::{Manager, Platform, Tenant, eventually};
use crate::support::proxy::{Proxy, Verb};

const REQUEUE: Duration = Duration::from_secs(2);
/// The requeue's wait, the second between two lists, and what any event takes.
const BY_REQUEUE: Duration = Duration::from_secs(5);

const OFFERINGS: &str = "kubernetesclusterofferings.provider.kubernetes.edge-connect.eu";
const TYPES: &str = "virtualmachinetypes.provider.edge-connect.eu";
const PROVIDERS: &str = "providers.provider.edge-connect.eu";
const CONFIG: &str = "providerconfigs.config.edge-connect.eu";
/// Everything that a decision reads beside the cluster and its projection.
const INPUTS: [&str; 4] = [OFFERINGS, TYPES, PROVIDERS, CONFIG];

/// A manager that requeues every two seconds and hears nothing of its inputs' changes.
async fn deaf(platform: &Platform) -> (Proxy, Manager) {
    let proxy = Proxy::start(platform.identity().await).await;
    proxy.silence(INPUTS);
    let manager = Manager::start(proxy.options(platform), Some(REQUEUE)).await;
    (proxy, manager)
}

async fn cleared_by_requeue(tenant: &Tenant, name: &str, fix: &str) {
    let what = format!("{name} is scheduled by the requeue after this: {fix}");
    within(BY_REQUEUE, tenant, &what, tenant.wait(name, "Scheduled", "True", "Scheduled")).await;
}

#[tokio::test]
async fn every_reason_clears_by_the_requeue_alone() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let (proxy, manager) = deaf(&platform).await;
    let tenant = platform.tenant().await;
    tenant.order("unpaid", "eu-de", "1.34.2", "4", "16Gi").await;
    refused(&tenant, "unpaid", "ProviderNotConfigured").await;
    tenant.provider("otc").await;
    cleared_by_requeue(&tenant, "unpaid", "the Provider is there").await;

    tenant.order("elsewhere", "eu-nl", "1.34.2", "4", "16Gi").await;
    refused(&tenant, "elsewhere", "OfferingNotFound").await;
    platform.machine_type("n-4-16", "4", "16Gi", &["eu-nl"]).await;
    platform.offering("otc-nl", "otc", &["eu-nl"], &["1.34.2"], &["n-4-16"]).await;
    cleared_by_requeue(&tenant, "elsewhere", "the region is offered").await;

    tenant.order("large", "eu-nl", "1.34.2", "8", "16Gi").await;
    refused(&tenant, "large", "CapabilityMismatch").await;
    platform.machine_type("n-4-16", "8", "16Gi", &["eu-nl"]).await;
    cleared_by_requeue(&tenant, "large", "the type has grown").await;
    assert!(INPUTS.iter().all(|resource| proxy.count(Verb::Watch, resource) > 0), "the watches were open");
    manager.stop().await;
}

#[tokio::test]
async fn a_workspace_that_is_allowed_meanwhile_is_served_by_the_requeue_alone() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let rule = |rule: &str| json!({"kcp": {"allowedWorkspaces": [rule]}});
    configure(&platform, rule("root:nobody:*")).await;
    let (_proxy, manager) = deaf(&platform).await;
    let tenant = platform.tenant().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let message = refused(&tenant, "demo", "NotEntitled").await;
    let expected = "the path of this workspace could not be resolved, so it is not known to be under any of the platform's allowedWorkspaces (root:nobody:*)";
    assert_eq!(message, expected);
    configure(&platform, rule(tenant.workspace.logical_cluster.as_str())).await;
    cleared_by_requeue(&tenant, "demo", "the workspace is allowed").await;
    manager.stop().await;
}

#[tokio::test]
async fn the_requeue_lists_each_kind_once_for_all_clusters() {
    const ROUNDS: u32 = 4;
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let (proxy, manager) = deaf(&platform).await;
    let tenant = platform.tenant().await;
    let names: Vec<String> = (0..15).map(|at| format!("demo-{at}")).collect();
    join_all(names.iter().map(|name| tenant.order(name, "eu-de", "1.34.2", "4", "16Gi"))).await;
    all(&tenant, "Scheduled", "False", "ProviderNotConfigured").await;

    let kinds = [OFFERINGS, TYPES, PROVIDERS];
    let counts = || kinds.map(|kind| proxy.count(Verb::List, kind));
    let (before, began) = (counts(), Instant::now());
    eventually("four rounds are over", async || began.elapsed() >= ROUNDS * REQUEUE).await;
    let lists: Vec<usize> = counts().iter().zip(before).map(|(after, before)| after - before).collect();
    eprintln!("{} waiting clusters: {lists:?} lists of {kinds:?} in {ROUNDS} rounds of {REQUEUE:?}", names.len());
    let rounds = usize::try_from(ROUNDS).unwrap();
    assert!(lists.iter().all(|lists| (rounds - 1..=rounds + 1).contains(lists)), "{lists:?}");

    tenant.provider("otc").await;
    let [first, last] = all(&tenant, "Projected", "True", "InSync").await;
    eprintln!("of {} clusters the requeue has the first projected after {first:?}, the last after {last:?}", names.len());
    manager.stop().await;
}
