//! Workspace types: which one a new workspace has, and whether its author may use it. The rules are those of `pkg/admission/workspacetypeexists`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::embedded::access::{self, Attributes, User};
use crate::embedded::world::workspaces::workspace_types;
use crate::embedded::world::{ROOT, World};

/// The type of children that the parent's type says.
pub(super) fn of_children(world: &World, parent: &Arc<str>) -> Value {
    let universal = json!({"name": "universal", "path": ROOT});
    let own = world.type_of(parent);
    let Some((path, name)) = own.rsplit_once(':') else { return universal };
    let type_ = world.resolve(path).and_then(|at| world.read(workspace_types(), &at, "", name));
    type_.map(|type_| type_["spec"]["defaultChildWorkspaceType"].clone()).filter(Value::is_object).unwrap_or(universal)
}

/// Where a type is: at its path, or without one in the nearest workspace from `parent` upwards that has it. Else why not.
pub(super) fn resolve(world: &World, parent: &str, path: &str, name: &str) -> Result<Arc<str>, String> {
    let has = |path: &str| world.resolve(path).filter(|at| world.read(workspace_types(), at, "", name).is_some());
    if !path.is_empty() {
        let absent = || format!("Internal error occurred: workspacetypes.tenancy.kcp.io \"{path}:{name}\" not found");
        return has(path).ok_or_else(absent);
    }
    let own = world.path(parent);
    let upwards = std::iter::successors(Some(own.as_str()), |path| path.rsplit_once(':').map(|(above, _)| above));
    upwards.chain([ROOT]).find_map(has).ok_or_else(|| format!("workspace type {name:?} cannot be resolved"))
}

/// Whether a user may use a type and all that it extends. Whether they may enter the types' workspaces is not asked. Else what they may not.
pub(super) fn usable(world: &World, user: &User, at: &Arc<str>, name: &str) -> Result<(), String> {
    for (at, name) in with_extended(world, at, name)? {
        let attributes = Attributes {
            verb: "use",
            group: "tenancy.kcp.io",
            version: "v1alpha1",
            resource: "workspacetypes",
            name: &name,
            ..Attributes::default()
        };
        if !access::deep(world, &at, user, &attributes) {
            let path = world.path(&at);
            return Err(format!("unable to use workspace type {path}:{name}: missing verb='use' permission on workspacetype"));
        }
    }
    Ok(())
}

/// A type after those that it extends, each once.
fn with_extended(world: &World, at: &Arc<str>, name: &str) -> Result<Vec<(Arc<str>, String)>, String> {
    let mut found = vec![(at.clone(), name.to_owned())];
    let mut next = 0;
    while let Some((at, name)) = found.get(next).cloned() {
        next += 1;
        let type_ = world.read(workspace_types(), &at, "", &name).unwrap_or_default();
        for base in type_["spec"]["extend"]["with"].as_array().into_iter().flatten() {
            let (path, name) = (base["path"].as_str().unwrap_or_default(), base["name"].as_str().unwrap_or_default());
            let at = resolve(world, &at, path, name).map_err(|_| format!("unable to find inherited workspace type {path}:{name}"))?;
            if !found.contains(&(at.clone(), name.to_owned())) {
                found.push((at, name.to_owned()));
            }
        }
    }
    found.reverse();
    Ok(found)
}
