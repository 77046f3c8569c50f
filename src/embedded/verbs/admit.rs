//! What the server does to an object before it is checked, kind by kind, and what it forbids: kcp's admission plugins and the strategies of
//! Kubernetes' own kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::route::Way;
use super::{Call, types};
use crate::embedded::Version;
use crate::embedded::access::{self, Attributes};
use crate::embedded::base64;
use crate::embedded::convert;
use crate::embedded::errors::{About, Refusal};
use crate::embedded::reconcile::{BINDING_FINALIZER, OWNER, export_label, export_of};
use crate::embedded::served::{Origin, Served};
use crate::embedded::world::{ROOT, World};

/// The label that names a binding's export.
const EXPORT_LABEL: &str = "internal.apis.kcp.io/export";

type Admitted = Result<(), Refusal>;

/// What decoding adds to an object of a native kind, before anybody is said to have written it.
pub(super) fn decoded(kind: &Served, new: &mut Value) {
    if !is_shaped(new) {
        // The schema says so in its own words.
        return;
    }
    match (&*kind.names.group, &*kind.names.plural) {
        ("", "namespaces") => {
            let name = new["metadata"]["name"].clone();
            new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        ("", "secrets") => {
            readable(new);
            if new["type"].is_null() {
                new["type"] = "Opaque".into();
            }
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(new),
        ("rbac.authorization.k8s.io", _) => subjects(new),
        _ => {}
    }
}

/// What Go writes of an object of a native kind even when it is empty.
pub(super) fn encoded(kind: &Served, new: &mut Value) {
    if &*kind.names.plural == "events" && kind.names.group.is_empty() && kind.origin == Origin::BuiltIn {
        convert::complete_event(new);
    }
}

pub(super) fn create(world: &mut World, call: &Call<'_>, workspace: &Arc<str>, new: &mut Value) -> Admitted {
    if matches!(call.kind.origin, Origin::Definition | Origin::Bound { .. }) {
        return Ok(());
    }
    if !is_shaped(new) {
        // The schema says so in its own words.
        return Ok(());
    }
    match (&*call.kind.names.group, &*call.kind.names.plural) {
        ("", "namespaces") => {
            new["spec"]["finalizers"] = json!(["kubernetes"]);
            new["status"]["phase"] = "Active".into();
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => is_free(world, call, workspace, new)?,
        ("tenancy.kcp.io", "workspaces") => workspace_is_made(world, call, workspace, new)?,
        ("apis.kcp.io", "apibindings") => binding_is_made(world, call, workspace, new)?,
        ("apis.kcp.io", "apiexports") | ("tenancy.kcp.io", "workspacetypes") => {
            new["metadata"]["annotations"]["kcp.io/path"] = world.path(workspace).into();
        }
        ("core.kcp.io", "logicalclusters") => {
            let name = new["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Refusal::forbidden(call.kind.about(name), "LogicalCluster cannot be created"));
        }
        ("rbac.authorization.k8s.io", _) => roles(world, call, workspace, new, false)?,
        _ => {}
    }
    Ok(())
}

/// Root is there for good, and other logical clusters go with their `Workspace`; some namespaces stay until their workspace goes.
pub(super) fn delete(world: &World, call: &Call<'_>, workspace: &Arc<str>, old: &Value) -> Admitted {
    let name = old["metadata"]["name"].as_str().unwrap_or_default();
    match (&*call.kind.names.group, &*call.kind.names.plural) {
        ("core.kcp.io", "logicalclusters") => {
            let privileged =
                [access::MASTERS, access::LOGICAL_CLUSTER_ADMIN, access::EXTERNAL_LOGICAL_CLUSTER_ADMIN, access::WORKSPACE_BOOTSTRAPPER];
            let may = old["spec"]["directlyDeletable"] == true || privileged.iter().any(|group| call.user.is_in(group));
            if &**workspace == ROOT || !may {
                return Err(Refusal::forbidden(call.kind.about(name), "LogicalCluster cannot be deleted"));
            }
        }
        ("", "namespaces")
            if ["default", "kube-system", "kube-public"].contains(&name)
                && world.workspaces.get(workspace).is_none_or(|found| !found.going) =>
        {
            return Err(Refusal::forbidden(call.kind.about(name), "this namespace may not be deleted"));
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn update(world: &mut World, call: &Call<'_>, workspace: &Arc<str>, old: &Value, new: &mut Value) -> Admitted {
    if matches!(call.kind.origin, Origin::Definition | Origin::Bound { .. }) || call.subresource == "status" {
        return Ok(());
    }
    let name = call.name.as_deref().unwrap_or_default();
    let about = call.kind.about(name);
    if !is_shaped(new) {
        return Ok(());
    }
    match (&*call.kind.names.group, &*call.kind.names.plural) {
        ("", "namespaces") => {
            // Through the main endpoint finalizers of the spec stay, through `finalize` they are what is sent.
            if call.subresource.is_empty() {
                new["spec"] = old["spec"].clone();
            }
            new["status"] = old["status"].clone();
        }
        ("apis.kcp.io", "apiresourceschemas") if old["spec"] != new["spec"] => {
            return Err(Refusal::forbidden(about, "spec: Invalid value: is immutable"));
        }
        ("apis.kcp.io", "apibindings") => {
            if old["spec"]["reference"] != new["spec"]["reference"] && !old["spec"]["reference"].is_null() {
                let causes = [crate::embedded::errors::Cause::new(
                    "FieldValueInvalid",
                    "spec.reference",
                    "Invalid value: \"object\": APIExport reference must not be changed",
                )];
                return Err(Refusal::invalid(call.kind.about_kind(name), &causes));
            }
            mark(world, workspace, new);
        }
        ("apis.kcp.io", "apiexports") => new["metadata"]["annotations"]["kcp.io/path"] = world.path(workspace).into(),
        ("tenancy.kcp.io", "workspaces") => {
            for field in ["cluster", "URL"] {
                if old["spec"][field].is_string() && old["spec"][field] != new["spec"][field] {
                    return Err(Refusal::forbidden(about, &format!("spec.{field} is immutable")));
                }
            }
            if old["spec"]["type"] != new["spec"]["type"] {
                return Err(Refusal::forbidden(about, "spec.type is immutable"));
            }
        }
        ("rbac.authorization.k8s.io", plural) => {
            if plural.ends_with("bindings") && old["roleRef"] != new["roleRef"] {
                let message = format!("Invalid value: {}: cannot change roleRef", new["roleRef"]);
                let causes = [crate::embedded::errors::Cause::new("FieldValueInvalid", "roleRef", message)];
                return Err(Refusal::invalid(call.kind.about_kind(name), &causes));
            }
            roles(world, call, workspace, new, true)?;
        }
        _ => {}
    }
    Ok(())
}

/// Text in a Secret becomes data.
fn readable(secret: &mut Value) {
    let Some(text) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    for (key, value) in text.as_object().into_iter().flatten() {
        secret["data"][key] = base64::encode(value.as_str().unwrap_or_default().as_bytes()).into();
    }
}

/// Whether those parts of an object into which something is written here are objects, as all kinds have them.
fn is_shaped(object: &Value) -> bool {
    let parts = ["/metadata", "/spec", "/status", "/data", "/stringData", "/roleRef", "/spec/names", "/spec/type", "/spec/reference"];
    parts.iter().filter_map(|part| object.pointer(part)).all(|part| part.is_object() || part.is_null())
}

/// A definition is of no kind that a binding brought.
fn is_free(world: &World, call: &Call<'_>, workspace: &Arc<str>, new: &Value) -> Admitted {
    let spec = &new["spec"];
    let same = |kind: &&Arc<Served>| spec["group"] == *kind.names.group && spec["names"]["plural"] == *kind.names.plural;
    let taken = world.workspaces.get(workspace).into_iter().flat_map(|found| &found.custom).find(same);
    match taken.map(|kind| &kind.origin) {
        Some(Origin::Bound { binding, .. }) => {
            let name = new["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("cannot create because resource is bound by APIBinding {:?}", &**binding);
            Err(Refusal::forbidden(call.kind.about(name), &why))
        }
        _ => Ok(()),
    }
}

fn definition(new: &mut Value) {
    let names = &mut new["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].is_null() {
        names["singular"] = kind.to_lowercase().into();
    }
    if names["listKind"].is_null() {
        names["listKind"] = format!("{kind}List").into();
    }
    if new["spec"]["conversion"].is_null() {
        new["spec"]["conversion"] = json!({"strategy": "None"});
    }
}

/// Subjects and references get their groups.
fn subjects(new: &mut Value) {
    let rbac = "rbac.authorization.k8s.io";
    if new["roleRef"].is_object() && new["roleRef"]["apiGroup"].is_null() {
        new["roleRef"]["apiGroup"] = rbac.into();
    }
    for subject in new.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if subject["apiGroup"].is_null() && matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            subject["apiGroup"] = rbac.into();
        }
    }
}

/// Nobody gives more than they have. Whoever writes through a virtual workspace has a warrant there, by which they are its administrator.
fn roles(world: &World, call: &Call<'_>, workspace: &str, new: &Value, update: bool) -> Admitted {
    if matches!(call.way, Way::Virtual { .. }) {
        return Ok(());
    }
    access::escalates(world, workspace, &call.user, new, update).map_or(Ok(()), Err)
}

/// A new workspace has a type, which its author may use, and an owner.
fn workspace_is_made(world: &World, call: &Call<'_>, parent: &Arc<str>, new: &mut Value) -> Admitted {
    let name = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if new["spec"]["type"].is_null() {
        new["spec"]["type"] = types::of_children(world, parent);
    }
    let type_ = &new["spec"]["type"];
    let (path, type_name) = (type_["path"].as_str().unwrap_or_default(), type_["name"].as_str().unwrap_or_default());
    let refused = |why: String| Refusal::forbidden(About { name: &name, ..call.kind.about(&name) }, &why);
    let at = types::resolve(world, parent, path, type_name).map_err(refused)?;
    types::usable(world, &call.user, &at, type_name).map_err(refused)?;
    let path = if path.is_empty() { world.path(&at) } else { path.to_owned() };
    new["spec"]["type"] = json!({"name": type_name, "path": path});
    let user = &call.user;
    // In the order of Go's fields.
    let uid = if user.uid.is_empty() { String::new() } else { format!(",\"uid\":{}", json!(user.uid)) };
    let extra = if user.extra.is_empty() { String::new() } else { format!(",\"extra\":{}", json!(user.extra)) };
    let owner = format!("{{\"username\":{}{uid},\"groups\":{}{extra}}}", json!(user.name), json!(user.groups));
    new["metadata"]["annotations"][OWNER] = owner.into();
    new["status"] = json!({"phase": "Scheduling"});
    Ok(())
}

/// A new binding is allowed by the export's workspace, and kept until its objects are gone.
fn binding_is_made(world: &World, call: &Call<'_>, workspace: &Arc<str>, new: &mut Value) -> Admitted {
    let name = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let Some((path, export)) = export_of(new).map(|(path, export)| (path.to_owned(), export.to_owned())) else { return Ok(()) };
    let attributes = Attributes {
        verb: "bind",
        group: "apis.kcp.io",
        version: "v1alpha1",
        resource: "apiexports",
        name: &export,
        ..Attributes::default()
    };
    // In its own workspace and in root kcp does not look whether the export is there: a binding may come first.
    let provider = match path.as_str() {
        "" => Some(workspace.clone()),
        ROOT => Some(ROOT.into()),
        path => world.resolve(path).filter(|provider| world.export_at(provider, &export).is_some()),
    };
    if !provider.is_some_and(|provider| access::deep(world, &provider, &call.user, &attributes)) {
        let shown = if path.is_empty() { export } else { format!("{path}:{export}") };
        let why = format!("unable to create APIBinding: no permission to bind to export {shown}");
        return Err(Refusal::forbidden(call.kind.about(&name), &why));
    }
    let kept = new["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !kept.iter().any(|finalizer| finalizer == BINDING_FINALIZER) {
        new["metadata"]["finalizers"] = kept.into_iter().chain([BINDING_FINALIZER.into()]).collect();
    }
    // Admission decodes and encodes it, which leaves out what is empty.
    if let Some(spec) = new["spec"].as_object_mut().filter(|spec| spec.get("permissionClaims") == Some(&json!([]))) {
        spec.remove("permissionClaims");
    }
    mark(world, workspace, new);
    Ok(())
}

fn mark(world: &World, workspace: &Arc<str>, binding: &mut Value) {
    let Some((path, export)) = export_of(binding) else { return };
    let provider = if path.is_empty() { Some(workspace.clone()) } else { world.resolve(path) };
    if let Some(provider) = provider {
        let label = export_label(&provider, export);
        binding["metadata"]["labels"][EXPORT_LABEL] = label.into();
    }
    if world.options.version >= Version::V0_30 {
        binding["metadata"]["annotations"]["kcp.io/path"] = world.path(workspace).into();
    }
}
