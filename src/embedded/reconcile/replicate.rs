//! Which roles other shards need to know: those that let somebody bind an export, use its content or use a type of workspaces.
//!
//! kcp's controllers `replicateclusterrole` and `replicateclusterrolebinding` of the groups `apis.kcp.io` and `tenancy.kcp.io`.

use std::sync::Arc;

use serde_json::Value;

use crate::embedded::world::World;
use crate::embedded::world::objects::set;
use crate::embedded::world::workspaces::{cluster_role_bindings, cluster_roles};

const ANNOTATION: &str = "internal.kcp.io/replicate";
/// Subjects of a maximal permission policy.
const POLICY: &str = "apis.kcp.io:binding:";

impl World {
    pub(super) fn do_replicate(&mut self, workspace: &Arc<str>) {
        let (roles, bindings) = (self.all(cluster_roles(), workspace), self.all(cluster_role_bindings(), workspace));
        let role_of = |binding: &Value| roles.iter().find(|role| role["metadata"]["name"] == binding["roleRef"]["name"]);
        let of_role = |role: &Value| {
            let bound = |binding: &Value| binding["roleRef"]["name"] == role["metadata"]["name"] && is_policy(binding);
            groups(exports(role) || bindings.iter().any(bound), types(role))
        };
        let of_binding = |binding: &Value| {
            let role = role_of(binding).filter(|_| binding["roleRef"]["kind"] == "ClusterRole");
            groups(is_policy(binding) || role.is_some_and(exports), role.is_some_and(types))
        };
        let wanted = roles.iter().map(|role| (cluster_roles(), role, of_role(role)));
        let wanted = wanted.chain(bindings.iter().map(|binding| (cluster_role_bindings(), binding, of_binding(binding))));
        let changed = wanted.filter(|(_, object, groups)| object["metadata"]["annotations"][ANNOTATION] != *groups);
        let changed: Vec<_> = changed
            .map(|(kind, object, groups)| (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), groups))
            .collect();
        for (kind, name, groups) in changed {
            self.edit(kind, workspace, "", &name, "", |object| set(&mut object["metadata"]["annotations"], ANNOTATION, groups));
        }
    }
}

fn groups(exports: bool, types: bool) -> Value {
    let groups: Vec<&str> =
        [(exports, "apis.kcp.io"), (types, "tenancy.kcp.io")].into_iter().filter(|(is, _)| *is).map(|(_, group)| group).collect();
    if groups.is_empty() { Value::Null } else { groups.join(",").into() }
}

fn is_policy(binding: &Value) -> bool {
    let subjects = binding["subjects"].as_array();
    subjects.into_iter().flatten().any(|subject| subject["name"].as_str().is_some_and(|name| name.starts_with(POLICY)))
}

fn exports(role: &Value) -> bool {
    any_rule(role, "apis.kcp.io", |has| (has("resources", "apiexports") && has("verbs", "bind")) || has("resources", "apiexports/content"))
}

fn types(role: &Value) -> bool {
    any_rule(role, "tenancy.kcp.io", |has| has("resources", "workspacetypes") && (has("verbs", "use") || has("verbs", "initialize")))
}

fn any_rule(role: &Value, group: &str, fits: impl Fn(&dyn Fn(&str, &str) -> bool) -> bool) -> bool {
    role["rules"].as_array().into_iter().flatten().any(|rule| {
        let has = |field: &str, wanted: &str| rule[field].as_array().into_iter().flatten().any(|value| value == wanted || value == "*");
        has("apiGroups", group) && fits(&has)
    })
}
