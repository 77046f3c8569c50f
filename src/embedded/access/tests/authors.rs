//! Who may write which role.

use super::*;

/// Alice is `admin` by a role that is no object of the workspace, and may write RBAC objects by one that is.
fn world() -> World {
    let rb = json!({"kind": "ClusterRole", "metadata": {"name": "rb"},
        "rules": [{"apiGroups": [RBAC], "resources": ["*"], "verbs": ["get", "create", "update"]}]});
    let of_alice = [("alice", "system:kcp:workspace:access"), ("alicea", "admin"), ("alicerb", "rb")];
    World::default().with(TENANT, [rb]).with(TENANT, of_alice.map(|(name, role)| binding(name, role, &user("alice"))))
}

fn role(kind: &str, rules: &Value) -> Value {
    let mut role = json!({"kind": kind, "metadata": {"name": "more"}, "rules": rules});
    if kind == "Role" {
        role["metadata"]["namespace"] = "default".into();
    }
    role
}

fn words(object: &Value) -> (u16, String) {
    escalates(&world(), TENANT, &alice(), object, false).map_or_else(Default::default, |refusal| (refusal.code, refusal.message))
}

const UNRESOLVED: &str = "; resolution errors: [[KIND.rbac.authorization.k8s.io \"system:kcp:workspace:access\" not found, \
                          KIND.rbac.authorization.k8s.io \"admin\" not found]]";

#[test]
fn what_an_author_lacks_is_listed() {
    let rules = json!([
        {"apiGroups": ["", "x.dev"], "resources": ["nodes", "configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n"], "verbs": ["delete"]},
        {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["get"]},
    ]);
    let expected = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to \
         grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"n\"], Verbs:[\"delete\"]}\n\
         {APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"x.dev\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"x.dev\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}";
    assert_eq!(words(&role("Role", &rules)), (403, format!("{expected}{}", UNRESOLVED.replace("KIND", "roles"))));

    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["/x"], "verbs": ["get"]}]);
    let expected = "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
         {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}";
    assert_eq!(words(&role("ClusterRole", &rules)), (403, format!("{expected}{}", UNRESOLVED.replace("KIND", "clusterroles"))));
}

#[test]
fn an_author_grants_what_it_has() {
    let has = json!([{"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["get", "create"]}]);
    assert_eq!(words(&role("ClusterRole", &has)), (0, String::new()));
    assert_eq!(words(&binding("again", "rb", &user("bob"))), (0, String::new()));
    assert_eq!(words(&json!({"kind": "ConfigMap", "metadata": {"name": "x"}})), (0, String::new()));
}

#[test]
fn only_an_administrator_aggregates() {
    let mut aggregating = role("ClusterRole", &json!([]));
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let expected =
        "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    assert_eq!(words(&aggregating), (403, expected.to_owned()));
}

#[test]
fn a_role_that_is_no_object_of_the_workspace_cannot_be_bound_without_the_verb_for_it() {
    for role in ["cluster-admin", "view", "nope"] {
        let expected = format!("clusterrolebindings.rbac.authorization.k8s.io {role:?} not found");
        assert_eq!(words(&binding("more", role, &user("alice"))), (404, expected));
    }
    let binds = json!({"kind": "ClusterRole", "metadata": {"name": "binds"},
        "rules": [{"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]}]});
    let world = world().with(TENANT, [binds, binding("binds", "binds", &user("alice"))]);
    assert_eq!(escalates(&world, TENANT, &alice(), &binding("more", "view", &user("bob")), false), None);
    assert!(escalates(&world, TENANT, &alice(), &binding("more", "edit", &user("bob")), false).is_some());
}

#[test]
fn administrators_grant_everything_also_what_is_not_there() {
    for who in [admin(), User::named("shard-admin", &[MASTERS])] {
        for role_name in ["cluster-admin", "nope"] {
            assert_eq!(escalates(&world(), TENANT, &who, &binding("more", role_name, &user("bob")), false), None);
        }
        let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        assert_eq!(escalates(&world(), TENANT, &who, &role("ClusterRole", &everything), true), None);
    }
}
