//! Versions of one kind: objects are stored in one and shown in any.
//!
//! Pure: JSON to JSON. Custom kinds differ in their apiVersion only (conversion strategy None); `apis.kcp.io` has two versions whose claims
//! differ, and what the older cannot say is kept in annotations (kcp's `sdk/apis/apis/v1alpha2/conversion.go`). Events are one kind in two
//! groups whose fields have other names (`pkg/apis/events/v1/conversion.go`).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::served::{Origin, Served};
use super::store::Stored;

const CLAIMS: &str = "apis.v1alpha2.kcp.io/permission-claims";
const ACCEPTABLE: &str = "apis.v1alpha2.kcp.io/acceptable-permission-claims";
const APPLIED: &str = "apis.v1alpha2.kcp.io/status-applied-permission-claims";
const EXPORTED: &str = "apis.v1alpha2.kcp.io/status-export-permission-claims";

/// A field of an event in the core group, which is how it is stored, and in `events.k8s.io`.
const EVENT: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An object as a version shows it.
pub(crate) fn bytes(kind: &Served, stored: &Arc<Stored>) -> Bytes {
    let prefix = format!("{{\"apiVersion\":\"{}\"", kind.api_version());
    // Keys are sorted, so that apiVersion comes first in everything that we store.
    if stored.json.starts_with(prefix.as_bytes()) {
        return stored.json.clone();
    }
    serde_json::to_vec(&value(kind, stored)).unwrap_or_default().into()
}

/// The same, parsed.
pub(crate) fn value(kind: &Served, stored: &Arc<Stored>) -> Value {
    shown(kind, stored.value())
}

/// An object of the storage version in this one.
pub(crate) fn shown(kind: &Served, mut object: Value) -> Value {
    let wanted = kind.api_version();
    if object["apiVersion"] == wanted {
        return object;
    }
    if &*kind.names.group == "apis.kcp.io" && &*kind.version == "v1alpha1" {
        older(&mut object);
    }
    if is_new_event(kind) {
        rename(&mut object, EVENT);
        let reporters = ["reportingController", "reportingInstance"];
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|field, value| !(reporters.contains(&field.as_str()) && *value == ""));
        }
    }
    object["apiVersion"] = wanted.into();
    object
}

/// An object of this version as it is stored.
pub(crate) fn stored(kind: &Served, mut object: Value) -> Value {
    if &*kind.names.group == "apis.kcp.io" && &*kind.version == "v1alpha1" && matches!(&*kind.names.plural, "apiexports" | "apibindings") {
        newer(&mut object);
        object["apiVersion"] = "apis.kcp.io/v1alpha2".into();
    }
    if is_new_event(kind) && object["apiVersion"] == kind.api_version() {
        rename(&mut object, EVENT.map(|(old, new)| (new, old)));
        complete_event(&mut object);
        object["apiVersion"] = "v1".into();
    }
    object
}

/// What an event of the core group shows even when it is empty.
pub(crate) fn complete_event(event: &mut Value) {
    let none = || Value::Null;
    let empty = || Value::from("");
    for (field, value) in [
        ("eventTime", none()),
        ("firstTimestamp", none()),
        ("lastTimestamp", none()),
        ("reportingComponent", empty()),
        ("reportingInstance", empty()),
        ("source", json!({})),
    ] {
        if event[field].is_null() {
            event[field] = value;
        }
    }
}

fn is_new_event(kind: &Served) -> bool {
    &*kind.names.group == "events.k8s.io" && kind.origin == Origin::BuiltIn
}

