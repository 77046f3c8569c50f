//! Kubeconfigs of tenants' workspaces: what a worker can do with one, and what is left of it.

#[path = "../seam/courier.rs"]
#[allow(dead_code, reason = "each target uses its part of it")]
mod courier;

use std::path::Path;

use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::api::manifest::export::{Claim, access_claims};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::runtime::{Credentials, Options, Runtime};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::backend::COURIER;
use crate::claims::{CONFIG_MAPS, SCHEMAS, TOYS, schema};
use crate::kinds::Toy;
use crate::support::platform::{BINDINGS, EXPORTS, SOON, condition, eventually};
use crate::support::{Workspace, kcp};
use courier::{Courier, Handed, Log};

const ACCOUNT: &str = "kcp-provider-courier.toys.test";
const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");
const LOGICAL_CLUSTERS: Resource = Resource::new("core.kcp.io", "v1alpha1", "logicalclusters");
const WORKSPACES: Resource = Resource::new("tenancy.kcp.io", "v1alpha1", "workspaces");
const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts");
const SECRETS: Resource = Resource::new("", "v1", "secrets");

fn claims() -> Vec<Value> {
    access_claims().iter().map(Claim::to_value).collect()
}

/// A user who may use the export of toys, and nothing else anywhere.
fn rights() -> [Value; 2] {
    let rules = json!([
        {"nonResourceURLs": ["/"], "verbs": ["access"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": ["toys.test"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]);
    let named = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "courier"}});
    let (mut role, mut binding) = (named("ClusterRole"), named("ClusterRoleBinding"));
    role["rules"] = rules;
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "courier"});
    binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": COURIER}]);
    [role, binding]
}

/// A provider workspace with the export of toys; its path.
async fn toymaker(user: &Path) -> String {
    let provider = kcp().await.workspace("toymaker").await;
    provider.client().create(&SCHEMAS, "", &schema()).await.unwrap();
    let export = json!({"apiVersion": EXPORTS.api_version(), "kind": "APIExport", "metadata": {"name": "toys.test"}, "spec": {
        "resources": [{"group": "toys.test", "name": "toys", "schema": "v1.toys.toys.test", "storage": {"crd": {}}}],
        "permissionClaims": claims()}});
    provider.client().create(&EXPORTS, "", &export).await.unwrap();
    let [role, binding] = rights();
    provider.client().create(&ROLES, "", &role).await.unwrap();
    provider.client().create(&ROLE_BINDINGS, "", &binding).await.unwrap();
    let admin = user.with_extension("admin");
    provider.client().write_kubeconfig(&admin).unwrap();
    provider.client().as_bearer(SecretString::from(COURIER)).unwrap().write_kubeconfig(user).unwrap();
    ConnectArgs { kubeconfig: Some(admin), workspace: None }.connect().await.unwrap().path
}

/// A tenant with a toy whose binding accepts all claims, or all but that on roles.
async fn tenant(path: &str, all: bool) -> Workspace {
    let workspace = kcp().await.workspace("delivered").await;
    let mut bound = binding::binding(path, "toys.test", &claims());
    if !all {
        let claims = bound["spec"]["permissionClaims"].as_array_mut().unwrap();
        claims.iter_mut().find(|claim| claim["resource"] == "clusterroles").unwrap()["state"] = "Rejected".into();
    }
    workspace.client().create(&BINDINGS, "", &bound).await.unwrap();
    order(&workspace).await;
    workspace
}

async fn order(workspace: &Workspace) {
    let toy = json!({"apiVersion": TOYS.api_version(), "kind": "Toy", "metadata": {"name": "car", "namespace": "default"}});
    eventually("the kind is served", async || workspace.client().create(&TOYS, "default", &toy).await.is_ok()).await;
}

async fn delivered(workspace: &Workspace, status: &str, reason: &str) -> Value {
    let holds = |toy: &Value| condition(toy, "Delivered").is_some_and(|found| found["status"] == status && found["reason"] == reason);
    let what = format!("to have Delivered={status} ({reason})");
    workspace.client().wait_for(&TOYS, "default", "car", &what, SOON * 2, holds).await.unwrap()
}

