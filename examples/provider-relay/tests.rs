//! The provider in a kcp of this process, with a workload cluster of this process.

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::export::{Claim, access_claims, claims};
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Resource, Workspace, World};
use kcp_provider_runtime::runtime::Options;
use serde_json::{Value, json};

use crate::kinds::{Deployment, Relay, RelayConfig, Secret};
use crate::provider::{NAMESPACE, Relays};

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

fn manifest(kind: &str) -> Value {
    documents(include_str!("kcp.yaml")).into_iter().find(|object| object["kind"] == kind).unwrap()
}

fn only(yaml: &str) -> Value {
    documents(yaml).remove(0)
}

/// A provider workspace as kcp.yaml makes it, a configuration, a workload cluster, and the tenant acme.
async fn prepared() -> World {
    let mut world = World::new().await;
    world.export(Resource::new::<Relay>(manifest("APIResourceSchema")["spec"]["versions"][0]["schema"].clone())).await;
    for claim in claims().into_iter().filter(|claim| claim.resource == "events").chain(access_claims()) {
        world.claim(claim).await;
    }
    world.provider().define(Resource::new::<RelayConfig>(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))).await;
    world.provider().apply(only(include_str!("config.yaml"))).await;
    world.workspace("acme").await;
    world
}

async fn serve(world: &World) -> Workspace {
    let cluster = world.workload_cluster("one").await;
    cluster.client().create("/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
    cluster.define(Resource::new::<Deployment>(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))).await;
    world.run_with(Options { config_name: "relay".into(), ..world.options() }, |runtime| runtime.serve(Relays::new));
    cluster
}

/// The names of what was made for a relay, on its workload cluster.
async fn made(acme: &Workspace) -> String {
    let relay = acme.get::<Relay>("mine").await.unwrap();
    format!("{NAMESPACE}/relay-{}", relay.metadata.uid())
}

/// The worker is up, as the workload cluster's own controllers would say.
async fn is_up(cluster: &Workspace, name: &str) {
    cluster.eventually::<Deployment>(name, "there is a worker", |_| true).await;
    cluster.merge_status::<Deployment>(name, json!({"availableReplicas": 1})).await;
}

#[tokio::test(start_paused = true)]
async fn a_relay_runs_with_a_key_to_its_tenants_workspace_and_leaves_nothing() {
    let world = prepared().await;
    let (cluster, acme) = (serve(&world).await, world.tenant("acme"));
    acme.apply(only(include_str!("tenant.yaml"))).await;
    acme.condition::<Relay>("mine", "Ready", False, "WorkerStarting").await;
    let name = made(&acme).await;
    is_up(&cluster, &name).await;
    let ready = acme.condition::<Relay>("mine", "Ready", True, "Ready").await;
    assert_eq!(ready.message, "v1.0.0 runs on one");
    let deployment = cluster.get::<Deployment>(&name).await.unwrap();
    assert_eq!(
        deployment.spec["template"]["spec"]["containers"][0]["args"],
        json!(["--chart", "oci://registry.example.org/charts/relay:1.0.0"])
    );
    let key = cluster.get::<Secret>(&name).await.unwrap().data["kubeconfig"].clone();
    // Another key takes its place before it ends.
    world.advance(std::time::Duration::from_mins(55)).await;
    world.settled().await;
    assert_ne!(cluster.get::<Secret>(&name).await.unwrap().data["kubeconfig"], key);
    acme.delete::<Relay>("mine").await;
    acme.gone::<Relay>("mine").await;
    assert!(cluster.get::<Deployment>(&name).await.is_none() && cluster.get::<Secret>(&name).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_offered_is_refused_until_the_operator_offers_it() {
    let world = prepared().await;
    let (cluster, acme) = (serve(&world).await, world.tenant("acme"));
    let mut relay = only(include_str!("tenant.yaml"));
    relay["spec"]["version"] = "v2.0.0".into();
    acme.apply(relay).await;
    let told = acme.condition::<Relay>("mine", "Ready", False, "VersionUnknown").await;
    assert_eq!(told.message, "there is no version v2.0.0; there are: v1.0.0, v1.1.0");
    let name = made(&acme).await;
    assert!(cluster.get::<Deployment>(&name).await.is_none());
    let mut config = only(include_str!("config.yaml"));
    config["spec"]["versions"][1] = json!({"name": "v2.0.0", "chartURL": "oci://registry.example.org/charts/relay:2.0.0"});
    world.provider().apply(config).await;
    is_up(&cluster, &name).await;
    acme.condition::<Relay>("mine", "Ready", True, "Ready").await;
}

#[test]
fn a_relay_runs_and_goes_whatever_goes_wrong_once() {
    let story = async |world: &World| {
        let (cluster, acme) = (serve(world).await, world.tenant("acme"));
        acme.apply(only(include_str!("tenant.yaml"))).await;
        acme.condition::<Relay>("mine", "Ready", False, "WorkerStarting").await;
        let name = made(&acme).await;
        is_up(&cluster, &name).await;
        acme.condition::<Relay>("mine", "Ready", True, "Ready").await;
        acme.delete::<Relay>("mine").await;
        acme.gone::<Relay>("mine").await;
        assert!(cluster.get::<Deployment>(&name).await.is_none(), "its worker runs on");
        assert!(cluster.get::<Secret>(&name).await.is_none(), "its key is still there");
    };
    let explored = under_every_fault(prepared, story);
    println!("{explored}");
    explored.assert();
}

#[test]
fn the_manifests_ask_for_what_the_runtime_needs_and_main_is_short() {
    let asked = claims().into_iter().filter(|claim| claim.resource == "events").chain(access_claims());
    let asked: Vec<Value> = asked.map(|claim: Claim| claim.to_value()).collect();
    assert_eq!(manifest("APIExport")["spec"]["permissionClaims"], Value::from(asked));
    let main = include_str!("main.rs").split_once("async fn main()").unwrap().1;
    assert!(main.lines().count() <= 16, "main has {} lines", main.lines().count());
}
