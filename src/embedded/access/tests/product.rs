//! What the product's own roles leave to whom.

use super::*;
use crate::api::manifest::door::{CONTROLLER, Door};
use crate::api::manifest::{export::EXPORT, rbac as ours};
use crate::api::{projection, tenant};

const DOOR: &str = "otc";

/// A provider workspace after `kcm init` with a door, and a tenant's workspace.
fn world() -> World {
    let door = Door::new(DOOR, "hash").unwrap();
    let roles = [ours::tenant_policy(), ours::bind(), ours::manager()].concat();
    World::default().with(PROVIDER, roles).with(PROVIDER, door.roles()).with(TENANT, [workspace_admin("alice")])
}

fn export() -> BoundKind {
    BoundKind { provider: PROVIDER.into(), export: EXPORT.into(), policy: true }
}

fn cluster<'a>(group: &'a str, verb: &'a str, subresource: &'a str) -> Attributes<'a> {
    Attributes {
        verb,
        group,
        version: "v1alpha1",
        resource: "kubernetesclusters",
        subresource,
        namespace: "default",
        name: "demo",
        path: "",
    }
}

#[test]
fn tenants_write_their_clusters_and_read_every_status_and_the_projection() {
    let world = world();
    let (own, seen) = (tenant::GROUP, projection::GROUP);
    for (group, verb, subresource, expected) in [
        (own, "create", "", true),
        (own, "delete", "", true),
        (own, "get", "status", true),
        (own, "patch", "status", false),
        (own, "update", "status", false),
        (seen, "get", "", true),
        (seen, "watch", "", true),
        (seen, "create", "", false),
        (seen, "patch", "", false),
        (seen, "delete", "", false),
        (seen, "deletecollection", "", false),
        (seen, "get", "status", true),
        (seen, "patch", "status", false),
    ] {
        for who in [alice(), admin()] {
            let answer = direct(&world, TENANT, &who, &cluster(group, verb, subresource), Some(&export()));
            assert_eq!(answer.is_ok(), expected, "{} {verb} {group} {subresource}", who.name);
        }
    }
    let stranger = User::named("bob", &[]);
    assert!(direct(&world, TENANT, &stranger, &cluster(own, "get", ""), Some(&export())).is_err(), "a policy grants nothing");
    let open = BoundKind { policy: false, ..export() };
    assert!(direct(&world, TENANT, &alice(), &cluster(seen, "delete", ""), Some(&open)).is_ok(), "without a policy RBAC decides");
}

#[test]
fn the_manager_uses_its_export_and_nothing_else_of_the_provider_workspace() {
    let world = world();
    let manager = User::service_account(PROVIDER, ours::MANAGER_NAMESPACE, ours::MANAGER, "u");
    for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
        assert!(content(&world, PROVIDER, EXPORT, &manager, verb).is_ok(), "{verb}");
    }
    assert!(content(&world, PROVIDER, EXPORT, &manager, "deletecollection").is_err());
    assert!(content(&world, PROVIDER, &Door::new(DOOR, "hash").unwrap().export_name(), &manager, "get").is_err(), "a door is not its own");
    let report = cluster(tenant::GROUP, "patch", "status");
    assert!(through(&world, PROVIDER, EXPORT, &manager, &report, &[]).is_ok(), "the policy is not for the export's own kinds");
    let slices = Attributes { group: "apis.kcp.io", resource: "apiexportendpointslices", ..configmaps("list", "", "") };
    assert!(may(&world, PROVIDER, &manager, &slices), "an account of the workspace is let in");
    assert!(!may(&world, PROVIDER, &manager, &Attributes { resource: "secrets", ..configmaps("get", "default", "x") }));
    assert!(!may(&world, TENANT, &manager, &cluster(tenant::GROUP, "get", "")), "it is nobody in a tenant's workspace");
    let tenants = User::service_account(TENANT, ours::MANAGER_NAMESPACE, ours::MANAGER, "u");
    assert!(content(&world, PROVIDER, EXPORT, &tenants, "get").is_err(), "a tenant's account of the same name is nobody here");
}

#[test]
fn a_refusal_through_the_virtual_workspace_speaks_of_the_kind() {
    let refusal = through(&world(), PROVIDER, EXPORT, &User::named("user", &[]), &cluster(tenant::GROUP, "get", ""), &[]).unwrap_err();
    let words = "kubernetesclusters.kubernetes.edge-connect.eu \"demo\" is forbidden: User \"user\" cannot get resource \"kubernetesclusters\" \
                 in API group \"kubernetes.edge-connect.eu\" in the namespace \"default\": access denied";
    assert_eq!((refusal.code, refusal.message.as_str()), (403, words));
}

