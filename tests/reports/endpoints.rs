//! Endpoints: several of them, one that does not answer, one that comes and goes, and the slice that names them.

use std::collections::BTreeSet;
use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::meta::Kind as _;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::provider::Provider;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::Options;
use kcp_provider_runtime::kit::{Workspace, World};
use kcp_provider_runtime::runtime;
use serde_json::{Value, json};

use crate::support::{Fate, Faults, order, platform, run, tenant, world};

const SECOND_SHARD: &str = "/shards/1/";
const SLICES: &str = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";

/// Two tenants, one on each shard; nothing runs yet.
async fn two_shards() -> (World, Workspace, Workspace) {
    let world = world(Options { shards: 2, ..Options::default() }).await;
    // Spread in turn, with the provider on the second shard.
    let (first, second) = (tenant(&world, "first").await, tenant(&world, "second").await);
    (world, first, second)
}

async fn scheduled(workspace: &Workspace) {
    workspace.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
}

fn is_told(cluster: &KubernetesCluster) -> bool {
    cluster.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
}

/// Another order of a tenant who was served before.
async fn another(workspace: &Workspace, name: &str) {
    let mut order = samples::tenant().pop().unwrap();
    order["metadata"]["name"] = name.into();
    workspace.apply(order).await;
    workspace.condition::<KubernetesCluster>(name, "Scheduled", True, "Scheduled").await;
}

/// Reports 7, 8 and 12: an endpoint cannot be reached, and then it can.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_does_not_answer_is_missed_holds_up_its_own_tenants_alone_and_is_served_once_it_answers() {
    for fate in [Fate::Refused, Fate::Unanswered, Fate::Code(503), Fate::Code(500), Fate::HalfOpen] {
        let (world, first, second) = two_shards().await;
        let faults = Faults::default();
        faults.add(SECOND_SHARD, fate);
        let options = runtime::Options { credentials: faults.credentials(&world), ..world.options() };
        world.run_with(options, |runtime| {
            runtime.serve(kcp_provider_runtime::kcm::Scheduler::new).serve(kcp_provider_runtime::kcm::Readiness::new)
        });
        scheduled(&first).await;
        world.advance(Duration::from_secs(30)).await;
        another(&first, "more").await;
        let missing = world.handles()[0].missing().unwrap();
        assert!(missing.iter().any(|line| line.contains("kubernetesclusters")), "{fate:?}: {missing:?}");
        let unserved = second.get::<KubernetesCluster>("demo").await.unwrap();
        assert!(!is_told(&unserved) && faults.met() > 2, "{fate:?}");
        faults.end();
        scheduled(&second).await;
        world.ready().await;
    }
}

/// Report 7: the address that the slice shows cannot be reached from here.
#[tokio::test(start_paused = true)]
async fn an_address_that_cannot_be_reached_is_replaced_by_one_that_can() {
    let (world, first, second) = two_shards().await;
    let server = world.control_plane().url();
    let faults = Faults::default();
    faults.add(&format!("{server}{SECOND_SHARD}"), Fate::Refused);
    let endpoint_overrides = vec![(format!("{server}/shards/1"), "https://outside.test/shards/1".to_owned())];
    let options = runtime::Options { credentials: faults.credentials(&world), endpoint_overrides, ..world.options() };
    world.run_with(options, |runtime| runtime.serve(kcp_provider_runtime::kcm::Scheduler::new));
    scheduled(&first).await;
    scheduled(&second).await;
    assert_eq!(faults.met(), 0);
}

/// Report 2: a kind is 404 on one shard alone.
#[tokio::test(start_paused = true)]
async fn a_kind_that_one_shard_does_not_serve_is_missed_on_that_shard_alone() {
    let (world, first, second) = two_shards().await;
    let faults = Faults::default();
    faults.add(&format!("{SECOND_SHARD}services/apiexport/{}/", world.provider().logical_cluster()), Fate::Code(404));
    let options = runtime::Options { credentials: faults.credentials(&world), ..world.options() };
    world.run_with(options, |runtime| runtime.serve(kcp_provider_runtime::kcm::Scheduler::new));
    scheduled(&first).await;
    world.advance(Duration::from_mins(5)).await;
    another(&first, "more").await;
    assert!(!is_told(&second.get::<KubernetesCluster>("demo").await.unwrap()) && faults.met() > 2);
    faults.end();
    scheduled(&second).await;
}

/// Report 18: a virtual workspace serves one kind of the export and not another.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_leaves_the_others_of_its_export_alone() {
    let world = world(Options::default()).await;
    let acme = tenant(&world, "acme").await;
    let faults = run(&world);
    faults.add(&format!("/clusters/*/apis/{}/{}", Provider::REF.api_version(), Provider::REF.plural), Fate::Code(404));
    let told = acme.eventually::<KubernetesCluster>("demo", "is told which provider is missing", is_told).await;
    let scheduled_ = told.status.unwrap().conditions.into_iter().find(|condition| condition.type_ == "Scheduled").unwrap();
    assert_eq!(scheduled_.reason, "ProviderNotConfigured");
    faults.end();
    scheduled(&acme).await;
}

async fn slice(world: &World) -> (String, Value) {
    let path = format!("{SLICES}/kubernetes.edge-connect.eu");
    let slice = world.provider().client().get(&path).await.ok().unwrap();
    (path, slice)
}

