//! A manager that writes to tenants' workspaces themselves: as far as tenants and the export's maximal permission policy let it.

use kcp_provider_runtime::api::manifest::rbac;
use kcp_provider_runtime::cli::init::{self, Extras};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use kcp_provider_runtime::runtime::{Credentials, Options};
use secrecy::SecretString;
use serde_json::json;

use crate::backend::COURIER;
use crate::support::Workspace;
use crate::support::platform::{CLUSTERS, Manager, PROJECTIONS, Platform, SOON, Tenant, eventually};

const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");

/// As a user that is nobody's `ServiceAccount`: kcp v0.28 lends such an account rights in other workspaces by mistake.
async fn options(platform: &Platform) -> Options {
    let set_up = init::Options { connection: platform.connection.clone(), provider: None, manage_exports: false, dry_run: false };
    let extras = Extras { direct_writes: Some(COURIER.into()), ..Extras::default() };
    let report = Box::pin(init::init_with(&set_up, &extras, &EndpointArgs::default())).await.unwrap();
    assert_eq!(report.changes(), 2, "the role and who has it: {report}");
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": COURIER}]);
    let enter = json!({"metadata": {"name": "enter"}, "rules": [{"nonResourceURLs": ["/"], "verbs": ["access"]}]});
    grant(&platform.workspace, "ClusterRole", &enter).await;
    for (name, role) in [("enter", "enter"), ("kcm-by-name", rbac::MANAGER_ROLE)] {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        grant(&platform.workspace, "ClusterRoleBinding", &json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects})).await;
    }
    let kubeconfig = platform.folder().join("courier.kubeconfig");
    manager_in(&platform.workspace).write_kubeconfig(&kubeconfig).unwrap();
    Options { direct_writes: true, credentials: Credentials::File(kubeconfig), ..platform.options().await }
}

async fn grant(workspace: &Workspace, kind: &str, object: &serde_json::Value) {
    let mut object = object.clone();
    object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    object["kind"] = kind.into();
    let resource = if kind == "ClusterRole" { &ROLES } else { &ROLE_BINDINGS };
    workspace.client().create(resource, "", &object).await.unwrap();
}

/// The manager's user, in a workspace.
fn manager_in(workspace: &Workspace) -> AdminClient {
    workspace.client().as_bearer(SecretString::from(COURIER)).unwrap()
}

/// How many direct writes ended so.
fn written(manager: &Manager, outcome: &str) -> u64 {
    let text = manager.handle.metrics().text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("kcp_provider_direct_writes_total{{outcome=\"{outcome}\"}} ")));
    line.map_or(0, |count| count.parse().unwrap())
}

async fn ordered(tenant: &Tenant) {
    tenant.provider("otc").await;
    tenant.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    tenant.scheduled("demo").await;
    tenant.wait("demo", "Ready", "False", "Pending").await;
}

#[tokio::test]
async fn a_tenant_who_lets_the_manager_in_is_written_to_directly_and_another_through_the_virtual_workspace() {
    let platform = Platform::new().await;
    platform.small_catalog().await;
    let options = options(&platform).await;
    let (open, closed) = (platform.tenant().await, platform.tenant().await);
    let [role, binding] = rbac::direct_access(COURIER);
    grant(&open.workspace, "ClusterRole", &role).await;
    grant(&open.workspace, "ClusterRoleBinding", &binding).await;
    let direct = manager_in(&open.workspace);
    let none = json!({"metadata": {"name": "none", "namespace": "default", "resourceVersion": "1"}});
    let comes_in = async || direct.replace(&CLUSTERS, "default", "none", &none).await.is_err_and(|error| !error.is_forbidden());
    eventually("the tenant lets the manager in", comes_in).await;

    let manager = Manager::start(options, None).await;
    ordered(&open).await;
    let sent = written(&manager, "sent");
    assert!(sent >= 4 && written(&manager, "refused") == 0, "all that a cluster costs: {sent}");
    ordered(&closed).await;
    assert_eq!(written(&manager, "sent"), sent);
    assert!((1..=2).contains(&written(&manager, "refused")), "both reconcilers may ask once, at the same time");

    // What else it may there: nothing; and the tenant may not what the manager may.
    assert!(direct.list(&CLUSTERS, "").await.unwrap_err().is_forbidden());
    let taken = open.client().delete(&PROJECTIONS, "default", "demo").await;
    assert!(taken.unwrap_err().is_forbidden(), "an administrator of the workspace is bound by the policy");

    for tenant in [&open, &closed] {
        tenant.client().delete(&CLUSTERS, "default", "demo").await.unwrap();
        tenant.client().wait_gone(&CLUSTERS, "default", "demo", SOON).await.unwrap();
    }
    assert!(written(&manager, "sent") >= sent + 2, "the end is written directly too");
    manager.stop().await;
}