#[test]
fn a_provider_reports_through_its_door_and_a_tenants_account_of_its_name_gains_nothing() {
    let world = world();
    let door = Door::new(DOOR, "hash").unwrap();
    let (namespace, name) = (door.namespace(), door.export_name());
    let claimed = [export()];
    let provider = User::service_account(PROVIDER, &namespace, CONTROLLER, "u");
    let asks = |who: &User, verb, subresource| {
        through(&world, PROVIDER, &name, who, &cluster(projection::GROUP, verb, subresource), &claimed).is_ok()
    };
    for (verb, subresource, expected) in
        [("get", "", true), ("patch", "", true), ("update", "status", true), ("patch", "status", true), ("delete", "", false)]
    {
        assert_eq!(asks(&provider, verb, subresource), expected, "{verb} {subresource}");
    }
    let manager = User::service_account(PROVIDER, ours::MANAGER_NAMESPACE, ours::MANAGER, "u");
    assert!(!asks(&manager, "patch", "status"), "the door is not the manager's");

    let impostor = User::service_account(TENANT, &namespace, CONTROLLER, "u");
    let admin_here = binding("mine", "cluster-admin", &json!({"kind": "ServiceAccount", "namespace": namespace, "name": CONTROLLER}));
    let world = world.with(TENANT, [admin_here]);
    let report = cluster(projection::GROUP, "patch", "status");
    assert!(may(&world, TENANT, &impostor, &report), "its workspace alone would allow it");
    assert!(direct(&world, TENANT, &impostor, &report, Some(&export())).is_err());
    assert!(direct(&world, TENANT, &impostor, &cluster(projection::GROUP, "get", ""), Some(&export())).is_ok());
    let nameless = User { extra: BTreeMap::new(), ..impostor.clone() };
    assert!(direct(&world, TENANT, &nameless, &report, Some(&export())).is_err());
    assert!(through(&world, PROVIDER, &name, &impostor, &report, &claimed).is_err());
}

#[test]
fn everybody_may_bind_the_export_where_they_are_let_in() {
    let bind = Attributes { verb: "bind", group: "apis.kcp.io", resource: "apiexports", name: EXPORT, ..Attributes::default() };
    assert!(!may(&world(), PROVIDER, &alice(), &bind), "the provider workspace is closed");
    assert!(may(&world().with(PROVIDER, [lets_in("alice")]), PROVIDER, &alice(), &bind));
}

#[test]
fn a_tenant_lets_an_export_in_for_what_is_bound_and_for_the_verbs_that_both_sides_write() {
    let claim = |verbs: &[&str]| json!({"group": "", "resource": "secrets", "verbs": verbs});
    let export = |verbs| json!({"spec": {"permissionClaims": [claim(verbs)]}});
    let binding = |verbs, state: &str| {
        let mut accepted = claim(verbs);
        accepted["state"] = state.into();
        json!({"spec": {"permissionClaims": [accepted]}, "status": {"boundResources": [{"group": "x.dev", "resource": "widgets"}]}})
    };
    let secrets = |verb| Attributes { resource: "secrets", ..configmaps(verb, "default", "s") };
    let both: &[&str] = &["get", "list"];
    for (in_export, in_binding, state, attributes, expected, why) in [
        (both, both, "Accepted", secrets("get"), true, "both have it"),
        (both, both, "Accepted", secrets("delete"), false, "neither has it"),
        (both, both, "Rejected", secrets("get"), false, "a rejected claim"),
        (&["*"], both, "Accepted", secrets("get"), false, "a star is a word"),
        (&["*"], &["*"], "Accepted", secrets("get"), true, "both have the star"),
        (both, both, "Accepted", configmaps("get", "default", "c"), false, "no claim"),
        (both, both, "Accepted", Attributes { group: "x.dev", resource: "widgets", ..secrets("delete") }, true, "a bound kind"),
        (both, both, "Accepted", Attributes { group: "apis.kcp.io", resource: "apibindings", ..secrets("list") }, true, "the roster"),
        (both, both, "Accepted", Attributes { group: "apis.kcp.io", resource: "apibindings", ..secrets("patch") }, false, "read only"),
    ] {
        assert_eq!(invited(&export(in_export), &binding(in_binding, state), &attributes), expected, "{why}");
    }
    let other = json!({"spec": {"permissionClaims": [{"group": "", "resource": "secrets", "verbs": both, "identityHash": "h"}]}});
    assert!(!invited(&other, &binding(both, "Accepted"), &secrets("get")), "a claim of another identity");
}