/// Report 6: the slice is deleted, and v0.28 does not make it anew.
#[tokio::test(start_paused = true)]
async fn tenants_are_served_without_the_slice_and_a_manager_that_starts_without_it_says_so() {
    let (world, _) = platform().await;
    let acme = tenant(&world, "acme").await;
    scheduled(&acme).await;
    let (path, slice) = slice(&world).await;
    world.provider().client().delete(&path).await.ok().unwrap();
    world.advance(Duration::from_hours(1)).await;
    another(&acme, "more").await;
    world.restart().await;
    world.advance(Duration::from_mins(1)).await;
    let missing = world.handles()[0].missing().unwrap();
    assert!(missing.len() == 1 && missing[0].contains("there is none; is the export set up?"), "{missing:?}");
    let metadata = json!({"name": slice["metadata"]["name"]});
    let again = json!({"apiVersion": slice["apiVersion"], "kind": slice["kind"], "metadata": metadata, "spec": slice["spec"]});
    world.provider().client().create(SLICES, &again).await.ok().unwrap();
    world.ready().await;
    another(&acme, "late").await;
}

/// Report 13: the same URL is taken out and put in again quickly.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_comes_and_goes_quickly_is_followed_by_one_stream_for_each_kind() {
    let world = world(Options { shards: 2, ..Options::default() }).await;
    let first = tenant(&world, "first").await;
    let second = world.workspace("second").await;
    let faults = run(&world);
    scheduled(&first).await;
    world.settled().await;
    let before = faults.watched();
    assert_eq!(before.len(), before.iter().collect::<BTreeSet<_>>().len(), "{before:?}");
    assert_eq!(before.len(), 8, "bindings and three kinds on each of two shards: {before:?}");
    let endpoints = async || slice(&world).await.1["status"]["endpoints"].as_array().unwrap().len();
    for pause in [0, 1, 50, 1_000, 5_000, 60_000] {
        for _ in 0..5 {
            second.unbind().await;
            assert_eq!(endpoints().await, 1);
            world.advance(Duration::from_millis(pause)).await;
            second.bind().await;
            assert_eq!(endpoints().await, 2);
            world.advance(Duration::from_millis(pause)).await;
        }
        world.advance(Duration::from_secs(10)).await;
        assert_eq!(faults.watched(), before, "{pause} ms");
    }
    order(&second).await;
    scheduled(&second).await;
}

/// Report 39: a binding is torn away from its objects, and the next one adopts them.
#[tokio::test(start_paused = true)]
async fn objects_that_a_new_binding_adopts_are_the_same_and_nothing_is_made_twice() {
    let (world, _) = platform().await;
    // With another tenant on the shard, all streams stay open and live, and none of them says anything.
    let (acme, _other) = (tenant(&world, "acme").await, tenant(&world, "other").await);
    let made = acme.eventually::<Projection>("demo", "is there", |_| true).await;
    world.settled().await;
    world.forget_requests();
    let binding = "/apis/apis.kcp.io/v1alpha2/apibindings/kubernetes.edge-connect.eu";
    acme.client().merge(binding, &json!({"metadata": {"finalizers": null}})).await.ok().unwrap();
    acme.unbind().await;
    world.advance(Duration::from_mins(10)).await;
    let objects = || world.handles()[0].metrics().text().lines().any(|line| line == "kcp_provider_objects 2");
    assert!(world.writes().is_empty() && !objects(), "it is out of sight");
    acme.bind().await;
    let found = acme.get::<Projection>("demo").await.unwrap();
    assert_eq!(found.metadata.uid, made.metadata.uid, "it is adopted");
    world.settled().await;
    assert!(world.writes().is_empty() && objects(), "it is seen again and is as it should be");
    acme.delete::<KubernetesCluster>("demo").await;
    acme.gone::<KubernetesCluster>("demo").await;
    acme.gone::<Projection>("demo").await;
}

/// Reports 10 and 11: a shard knows no paths, and `/clusters/` comes once.
#[tokio::test(start_paused = true)]
async fn a_virtual_workspace_is_asked_by_logical_clusters_alone_and_lists_come_in_pages() {
    let (world, first, second) = two_shards().await;
    run(&world);
    for workspace in [&first, &second] {
        scheduled(workspace).await;
        workspace.delete::<KubernetesCluster>("demo").await;
        workspace.gone::<KubernetesCluster>("demo").await;
    }
    order(&first).await;
    world.settled().await;
    let names = ["*", first.logical_cluster().as_str(), second.logical_cluster().as_str()];
    let through: Vec<_> = world.requests().into_iter().filter(|sent| sent.target.contains("/services/")).collect();
    let mut seen = BTreeSet::new();
    for sent in &through {
        let (_, rest) = sent.target.split_once("/clusters/").unwrap();
        let name = rest.split('/').next().unwrap();
        assert!(names.contains(&name) && !rest.contains("/clusters/") && !sent.target.contains("//"), "{sent}");
        // Report 41: an unpaged stream of initial events may never say that it is complete.
        assert!(!sent.target.contains("sendInitialEvents") && (sent.verb != "list" || sent.target.contains("limit=500")), "{sent}");
        seen.insert(name.to_owned());
    }
    assert_eq!(seen, names.map(str::to_owned).into(), "each of them is asked");
}
