//! A provider that uses all of the seam, KCM itself, in a world of the kit: children, names, views, a configuration, finalizers, several shards.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::config::ProviderConfig;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::Options;
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use serde_json::json;

use crate::furnish::furnish;

/// A world in which KCM runs.
pub(crate) async fn platform(shards: usize) -> World {
    let mut world = World::with(Options { shards, started: "2026-01-01T00:00:00Z".parse().unwrap(), ..Options::default() }).await;
    furnish(&mut world).await;
    world.run(|runtime| runtime.serve(Scheduler::new).serve(Readiness::new));
    world
}

async fn tenant(world: &World, name: &str) -> Workspace {
    let workspace = world.workspace(name).await;
    for object in samples::tenant() {
        workspace.apply(object).await;
    }
    workspace
}

/// From an order to a ready cluster to nothing.
async fn life(world: &World, tenant: &Workspace) {
    tenant.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
    let projection = tenant.eventually::<Projection>("demo", "is there", |_| true).await;
    assert_eq!(projection.spec.provider_ref.name, "otc");
    let generation = projection.metadata.generation();
    let ready = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": generation,
        "lastTransitionTime": world.now().to_string()});
    tenant.merge_status::<Projection>("demo", json!({"ready": true, "observedGeneration": generation, "conditions": [ready]})).await;
    tenant.condition::<KubernetesCluster>("demo", "Ready", True, "Ready").await;
    tenant.delete::<KubernetesCluster>("demo").await;
    tenant.gone::<KubernetesCluster>("demo").await;
    tenant.gone::<Projection>("demo").await;
    world.settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_order_becomes_ready_and_goes_and_costs_seven_writes() {
    let world = platform(1).await;
    let tenant = tenant(&world, "team-a").await;
    life(&world, &tenant).await;
    assert_eq!(world.writes(), [("apply", 3), ("create", 1), ("delete", 1), ("update", 2)].into());
}

#[tokio::test(start_paused = true)]
async fn tenants_of_all_shards_are_served() {
    let world = platform(3).await;
    for name in ["team-a", "team-b", "team-c", "team-d"] {
        let tenant = tenant(&world, name).await;
        life(&world, &tenant).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_judged_in_its_status() {
    let world = platform(1).await;
    let mut config = samples::provider_config();
    config["spec"]["kcp"] = json!({"allowedWorkspaces": ["root:*:nonsense:**"]});
    world.provider().apply(config).await;
    world.provider().condition::<ProviderConfig>("kcm", "Accepted", False, "Invalid").await;
    world.provider().apply(samples::provider_config()).await;
    world.provider().condition::<ProviderConfig>("kcm", "Accepted", True, "Accepted").await;
}

/// All that is asked while three tenants order, one of them what nobody offers.
async fn story() -> Vec<Sent> {
    let world = platform(2).await;
    let (a, b, c) = (tenant(&world, "team-a").await, tenant(&world, "team-b").await, tenant(&world, "team-c").await);
    b.merge::<KubernetesCluster>("demo", json!({"metadata": {"labels": {"a": "b"}}})).await;
    world.provider().delete::<kcp_provider_runtime::api::catalog::VirtualMachineType>("m-4-16").await;
    c.delete::<KubernetesCluster>("demo").await;
    world.advance(Duration::from_hours(1)).await;
    a.unbind().await;
    world.advance(Duration::from_hours(1)).await;
    world.requests()
}

#[tokio::test(start_paused = true)]
async fn the_same_story_is_told_again_to_the_byte() {
    let (first, again) = (story().await, story().await);
    assert!(first.len() > 100, "{} requests", first.len());
    for (one, other) in first.iter().zip(&again) {
        assert_eq!(one, other);
    }
    assert_eq!(first.len(), again.len());
}

#[tokio::test(start_paused = true)]
async fn an_earlier_projection_that_its_provider_holds_is_deleted_once_and_then_waited_for() {
    let world = platform(1).await;
    let tenant = tenant(&world, "team-a").await;
    tenant.condition::<KubernetesCluster>("demo", "Projected", True, "InSync").await;
    let hold = |held: bool| json!({"metadata": {"finalizers": if held { json!(["otc.example.org/machines"]) } else { json!(null) }}});
    tenant.merge::<Projection>("demo", hold(true)).await;
    // The tenant goes behind the scheduler's back, and orders again under the same name.
    tenant.merge::<KubernetesCluster>("demo", json!({"metadata": {"finalizers": null}})).await;
    tenant.client().delete("/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters/demo").await.ok().unwrap();
    tenant.apply(samples::tenant()[1].clone()).await;
    tenant.condition::<KubernetesCluster>("demo", "Projected", False, "Pending").await;
    world.settled().await;
    world.forget_requests();
    world.advance(Duration::from_hours(2)).await;
    assert_eq!(world.writes(), [].into(), "it is going, and nobody but its provider can let it go");
    tenant.merge::<Projection>("demo", hold(false)).await;
    tenant.condition::<KubernetesCluster>("demo", "Projected", True, "InSync").await;
}
