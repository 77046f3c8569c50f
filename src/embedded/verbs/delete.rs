//! Deleting one object or many.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Call, Way, admit, json, list, options};
use crate::embedded::convert;
use crate::embedded::errors::{About, Cause, Refusal};
use crate::embedded::reconcile::Propagation;
use crate::embedded::served::Origin;
use crate::embedded::store::Place;
use crate::embedded::world::World;

/// What a DELETE says.
struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<Propagation>,
    dry_run: bool,
}

fn read(call: &Call<'_>) -> Result<DeleteOptions, Refusal> {
    let query = &call.request.query;
    let body: Value = match call.request.body.as_ref() {
        [] => Value::Null,
        bytes => serde_json::from_slice(bytes).map_err(|error| {
            let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
            Refusal::unreasoned(500, format!("couldn't get version/kind; json parse error: {why}"))
        })?,
    };
    let mut causes = Vec::new();
    options::dry_run(query, &mut causes);
    if let Some(text) = query.get("gracePeriodSeconds").filter(|text| text.parse::<i64>().is_err()) {
        return Err(Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")));
    }
    let policy = body["propagationPolicy"].as_str().or_else(|| query.get("propagationPolicy")).unwrap_or_default();
    let orphans = body["orphanDependents"].as_bool().or_else(|| query.get("orphanDependents").map(|text| text == "true"));
    let propagation = match policy {
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        "Background" => Some(Propagation::Background),
        "" => orphans.map(|orphans| if orphans { Propagation::Orphan } else { Propagation::Background }),
        other => {
            let message = format!("Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
            causes.push(Cause::new("FieldValueNotSupported", "propagationPolicy", message));
            None
        }
    };
    if orphans.is_some() && !policy.is_empty() {
        let message = format!("Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set");
        causes.push(Cause::new("FieldValueInvalid", "propagationPolicy", message));
    }
    options::refuse("DeleteOptions", &causes)?;
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let dry_run = query.get("dryRun").is_some() || body["dryRun"].as_array().is_some_and(|list| !list.is_empty());
    let preconditions = &body["preconditions"];
    Ok(DeleteOptions { uid: text(&preconditions["uid"]), version: text(&preconditions["resourceVersion"]), propagation, dry_run })
}

pub(super) fn delete(world: &mut World, call: &Call<'_>, name: &str) -> Answer {
    let options = read(call)?;
    let not_found = || Refusal::not_found(call.kind.about(name));
    let workspace = call.workspace.as_ref().ok_or_else(not_found)?;
    let place = Place::new(workspace, call.namespace.as_deref().unwrap_or_default(), name);
    let object = world.stored(&call.kind, &place).map(|stored| convert::value(&call.kind, stored)).ok_or_else(not_found)?;
    if let Way::Virtual { label: Some((key, value)), .. } = &call.way
        && object["metadata"]["labels"][key] != *value.as_str()
    {
        return Err(not_found());
    }
    admit::delete(world, call, workspace, &object)?;
    is_meant(call, &options, &object, name)?;
    if options.dry_run {
        return Ok(match world.deleted(&call.kind, &object, options.propagation) {
            Some(kept) => json(200, &convert::shown(&call.kind, kept)),
            None => success(call, name, &object),
        });
    }
    let (object, gone) = world.delete(&call.kind, &place, options.propagation).ok_or_else(not_found)?;
    // A namespace is answered with itself, since it is never gone at once, and two kinds because they choose to.
    if gone && !["namespaces.", "serviceaccounts.", "resourcequotas."].contains(&&*call.kind.storage) {
        return Ok(success(call, name, &object));
    }
    Ok(json(200, &convert::shown(&call.kind, object)))
}

fn is_meant(call: &Call<'_>, options: &DeleteOptions, object: &Value, name: &str) -> Result<(), Refusal> {
    let names = &call.kind.names;
    // Here a kind is named by its kind.
    let about = About { group: &names.group, kind: &names.kind, name };
    let metadata = &object["metadata"];
    if let Some(uid) = options.uid.as_ref().filter(|uid| metadata["uid"] != **uid) {
        let there = metadata["uid"].as_str().unwrap_or_default();
        let words = "The object might have been deleted and then recreated";
        let why = format!("the UID in the precondition ({uid}) does not match the UID in record ({there}). {words}");
        return Err(Refusal::conflict(about, &why));
    }
    if let Some(version) = options.version.as_ref().filter(|version| metadata["resourceVersion"] != **version) {
        let there = metadata["resourceVersion"].as_str().unwrap_or_default();
        let words = "The object might have been modified";
        let why =
            format!("the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({there}). {words}");
        return Err(Refusal::conflict(about, &why));
    }
    Ok(())
}

fn success(call: &Call<'_>, name: &str, object: &Value) -> super::Reply {
    let mut details = json!({"name": name, "kind": &*call.kind.names.plural, "uid": object["metadata"]["uid"]});
    if !call.kind.names.group.is_empty() {
        details["group"] = (&*call.kind.names.group).into();
    }
    json(200, &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}))
}

/// Deletes what the query selects, and answers with what that was.
pub(super) fn collection(world: &mut World, call: &Call<'_>) -> Answer {
    let options = read(call)?;
    let selector = call.selector()?;
    let store = &world.shards[call.shard].store;
    let revision = store.revision();
    let scope = call.scope();
    let selected = store.list(&call.kind.storage, &scope).filter(|(_, stored)| selector.is_empty() || selector.matches(&stored.value()));
    let limit = options::list(&call.request.query, false)?.limit.unwrap_or(usize::MAX);
    let mut chosen: Vec<(Place, Value)> = selected.map(|(place, stored)| (place.clone(), convert::value(&call.kind, stored))).collect();
    let remaining = chosen.len().saturating_sub(limit);
    chosen.truncate(limit);
    let last = store.list(&call.kind.storage, &scope).last().map(|(place, _)| place.clone());
    let more = chosen.len() == limit && last.as_ref() > chosen.last().map(|(place, _)| place);
    let next = chosen.last().filter(|_| more).map(|(place, _)| list::token(revision, place));
    let native = call.kind.origin == Origin::BuiltIn && call.way == Way::Direct;
    let mut items = Vec::new();
    for (place, mut object) in chosen {
        admit::delete(world, call, &place.workspace, &object)?;
        if !options.dry_run {
            world.delete(&call.kind, &place, options.propagation);
        }
        if let Some(fields) = object.as_object_mut().filter(|_| native) {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        items.push(object);
    }
    let mut meta = json!({"resourceVersion": revision.to_string()});
    if !native {
        meta["continue"] = "".into();
    }
    if let Some(next) = next {
        meta["continue"] = next.into();
        if selector.is_empty() {
            meta["remainingItemCount"] = remaining.into();
        }
    }
    let kind: &Arc<str> = &call.kind.names.list_kind;
    Ok(json(200, &json!({"apiVersion": call.kind.api_version(), "kind": &**kind, "metadata": meta, "items": items})))
}
