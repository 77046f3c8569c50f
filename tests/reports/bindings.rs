//! Bindings: none yet, the first one, the last one, one that cannot be bound, and many.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::binding::binding;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::meta::Kind as _;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::{Options, Timing, Version};
use kcp_provider_runtime::kit::World;
use serde_json::{Value, json};

use crate::support::{order, platform, run, tenant, world};

const HOUR: Duration = Duration::from_hours(1);

/// How long something takes in the world's time.
async fn time(world: &World, what: impl Future<Output = ()>) -> Duration {
    let began = world.now();
    what.await;
    world.now().duration_since(began).unsigned_abs()
}

/// Reports 1, 3 and 5: the kind is 404 before its first binding, or an empty list without a version and a watch that stays silent.
#[tokio::test(start_paused = true)]
async fn the_first_tenant_is_served_in_seconds_whenever_it_comes_and_however_the_server_says_that_there_was_none() {
    for version in [Version::V0_28, Version::Later] {
        let world = world(Options { version, timing: Timing::KCP, ..Options::default() }).await;
        run(&world);
        world.ready().await;
        world.forget_requests();
        world.advance(HOUR).await;
        let asked = world.requests();
        assert!(asked.len() < 60, "{version:?}: {} requests in an hour in which nobody was there", asked.len());
        assert!(asked.iter().all(|sent| sent.code == 200), "{version:?}: {asked:?}");
        let first = world.workspace("first").await;
        order(&first).await;
        let waited = time(&world, async { drop(first.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await) }).await;
        assert!(waited < Duration::from_secs(10), "{version:?}: {waited:?}");
    }
}

/// Reports 1 and 3, once more: the streams are open, and nobody binds any more.
#[tokio::test(start_paused = true)]
async fn a_tenant_that_comes_after_the_last_one_went_is_served_in_seconds() {
    for version in [Version::V0_28, Version::Later] {
        let world = world(Options { version, timing: Timing::KCP, ..Options::default() }).await;
        run(&world);
        let acme = tenant(&world, "acme").await;
        acme.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
        acme.unbind().await;
        world.advance(HOUR).await;
        acme.bind().await;
        order(&acme).await;
        let waited = time(&world, async { drop(acme.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await) }).await;
        assert!(waited < Duration::from_secs(10), "{version:?}: {waited:?}");
    }
}

/// Report 38: `NamingConflicts`.
#[tokio::test(start_paused = true)]
async fn a_tenant_that_cannot_be_bound_bothers_nobody() {
    let (world, _) = platform().await;
    let acme = tenant(&world, "acme").await;
    acme.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
    let clash = world.client().at("/clusters/root:clash");
    let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "clash"}});
    world.client().create("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", &workspace).await.ok().unwrap();
    let plural = KubernetesCluster::REF.plural;
    let names = json!({"kind": KubernetesCluster::REF.kind, "listKind": "ThingList", "plural": plural, "singular": "thing"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let group = KubernetesCluster::REF.group;
    let own = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}});
    clash.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &own).await.ok().unwrap();
    world.settled().await;
    world.forget_requests();
    let bindings = "/apis/apis.kcp.io/v1alpha2/apibindings";
    clash.create(bindings, &binding("root:provider", group, &[])).await.ok().unwrap();
    world.advance(HOUR).await;
    let stuck = clash.get(&format!("{bindings}/{group}")).await.ok().unwrap();
    let reasons: Vec<&Value> = stuck["status"]["conditions"].as_array().unwrap().iter().map(|condition| &condition["reason"]).collect();
    assert!(stuck["status"]["phase"] == "Binding" && reasons.contains(&&json!("NamingConflicts")), "{stuck}");
    assert!(world.requests().iter().all(|sent| sent.is_stream() && sent.code == 200), "{:?}", world.requests());
    acme.delete::<KubernetesCluster>("demo").await;
    acme.gone::<KubernetesCluster>("demo").await;
}

/// Report 14: what waits for a workspace that has gone is forgotten with it.
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_about_a_tenant_that_has_gone() {
    let (world, _) = platform().await;
    let (acme, other) = (tenant(&world, "acme").await, tenant(&world, "other").await);
    let mut hopeless = samples::tenant().pop().unwrap();
    hopeless["metadata"]["name"] = "hopeless".into();
    hopeless["spec"]["region"] = "nowhere".into();
    for workspace in [&acme, &other] {
        workspace.apply(hopeless.clone()).await;
        workspace
            .eventually::<KubernetesCluster>("hopeless", "is told why not", |cluster| {
                cluster.status.as_ref().is_some_and(|status| status.conditions.iter().any(|condition| condition.type_ == "Scheduled"))
            })
            .await;
    }
    world.settled().await;
    acme.unbind().await;
    acme.gone::<KubernetesCluster>("demo").await;
    world.settled().await;
    world.forget_requests();
    world.advance(HOUR).await;
    let about = |workspace: &str| world.requests().iter().filter(|sent| sent.target.contains(workspace)).count();
    assert_eq!(about(acme.logical_cluster().as_str()), 0, "{:?}", world.requests());
    other.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
}

/// Report 40: memory and tasks that a workspace leaves behind.
#[tokio::test(start_paused = true)]
async fn tenants_that_came_and_went_leave_nothing_behind() {
    let (world, faults) = platform().await;
    let one = tenant(&world, "one").await;
    one.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
    world.settled().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let size = |name: &str| {
        let text = world.handles()[0].metrics().text();
        let line = text.lines().find(|line| line.starts_with(&format!("kcp_provider_{name} "))).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let before = (tasks(), faults.watched(), size("workspaces"), size("objects"));
    for round in 0..4 {
        let mut all = Vec::new();
        for at in 0..10 {
            all.push(tenant(&world, &format!("t{round}-{at}")).await);
        }
        for workspace in &all {
            workspace.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
        }
        world.settled().await;
        assert_eq!((size("workspaces"), tasks()), ("11".into(), before.0), "a tenant costs no task");
        for workspace in &all {
            workspace.unbind().await;
        }
        for workspace in &all {
            workspace.gone::<Projection>("demo").await;
        }
        world.settled().await;
    }
    assert_eq!((tasks(), faults.watched(), size("workspaces"), size("objects")), before);
}

/// Report 33: a deletion takes as long as it takes.
#[tokio::test(start_paused = true)]
async fn a_finalizer_is_kept_for_a_day_while_a_provider_works() {
    let (world, _) = platform().await;
    let acme = tenant(&world, "acme").await;
    acme.eventually::<Projection>("demo", "is there", |_| true).await;
    acme.merge::<Projection>("demo", json!({"metadata": {"finalizers": ["otc.test/slow"]}})).await;
    acme.delete::<KubernetesCluster>("demo").await;
    world.advance(24 * HOUR).await;
    acme.condition::<KubernetesCluster>("demo", "Projected", False, "Deleting").await;
    acme.merge::<Projection>("demo", json!({"metadata": {"finalizers": null}})).await;
    acme.gone::<KubernetesCluster>("demo").await;
}