fn rename<const N: usize>(object: &mut Value, names: [(&str, &str); N]) {
    let Some(fields) = object.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

fn older(object: &mut Value) {
    match object["kind"].as_str() {
        Some("APIExport") => {
            note(object, CLAIMS, "/spec/permissionClaims");
            let names: Vec<Value> = items(&object["spec"]["resources"]).map(|resource| resource["schema"].clone()).collect();
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.remove("resources");
                if !names.is_empty() {
                    spec.insert("latestResourceSchemas".into(), names.into());
                }
            }
            plain(object, "/spec/permissionClaims", false);
        }
        Some("APIBinding") => {
            note(object, ACCEPTABLE, "/spec/permissionClaims");
            note(object, APPLIED, "/status/appliedPermissionClaims");
            note(object, EXPORTED, "/status/exportPermissionClaims");
            plain(object, "/spec/permissionClaims", true);
            plain(object, "/status/appliedPermissionClaims", false);
            plain(object, "/status/exportPermissionClaims", false);
        }
        _ => {}
    }
}

fn newer(object: &mut Value) {
    let back = |object: &mut Value, annotation: &str, at: &str| {
        let kept = object["metadata"]["annotations"][annotation].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(annotation);
        }
        let Some(claims) = object.pointer_mut(at) else { return };
        for claim in claims.as_array_mut().into_iter().flatten() {
            let same = |other: &&Value| {
                ["group", "resource", "identityHash"]
                    .iter()
                    .all(|field| other[*field].as_str().unwrap_or_default() == claim[*field].as_str().unwrap_or_default())
            };
            let known = kept.as_ref().and_then(|kept| items(kept).find(same).cloned());
            claim["verbs"] = known.as_ref().map_or_else(|| json!(["*"]), |known| known["verbs"].clone());
            if claim["state"].is_string() {
                claim["selector"] = known.map_or_else(|| json!({"matchAll": true}), |known| known["selector"].clone());
            }
            if let Some(fields) = claim.as_object_mut() {
                fields.remove("all");
                fields.remove("resourceSelector");
            }
        }
    };
    match object["kind"].as_str() {
        Some("APIExport") => {
            back(object, CLAIMS, "/spec/permissionClaims");
            let resource = |schema: &Value| {
                let (_, qualified) = schema.as_str().unwrap_or_default().split_once('.')?;
                let (name, group) = qualified.split_once('.')?;
                Some(json!({"name": name, "group": group, "schema": schema, "storage": {"crd": {}}}))
            };
            let resources: Vec<Value> = items(&object["spec"]["latestResourceSchemas"]).filter_map(resource).collect();
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.remove("latestResourceSchemas");
                if !resources.is_empty() {
                    spec.insert("resources".into(), resources.into());
                }
            }
        }
        Some("APIBinding") => {
            back(object, ACCEPTABLE, "/spec/permissionClaims");
            back(object, APPLIED, "/status/appliedPermissionClaims");
            back(object, EXPORTED, "/status/exportPermissionClaims");
        }
        _ => {}
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Keeps claims in an annotation, without what is empty.
fn note(object: &mut Value, annotation: &str, at: &str) {
    let Some(claims) = object.pointer(at).filter(|claims| items(claims).next().is_some()) else { return };
    let brief = |claim: &Value| {
        let fields = claim.as_object().cloned().unwrap_or_default();
        Value::Object(fields.into_iter().filter(|(_, value)| *value != "").collect())
    };
    let text = Value::from(items(claims).map(brief).collect::<Vec<_>>()).to_string();
    object["metadata"]["annotations"][annotation] = text.into();
}

/// Claims without verbs and selectors, which the older version does not know.
fn plain(object: &mut Value, at: &str, with_state: bool) {
    let Some(claims) = object.pointer_mut(at).and_then(Value::as_array_mut) else { return };
    for claim in claims {
        let state = claim["state"].clone();
        let all = claim["selector"]["matchAll"] == true;
        if let Some(fields) = claim.as_object_mut() {
            fields.retain(|name, value| ["group", "resource", "identityHash"].contains(&name.as_str()) && *value != "");
            if with_state {
                fields.insert("state".into(), state);
            }
            if all {
                fields.insert("all".into(), true.into());
            }
        }
    }
}
