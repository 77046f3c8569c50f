//! How a tenant comes to the kinds: a binding of its own, or a workspace type that binds by default.
//!
//! Pure: from a path and the names and claims of exports to JSON.

use serde_json::{Value, json};

/// The workspace type whose workspaces have the kinds from the start.
pub const WORKSPACE_TYPE: &str = "edge-connect";

/// The `APIBinding` (v1alpha2) that accepts every claim of an export, word by word.
///
/// `claims` are the export's `spec.permissionClaims` as they stand there; a claim with other verbs than the export's grants only what
/// both say.
pub fn binding(path: &str, export: &str, claims: &[Value]) -> Value {
    let accepted = claims.iter().map(|claim| {
        let mut accepted = claim.clone();
        // The server writes an empty identity for kinds of its own.
        if let Some(fields) = accepted.as_object_mut() {
            fields.retain(|name, value| name != "identityHash" || *value != "");
        }
        accepted["selector"] = json!({ "matchAll": true });
        accepted["state"] = "Accepted".into();
        accepted
    });
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": export },
        "spec": {
            "reference": { "export": { "path": path, "name": export } },
            "permissionClaims": accepted.collect::<Vec<_>>(),
        },
    })
}

/// The `WorkspaceType` that binds these exports of `path`, in their order.
///
/// kcp accepts every claim of a default binding on the tenant's behalf. `InitializeOnly`: it does so once, at the workspace's creation,
/// so a tenant may reject a claim later, and an export that is added later does not enter workspaces that exist.
pub fn workspace_type(path: &str, exports: &[&str]) -> Value {
    let bindings: Vec<Value> = exports.iter().map(|export| json!({ "path": path, "export": export })).collect();
    json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": { "name": WORKSPACE_TYPE },
        "spec": {
            "extend": { "with": [{ "name": "universal", "path": "root" }] },
            "defaultAPIBindings": bindings,
            "defaultAPIBindingLifecycle": "InitializeOnly",
        },
    })
}
