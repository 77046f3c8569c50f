//! Bindings come and go: the manager is ready without any, and nothing of a workspace that left stays behind.

use std::collections::BTreeMap;

use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::bind::{BindArgs, Bound};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::support::kcp;
use crate::support::platform::{BINDINGS, Manager, Platform, SOON, eventually, served};

const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");

/// The streams of the provider workspace: the endpoint slice, the configuration, offerings and machine types.
const STREAMS: u64 = 4;

fn one_list_and_one_watch_each() -> BTreeMap<(String, u16), u64> {
    [(("list".to_owned(), 200), STREAMS), (("watch".to_owned(), 200), STREAMS)].into()
}

/// Waits until the manager knows everything of the provider workspace, and shows that it asks for nothing more.
async fn is_quiet(manager: &Manager, before: &BTreeMap<(String, u16), u64>) {
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
    // A new workspace takes kcp some seconds, in which a storm of requests would show.
    kcp().await.workspace("idle").await;
    assert_eq!(&manager.streamed(), before, "lists and watches");
    assert_eq!(manager.handle.missing(), Some(Vec::new()));
}

#[tokio::test]
async fn without_any_binding_the_manager_is_ready_and_quiet() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let manager = platform.manager().await;
    eventually("the watches are open", async || manager.streamed() == one_list_and_one_watch_each()).await;

    is_quiet(&manager, &one_list_and_one_watch_each()).await;

    assert!(!manager.requests().keys().any(|(verb, _)| !verb.ends_with("the configuration")), "{:?}", manager.requests());
    manager.stop().await;
}

#[tokio::test]
async fn the_first_binding_is_picked_up_and_so_is_a_new_one_after_the_last_has_gone() {
    let (platform, manager, tenant) = served().await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let first = tenant.scheduled("demo").await;

    tenant.client().delete(&BINDINGS, "", export::EXPORT).await.unwrap();
    tenant.client().wait_gone(&BINDINGS, "", export::EXPORT, SOON).await.unwrap();
    manager.forgets().await;
    is_quiet(&manager, &manager.streamed()).await;

    platform.bind(&tenant.workspace).await;
    tenant.served().await;
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let second = tenant.scheduled("demo").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    eventually("the workspace is counted again", async || manager.size("workspaces") == 1).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_tenant_that_may_not_read_the_provider_workspace_gets_bindings_that_work() {
    let platform = Platform::new().await;
    platform.door("otc").await;
    let workspace = kcp().await.workspace("tenant").await;
    let owner = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "owner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    workspace.client().create(&ROLE_BINDINGS, "", &owner).await.unwrap();
    let file = platform.folder().join("alice.kubeconfig");
    workspace.client().write_kubeconfig(&file).unwrap();
    let mut kubeconfig = Kubeconfig::read_from(&file).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some("alice".into());
    std::fs::write(&file, serde_saphyr::to_string(&kubeconfig).unwrap()).unwrap();
    let alice = AdminClient::from_kubeconfig(&file).await.unwrap();
    let arguments = |workspace: &str, provider: Option<&str>| BindArgs {
        connect: ConnectArgs { kubeconfig: Some(file.clone()), workspace: Some(workspace.into()) },
        provider: provider.map(Into::into),
        disconnect_guard: false,
        direct_writes: None,
    };
    let path = platform.connection.path.as_str();
    eventually("alice may look into her workspace", async || alice.list(&BINDINGS, "").await.is_ok()).await;

    let unnamed = arguments(platform.workspace.logical_cluster.as_str(), None).binding().await.unwrap_err();
    assert!(format!("{unnamed:#}").contains("path with --workspace"), "{unnamed:#}");
    let early = arguments(path, Some("otc")).binding().await.unwrap_err();
    assert!(format!("{early:#}").contains("bound after the export"), "{early:#}");

    for provider in [None, Some("otc")] {
        let bound = arguments(path, provider).binding().await.unwrap();
        assert!(bound.warning.unwrap().contains("may not read export"));
        let name = bound.binding["metadata"]["name"].as_str().unwrap();
        eventually("alice binds", async || alice.create(&BINDINGS, "", &bound.binding).await.is_ok()).await;
        let applied = |binding: &Value| {
            let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
            binding["status"]["phase"] == "Bound"
                && conditions.iter().any(|found| found["type"] == "PermissionClaimsApplied" && found["status"] == "True")
        };
        alice.wait_for(&BINDINGS, "", name, "to be Bound with its claims", SOON, applied).await.unwrap();
        // The same as the administrator gets, who reads the export.
        let read = BindArgs {
            connect: ConnectArgs { kubeconfig: Some(platform.folder().join("admin.kubeconfig")), workspace: None },
            provider: provider.map(Into::into),
            disconnect_guard: false,
            direct_writes: None,
        };
        assert_eq!(read.binding().await.unwrap(), Bound { binding: bound.binding, warning: None });
    }
    let guarded = BindArgs { disconnect_guard: true, ..arguments(path, None) }.binding().await.unwrap();
    assert_eq!(
        guarded.binding["spec"]["permissionClaims"].as_array().unwrap().len(),
        4,
        "who cannot read the export says that it has a guard"
    );
}
