//! What `init` made and in which order it goes.
//!
//! Pure: from what is there to removals.

use serde_json::Value;

use crate::api::manifest::door::{CONTROLLER, Door};
use crate::api::manifest::export::{EXPORT, GUARD_GROUP, GUARD_RESOURCES, guard_name};
use crate::api::manifest::{self, rbac};
use crate::api::projection;
use crate::cli::kcp_admin::Resource;

/// Exports.
pub const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
/// Schemas.
pub const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");
const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings");
const NAMESPACES: Resource = Resource::new("", "v1", "namespaces");
const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts");
const SECRETS: Resource = Resource::new("", "v1", "secrets");
const CRDS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// An object that goes if it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Its kind.
    pub resource: Resource,
    /// Its namespace, or `""`.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it goes.
    pub what: What,
}

/// Whether an object goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is removed.
    Removed,
    /// It stays; why.
    Kept(&'static str),
}

fn removed(resource: &Resource, namespace: &str, name: &str) -> Removal {
    Removal { resource: resource.clone(), namespace: namespace.to_owned(), name: name.to_owned(), what: What::Removed }
}

/// The doors among the exports, by their names and by having no kinds of their own.
pub fn doors(exports: &[Value]) -> Vec<Door> {
    let suffix = format!(".{}", projection::GROUP);
    let is_door = |export: &&Value| export["spec"]["resources"].as_array().is_none_or(Vec::is_empty);
    let provider = |export: &Value| export["metadata"]["name"].as_str()?.strip_suffix(&suffix).map(ToOwned::to_owned);
    exports.iter().filter(is_door).filter_map(provider).filter_map(|provider| Door::new(&provider, "").ok()).collect()
}

/// Whether `init` made this export.
pub fn is_ours(export: &Value) -> bool {
    export["metadata"]["name"] == EXPORT || !doors(std::slice::from_ref(export)).is_empty()
}

/// Whether an export is ours and claims what the disconnect guard needs.
pub fn claims_guard(export: &Value) -> bool {
    let claims = export["spec"]["permissionClaims"].as_array().into_iter().flatten();
    export["metadata"]["name"] == EXPORT && claims.into_iter().any(|claim| claim["group"] == GUARD_GROUP)
}

/// The guard of one workspace: first it is put out of force.
pub fn guard() -> [Removal; 2] {
    let [policies, bindings] = GUARD_RESOURCES.map(|plural| Resource::new(GUARD_GROUP, "v1", plural));
    [bindings, policies].map(|resource| removed(&resource, "", &guard_name(EXPORT)))
}

/// The workspace type without our exports; `None` when it has none of them.
pub fn closed(live: &Value, path: &str, doors: &[Door]) -> Option<Value> {
    let ours = |binding: &Value| {
        let named = |export: &str| binding["export"] == export;
        binding["path"] == path && (named(EXPORT) || doors.iter().any(|door| named(&door.export_name())))
    };
    let bindings = live["spec"]["defaultAPIBindings"].as_array()?;
    let kept: Vec<Value> = bindings.iter().filter(|binding| !ours(binding)).cloned().collect();
    (kept.len() < bindings.len()).then(|| {
        let mut closed = live.clone();
        closed["spec"]["defaultAPIBindings"] = kept.into();
        closed
    })
}

/// A door: first nobody may bind it any more, then it goes, then its controller's rights and identity.
pub fn door(door: &Door) -> Vec<Removal> {
    let roles = door.roles();
    let bind = |role: &&Value| role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(":bind"));
    let (bind, own): (Vec<&Value>, Vec<&Value>) = roles.iter().partition(bind);
    let mut removals: Vec<Removal> = bind.into_iter().rev().map(role).collect();
    removals.push(removed(&EXPORTS, "", &door.export_name()));
    removals.extend(own.into_iter().rev().map(role));
    removals.extend(identity(&door.namespace(), CONTROLLER));
    removals
}

/// The export itself.
pub fn export() -> Removal {
    removed(&EXPORTS, "", EXPORT)
}

