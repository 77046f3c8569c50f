//! Whether an object may be stored: its metadata, its schema, and the rules of kinds that have more than a schema.

use std::sync::Arc;

use serde_json::Value;

use super::meta;
use crate::embedded::base64;
use crate::embedded::errors::Cause;
use crate::embedded::served::{Origin, Served, versions};
use crate::embedded::world::World;

pub(super) fn create(world: &World, kind: &Served, workspace: &Arc<str>, new: &Value) -> Vec<Cause> {
    let mut causes = wrong_kind(kind, new);
    causes.extend(meta::validate(kind, new));
    causes.extend(finalizers(kind, new));
    let mut causes = kind.schema.validate_besides(new, None, causes);
    causes.extend(special(world, kind, workspace, None, new));
    causes
}

pub(super) fn update(world: &World, kind: &Served, workspace: &Arc<str>, old: &Value, new: &Value, subresource: &str) -> Vec<Cause> {
    let mut causes = wrong_kind(kind, new);
    let fixed = meta::validate_update(old, new);
    // Strategies ask again what was asked before them.
    let again: Vec<Cause> = fixed.iter().filter(|cause| cause.message.ends_with("field is immutable")).cloned().collect();
    causes.extend(fixed);
    causes.extend(again);
    causes.extend(meta::validate(kind, new));
    let mut causes = match subresource {
        "status" => kind.schema.validate_status(new, old, causes),
        _ => kind.schema.validate_besides(new, Some(old), causes),
    };
    if subresource.is_empty() {
        causes.extend(special(world, kind, workspace, Some(old), new));
    }
    causes
}

/// Native kinds take only finalizers with a domain, and those of Kubernetes itself.
fn finalizers(kind: &Served, new: &Value) -> Vec<Cause> {
    let all = new["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).enumerate();
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    let wrong = all.filter(|(_, name)| kind.origin == Origin::BuiltIn && !name.contains('/') && !known.contains(name));
    let words = "name is neither a standard finalizer name nor is it fully qualified";
    wrong
        .map(|(at, name)| {
            Cause::new("FieldValueInvalid", format!("metadata.finalizers[{at}]"), format!("Invalid value: {name:?}: {words}"))
        })
        .collect()
}

/// Fills in what a schema defines. Of what calls itself another kind no schema is known, and it is refused in the end.
pub(super) fn default(kind: &Served, object: &mut Value) {
    if wrong_kind(kind, object).is_empty() {
        kind.schema.default(object);
    }
}

/// What an object says of itself that is another kind or another version.
pub(super) fn wrong_kind(kind: &Served, new: &Value) -> Vec<Cause> {
    let wrong = |field: &str, must: &str| {
        let given = new[field].as_str().unwrap_or_default();
        (given != must).then(|| Cause::new("FieldValueInvalid", field, format!("Invalid value: {given:?}: must be {must}")))
    };
    [wrong("kind", &kind.names.kind), wrong("apiVersion", &kind.api_version())].into_iter().flatten().collect()
}

fn special(_world: &World, kind: &Served, _workspace: &Arc<str>, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    match (&kind.origin, &*kind.names.plural) {
        (Origin::BuiltIn, "configmaps") => [keys(new, "data"), keys(new, "binaryData"), immutable(old, new, "data")].concat(),
        (Origin::BuiltIn, "secrets") => [keys(new, "data"), not_base64(new), immutable(old, new, "data"), secret_type(old, new)].concat(),
        (Origin::BuiltIn, "customresourcedefinitions") => definition(new),
        (Origin::System, "apiresourceschemas") => schema(new),
        _ => Vec::new(),
    }
}

fn keys(new: &Value, field: &str) -> Vec<Cause> {
    let legal = |key: &str| {
        !key.is_empty()
            && key.len() <= 253
            && key != "."
            && key != ".."
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let wrong = new[field].as_object().into_iter().flatten().filter(|(key, _)| !legal(key));
    wrong.map(|(key, _)| Cause::new("FieldValueInvalid", format!("{field}[{key}]"), format!("Invalid value: {key:?}: {words}"))).collect()
}

fn not_base64(new: &Value) -> Vec<Cause> {
    let wrong = new["data"].as_object().into_iter().flatten();
    let wrong = wrong.filter(|(_, value)| value.as_str().is_some_and(|text| base64::decode(text).is_none()));
    wrong
        .map(|(key, _)| {
            Cause::new("FieldValueInvalid", format!("data[{key}]"), "Invalid value: \"<secret contents redacted>\": not base64")
        })
        .collect()
}

fn immutable(old: Option<&Value>, new: &Value, field: &str) -> Vec<Cause> {
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return Vec::new() };
    let mut causes = Vec::new();
    if new["immutable"] != true {
        causes.push(Cause::new("FieldValueForbidden", "immutable", "Forbidden: field is immutable when `immutable` is set"));
    }
    if old[field] != new[field] {
        causes.push(Cause::new("FieldValueForbidden", field, "Forbidden: field is immutable when `immutable` is set"));
    }
    causes
}

fn secret_type(old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.is_some_and(|old| old["type"] != new["type"]) {
        causes.push(Cause::new("FieldValueInvalid", "type", format!("Invalid value: {}: field is immutable", new["type"])));
    }
    let account = "kubernetes.io/service-account.name";
    if new["type"] == "kubernetes.io/service-account-token" && new["metadata"]["annotations"][account].as_str().is_none_or(str::is_empty) {
        causes.push(Cause::new("FieldValueRequired", format!("metadata.annotations[{account}]"), "Required value"));
    }
    causes
}

/// A definition's name says what it defines, and its schemas can be compiled.
fn definition(new: &Value) -> Vec<Cause> {
    let spec = &new["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let mut causes = Vec::new();
    if new["metadata"]["name"] != wanted.as_str() {
        let name = text(&new["metadata"]["name"]);
        causes.push(Cause::new(
            "FieldValueInvalid",
            "metadata.name",
            format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group"),
        ));
    }
    let storing = spec["versions"].as_array().into_iter().flatten().filter(|version| version["storage"] == true).count();
    if storing != 1 {
        let words = "must have exactly one version marked as storage version";
        causes.push(Cause::new("FieldValueInvalid", "spec.versions", format!("Invalid value: {}: {words}", spec["versions"])));
    }
    causes.extend(compiled(spec, ".openAPIV3Schema"));
    causes
}

fn schema(new: &Value) -> Vec<Cause> {
    let spec = &new["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, group) = (text(&new["metadata"]["name"]), text(&spec["group"]));
    let group_part = if group.is_empty() { "core".to_owned() } else { group };
    let wanted = format!("{}.{group_part}", text(&spec["names"]["plural"]));
    let mut causes = Vec::new();
    if !name.split_once('.').is_some_and(|(prefix, rest)| !prefix.is_empty() && rest == wanted) {
        let words = format!("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .{wanted}");
        causes.push(Cause::new("FieldValueInvalid", "metadata.name", format!("Invalid value: {name:?}: {words}")));
    }
    causes.extend(compiled(spec, ""));
    causes
}

/// What the compilation of each version's schema finds, below that version's path.
fn compiled(spec: &Value, below: &str) -> Vec<Cause> {
    let Err(causes) = versions(spec, &"validated".into(), &Origin::Definition) else { return Vec::new() };
    let prefix = format!("spec.versions[0].schema{below}");
    causes
        .into_iter()
        .map(|cause| Cause { field: if cause.field.is_empty() { prefix.clone() } else { format!("{prefix}.{}", cause.field) }, ..cause })
        .collect()
}
