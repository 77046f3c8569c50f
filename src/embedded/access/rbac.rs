//! Role-based access control: which rules a user has, and which of them allow a request.
//!
//! Pure: JSON of RBAC objects, read leniently. The rules are those of `plugin/pkg/auth/authorizer/rbac` and `pkg/apis/rbac/v1`.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

use super::bootstrap::{self, BINDINGS};
use super::{Attributes, Roles, User, combined};

/// Whether the rules of a workspace, with those that apply everywhere, allow this to a user who is taken as it is.
pub(super) fn allows(roles: &dyn Roles, workspace: &str, user: &User, attributes: &Attributes<'_>) -> bool {
    visit(roles, workspace, attributes.namespace, user, &mut |rule| {
        if rule_allows(rule, attributes) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .is_break()
}

type Visitor<'v> = dyn FnMut(&Value) -> ControlFlow<()> + 'v;

/// Every rule of a user in a namespace of a workspace (`""` for none): first those that apply everywhere, then the workspace's own.
pub(super) fn visit(roles: &dyn Roles, workspace: &str, namespace: &str, user: &User, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
    for binding in BINDINGS.iter().filter(|binding| applies(binding, user, "")) {
        let role = binding["roleRef"]["name"].as_str().and_then(bootstrap::role);
        role.map_or(ControlFlow::Continue(()), |role| each(role, visitor))?;
    }
    for binding in bindings(roles, workspace, namespace) {
        if applies(&binding, user, namespace_of(&binding)) {
            let role = role_of(roles, workspace, &binding);
            let everywhere = || binding["roleRef"]["name"].as_str().filter(|_| of_cluster(&binding)).and_then(bootstrap::role);
            role.as_deref().or_else(everywhere).map_or(ControlFlow::Continue(()), |role| each(role, visitor))?;
        }
    }
    ControlFlow::Continue(())
}

/// A workspace's own bindings: those of the workspace, and those of one of its namespaces.
pub(super) fn bindings(roles: &dyn Roles, workspace: &str, namespace: &str) -> Vec<Arc<Value>> {
    let mut bindings = roles.cluster_role_bindings(workspace);
    if !namespace.is_empty() {
        bindings.extend(roles.role_bindings(workspace, namespace));
    }
    bindings
}

/// The role that a binding names among the workspace's own ones.
pub(super) fn role_of(roles: &dyn Roles, workspace: &str, binding: &Value) -> Option<Arc<Value>> {
    let name = binding["roleRef"]["name"].as_str()?;
    match (of_cluster(binding), namespace_of(binding)) {
        (true, _) => roles.cluster_role(workspace, name),
        (false, "") => None,
        (false, namespace) => roles.role(workspace, namespace, name),
    }
}

fn of_cluster(binding: &Value) -> bool {
    binding["roleRef"]["kind"] == "ClusterRole"
}

/// The namespace of a `RoleBinding`, `""` of a `ClusterRoleBinding`.
pub(super) fn namespace_of(binding: &Value) -> &str {
    binding["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn each(role: &Value, visitor: &mut Visitor<'_>) -> ControlFlow<()> {
    role["rules"].as_array().into_iter().flatten().try_for_each(visitor)
}

/// Whether one of the subjects is this user. The namespace is that of a `ServiceAccount` that does not say its own.
pub(super) fn applies(binding: &Value, user: &User, namespace: &str) -> bool {
    let is_user = |subject: &Value| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str().unwrap_or_default() {
            "User" => user.name == name,
            "Group" => user.is_in(name),
            "ServiceAccount" => {
                let namespace = subject["namespace"].as_str().filter(|own| !own.is_empty()).unwrap_or(namespace);
                !namespace.is_empty() && user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    };
    binding["subjects"].as_array().into_iter().flatten().any(is_user)
}

fn rule_allows(rule: &Value, attributes: &Attributes<'_>) -> bool {
    let has = |field: &str, wanted: &str| texts(rule, field).any(|text| text == "*" || text == wanted);
    if !has("verbs", attributes.verb) {
        return false;
    }
    if attributes.resource.is_empty() {
        return texts(rule, "nonResourceURLs").any(|pattern| path_matches(pattern, attributes.path));
    }
    let combined = combined(attributes);
    let resource = texts(rule, "resources").any(|text| {
        let any_kind = !attributes.subresource.is_empty() && text.strip_prefix("*/") == Some(attributes.subresource);
        text == "*" || text == combined || any_kind
    });
    let mut names = texts(rule, "resourceNames").peekable();
    has("apiGroups", attributes.group) && resource && (names.peek().is_none() || names.any(|name| name == attributes.name))
}

/// `/api/*` matches what begins with `/api/`.
pub(super) fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|_| path.starts_with(pattern.trim_end_matches('*')))
}

/// The strings of a list.
pub(super) fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    object[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}
