//! The roles that nobody stored: what applies in every workspace, and what a fresh kcp has in `root` and in a new workspace.
//!
//! Pure: tables as JSON. They are read off a kcp v0.28.0's `system:admin`; the sources are Kubernetes' `bootstrappolicy`, kcp's
//! `pkg/authorization/bootstrap` and `config/root`. Roles of components that an embedded control plane does not have are left out.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    AUTHENTICATED, EXTERNAL_LOGICAL_CLUSTER_ADMIN, KCP_ADMIN, LOGICAL_CLUSTER_ADMIN, MASTERS, RBAC, UNAUTHENTICATED, WORKSPACE_BOOTSTRAPPER,
};
use crate::api::manifest::rbac::POLICY_PREFIX;

/// The `ClusterRoleBinding` to `cluster-admin` that a new workspace has for its creator.
pub const WORKSPACE_ADMIN: &str = "workspace-admin";

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const ALL: &str = "create delete deletecollection get list patch update watch";

/// A rule: verbs, group, resources; with the group `/` it is for paths.
type Rule = (&'static str, &'static str, &'static str);

const VIEW: [Rule; 10] = [
    (
        READ,
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
         replicationcontrollers/scale serviceaccounts services services/status",
    ),
    (
        READ,
        "",
        "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas \
         resourcequotas/status",
    ),
    (READ, "", "namespaces"),
    (READ, "discovery.k8s.io", "endpointslices"),
    (
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets \
         replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    (READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status \
         networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
    ),
    (READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
];

const EDIT: [Rule; 13] = [
    (READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", "", "serviceaccounts"),
    (WRITE, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", "", "pods/eviction"),
    (
        WRITE,
        "",
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services \
         services/proxy",
    ),
    ("create", "", "serviceaccounts/token"),
    (
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
    ),
    (WRITE, "autoscaling", "horizontalpodautoscalers"),
    (WRITE, "batch", "cronjobs jobs"),
    (
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale \
         replicationcontrollers/scale",
    ),
    (WRITE, "policy", "poddisruptionbudgets"),
    (WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    (ALL, "coordination.k8s.io", "leases"),
];

const ADMIN: [Rule; 2] = [("create", "authorization.k8s.io", "localsubjectaccessreviews"), (ALL, RBAC, "rolebindings roles")];

const EVERYTHING: [Rule; 2] = [("*", "*", "*"), ("*", "/", "*")];
const ACCESS: Rule = ("access", "/", "/");

const DISCOVERY: &str = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/";

const SINGLE: [(&str, &[Rule]); 11] = [
    ("cluster-admin", &EVERYTHING),
    ("system:discovery", &[("get", "/", DISCOVERY)]),
    (
        "system:basic-user",
        &[
            ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            ("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    ),
    ("system:public-info-viewer", &[("get", "/", "/healthz /livez /readyz /version /version/")]),
    (
        "system:auth-delegator",
        &[("create", "authentication.k8s.io", "tokenreviews"), ("create", "authorization.k8s.io", "subjectaccessreviews")],
    ),
    ("system:monitoring", &[("get", "/", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*")]),
    (
        "system:kcp:tenancy:reader",
        &[(READ, "tenancy.kcp.io", "workspaces"), (READ, "tenancy.kcp.io", "workspacetypes"), (READ, "core.kcp.io", "logicalclusters")],
    ),
    ("system:kcp:workspace:access", &[ACCESS]),
    (WORKSPACE_BOOTSTRAPPER, &EVERYTHING),
    (
        LOGICAL_CLUSTER_ADMIN,
        &[("*", "core.kcp.io", "logicalclusters logicalclusters/status"), ("delete update get", "tenancy.kcp.io", "workspaces")],
    ),
    (
        EXTERNAL_LOGICAL_CLUSTER_ADMIN,
        &[
            ("delete get update", "core.kcp.io", "logicalclusters logicalclusters/status"),
            ("delete get update", "tenancy.kcp.io", "workspaces"),
            ACCESS,
            ("get patch update", "apis.kcp.io", "apiexportendpointslices/status"),
            (READ, "apis.kcp.io", "apiexportendpointslices"),
        ],
    ),
];

pub(super) static ROLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let aggregated = [("view", VIEW.to_vec()), ("edit", [&EDIT[..], &VIEW].concat()), ("admin", [&EDIT[..], &VIEW, &ADMIN].concat())];
    let single = SINGLE.iter().map(|(name, rules)| role_of(name, rules));
    single.chain(aggregated.iter().map(|(name, rules)| role_of(name, rules))).collect()
});

pub(super) static BINDINGS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let bootstrapper = format!("{POLICY_PREFIX}{WORKSPACE_BOOTSTRAPPER}");
    let groups: [(&str, &str, &[&str]); 9] = [
        ("cluster-admin", "cluster-admin", &[MASTERS]),
        ("system:monitoring", "system:monitoring", &["system:monitoring"]),
        ("system:discovery", "system:discovery", &[AUTHENTICATED]),
        ("system:basic-user", "system:basic-user", &[AUTHENTICATED]),
        ("system:public-info-viewer", "system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
        ("system:kcp:admin:cluster-admin", "cluster-admin", &[KCP_ADMIN]),
        (WORKSPACE_BOOTSTRAPPER, WORKSPACE_BOOTSTRAPPER, &[WORKSPACE_BOOTSTRAPPER, &bootstrapper]),
        (LOGICAL_CLUSTER_ADMIN, LOGICAL_CLUSTER_ADMIN, &[LOGICAL_CLUSTER_ADMIN]),
        (EXTERNAL_LOGICAL_CLUSTER_ADMIN, EXTERNAL_LOGICAL_CLUSTER_ADMIN, &[EXTERNAL_LOGICAL_CLUSTER_ADMIN]),
    ];
    groups
        .iter()
        .map(|(name, role, groups)| binding(name, role, &groups.iter().map(|group| subject("Group", group)).collect::<Vec<_>>()))
        .collect()
});

/// A role that applies everywhere, by name.
pub(super) fn role(name: &str) -> Option<&'static Value> {
    ROLES.iter().find(|role| role["metadata"]["name"] == name)
}

/// The `ClusterRole`s and `ClusterRoleBinding`s that apply in every workspace and are objects of none but `system:admin`.
pub fn bootstrap() -> Vec<Value> {
    ROLES.iter().chain(BINDINGS.iter()).cloned().collect()
}

/// What a new workspace has for the user who created it: an object to store there.
pub fn workspace_admin(owner: &str) -> Value {
    binding(WORKSPACE_ADMIN, "cluster-admin", &[subject("User", owner)])
}

/// The `ClusterRole`s and `ClusterRoleBinding`s to store in `root`: everybody may enter it, see workspaces and types, use the types and bind
/// `tenancy.kcp.io` and `topology.kcp.io`, whose maximal permission policies leave everybody everything but status.
pub fn in_root() -> Vec<Value> {
    const TYPES: [&str; 3] = ["universal", "organization", "team"];
    let named = |verb: &'static str, group: &'static str, resource: &'static str, names: &[&str]| {
        let mut rule = rule_of(&(verb, group, resource));
        rule["resourceNames"] = json!(names);
        vec![rule]
    };
    let rules = |rules: &[Rule]| rules.iter().map(rule_of).collect::<Vec<_>>();
    let tenancy =
        [("*", "tenancy.kcp.io", "workspaces workspacetypes"), (READ, "tenancy.kcp.io", "workspaces/status workspacetypes/status")];
    let granted = [
        ("apiexport:tenancy:bind", named("bind", "apis.kcp.io", "apiexports", &["tenancy.kcp.io"]), ""),
        ("apiexport:topology:bind", named("bind", "apis.kcp.io", "apiexports", &["topology.kcp.io"]), ""),
        ("universal-workspacetype-use", named("use", "tenancy.kcp.io", "workspacetypes", &TYPES), ""),
        ("apiexport:tenancy:maximal-permission-policy", rules(&tenancy), POLICY_PREFIX),
        ("apiexport:topology:maximal-permission-policy", rules(&[("*", "topology.kcp.io", "partitions partitionsets")]), POLICY_PREFIX),
    ];
    let everybody = |prefix: &str| [subject("Group", &format!("{prefix}{AUTHENTICATED}"))];
    let mut objects = vec![
        binding("system:kcp:tenancy:authenticated:access", "system:kcp:workspace:access", &everybody("")),
        binding("system:kcp:authenticated:tenancy:reader", "system:kcp:tenancy:reader", &everybody("")),
    ];
    for (name, rules, prefix) in granted {
        let role = format!("system:kcp:{name}");
        objects.push(binding(&format!("system:kcp:authenticated:{name}"), &role, &everybody(prefix)));
        objects.push(cluster_role(&role, &rules));
    }
    let admins = "system:kcp:apiexport:kcp-admin:maximal-permission-policy";
    let admins_binding = "system:kcp:authenticated:apiexport:kcp-admin:maximal-permission-policy";
    objects.push(binding(admins_binding, admins, &[subject("Group", &format!("{POLICY_PREFIX}{KCP_ADMIN}"))]));
    objects.push(cluster_role(admins, &rules(&[("*", "tenancy.kcp.io", "*")])));
    objects
}

fn rule_of((verbs, group, resources): &Rule) -> Value {
    let split = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
    match *group {
        "/" => json!({"verbs": split(verbs), "nonResourceURLs": split(resources)}),
        group => json!({"verbs": split(verbs), "apiGroups": [group], "resources": split(resources)}),
    }
}

fn role_of(name: &str, rules: &[Rule]) -> Value {
    cluster_role(name, &rules.iter().map(rule_of).collect::<Vec<_>>())
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, role: &str, subjects: &[Value]) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

fn subject(kind: &str, name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": kind, "name": name})
}
