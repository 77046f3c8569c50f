//! External work whose object vanishes, by a provider that no finalizer of tenants' waits for: what ends it, and what does not.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::cli::kcp_admin::WORKSPACES;
use kcp_provider_runtime::reconciler::Inputs;
use kcp_provider_runtime::runtime::{Handle, Options};

use crate::support::platform::{BINDINGS, CLUSTERS, Platform, SOON, Tenant, eventually};
use crate::support::proxy::Proxy;
use crate::support::{Workspace, kcp};
use crate::workload::caster::Caster;
use crate::workload::{cast, grant, index, pool, ready, start};

/// In place of the fifteen minutes: long beside everything that is measured with it.
const GRACE: Duration = Duration::from_secs(20);
/// How much later than it begins an absence may be read from the metrics, which are a second old.
const LATE: Duration = Duration::from_secs(5);
const KIND: &str = "kubernetesclusters.kubernetes.edge-connect.eu";

/// No finalizer: its objects may vanish at any time.
fn careless(inputs: &mut Inputs<KubernetesCluster>) -> Caster<KubernetesCluster> {
    let mut caster = Caster::new(inputs);
    caster.finalizer = None;
    caster
}

/// A provider workspace whose work is on one workload cluster.
async fn stage() -> (Platform, Workspace) {
    let (platform, cluster) = (Box::pin(Platform::new()).await, kcp().await.workspace("workload").await);
    grant(&platform).await;
    pool(&platform, "one", cluster.client()).await;
    (platform, cluster)
}

/// Two tenants with a cluster that is cast.
async fn cast_for_two(platform: &Platform) -> [Tenant; 2] {
    let tenants = [platform.tenant().await, platform.tenant().await];
    for tenant in &tenants {
        tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
        tenant.wait("demo", "Cast", "True", "Cast").await;
    }
    tenants
}

fn recorded(tenants: &[&Tenant]) -> BTreeSet<(String, String)> {
    tenants.iter().map(|tenant| (tenant.workspace.logical_cluster.to_string(), "one".to_owned())).collect()
}

/// How many pieces of work are counted in these states together.
fn counted(handle: &Handle, states: &[&str]) -> usize {
    let text = handle.metrics().text();
    let of = |state: &str| {
        let line = format!("kcp_provider_external_works{{state=\"{state}\"}} ");
        text.lines().find_map(|text| text.strip_prefix(&line)?.parse::<usize>().ok()).unwrap_or_default()
    };
    states.iter().map(|state| of(state)).sum()
}

/// Waits until the work of one of two tenants has ended and its record is gone, which takes the grace from when it is missed on.
async fn ends_after_the_grace(handle: &Handle, platform: &Platform, cluster: &Workspace, [gone, other]: [&Tenant; 2]) {
    eventually("the object is missed", async || counted(handle, &["gone", "unbound"]) == 1).await;
    let began = Instant::now();
    assert!(cast(cluster.client(), gone, "demo").await.is_some());
    assert_eq!(index(platform).await, recorded(&[gone, other]));
    eventually("its work has ended", async || cast(cluster.client(), gone, "demo").await.is_none()).await;
    let lasted = began.elapsed();
    assert!(lasted + LATE >= GRACE, "it was ended {lasted:?} after it was missed");
    eventually("so has its record", async || index(platform).await == recorded(&[other])).await;
    eventually("nothing is missed any more", async || counted(handle, &["gone", "unbound"]) == 0).await;
    assert!(cast(cluster.client(), other, "demo").await.is_some() && counted(handle, &["engaged"]) == 1);
}

#[tokio::test]
async fn the_work_of_a_workspace_that_is_gone_with_its_objects_is_ended_after_the_grace_and_not_before() {
    let (platform, cluster) = stage().await;
    let (mut handle, task) = start(Options { absence_grace: GRACE, ..platform.options().await }, careless);
    ready(&mut handle).await;
    let [tenant, other] = cast_for_two(&platform).await;

    let (admin, name) = (kcp().await.admin, tenant.name().await);
    admin.delete_workspace("root", &name).await.unwrap();

    ends_after_the_grace(&handle, &platform, &cluster, [&tenant, &other]).await;
    admin.wait_gone(&WORKSPACES, "", &name, SOON).await.unwrap();
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_work_of_a_workspace_that_unbinds_is_ended_after_the_grace_and_another_process_counts_anew() {
    let (platform, cluster) = stage().await;
    let options = Options { absence_grace: GRACE, ..platform.options().await };
    let (mut handle, task) = start(options.clone(), careless);
    ready(&mut handle).await;
    let [tenant, other] = cast_for_two(&platform).await;
    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    eventually("the object is missed", async || counted(&handle, &["unbound"]) == 1).await;
    handle.stop();
    task.await.unwrap().unwrap();

    let (handle, task) = start(options, careless);
    ends_after_the_grace(&handle, &platform, &cluster, [&tenant, &other]).await;
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn work_whose_objects_cannot_be_reached_is_not_ended_however_long_and_that_time_counts_for_nothing() {
    let (platform, cluster) = stage().await;
    let proxy = Proxy::start(platform.identity().await).await;
    let options = Options { absence_grace: GRACE, ..proxy.options(&platform) };
    let (mut handle, task) = start(options.clone(), careless);
    ready(&mut handle).await;
    let [tenant, other] = cast_for_two(&platform).await;
    handle.stop();
    task.await.unwrap().unwrap();

    // A process that has seen no object yet, and of two one is really gone.
    proxy.fail([KIND]);
    let (handle, task) = start(options, careless);
    tenant.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    tenant.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    eventually("neither is seen", async || counted(&handle, &["unreachable"]) == 2).await;
    let began = Instant::now();
    eventually("twice the grace is over", async || {
        assert_eq!(counted(&handle, &["gone", "unbound"]), 0);
        began.elapsed() >= 2 * GRACE
    })
    .await;
    for tenant in [&tenant, &other] {
        assert!(cast(cluster.client(), tenant, "demo").await.is_some());
    }
    assert_eq!(index(&platform).await, recorded(&[&tenant, &other]));

    proxy.mend();
    ends_after_the_grace(&handle, &platform, &cluster, [&tenant, &other]).await;
    handle.stop();
    task.await.unwrap().unwrap();
}
