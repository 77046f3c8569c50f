//! What a provider workspace should hold.
//!
//! Pure: from the workspace's path and, for a door, the identity of the export.

use serde_json::Value;

use super::plan::{Desired, Ownership};
use crate::api::manifest::door::Door;
use crate::api::manifest::{api_resource_schema, binding, catalog, crd, export, exported, rbac, samples};

/// The schemas, then the export that names them: what a manager upserts at its start with `exports: Manage`.
pub fn exports() -> Vec<Desired> {
    let schemas = exported().iter().map(|definition| immutable(api_resource_schema(definition))).collect();
    [schemas, vec![kept(export::export())]].concat()
}

/// The kinds of the provider workspace itself.
pub fn crds() -> Vec<Desired> {
    catalog().iter().map(|definition| kept(crd(definition))).collect()
}

/// Everything but the kinds and the exports, for the provider workspace at `path`.
///
/// `direct` is whom kcp takes the manager for where it writes to workspaces directly.
pub fn workspace(path: &str, manage_exports: bool, direct: Option<&str>) -> Vec<Desired> {
    let [bind_role, bind_binding] = rbac::bind();
    let mut desired: Vec<Desired> = rbac::tenant_policy().into_iter().chain([bind_role]).map(kept).collect();
    // Who may bind is the operator's choice from the first run on.
    desired.push(seeded(bind_binding));
    desired.push(kept(binding::workspace_type(path, &[export::EXPORT])));
    desired.extend(rbac::manager_identity().into_iter().chain(rbac::manager()).map(kept));
    if manage_exports {
        desired.extend(rbac::manager_exports().map(kept));
    }
    desired.extend(direct.map(rbac::direct_policy).into_iter().flatten().map(kept));
    desired.push(seeded(samples::provider_config()));
    desired
}

/// A provider's door in the provider workspace at `path`.
pub fn door(path: &str, door: &Door) -> Vec<Desired> {
    let mut desired = vec![kept(door.export())];
    desired.extend(door.identity().map(kept));
    for role in door.roles() {
        let bind = role["kind"] == "ClusterRoleBinding" && role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(":bind"));
        desired.push(if bind { seeded(role) } else { kept(role) });
    }
    desired.push(kept(binding::workspace_type(path, &[export::EXPORT, &door.export_name()])));
    desired
}

fn kept(object: Value) -> Desired {
    Desired { object, ownership: Ownership::Kept }
}

fn seeded(object: Value) -> Desired {
    Desired { object, ownership: Ownership::Seeded }
}

fn immutable(object: Value) -> Desired {
    Desired { object, ownership: Ownership::Immutable }
}
