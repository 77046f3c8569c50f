//! Who may do what in the provider workspace: tenants, and the manager's own identity.
//!
//! Pure: constants as JSON; the door and `kcm init` add names of their own.

use serde_json::{Value, json};

use super::binding::WORKSPACE_TYPE;
use super::export::EXPORT;
use crate::api::{config, projection, provider, tenant};

/// The namespace of the manager's identity in the provider workspace.
pub const MANAGER_NAMESPACE: &str = "kcm-system";
/// The manager's `ServiceAccount`.
pub const MANAGER: &str = "kcm";
/// The role of the manager.
pub const MANAGER_ROLE: &str = "kcm";
/// The role the manager needs besides when it owns the exports (`exports: Manage`).
pub const EXPORTS_ROLE: &str = "kcm-exports";
/// The opt-in role of a provider whose workers run on workload clusters.
pub const WORKLOADS_ROLE: &str = "workload-clusters";
/// The opt-in role of a provider that keeps secrets of its tenants for the end of its work.
pub const SECURED_ROLE: &str = "secured-work";
/// What the maximal permission policy leaves to tenants.
pub const TENANT_POLICY_ROLE: &str = "kubernetes.edge-connect.eu:tenant-policy";
/// What lets a manager write to tenants' workspaces past the virtual workspace: the same name in the provider workspace, where it is a part of the
/// maximal permission policy, and in each tenant's.
pub const DIRECT_WRITES_ROLE: &str = "kubernetes.edge-connect.eu:direct-writes";
/// What lets tenants bind the export and use the workspace type.
pub const BIND_ROLE: &str = "kubernetes.edge-connect.eu:bind";
/// What kcp puts before a user or group when it asks for the maximal permission policy.
pub const POLICY_PREFIX: &str = "apis.kcp.io:binding:";

const RBAC: &str = "rbac.authorization.k8s.io";

/// Tenants write their own kinds, and only read every status and the projection. Without a rule here even a workspace's
/// administrator is refused.
pub fn tenant_policy() -> [Value; 2] {
    let rules = json!([
        { "apiGroups": [tenant::GROUP], "resources": ["kubernetesclusters"], "verbs": ["*"] },
        { "apiGroups": [tenant::GROUP], "resources": ["kubernetesclusters/status"], "verbs": ["get"] },
        {
            "apiGroups": [projection::GROUP],
            "resources": ["kubernetesclusters", "kubernetesclusters/status"],
            "verbs": ["get", "list", "watch"],
        },
        { "apiGroups": [provider::GROUP], "resources": ["providers"], "verbs": ["*"] },
    ]);
    granted(TENANT_POLICY_ROLE, &rules, &group(&format!("{POLICY_PREFIX}system:authenticated")))
}

/// What the maximal permission policy leaves besides to the manager that kcp knows as `user`, where it writes to workspaces directly.
pub fn direct_policy(user_name: &str) -> [Value; 2] {
    granted(DIRECT_WRITES_ROLE, &direct_rules().into(), &user(&format!("{POLICY_PREFIX}{user_name}")))
}

/// What a tenant grants that manager in its workspace, besides coming in: what it writes through the virtual workspace anyway.
pub fn direct_access(user_name: &str) -> [Value; 2] {
    let enter = json!({ "nonResourceURLs": ["/"], "verbs": ["access"] });
    let rules: Vec<Value> = std::iter::once(enter).chain(direct_rules()).collect();
    granted(DIRECT_WRITES_ROLE, &rules.into(), &user(user_name))
}

fn direct_rules() -> Vec<Value> {
    vec![
        json!({ "apiGroups": [tenant::GROUP], "resources": ["kubernetesclusters"], "verbs": ["update"] }),
        json!({ "apiGroups": [tenant::GROUP], "resources": ["kubernetesclusters/status"], "verbs": ["patch"] }),
        json!({ "apiGroups": [projection::GROUP], "resources": ["kubernetesclusters"], "verbs": ["create", "update", "delete"] }),
    ]
}

/// Everybody who can log in may bind the export and create workspaces of the type. Narrow the binding's subjects to choose tenants.
pub fn bind() -> [Value; 2] {
    granted(BIND_ROLE, &bind_rules(EXPORT, true), &group("system:authenticated"))
}