/// A schema of ours, which stays while an export of somebody else names it.
pub fn schema(schema: &Value, others: &[&Value]) -> Removal {
    let name = schema["metadata"]["name"].as_str().unwrap_or_default();
    let named = |export: &&Value| export["spec"]["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["schema"] == name));
    let what = if others.iter().any(named) { What::Kept("an export of somebody else names it") } else { What::Removed };
    Removal { what, ..removed(&SCHEMAS, "", name) }
}

/// What lets tenants in and the manager work, and the manager's identity.
pub fn roles() -> Vec<Removal> {
    let pairs = [rbac::bind(), rbac::direct_policy(""), rbac::tenant_policy(), rbac::manager_exports(), rbac::manager()];
    // A binding goes before its role: a binding without one grants nothing, and shows as broken.
    let mut removals: Vec<Removal> = pairs.iter().flat_map(|pair| pair.iter().rev().map(role)).collect();
    removals.extend(identity(rbac::MANAGER_NAMESPACE, rbac::MANAGER));
    removals
}

/// The catalog's kinds and with them everything in the catalog, or that they stay.
pub fn catalog(wanted: bool) -> Vec<Removal> {
    let what = if wanted { What::Removed } else { What::Kept("the catalog is the platform's; --catalog removes it") };
    manifest::catalog().iter().map(|definition| Removal { what, ..removed(&CRDS, "", &definition.kind.resource()) }).collect()
}

fn identity(namespace: &str, account: &str) -> [Removal; 3] {
    [removed(&SECRETS, namespace, &format!("{account}-token")), removed(&ACCOUNTS, namespace, account), removed(&NAMESPACES, "", namespace)]
}

fn role(role: &Value) -> Removal {
    let resource = if role["kind"] == "ClusterRoleBinding" { &ROLE_BINDINGS } else { &ROLES };
    removed(resource, "", role["metadata"]["name"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::manifest::binding::workspace_type;
    use crate::cli::init::desired;

    fn otc() -> Door {
        Door::new("otc", "hash").unwrap()
    }

    #[test]
    fn everything_that_init_makes_goes_or_says_why_it_stays() {
        let removals: Vec<Removal> = [door(&otc()), vec![export()], roles(), catalog(true)].concat();
        let all =
            [desired::exports(), desired::crds(), desired::workspace("root:p", true, Some("u")), desired::door("root:p", &otc())].concat();
        for object in all.iter().map(|desired| &desired.object) {
            let name = object["metadata"]["name"].as_str().unwrap();
            // The type stays and schemas are found by listing; a configuration goes with its kind.
            let elsewhere = matches!(object["kind"].as_str(), Some("WorkspaceType" | "APIResourceSchema" | "ProviderConfig"));
            assert!(elsewhere || removals.iter().any(|removal| removal.name == name), "{name}");
        }
    }

    #[test]
    fn nobody_may_bind_a_door_when_it_goes_and_its_namespace_goes_last() {
        let names: Vec<(String, String)> = door(&otc()).into_iter().map(|removal| (removal.resource.plural.into(), removal.name)).collect();
        assert_eq!(names.first().unwrap(), &("clusterrolebindings".into(), "provider-otc:bind".into()));
        assert_eq!(names[2].0, "apiexports");
        assert_eq!(names.last().unwrap(), &("namespaces".into(), "provider-otc".into()));
    }

    #[test]
    fn a_door_has_a_providers_name_and_no_kinds() {
        let export = |name: &str, resources: Value| json!({ "metadata": { "name": name }, "spec": { "resources": resources } });
        let door = format!("otc.{}", projection::GROUP);
        for (why, name, resources, found) in [
            ("a door", door.as_str(), json!(null), 1),
            ("an export with kinds", door.as_str(), json!([{ "name": "x" }]), 0),
            ("another group's", "otc.example.org", json!(null), 0),
            ("the main one", EXPORT, json!(null), 0),
        ] {
            assert_eq!(doors(&[export(name, resources)]).len(), found, "{why}");
        }
    }

    #[test]
    fn the_workspace_type_keeps_what_others_bind_by_it() {
        let doors = [otc()];
        let mut live = workspace_type("root:p", &[EXPORT, &otc().export_name()]);
        live["spec"]["defaultAPIBindings"].as_array_mut().unwrap().push(json!({ "path": "root:q", "export": EXPORT }));
        let closed = closed(&live, "root:p", &doors).expect("it changes");
        assert_eq!(closed["spec"]["defaultAPIBindings"], json!([{ "path": "root:q", "export": EXPORT }]));
        assert_eq!(super::closed(&closed, "root:p", &doors), None, "the second time nothing is left to do");
    }

    #[test]
    fn a_schema_that_another_export_names_stays() {
        let other = json!({ "spec": { "resources": [{ "schema": "s" }] } });
        let live = json!({ "metadata": { "name": "s" } });
        assert!(matches!(schema(&live, &[&other]).what, What::Kept(_)));
        assert_eq!(schema(&live, &[]).what, What::Removed);
    }
}