/// A workspace is deleted with everything in it: kcp takes accounts, Secrets and objects in an order of its own.
async fn goes_whole(workspace: &Workspace) {
    let path = workspace.client().get(&LOGICAL_CLUSTERS, "", "cluster").await.unwrap()["metadata"]["annotations"]["kcp.io/path"].clone();
    let (parent, name) = path.as_str().unwrap().rsplit_once(':').unwrap();
    let admin = kcp().await.admin;
    admin.delete_workspace(parent, name).await.unwrap();
    admin.in_workspace(parent).unwrap().wait_gone(&WORKSPACES, "", name, SOON).await.unwrap();
}

#[tokio::test]
async fn a_worker_gets_a_kubeconfig_that_is_good_for_what_was_declared_and_nothing_of_it_is_left_or_shown() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("courier");
    let path = toymaker(&user).await;
    let log = Log::default();
    let logging = log.listen();
    let handed = Handed::default();
    let told = handed.clone();
    let runtime = Runtime::new(Options::new(Credentials::File(user), "toys.test").with_workspace(path.clone()))
        .serve(|inputs| Courier::<Toy>::new(inputs, told));
    let handle = runtime.handle();
    let task = tokio::spawn(runtime.run());

    let (whole, rejecting) = tokio::join!(tenant(&path, true), tenant(&path, false));
    let shown = delivered(&whole, "True", "Ready").await;
    let kubeconfig = handed.of("car").pop().unwrap();
    let file = folder.path().join("worker");
    std::fs::write(&file, &kubeconfig).unwrap();
    let worker = AdminClient::from_kubeconfig(&file).await.unwrap();
    let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-the-worker", "namespace": "default"}});
    worker.create(&CONFIG_MAPS, "default", &note).await.unwrap();
    assert!(whole.client().get(&CONFIG_MAPS, "default", "from-the-worker").await.is_ok());
    assert!(worker.list(&SECRETS, "default").await.unwrap_err().is_forbidden());
    let elsewhere = worker.in_workspace(rejecting.logical_cluster.as_str()).unwrap();
    assert!(elsewhere.list(&CONFIG_MAPS, "default").await.unwrap_err().is_forbidden());

    // What is missing is named, and is enough once it is accepted.
    let waiting = delivered(&rejecting, "False", "AccessPending").await;
    let message = condition(&waiting, "Delivered").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the permission claim on clusterroles.rbac.authorization.k8s.io"), "{message}");
    let accepted = binding::binding(&path, "toys.test", &claims())["spec"]["permissionClaims"].clone();
    rejecting.client().patch(&BINDINGS, "", "toys.test", &json!({"spec": {"permissionClaims": accepted}})).await.unwrap();
    delivered(&rejecting, "True", "Ready").await;

    // With the last object everything goes, and the token with it.
    whole.client().delete(&TOYS, "default", "car").await.unwrap();
    whole.client().wait_gone(&TOYS, "default", "car", SOON).await.unwrap();
    for (kind, namespace) in [(&ACCOUNTS, "default"), (&SECRETS, "default"), (&ROLES, ""), (&ROLE_BINDINGS, "")] {
        assert!(whole.client().find(kind, namespace, ACCOUNT).await.unwrap().is_none(), "{} stayed", kind.collection_path(namespace));
    }
    eventually("the token is refused", async || worker.list(&CONFIG_MAPS, "default").await.is_err()).await;
    // A binding that goes takes its objects along, though kcp may have taken the account before.
    rejecting.client().delete(&BINDINGS, "", "toys.test").await.unwrap();
    rejecting.client().wait_gone(&BINDINGS, "", "toys.test", SOON).await.unwrap();
    order(&whole).await;
    delivered(&whole, "True", "Ready").await;
    goes_whole(&whole).await;

    handle.stop();
    task.await.unwrap().unwrap();
    drop(logging);
    let logged = log.text();
    assert!(logged.contains("TRACE"), "everything is logged, that of the libraries too");
    let metrics = handle.metrics().text();
    for token in handed.tokens("car") {
        let secret = token.rsplit('.').next().unwrap();
        for (what, text) in [("a log", &logged), ("a condition", &shown.to_string()), ("a metric", &metrics)] {
            assert!(!text.contains(secret), "a token is in {what}");
        }
    }
}
