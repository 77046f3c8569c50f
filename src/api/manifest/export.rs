//! The export that tenants bind, and its permission claims.
//!
//! Pure: verbs are written out: kcp v0.28 compares them as words, and an export's `*` meets nothing in a binding that lists verbs.

use serde_json::{Value, json};

use super::{Definition, exported, schema_name};
use crate::api::tenant;

/// The one export: the tenant kind, the projection and `Provider`.
pub const EXPORT: &str = tenant::GROUP;

/// One kind of a tenant's workspace that an export asks access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural.
    pub resource: &'static str,
    /// What is asked for, word by word.
    pub verbs: &'static [&'static str],
    /// Which export the kind belongs to; `None` for kinds of kcp itself.
    pub identity_hash: Option<String>,
}

impl Claim {
    /// As it stands in an export.
    pub fn to_value(&self) -> Value {
        let mut claim = json!({ "group": self.group, "resource": self.resource, "verbs": self.verbs });
        if let Some(hash) = &self.identity_hash {
            claim["identityHash"] = hash.as_str().into();
        }
        claim
    }
}

/// What the export asks of a tenant's workspace beyond its own kinds: to write events, and to read its `LogicalCluster`.
///
/// Events tell a tenant what happened to its objects; whoever rejects that claim reads conditions instead, and is served as before. The other is
/// reserved: nothing uses it yet, and paths are not read there, since a tenant could forge them. It is asked for from the start, since a claim
/// that is added later enters no workspace by itself: each tenant would have to accept it.
pub fn claims() -> Vec<Claim> {
    vec![
        Claim { group: "", resource: "events", verbs: &["create", "patch"], identity_hash: None },
        Claim { group: "core.kcp.io", resource: "logicalclusters", verbs: &["get", "list", "watch"], identity_hash: None },
    ]
}

/// What a provider's export asks for besides, whose reconcilers ask for kubeconfigs of tenants' workspaces: accounts, their tokens and their rights.
///
/// Whoever accepts the claims on roles lets the provider make itself administrator of the workspace: kcp does not check what a role gives away.
pub fn access_claims() -> Vec<Claim> {
    let whole = &["get", "create", "delete"];
    let rbac = |resource, verbs| Claim { group: "rbac.authorization.k8s.io", resource, verbs, identity_hash: None };
    vec![
        Claim { group: "", resource: "serviceaccounts", verbs: whole, identity_hash: None },
        Claim { group: "", resource: "secrets", verbs: whole, identity_hash: None },
        rbac("clusterroles", &["get", "create", "update", "delete"]),
        rbac("clusterrolebindings", whole),
    ]
}

/// What the disconnect guard asks besides, in a set of its own that no export has unless its operator says so: to keep one admission policy and
/// its binding in the tenant's workspace, which refuses to let go of the export while objects of its kinds live there.
pub fn guard_claims() -> Vec<Claim> {
    let claim = |resource| Claim { group: GUARD_GROUP, resource, verbs: &GUARD_VERBS, identity_hash: None };
    GUARD_RESOURCES.map(claim).into()
}

/// The name of the guard's policy and of what puts it in force, in every workspace that binds this export.
pub fn guard_name(export: &str) -> String {
    format!("disconnect-guard.{export}")
}

/// The API group of the guard's claims.
pub const GUARD_GROUP: &str = "admissionregistration.k8s.io";
/// The kinds of the guard's claims.
pub const GUARD_RESOURCES: [&str; 2] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
/// What the guard does with either. No list and no watch: it reads what it made, by name.
pub const GUARD_VERBS: [&str; 4] = ["get", "create", "update", "delete"];

/// The `APIExport` (v1alpha2) that names the current schemas.
pub fn export() -> Value {
    let resources = exported().map(|definition| resource(&definition));
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": { "name": EXPORT },
        "spec": {
            "maximalPermissionPolicy": { "local": {} },
            "resources": resources,
            "permissionClaims": claims().iter().map(Claim::to_value).collect::<Vec<_>>(),
        },
    })
}

fn resource(definition: &Definition) -> Value {
    json!({
        "group": definition.kind.group,
        "name": definition.kind.plural,
        "schema": schema_name(definition),
        "storage": { "crd": {} },
    })
}
