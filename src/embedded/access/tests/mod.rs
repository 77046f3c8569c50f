//! What is allowed to whom. The words and codes were read off a kcp v0.28.0.

mod authors;
mod identity;
mod product;
mod reviews;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

const TENANT: &str = "15m6tu8982zarir8";
const PROVIDER: &str = "2hsnvtbey8ft52mv";

/// Workspaces with RBAC objects.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Vec<Arc<Value>>>,
    bound: BTreeMap<(String, String, String), BoundKind>,
    required: BTreeMap<String, String>,
    gone: BTreeSet<String>,
}

impl World {
    fn with(mut self, workspace: &str, objects: impl IntoIterator<Item = Value>) -> Self {
        self.objects.entry(workspace.to_owned()).or_default().extend(objects.into_iter().map(Arc::new));
        self
    }

    fn of<'a>(&'a self, workspace: &str, kind: &'a str, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        let own = self.objects.get(workspace).map(Vec::as_slice).unwrap_or_default();
        own.iter().filter(move |object| object["kind"] == kind && rbac::namespace_of(object) == namespace)
    }
}

impl Roles for World {
    fn cluster_role(&self, workspace: &str, name: &str) -> Option<Arc<Value>> {
        self.of(workspace, "ClusterRole", "").find(|role| role["metadata"]["name"] == name).cloned()
    }
    fn cluster_role_bindings(&self, workspace: &str) -> Vec<Arc<Value>> {
        self.of(workspace, "ClusterRoleBinding", "").cloned().collect()
    }
    fn role(&self, workspace: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.of(workspace, "Role", namespace).find(|role| role["metadata"]["name"] == name).cloned()
    }
    fn role_bindings(&self, workspace: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.of(workspace, "RoleBinding", namespace).cloned().collect()
    }
    fn bound(&self, workspace: &str, group: &str, resource: &str) -> Option<BoundKind> {
        self.bound.get(&(workspace.into(), group.into(), resource.into())).cloned()
    }
    fn required_groups(&self, workspace: &str) -> Option<String> {
        self.required.get(workspace).cloned()
    }
    fn exists(&self, workspace: &str) -> bool {
        !self.gone.contains(workspace)
    }
}

