//! What reviews answer.

use super::*;
use crate::api::manifest::rbac as ours;

fn asked(spec: &Value) -> Value {
    json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec})
}

fn status(world: &World, body: &Value) -> Value {
    review(world, TENANT, "SubjectAccessReview", &admin(), body)["status"].clone()
}

#[test]
fn a_review_answers_like_the_request_would() {
    let world = World::default().with(TENANT, [binding("view", "view", &user("alice")), lets_in("alice")]);
    let get = json!({"verb": "get", "resource": "configmaps", "namespace": "default"});
    let own_status = json!({"verb": "get", "group": "apis.kcp.io", "resource": "apibindings", "subresource": "status"});
    for (spec, expected) in [
        (json!({"user": "alice", "resourceAttributes": get}), json!({"allowed": true, "reason": "access granted"})),
        (json!({"user": "bob", "resourceAttributes": get}), json!({"allowed": false, "reason": "access denied"})),
        (json!({"user": "s", "groups": [MASTERS], "resourceAttributes": get}), json!({"allowed": true})),
        (
            json!({"user": "kcp-admin", "groups": [KCP_ADMIN], "resourceAttributes": own_status}),
            json!({"allowed": false, "denied": true, "reason": "access denied"}),
        ),
        (
            json!({"user": "kcp-admin", "groups": [KCP_ADMIN], "nonResourceAttributes": {"verb": "get", "path": "/version"}}),
            json!({"allowed": true, "reason": "access granted"}),
        ),
    ] {
        assert_eq!(status(&world, &asked(&spec)), expected, "{spec}");
    }
    let own = review(&world, TENANT, "SelfSubjectAccessReview", &alice(), &asked(&json!({"resourceAttributes": get})));
    assert_eq!((&own["kind"], &own["status"]["allowed"]), (&json!("SelfSubjectAccessReview"), &json!(true)));
}

#[test]
fn the_rules_of_the_manager_can_be_reviewed_by_its_name() {
    let world = World::default().with(PROVIDER, ours::manager());
    let spec = |cluster_key: &str, cluster: &str, name: &str| {
        json!({
            "user": format!("system:serviceaccount:{}:{}", ours::MANAGER_NAMESPACE, ours::MANAGER),
            "groups": ["system:serviceaccounts", AUTHENTICATED],
            "extra": {cluster_key: [cluster]},
            "resourceAttributes": {"verb": "list", "group": "apis.kcp.io", "version": "*", "resource": "apiexports",
                "subresource": "content", "name": name},
        })
    };
    let export = crate::api::manifest::export::EXPORT;
    for (spec, expected, why) in [
        (spec(CLUSTER_NAME, PROVIDER, export), true, "an account of this workspace"),
        (spec(CLUSTER_NAME, TENANT, export), false, "one of another"),
        (
            spec("authentication.kcp.io/cluster-name", TENANT, export),
            true,
            "a key that means nothing: an account without a cluster is local",
        ),
        (spec(CLUSTER_NAME, PROVIDER, "other"), false, "another export"),
    ] {
        let answer = review(&world, PROVIDER, "SubjectAccessReview", &admin(), &asked(&spec));
        assert_eq!(answer["status"]["allowed"], expected, "{why}");
    }
}

#[test]
fn a_policy_counts_in_reviews() {
    let policy = ours::tenant_policy();
    let mut world = World::default().with(PROVIDER, policy).with(TENANT, [workspace_admin("alice")]);
    let group = crate::api::projection::GROUP;
    let bound = BoundKind { provider: PROVIDER.into(), export: "e".into(), policy: true };
    world.bound.insert((TENANT.into(), group.into(), "kubernetesclusters".into()), bound);
    for (verb, expected) in [("get", true), ("delete", false)] {
        let attributes = json!({"verb": verb, "group": group, "resource": "kubernetesclusters"});
        let spec = json!({"user": "alice", "groups": [AUTHENTICATED], "resourceAttributes": attributes});
        assert_eq!(status(&world, &asked(&spec))["allowed"], expected, "{verb}");
    }
}

#[test]
fn a_review_that_asks_nothing_is_invalid() {
    let both = json!({"user": "u", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}});
    let elsewhere = json!({"user": "u", "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "other"}});
    for (kind, spec, words) in [
        (
            "SubjectAccessReview",
            json!({}),
            ".authorization.k8s.io \"\" is invalid: [spec.resourceAttributes: Invalid value: \"null\": exactly one of nonResourceAttributes \
             or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one of user or group must be specified]",
        ),
        (
            "SelfSubjectAccessReview",
            both,
            ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: \
             authorization.NonResourceAttributes{Path:\"/\", Verb:\"get\"}: cannot be specified in combination with resourceAttributes",
        ),
        (
            "LocalSubjectAccessReview",
            elsewhere,
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"other\": \
             must match metadata.namespace",
        ),
    ] {
        let refusal = reviewable(kind, "default", &asked(&spec)).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (422, words));
    }
    assert!(reviewable("SelfSubjectAccessReview", "", &asked(&json!({"resourceAttributes": {"verb": "get"}}))).is_ok());
}

#[test]
fn a_user_sees_who_it_is_and_its_rules() {
    let account = User::service_account(TENANT, "default", "bot", "u1");
    let who = who_am_i(&account, "2026-11-30T03:22:59Z");
    let expected = json!({
        "username": "system:serviceaccount:default:bot", "uid": "u1",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED], "extra": {CLUSTER_NAME: [TENANT]},
    });
    assert_eq!(who["status"]["userInfo"], expected);
    let world = World::default().with(TENANT, [binding("v", "cluster-admin", &user("alice"))]);
    let rules = rules_review(&world, TENANT, &alice(), &json!({"spec": {"namespace": "default"}}));
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let own = rules["status"]["resourceRules"].as_array().unwrap();
    assert_eq!((own.len(), own.last()), (3, Some(&everything)));
    assert_eq!(rules["status"]["nonResourceRules"].as_array().unwrap().len(), 3);
}
