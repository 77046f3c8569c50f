//! Work on workload clusters, by a provider that is the manager's identity with the opt-in role; another workspace stands for the cluster.

#[path = "../seam/caster.rs"]
pub(crate) mod caster;

use std::collections::BTreeSet;

use kcp_provider_runtime::api::manifest::rbac::{self, MANAGER, MANAGER_NAMESPACE};
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::reconciler::Inputs;
use kcp_provider_runtime::runtime::{Handle, Options, RunError, Runtime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::kcp;
use crate::support::platform::{CLUSTERS, Platform, SOON, Tenant, condition, eventually};
use caster::{Caster, cast_name};

const SECRETS: Resource = Resource::new("", "v1", "secrets");
pub(crate) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");
pub(crate) const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "roles");
pub(crate) const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "rolebindings");

/// What runs, and its end.
pub(crate) type Running = (Handle, JoinHandle<Result<(), RunError>>);

/// A provider in this process, with the rights that the manifests give it.
pub(crate) async fn caster(platform: &Platform) -> Running {
    grant(platform).await;
    let (mut handle, task) = start(platform.options().await, Caster::new);
    ready(&mut handle).await;
    (handle, task)
}

/// Gives the manager's identity what a provider needs besides whose work is on workload clusters.
pub(crate) async fn grant(platform: &Platform) {
    for (resource, object) in [&ROLES, &ROLE_BINDINGS].into_iter().zip(rbac::workloads(MANAGER_NAMESPACE, (MANAGER_NAMESPACE, MANAGER))) {
        platform.client().create(resource, MANAGER_NAMESPACE, &object).await.unwrap();
    }
}

/// Starts a provider, which may never be ready.
pub(crate) fn start(options: Options, build: fn(&mut Inputs<KubernetesCluster>) -> Caster<KubernetesCluster>) -> Running {
    let runtime = Runtime::new(options).serve(build);
    (runtime.handle(), tokio::spawn(runtime.run()))
}

pub(crate) async fn ready(handle: &mut Handle) {
    let ready = tokio::time::timeout(SOON, handle.ready()).await;
    ready.unwrap_or_else(|_| panic!("the rights are not enough: {:?}", handle.missing()));
}

/// Puts the kubeconfig of this client into the pool, or in place of the one that is there.
pub(crate) async fn pool(platform: &Platform, name: &str, cluster: &AdminClient) {
    let file = platform.folder().join("workload.kubeconfig");
    cluster.write_kubeconfig(&file).unwrap();
    pool_text(platform, name, &std::fs::read_to_string(file).unwrap()).await;
}

/// The same, of a kubeconfig that holds all that it needs.
pub(crate) async fn pool_text(platform: &Platform, name: &str, kubeconfig: &str) {
    let labels = json!({"runtime.edge-connect.eu/workload-purpose": "workload"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": MANAGER_NAMESPACE, "labels": labels},
        "stringData": {"kubeconfig": kubeconfig}});
    match platform.client().find(&SECRETS, MANAGER_NAMESPACE, name).await.unwrap() {
        None => drop(platform.client().create(&SECRETS, MANAGER_NAMESPACE, &secret).await.unwrap()),
        Some(_) => drop(platform.client().patch(&SECRETS, MANAGER_NAMESPACE, name, &secret).await.unwrap()),
    }
}

/// The cast of a tenant's cluster.
pub(crate) async fn cast(cluster: &AdminClient, tenant: &Tenant, name: &str) -> Option<Value> {
    cluster.find(&CONFIG_MAPS, "default", &cast_name(tenant.workspace.logical_cluster.as_str(), name)).await.unwrap()
}

/// Whose work is recorded, and on which cluster.
pub(crate) async fn index(platform: &Platform) -> BTreeSet<(String, String)> {
    let all = platform.client().list(&CONFIG_MAPS, MANAGER_NAMESPACE).await.unwrap();
    let text = |record: &Value, key: &str| record["data"][key].as_str().unwrap_or_default().to_owned();
    let records = all.iter().filter(|object| object["metadata"]["labels"]["runtime.edge-connect.eu/controller"] == "caster");
    records.map(|record| (text(record, "workspace"), text(record, "cluster"))).collect()
}

#[tokio::test]
async fn a_workspace_that_is_deleted_with_live_work_leaves_none_behind() {
    let platform = Platform::new().await;
    let cluster = kcp().await.workspace("workload").await;
    let (handle, task) = caster(&platform).await;
    let (tenant, other) = (platform.tenant().await, platform.tenant().await);
    for tenant in [&tenant, &other] {
        tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
        let told = tenant.wait("demo", "Cast", "False", "AccessPending").await;
        let message = condition(&told, "Cast").unwrap()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("a Secret in kcm-system") && message.contains("workload-purpose=workload"), "{message}");
    }

    pool(&platform, "one", cluster.client()).await;
    for tenant in [&tenant, &other] {
        let done = tenant.wait("demo", "Cast", "True", "Cast").await;
        assert_eq!(cast(cluster.client(), tenant, "demo").await.unwrap()["data"]["of"], done["metadata"]["uid"]);
    }
    let recorded =
        |tenants: &[&Tenant]| tenants.iter().map(|tenant| (tenant.workspace.logical_cluster.to_string(), "one".to_owned())).collect();
    assert_eq!(index(&platform).await, recorded(&[&tenant, &other]));

    kcp().await.admin.delete_workspace("root", &tenant.name().await).await.unwrap();
    eventually("its work has ended and so has its record", async || {
        cast(cluster.client(), &tenant, "demo").await.is_none() && index(&platform).await == recorded(&[&other])
    })
    .await;
    assert!(cast(cluster.client(), &other, "demo").await.is_some());
    other.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    other.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    assert!(cast(cluster.client(), &other, "demo").await.is_none() && index(&platform).await.is_empty());
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kubeconfig_that_changes_is_used_without_a_restart_and_one_that_goes_is_missed() {
    let platform = Platform::new().await;
    let (before, after) = (kcp().await.workspace("workload").await, kcp().await.workspace("workload").await);
    pool(&platform, "one", before.client()).await;
    let (handle, task) = caster(&platform).await;
    let tenant = platform.tenant().await;
    let ordered = tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.wait("demo", "Cast", "True", "Cast").await;
    pool(&platform, "one", after.client()).await;
    let mut spec = ordered["spec"].clone();
    spec["nodePools"][0]["replicas"] = 5.into();
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": spec})).await.unwrap();
    tenant.wait("demo", "Cast", "True", "Cast").await;
    eventually("it is cast where the kubeconfig leads now", async || cast(after.client(), &tenant, "demo").await.is_some()).await;
    assert_eq!(cast(before.client(), &tenant, "demo").await.unwrap()["data"]["generation"], "1");

    platform.client().delete(&SECRETS, MANAGER_NAMESPACE, "one").await.unwrap();
    let told = tenant.wait("demo", "Cast", "False", "AccessPending").await;
    assert!(condition(&told, "Cast").unwrap()["message"].as_str().unwrap().contains("kcm-system/one"), "{told}");
    pool(&platform, "one", after.client()).await;
    tenant.wait("demo", "Cast", "True", "Cast").await;
    handle.stop();
    task.await.unwrap().unwrap();
}
