//! Worlds of the kit, each commit and request of which is checked: the same busy days with a restart of the manager at another moment each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kcp_provider_runtime::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::provider::Provider;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::{Timing, Version};
use kcp_provider_runtime::kcm::{Readiness, Scheduler};
use kcp_provider_runtime::kit::{Workspace, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::checker::{Principal, Spent};
use crate::platform::{Book, holds, platform, report};

/// A world whose every event is checked.
struct Watched {
    world: World,
    book: Arc<Mutex<Book>>,
    /// Steps that were taken, and after which of them the manager is restarted.
    steps: usize,
    restart: usize,
}

impl Watched {
    /// A platform with a catalog and the manager, which has the rights that it is deployed with and no more.
    async fn new(shards: usize, restart: usize) -> Self {
        let (world, book, manager) = platform(shards, Timing::INSTANT, Version::V0_28).await;
        let options = kcp_provider_runtime::runtime::Options { credentials: world.credentials(manager), ..world.options() };
        world.run_with(options, |runtime| runtime.serve(Scheduler::new).serve(Readiness::new));
        Self { world, book, steps: 0, restart }
    }

    async fn tenant(&self, name: &str) -> Workspace {
        let workspace = self.world.workspace(name).await;
        for object in samples::tenant() {
            workspace.apply(object).await;
        }
        workspace
    }

    /// One more step is done: now and then the manager is restarted, before it has done what follows.
    async fn step(&mut self) {
        self.steps += 1;
        if self.steps == self.restart {
            self.world.restart().await;
            self.book.lock().checker.restarted();
        }
        self.sound();
    }

    #[track_caller]
    fn sound(&self) {
        let Book { found, .. } = &*self.book.lock();
        assert!(found.is_empty(), "{} violations with a restart after step {}; the first:\n{}", found.len(), self.restart, found[0]);
    }

    /// Waits until nothing is left to do, and checks what must hold then.
    async fn at_rest(&self) {
        self.world.settled().await;
        self.sound();
        let found = self.book.lock().checker.at_rest();
        assert!(found.is_empty(), "{} problems at rest with a restart after step {}; the first:\n{}", found.len(), self.restart, found[0]);
    }

    fn spent(&self, tenant: &Workspace) -> Spent {
        self.book.lock().checker.spent(tenant.logical_cluster().as_str(), "default", "demo")
    }
}

fn machine_type(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"apiVersion": "provider.edge-connect.eu/v1alpha1", "kind": "VirtualMachineType", "metadata": {"name": name},
        "spec": {"providerMachineType": "x", "cpu": cpu, "memory": memory, "availableRegions": ["eu-de"]}})
}

/// Three tenants; every kind of change that there is, one after the other, with nobody waiting for the manager unless the story needs it.
async fn busy_days(shards: usize, restart: usize) -> usize {
    let mut days = Watched::new(shards, restart).await;
    let (a, b, c) = (days.tenant("team-a").await, days.tenant("team-b").await, days.tenant("team-c").await);
    days.step().await;
    let mut greedy = samples::tenant()[1].clone();
    greedy["metadata"]["name"] = "greedy".into();
    greedy["spec"]["nodePools"][0]["capabilities"]["cpu"] = "64".into();
    b.apply(greedy).await;
    days.step().await;
    b.condition::<KubernetesCluster>("greedy", "Scheduled", False, "CapabilityMismatch").await;
    days.world.provider().apply(machine_type("huge", "64000m", "256Gi")).await;
    days.step().await;
    days.world.provider().apply(machine_type("a-small", "4", "16Gi")).await;
    let types = json!({"spec": {"availableVirtualMachineTypes": ["a-small", "huge", "m-4-16", "m-8-32"]}});
    days.world.provider().merge::<KubernetesClusterOffering>("otc-standard", types).await;
    days.step().await;
    b.condition::<KubernetesCluster>("greedy", "Scheduled", True, "Scheduled").await;
    report(&days.world, &a, "demo", false).await;
    days.step().await;
    report(&days.world, &a, "demo", true).await;
    days.step().await;
    a.condition::<KubernetesCluster>("demo", "Ready", True, "Ready").await;
    let pools = |replicas: i32, cpu: &str| {
        json!({"spec": {"nodePools": [{"name": "workers", "replicas": replicas,
        "capabilities": {"cpu": cpu, "memory": "16Gi"}}]}})
    };
    a.merge::<KubernetesCluster>("demo", pools(5, "4000m")).await;
    days.step().await;
    c.merge::<KubernetesCluster>("demo", pools(3, "5")).await;
    days.step().await;
    days.at_rest().await;
    days.world.provider().delete::<VirtualMachineType>("m-4-16").await;
    days.step().await;
    b.delete::<Provider>("otc").await;
    days.step().await;
    days.at_rest().await;
    days.world.provider().delete::<KubernetesClusterOffering>("otc-standard").await;
    days.step().await;
    a.condition::<KubernetesCluster>("demo", "Scheduled", False, "OfferingNotFound").await;
    days.at_rest().await;
    for object in samples::catalog() {
        days.world.provider().apply(object).await;
    }
    days.step().await;
    days.at_rest().await;
    ends(&mut days, &a, &b, &c).await;
    days.steps
}

