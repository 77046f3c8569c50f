//! The provider as its tenants see it: real objects, the real runtime, a kcp in memory, and time that costs nothing.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::definition;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::kit::World;
use kcp_provider_runtime::kit::trial::under_every_fault;
use serde_json::{Value, json};

use crate::provider::Provider;

const TAKES: Duration = Duration::from_mins(7);

fn order(name: &str, provider: &str) -> Value {
    json!({
        "apiVersion": "provider.kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "metadata": {"name": name},
        "spec": {"providerRef": {"name": provider}, "region": "eu-de", "version": "1.34.2",
            "nodePools": [{"name": "workers", "replicas": 3, "type": "m-4-16"}]},
    })
}

async fn world() -> World {
    let mut world = World::new().await;
    world.export(definition::projection()).await;
    world.serve(|inputs| Provider::new(inputs, "otc", TAKES));
    world
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_built_and_then_it_is_ready() {
    let mut world = World::new().await;
    world.export(definition::projection()).await;
    world.serve(|inputs| Provider::new(inputs, "otc", TAKES));
    let acme = world.workspace("acme").await;
    acme.apply(order("demo", "otc")).await;
    acme.condition::<Projection>("demo", "Ready", False, "Building").await;
    world.advance(TAKES).await;
    let ready = acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
    assert_eq!(ready.message, "3 nodes run 1.34.2 in eu-de of otc");
    world.settled().await;
    assert_eq!(world.writes(), [("apply", 2)].into());
}

#[tokio::test(start_paused = true)]
async fn what_is_ordered_from_another_provider_is_left_alone() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    acme.apply(order("theirs", "other")).await;
    world.advance(2 * TAKES).await;
    assert_eq!(world.writes(), [].into());
    assert_eq!(acme.get::<Projection>("theirs").await.unwrap().status, None);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_neither_starts_anew_nor_forgets() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    acme.apply(order("demo", "otc")).await;
    acme.condition::<Projection>("demo", "Ready", False, "Building").await;
    world.advance(TAKES / 2).await;
    world.restart().await;
    world.within(TAKES / 2 + Duration::from_secs(10));
    acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
    assert_eq!(world.writes(), [("apply", 2)].into());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_built_anew() {
    let world = world().await;
    let acme = world.workspace("acme").await;
    acme.apply(order("demo", "otc")).await;
    acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
    acme.merge::<Projection>("demo", json!({"spec": {"version": "1.35.0"}})).await;
    acme.condition::<Projection>("demo", "Ready", False, "Building").await;
    let ready = acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
    assert_eq!(ready.message, "3 nodes run 1.35.0 in eu-de of otc");
}

#[test]
fn a_cluster_is_built_whatever_goes_wrong_once() {
    let prepare = async || {
        let mut world = World::new().await;
        world.export(definition::projection()).await;
        world.workspace("acme").await;
        world
    };
    let story = async |world: &World| {
        world.serve(|inputs| Provider::new(inputs, "otc", TAKES));
        let (acme, ordered) = (world.tenant("acme"), world.now());
        acme.apply(order("demo", "otc")).await;
        acme.condition::<Projection>("demo", "Ready", True, "Ready").await;
        assert!(world.now().duration_since(ordered) >= TAKES.try_into().unwrap(), "it is ready before it is built");
    };
    let explored = under_every_fault(prepare, story);
    println!("{explored}");
    explored.assert();
}
