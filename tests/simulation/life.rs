//! The life of clusters: one is ordered, becomes ready, is changed and deleted; others stay.

use std::sync::Arc;
use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::{Timing, Version};
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::kit::faults::{Fault, Side};
use kcp_provider_runtime::kit::trial::Trial;
use kcp_provider_runtime::kit::{Workspace, World};
use kcp_provider_runtime::runtime::Options;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::checker::Checker;
use crate::platform::{Book, holds, observe, platform, report};

/// What every run begins with.
#[derive(Clone, Default)]
pub(crate) struct Beginning {
    pub(crate) checker: Checker,
    pub(crate) token: String,
}

/// Runs the manager, with reconcilers that can be made to fail.
pub(crate) fn serve(world: &World, token: &str, direct_writes: bool) {
    let options = Options { credentials: world.credentials(token), direct_writes, ..world.options() };
    let seam = world.seam();
    world.run_with(options, move |runtime| {
        runtime.serve(|inputs| seam.brittle(Scheduler::new(inputs))).serve(|inputs| seam.brittle(Readiness::new(inputs)))
    });
}

/// A cluster of this name, as a tenant orders it.
pub(crate) fn order(name: &str) -> Value {
    let mut order = samples::tenant()[1].clone();
    order["metadata"]["name"] = name.into();
    order
}

/// Nothing was wrong so far.
pub(crate) fn sound(book: &Mutex<Book>) {
    let Book { found, .. } = &*book.lock();
    assert!(found.is_empty(), "{} violations; the first:\n{}", found.len(), found[0]);
}

/// Nothing is wrong at rest.
pub(crate) fn at_rest(book: &Mutex<Book>) {
    sound(book);
    let found = book.lock().checker.at_rest();
    assert!(found.is_empty(), "{} problems at rest; the first:\n{}", found.len(), found[0]);
}

/// A tenant wants more workers, and gets them.
async fn changed(acme: &Workspace) {
    let pools = json!({"spec": {"nodePools": [{"name": "workers", "replicas": 5, "capabilities": {"cpu": "4", "memory": "16Gi"}}]}});
    acme.merge::<KubernetesCluster>("demo", pools).await;
    acme.eventually::<Projection>("demo", "has five workers", |projection| projection.spec.node_pools[0].replicas == 5).await;
    // What its provider said was of the state before.
    acme.condition::<KubernetesCluster>("demo", "ProviderClusterReady", False, "StatusOutdated").await;
}

async fn told(world: &World, beginning: &Beginning, names: &[&str]) {
    let book = observe(world, beginning.checker.clone().in_trouble());
    serve(world, &beginning.token, false);
    let (acme, began) = (world.tenant("acme"), world.now());
    for name in names {
        acme.apply(order(name)).await;
    }
    for name in names {
        acme.condition::<KubernetesCluster>(name, "Projected", True, "InSync").await;
        holds(&acme, name, true).await;
        report(world, &acme, name, true).await;
    }
    acme.condition::<KubernetesCluster>("demo", "Ready", True, "Ready").await;
    if names.len() > 1 {
        changed(&acme).await;
    }
    acme.delete::<KubernetesCluster>("demo").await;
    acme.eventually::<Projection>("demo", "is being deleted", |projection| projection.metadata.is_deleting()).await;
    holds(&acme, "demo", false).await;
    acme.gone::<KubernetesCluster>("demo").await;
    for name in names.iter().filter(|name| **name != "demo") {
        acme.condition::<KubernetesCluster>(name, "Ready", True, "Ready").await;
    }
    let took = world.now().duration_since(began).unsigned_abs();
    world.cease();
    world.settled().await;
    at_rest(&book);
    modest(world, took);
}

/// How long the whole life takes where one request is five seconds late: those, the looks of whoever waits, and no patience of ours.
const PROMPT: Duration = Duration::from_secs(12);

/// Faults that only make things come late: nothing is refused to anybody, and nothing is unknown for long.
const LATE: &[Fault] = &[Fault::Slow(Side::Before), Fault::Slow(Side::After)];
/// Faults of streams alone, which last no longer than our own writes are waited for: every request is answered as it is by a server without faults.
const STREAMS: &[Fault] = &[Fault::Twice, Fault::Late, Fault::Lost, Fault::Expired, Fault::Broken, Fault::Cut];

/// What went wrong had no larger consequences than it had to have.
fn modest(world: &World, took: Duration) {
    let struck = world.suffered();
    let only = |faults: &[Fault]| struck.0.iter().all(|(_, fault)| faults.contains(fault));
    if !only(LATE) && !only(STREAMS) {
        return;
    }
    let requests = world.requests();
    if only(LATE) {
        let hasty = requests.iter().find(|sent| sent.is_write() && sent.body.to_string().contains("Unavailable"));
        assert!(struck.0.len() > 1 || took < PROMPT, "it took {took:?}: somebody waits for what does not come");
        assert!(hasty.is_none(), "it is said that something cannot be read which is only late: {}", hasty.unwrap());
    }
    if only(STREAMS) {
        let blind = requests.iter().find(|sent| (sent.verb, sent.code) == ("create", 409));
        assert!(blind.is_none(), "what was made is made again, since a stream has not shown it yet: {}", blind.unwrap());
    }
}

/// The trial of this life; the clusters that are not called `demo` stay. One that is alone is not changed, for it is played very often.
pub(crate) fn trial(names: &'static [&'static str]) -> Trial<impl AsyncFn(&World) + Sync> {
    let beginning: Arc<Mutex<Beginning>> = Arc::default();
    let made = beginning.clone();
    let prepare = async move || {
        let (world, book, token) = platform(1, Timing::INSTANT, Version::V0_28).await;
        let acme = world.workspace("acme").await;
        acme.apply(samples::tenant()[0].clone()).await;
        let checker = book.lock().checker.clone();
        *made.lock() = Beginning { checker, token };
        world
    };
    Trial::new(prepare, async move |world: &World| {
        let beginning = beginning.lock().clone();
        told(world, &beginning, names).await;
    })
}