fn binding(name: &str, role: &str, subject: &Value) -> Value {
    json!({"kind": "ClusterRoleBinding", "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name})
}

fn lets_in(name: &str) -> Value {
    binding("access", "system:kcp:workspace:access", &user(name))
}

fn configmaps<'a>(verb: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes { verb, version: "v1", resource: "configmaps", namespace, name, ..Attributes::default() }
}

fn alice() -> User {
    User::named("alice", &[])
}

fn admin() -> User {
    User::named("kcp-admin", &[KCP_ADMIN])
}

fn may(world: &World, workspace: &str, user: &User, attributes: &Attributes<'_>) -> bool {
    direct(world, workspace, user, attributes, None).is_ok()
}

#[test]
fn a_refusal_says_who_may_not_do_what_and_no_more() {
    let status =
        Attributes { group: "apis.kcp.io", resource: "apibindings", subresource: "status", name: "x", ..configmaps("patch", "", "") };
    for (attributes, message, details) in [
        (
            configmaps("list", "", ""),
            r#"configmaps is forbidden: User "user" cannot list resource "configmaps" in API group "" at the cluster scope: access denied"#,
            json!({"kind": "configmaps"}),
        ),
        (
            configmaps("get", "default", "x"),
            "configmaps \"x\" is forbidden: User \"user\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\": \
             access denied",
            json!({"kind": "configmaps", "name": "x"}),
        ),
        (
            status,
            "apibindings.apis.kcp.io \"x\" is forbidden: User \"user\" cannot patch resource \"apibindings/status\" in API group \
             \"apis.kcp.io\" at the cluster scope: access denied",
            json!({"kind": "apibindings", "group": "apis.kcp.io", "name": "x"}),
        ),
        (Attributes::of_path("get", "/api"), r#"forbidden: User "user" cannot get path "/api": access denied"#, json!({})),
    ] {
        let refusal = direct(&World::default(), TENANT, &User::named("user", &[]), &attributes, None).unwrap_err();
        assert_eq!((refusal.code, refusal.reason, refusal.message.as_str()), (403, "Forbidden", message));
        assert_eq!(refusal.status()["details"], details);
    }
}

#[test]
fn a_workspace_is_closed_to_whoever_lacks_access_to_it_whatever_else_they_may() {
    let views = binding("view", "view", &user("alice"));
    let list = configmaps("list", "default", "");
    for (objects, expected, why) in [
        (vec![], false, "a new workspace"),
        (vec![views.clone()], false, "a role without access"),
        (vec![lets_in("alice")], false, "access without a role"),
        (vec![views.clone(), lets_in("alice")], true, "both"),
        (vec![views, lets_in("bob")], false, "the access of somebody else"),
        (vec![binding("admin", "cluster-admin", &user("alice"))], true, "an administrator has access by the rule for all paths"),
    ] {
        assert_eq!(may(&World::default().with(TENANT, objects), TENANT, &alice(), &list), expected, "{why}");
    }
    let inside = World::default().with(TENANT, [lets_in("alice")]);
    assert!(may(&inside, TENANT, &alice(), &Attributes::of_path("get", "/apis/apps/v1")), "discovery comes with access");
    let views = inside.with(TENANT, [binding("view", "view", &user("alice"))]);
    assert!(!may(&views, TENANT, &alice(), &Attributes { resource: "secrets", ..list }), "a viewer sees no Secrets");
}

#[test]
fn administrators_of_kcp_are_administrators_of_every_workspace_that_is_there() {
    let mut world = World::default();
    world.gone.insert("gone".into());
    let anything = Attributes { verb: "frobnicate", group: "x.dev", resource: "things", subresource: "odd", ..Attributes::default() };
    let masters = User::named("shard-admin", &[MASTERS]);
    for (who, workspace, expected) in [
        (admin(), TENANT, true),
        (admin(), "gone", false),
        (admin(), "system:admin", false),
        (admin(), "", false),
        (masters.clone(), TENANT, true),
        (masters.clone(), "gone", true),
        (masters, "", true),
        (User::anonymous(), TENANT, false),
        (alice(), TENANT, false),
    ] {
        assert_eq!(may(&world, workspace, &who, &anything), expected, "{} in {workspace:?}", who.name);
    }
    assert!(may(&world, "", &User::anonymous(), &Attributes::of_path("get", "/readyz")), "whether it is ready is no secret");
    assert!(!may(&world, "", &User::anonymous(), &Attributes::of_path("get", "/readyz/etcd")));
    assert!(!may(&world, "", &admin(), &Attributes::of_path("get", "/version")));
}

#[test]
fn status_of_bindings_and_exports_is_the_servers_own() {
    for resource in ["apibindings", "apiexports"] {
        let whole = Attributes { verb: "get", group: "apis.kcp.io", resource, name: "x", ..Attributes::default() };
        assert!(may(&World::default(), TENANT, &admin(), &whole));
        assert!(!may(&World::default(), TENANT, &admin(), &Attributes { subresource: "status", ..whole }));
    }
}

#[test]
fn required_groups_are_needed_besides() {
    let mut world = World::default().with(TENANT, [lets_in("alice"), binding("view", "view", &user("alice"))]);
    world.required.insert(TENANT.into(), "dev;ops,team".into());
    let list = configmaps("list", "default", "");
    for (groups, expected) in [(&[][..], false), (&["dev"], true), (&["ops"], false), (&["team", "ops"], true)] {
        assert_eq!(may(&world, TENANT, &User::named("alice", groups), &list), expected, "{groups:?}");
    }
    assert!(may(&world, TENANT, &admin(), &list));
}

#[test]
fn a_rule_is_for_its_verbs_kinds_names_and_namespace() {
    let rules = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"]},
        {"verbs": ["list"], "apiGroups": ["x.dev"], "resources": ["*/status"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x/*", "/y"]},
    ]);
    let role = json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules});
    let local = json!({"kind": "Role", "metadata": {"name": "w", "namespace": "one"},
        "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["configmaps"]}]});
    let local_binding = json!({"kind": "RoleBinding", "metadata": {"name": "w", "namespace": "one"}, "subjects": [user("alice")],
        "roleRef": {"kind": "Role", "name": "w"}});
    let world = World::default().with(TENANT, [lets_in("alice"), role, binding("r", "r", &user("alice")), local, local_binding]);
    let of_x = |resource, subresource| Attributes { group: "x.dev", resource, subresource, ..configmaps("list", "", "") };
    for (attributes, expected, why) in [
        (configmaps("get", "two", "a"), true, "a name of the rule"),
        (configmaps("get", "two", "c"), false, "another name"),
        (configmaps("list", "two", ""), false, "a list has no name"),
        (configmaps("list", "one", ""), true, "a namespace's own role"),
        (configmaps("list", "", ""), false, "all namespaces are more than one"),
        (of_x("things", "status"), true, "the status of every kind"),
        (of_x("things", ""), false, "not the kind itself"),
        (of_x("things", "scale"), false, "not another subresource"),
        (Attributes::of_path("get", "/x/y/z"), true, "below a path"),
        (Attributes::of_path("get", "/x"), false, "the path itself"),
        (Attributes::of_path("get", "/y"), true, "a whole path"),
        (Attributes::of_path("get", "/yz"), false, "a path that begins alike"),
    ] {
        assert_eq!(may(&world, TENANT, &alice(), &attributes), expected, "{why}: {attributes:?}");
    }
}

#[test]
fn everybody_may_enter_root_and_ask_for_workspaces_there() {
    let world = World::default().with("root", in_root());
    let policy = BoundKind { provider: "root".into(), export: "tenancy.kcp.io".into(), policy: true };
    let workspaces =
        |verb, subresource| Attributes { verb, group: "tenancy.kcp.io", resource: "workspaces", subresource, ..Attributes::default() };
    let asks = |who: &User, verb, subresource| direct(&world, "root", who, &workspaces(verb, subresource), Some(&policy)).is_ok();
    assert!(asks(&alice(), "list", ""));
    assert!(!asks(&alice(), "create", ""));
    assert!(asks(&admin(), "update", "status"), "administrators have a grant under the policy");
    assert!(asks(&User::service_account(TENANT, "default", "bot", "u"), "list", ""), "a foreign account has logged in");
    assert!(!asks(&User::anonymous(), "list", ""));
    let bind = Attributes { verb: "bind", group: "apis.kcp.io", resource: "apiexports", name: "tenancy.kcp.io", ..Attributes::default() };
    assert!(may(&world, "root", &alice(), &bind));
    assert!(!may(&world, "root", &alice(), &Attributes { name: "other", ..bind }));
}

#[test]
fn every_binding_that_applies_everywhere_names_a_role_that_does() {
    let all = bootstrap();
    let names = |kind: &str| all.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    for object in names("ClusterRoleBinding").into_iter().chain(&in_root()).filter(|object| object["kind"] == "ClusterRoleBinding") {
        let name = &object["roleRef"]["name"];
        let known = all.iter().chain(&in_root()).any(|role| role["kind"] == "ClusterRole" && role["metadata"]["name"] == *name);
        assert!(known, "{object}");
    }
}