/// A deletion that waits for the provider, an unbinding, the end of a workspace, and a second life under an old name.
async fn ends(days: &mut Watched, a: &Workspace, b: &Workspace, c: &Workspace) {
    holds(a, "demo", true).await;
    a.delete::<KubernetesCluster>("demo").await;
    days.step().await;
    a.eventually::<Projection>("demo", "is being deleted", |projection| projection.metadata.is_deleting()).await;
    days.step().await;
    holds(a, "demo", false).await;
    days.step().await;
    a.gone::<KubernetesCluster>("demo").await;
    a.apply(samples::tenant()[1].clone()).await;
    days.step().await;
    days.at_rest().await;
    b.unbind().await;
    days.step().await;
    let workspace = "/apis/tenancy.kcp.io/v1alpha1/workspaces/team-c";
    days.world.client().at("/clusters/root").delete(workspace).await.ok().unwrap();
    days.step().await;
    days.at_rest().await;
    // Kubernetes Events that came again were held back for five minutes, and what a workspace that has gone did not take is tried once more.
    days.world.advance(Duration::from_mins(10)).await;
    days.at_rest().await;
    days.world.forget_requests();
    days.world.advance(Duration::from_mins(5)).await;
    assert_eq!(days.world.writes(), [].into(), "K12: nothing is written in five idle minutes");
    days.sound();
    let seen: BTreeSet<Principal> = days.book.lock().checker.counts().keys().map(|(principal, _)| *principal).collect();
    assert_eq!(seen.len(), 5, "everybody takes part: {seen:?}");
    let left =
        days.book.lock().checker.state().all(crate::checker::event::TENANT).map(|(key, _)| key.workspace.clone()).collect::<Vec<_>>();
    assert_eq!(left, [a.logical_cluster().as_str()], "{b} and {c} are empty");
}

#[tokio::test(start_paused = true)]
async fn busy_days_break_no_invariant_whenever_the_manager_restarts() {
    let steps = busy_days(1, 0).await;
    for restart in 1..=steps {
        busy_days(1 + restart % 3, restart).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_costs_four_writes_one_when_ready_two_when_deleted_and_no_read() {
    let days = Watched::new(1, 0).await;
    let tenant = days.tenant("team-a").await;
    days.at_rest().await;
    assert_eq!(days.spent(&tenant), Spent { writes: 4, reads: 0 });
    report(&days.world, &tenant, "demo", true).await;
    days.at_rest().await;
    assert_eq!(days.spent(&tenant), Spent { writes: 5, reads: 0 });
    tenant.delete::<KubernetesCluster>("demo").await;
    days.at_rest().await;
    assert_eq!(days.spent(&tenant), Spent { writes: 7, reads: 0 });
}