/// May bind one export; `with_type` adds the use of the workspace type.
pub(super) fn bind_rules(export: &str, with_type: bool) -> Value {
    let mut rules =
        vec![json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": [export], "verbs": ["bind"] })];
    if with_type {
        rules.push(
            json!({ "apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "resourceNames": [WORKSPACE_TYPE], "verbs": ["use"] }),
        );
    }
    rules.into()
}

/// The manager's namespace and `ServiceAccount`.
pub fn manager_identity() -> [Value; 2] {
    [namespace(MANAGER_NAMESPACE), service_account(MANAGER_NAMESPACE, MANAGER)]
}

/// The manager's role: what tenants bind through its export's virtual workspace, the catalog and its configuration, and nothing else of
/// the provider workspace.
pub fn manager() -> [Value; 2] {
    let mut rules = export_user_rules(EXPORT, &["get", "list", "watch", "create", "update", "patch", "delete"]);
    rules.extend([
        json!({ "apiGroups": [config::GROUP], "resources": ["providerconfigs"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [config::GROUP], "resources": ["providerconfigs/status"], "verbs": ["patch"] }),
    ]);
    granted(MANAGER_ROLE, &rules.into(), &service_account_subject(MANAGER_NAMESPACE, MANAGER))
}

/// The opt-in role for `exports: Manage`. Creation cannot be restricted by name.
pub fn manager_exports() -> [Value; 2] {
    let rules = json!([
        { "apiGroups": ["apis.kcp.io"], "resources": ["apiresourceschemas"], "verbs": ["get", "create"] },
        { "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "verbs": ["create"] },
        { "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": [EXPORT], "verbs": ["get", "update"] },
    ]);
    granted(EXPORTS_ROLE, &rules, &service_account_subject(MANAGER_NAMESPACE, MANAGER))
}

/// The opt-in role of a provider that works on workload clusters, for its controller's `ServiceAccount`: the pool's Secrets and the index of external
/// work, in the one namespace that holds both, and nothing else of the provider workspace. KCM needs none of it.
pub fn workloads(namespace: &str, account: (&str, &str)) -> [Value; 2] {
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": KEEPS },
    ]);
    granted_in(namespace, WORKLOADS_ROLE, &rules, account)
}

/// The opt-in role of a provider that keeps secrets of its tenants for the end of its work, on a workload cluster or elsewhere: as [`workloads`], and
/// to write Secrets in that namespace. Those of the pool are there too, and creation cannot be restricted by name: it is for whoever needs it.
pub fn secured(namespace: &str, account: (&str, &str)) -> [Value; 2] {
    let rules = json!([{ "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": KEEPS }]);
    granted_in(namespace, SECURED_ROLE, &rules, account)
}

/// What whoever keeps something of a kind does with it.
const KEEPS: [&str; 6] = ["get", "list", "watch", "create", "update", "delete"];

/// A `Role` and the `RoleBinding` of the same name, for a `ServiceAccount` of any namespace.
fn granted_in(namespace: &str, name: &str, rules: &Value, (account_namespace, account): (&str, &str)) -> [Value; 2] {
    let (api_version, metadata) = (format!("{RBAC}/v1"), json!({ "namespace": namespace, "name": name }));
    [
        json!({ "apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": rules }),
        json!({
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": name },
            "subjects": [service_account_subject(account_namespace, account)],
        }),
    ]
}

/// What every user of an export's virtual workspace needs in the provider workspace, and reading the catalog.
///
/// It is for a `ServiceAccount` of that workspace, which kcp lets in without the verb `access` on `/`; any other user needs that besides.
pub(super) fn export_user_rules(export: &str, verbs: &[&str]) -> Vec<Value> {
    vec![
        json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": [export], "verbs": verbs }),
        json!({ "apiGroups": [projection::GROUP], "resources": ["kubernetesclusterofferings"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [provider::GROUP], "resources": ["virtualmachinetypes"], "verbs": ["get", "list", "watch"] }),
    ]
}

/// A `ClusterRole` and the `ClusterRoleBinding` of the same name.
pub(super) fn granted(name: &str, rules: &Value, subject: &Value) -> [Value; 2] {
    let api_version = format!("{RBAC}/v1");
    [
        json!({ "apiVersion": api_version, "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules }),
        json!({
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [subject],
        }),
    ]
}

pub(super) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub(super) fn service_account(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": namespace, "name": name } })
}

pub(super) fn service_account_subject(namespace: &str, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
}

pub(super) fn group(name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": "Group", "name": name })
}

pub(super) fn user(name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": "User", "name": name })
}
