//! The toy provider of `workload`, with a real Kubernetes as its workload cluster.

use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::runtime::Handle;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::{Kube, kube};
use crate::support::platform::{CLUSTERS, Platform, SOON, condition, eventually};
use crate::workload::{CONFIG_MAPS, ROLE_BINDINGS, ROLES, cast, caster, index, pool, pool_text};

/// The account, and what it is granted by.
const ACCOUNT: &str = "caster-of-tests";

#[tokio::test]
async fn work_on_a_real_cluster_follows_its_object_and_an_object_goes_only_once_its_work_is_gone() {
    let (platform, Kube { admin: cluster, kubeconfig }) = (Platform::new().await, kube().await);
    pool_text(&platform, "real", kubeconfig.expose_secret()).await;
    let (handle, task) = caster(&platform).await;
    let tenant = platform.tenant().await;
    let ordered = tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let done = tenant.wait("demo", "Cast", "True", "Cast").await;
    assert_eq!(condition(&done, "Cast").unwrap()["message"], "cast at real");
    let made = cast(&cluster, &tenant, "demo").await.unwrap();
    assert_eq!(made["data"]["of"], done["metadata"]["uid"]);
    assert!(made["metadata"]["annotations"].is_null(), "no kcp marks it: {made}");
    assert_eq!(index(&platform).await, [(tenant.workspace.logical_cluster.to_string(), "real".to_owned())].into());

    let mut spec = ordered["spec"].clone();
    spec["nodePools"][0]["replicas"] = 5.into();
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": spec})).await.unwrap();
    eventually("the work follows", async || cast(&cluster, &tenant, "demo").await.unwrap()["data"]["generation"] == "2").await;
    let name = made["metadata"]["name"].as_str().unwrap();
    let held = json!({"metadata": {"finalizers": ["toys.test/somebody-else"]}});
    assert_eq!(cluster.patch(&CONFIG_MAPS, "default", name, &held).await.unwrap()["metadata"]["uid"], made["metadata"]["uid"]);

    tenant.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    eventually("the work is going", async || !cast(&cluster, &tenant, "demo").await.unwrap()["metadata"]["deletionTimestamp"].is_null())
        .await;
    assert!(tenant.client().find(&CLUSTERS, "default", "demo").await.unwrap().is_some(), "the object waits for it");
    cluster.patch(&CONFIG_MAPS, "default", name, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    tenant.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    assert!(cast(&cluster, &tenant, "demo").await.is_none() && index(&platform).await.is_empty());
    handle.stop();
    task.await.unwrap().unwrap();
}

/// How often a server refused the provider's credentials or its rights.
fn refusals(handle: &Handle) -> f64 {
    let text = handle.metrics().text();
    let lines = text.lines().filter(|line| line.contains(r#"controller="caster",reason="AccessDenied""#));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// An account of the cluster, made anew, and who has its token.
async fn account(cluster: &AdminClient) -> AdminClient {
    let accounts = Resource::new("", "v1", "serviceaccounts");
    cluster.delete(&accounts, "default", ACCOUNT).await.unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    cluster.create(&accounts, "default", &account).await.unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let token = cluster.create_in(&accounts.subresource("token"), "default", ACCOUNT, &request).await.unwrap();
    cluster.as_bearer(token["status"]["token"].as_str().unwrap().to_owned().into()).unwrap()
}

#[tokio::test]
async fn an_account_that_may_do_the_work_is_enough_and_when_its_token_ends_the_next_one_is_taken() {
    let (platform, cluster) = (Platform::new().await, kube().await.admin);
    let user = account(&cluster).await;
    pool(&platform, "narrow", &user).await;
    let (handle, task) = caster(&platform).await;
    let tenant = platform.tenant().await;
    let ordered = tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    eventually("it is refused", async || refusals(&handle) > 0.0).await;
    assert!(cast(&cluster, &tenant, "demo").await.is_none());
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "delete"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": ACCOUNT}, "rules": rules});
    cluster.create(&ROLES, "default", &role).await.unwrap();
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}]});
    cluster.create(&ROLE_BINDINGS, "default", &binding).await.unwrap();
    tenant.wait("demo", "Cast", "True", "Cast").await;

    let next = account(&cluster).await;
    // The server believes a token for some seconds after its account has gone.
    eventually("its token has ended", async || user.list(&CONFIG_MAPS, "default").await.is_err_and(|error| error.code() == Some(401)))
        .await;
    let before = refusals(&handle);
    let mut spec = ordered["spec"].clone();
    spec["nodePools"][0]["replicas"] = 5.into();
    tenant.client().patch(&CLUSTERS, "default", "demo", &json!({"spec": spec})).await.unwrap();
    eventually("the ended token is refused", async || refusals(&handle) > before).await;
    pool(&platform, "narrow", &next).await;
    eventually("the work follows", async || cast(&cluster, &tenant, "demo").await.unwrap()["data"]["generation"] == "2").await;
    tenant.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
    tenant.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    assert!(cast(&cluster, &tenant, "demo").await.is_none());
    handle.stop();
    task.await.unwrap().unwrap();
}
