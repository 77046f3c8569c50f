//! The complete example of a provider without workers in kcp, with a real Kubernetes as the workload cluster: its manifests, its rights, its code.

#[path = "../../../examples/provider-relay/kinds.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod kinds;
#[path = "../../../examples/provider-relay/provider.rs"]
mod provider;

use base64::Engine as _;
use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::runtime::{Credentials, Options, Runtime};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::kube;
use crate::support::platform::{BINDINGS, SOON, condition, eventually, gently};
use crate::support::{Workspace, kcp};
use provider::{NAMESPACE, Relays};

const RELAYS: Resource = Resource::new("relays.example.org", "v1alpha1", "relays");
const CONFIGS: Resource = Resource::new("relays.example.org", "v1alpha1", "relayconfigs");
const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts");
const SECRETS: Resource = Resource::new("", "v1", "secrets");
const NAMESPACES: Resource = Resource::new("", "v1", "namespaces");
const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");
const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments");

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// What `kubectl apply -f` does with a file.
async fn apply(client: &AdminClient, yaml: &str) {
    for object in documents(yaml) {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("/kind"), text("/apiVersion"));
        let resource = match kind.as_str() {
            "APIResourceSchema" => Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas"),
            "APIExport" => Resource::new("apis.kcp.io", "v1alpha2", "apiexports"),
            "CustomResourceDefinition" => Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
            "Namespace" => NAMESPACES,
            "ServiceAccount" => ACCOUNTS,
            "ClusterRole" => Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles"),
            "ClusterRoleBinding" => Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
            "Role" => Resource::new("rbac.authorization.k8s.io", "v1", "roles"),
            "RoleBinding" => Resource::new("rbac.authorization.k8s.io", "v1", "rolebindings"),
            "RelayConfig" => CONFIGS,
            "Relay" => RELAYS,
            other => panic!("nobody has said where {other} ({api_version}) is"),
        };
        assert_eq!(resource.api_version(), api_version);
        let namespace = text("/metadata/namespace");
        eventually(&format!("a {kind} can be made"), async || client.create(&resource, &namespace, &object).await.is_ok()).await;
    }
}

/// Who the controller is in the provider workspace, by its own token.
async fn identity(provider: &Workspace, kubeconfig: &std::path::Path) {
    let ask = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86_400}});
    let answer = provider.client().create_in(&ACCOUNTS.subresource("token"), "kcm-system", "relays", &ask).await.unwrap();
    let token = SecretString::from(answer["status"]["token"].as_str().unwrap().to_owned());
    provider.client().as_bearer(token).unwrap().write_kubeconfig(kubeconfig).unwrap();
}

async fn ready(workspace: &Workspace, status: &str, reason: &str) -> Value {
    let holds = |relay: &Value| condition(relay, "Ready").is_some_and(|found| found["status"] == status && found["reason"] == reason);
    let what = format!("to have Ready={status} ({reason})");
    workspace.client().wait_for(&RELAYS, "default", "mine", &what, SOON * 2, holds).await.unwrap()
}

#[tokio::test]
async fn the_example_runs_a_workers_deployment_with_a_key_to_the_tenants_workspace_and_leaves_nothing() {
    let (provider, cluster) = (kcp().await.workspace("relays").await, kube().await);
    apply(provider.client(), include_str!("../../../examples/provider-relay/kcp.yaml")).await;
    apply(provider.client(), include_str!("../../../examples/provider-relay/config.yaml")).await;
    let labels = json!({"runtime.edge-connect.eu/workload-purpose": "workload"});
    let pool = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": "kcm-system", "labels": labels},
        "stringData": {"kubeconfig": cluster.kubeconfig.expose_secret()}});
    provider.client().create(&SECRETS, "kcm-system", &pool).await.unwrap();
    let workers = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.admin.create(&NAMESPACES, "", &workers).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (admin, own) = (folder.path().join("admin"), folder.path().join("own"));
    provider.client().write_kubeconfig(&admin).unwrap();
    let path = ConnectArgs { kubeconfig: Some(admin), workspace: None }.connect().await.unwrap().path;
    identity(&provider, &own).await;
    let options = gently(Options::new(Credentials::File(own), "relays.example.org").with_workspace(path.clone()));
    let runtime = Runtime::new(Options { config_name: "relay".into(), ..options }).serve(Relays::new);
    let handle = runtime.handle();
    let task = tokio::spawn(runtime.run());

    let tenant = kcp().await.workspace("relayed").await;
    let export =
        documents(include_str!("../../../examples/provider-relay/kcp.yaml")).into_iter().find(|object| object["kind"] == "APIExport");
    let claims = export.unwrap()["spec"]["permissionClaims"].as_array().unwrap().clone();
    tenant.client().create(&BINDINGS, "", &binding::binding(&path, "relays.example.org", &claims)).await.unwrap();
    apply(tenant.client(), include_str!("../../../examples/provider-relay/tenant.yaml")).await;
    let relay = ready(&tenant, "False", "WorkerStarting").await;

    let name = format!("relay-{}", relay["metadata"]["uid"].as_str().unwrap());
    let deployment = cluster.admin.get(&DEPLOYMENTS, NAMESPACE, &name).await.unwrap();
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*arguments, json!(["--chart", "oci://registry.example.org/charts/relay:1.0.0"]));
    let status = json!({"status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    cluster.admin.patch(&DEPLOYMENTS.subresource("status"), NAMESPACE, &name, &status).await.unwrap();
    ready(&tenant, "True", "Ready").await;

    // What the worker reads is good for the tenant's workspace.
    let secret = cluster.admin.get(&SECRETS, NAMESPACE, &name).await.unwrap();
    let text = base64::engine::general_purpose::STANDARD.decode(secret["data"]["kubeconfig"].as_str().unwrap()).unwrap();
    let file = folder.path().join("worker");
    std::fs::write(&file, text).unwrap();
    let worker = AdminClient::from_kubeconfig(&file).await.unwrap();
    let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "relayed", "namespace": "default"}});
    worker.create(&CONFIG_MAPS, "default", &note).await.unwrap();
    assert!(tenant.client().get(&CONFIG_MAPS, "default", "relayed").await.is_ok());

    tenant.client().delete(&RELAYS, "default", "mine").await.unwrap();
    tenant.client().wait_gone(&RELAYS, "default", "mine", SOON).await.unwrap();
    assert!(cluster.admin.find(&DEPLOYMENTS, NAMESPACE, &name).await.unwrap().is_none());
    assert!(cluster.admin.find(&SECRETS, NAMESPACE, &name).await.unwrap().is_none());
    let accounts = tenant.client().list(&ACCOUNTS, "default").await.unwrap();
    assert!(!accounts.iter().any(|account| account["metadata"]["name"] == "kcp-provider-relays.relays.example.org"), "its account is gone");
    handle.stop();
    task.await.unwrap().unwrap();
}
