//! Changing objects: PUT and the four kinds of PATCH.

use serde_json::Value;

use super::options::{self, Unknown, WriteOptions};
use super::{Answer, Call, Reply, Way, admit, body, bytes_of, create, meta, validate};
use crate::embedded::convert;
use crate::embedded::errors::{About, Cause, Refusal, go_error};
use crate::embedded::patch;
use crate::embedded::patch::managed::{self, Operation, Writer};
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::Place;
use crate::embedded::world::objects::count;
use crate::embedded::world::objects::{reset, set};
use crate::embedded::world::{Draft, World};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A change on its way: what is there, what it is to become, and how.
struct Changing<'a> {
    name: &'a str,
    old: Value,
    new: Value,
    options: WriteOptions,
    warnings: Vec<String>,
    /// `None` when the managed fields are in the object already.
    manager: Option<&'a str>,
    /// Whether it must carry a resourceVersion.
    versioned: bool,
}

pub(super) fn put(world: &mut World, call: &Call<'_>, name: &str) -> Answer {
    let options = options::write(&call.request.query, "UpdateOptions", false)?;
    let virtually = matches!(call.way, Way::Virtual { .. });
    let decoded = body::object(&call.kind, &call.request.content_type, &call.request.body, options.unknown, virtually)?;
    is_named(&decoded.object, call, name).map_err(|refusal| refusal.warning(decoded.warnings.clone()))?;
    let (manager, mut new) = (Some(call.manager()), decoded.object);
    if new["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Refusal::bad_request(why).warning(decoded.warnings));
    }
    let Some(old) = current(world, call, name) else {
        let refusal = match new["metadata"]["uid"].as_str() {
            Some(uid) if call.way == Way::Direct => another(call, name, uid, ""),
            _ => Refusal::not_found(call.kind.about(name)),
        };
        return Err(refusal.warning(decoded.warnings));
    };
    if new["metadata"]["name"].is_null() {
        new["metadata"]["name"] = name.into();
    }
    if let Some(namespace) = call.namespace.as_deref().filter(|_| new["metadata"]["namespace"].is_null()) {
        new["metadata"]["namespace"] = namespace.into();
    }
    change(world, call, Changing { name, old, new, options, warnings: decoded.warnings, manager, versioned: true })
}

/// The name and the namespace of a body are those of the URL.
fn is_named(object: &Value, call: &Call<'_>, name: &str) -> Result<(), Refusal> {
    let metadata = &object["metadata"];
    if let Some(inside) = metadata["name"].as_str().filter(|inside| !inside.is_empty() && *inside != name) {
        return Err(Refusal::bad_request(format!("the name of the object ({inside}) does not match the name on the URL ({name})")));
    }
    let namespace = call.namespace.as_deref().unwrap_or_default();
    if metadata["namespace"].as_str().is_some_and(|inside| !inside.is_empty() && inside != namespace) {
        return Err(Refusal::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    Ok(())
}

fn current(world: &World, call: &Call<'_>, name: &str) -> Option<Value> {
    let place = Place::new(call.workspace.as_ref()?, call.namespace.as_deref().unwrap_or_default(), name);
    let object = world.stored(&call.kind, &place).map(|stored| convert::value(&call.kind, stored))?;
    // What a claim does not show cannot be changed through it either.
    match &call.way {
        Way::Virtual { label: Some((key, value)), .. } if object["metadata"]["labels"][key] != *value.as_str() => None,
        _ => Some(object),
    }
}

pub(super) fn patch(world: &mut World, call: &Call<'_>, name: &str) -> Answer {
    let media_type = call.request.content_type.as_str();
    let strategic = call.kind.origin == Origin::BuiltIn;
    let known = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH].contains(&media_type) || (strategic && media_type == STRATEGIC_PATCH);
    if !known && strategic && call.way == Way::Direct {
        let message = "415: Unsupported Media Type".to_owned();
        return Err(Refusal { message, details: serde_json::json!({}), ..Refusal::unsupported_media_type("") });
    }
    if !known {
        return Err(Refusal::unsupported_media_type(&accepted(call)));
    }
    let options = options::write(&call.request.query, "PatchOptions", media_type == APPLY_PATCH)?;
    if media_type == APPLY_PATCH {
        return apply(world, call, name, options);
    }
    let patched: Patch = if media_type == JSON_PATCH { json_patch } else { merge_patch };
    let bytes = &call.request.body;
    let Some(old) = current(world, call, name) else {
        return Err(Refusal::not_found(call.kind.about(name)));
    };
    let mut raw = patched(&old, bytes)?;
    if call.kind.origin == Origin::BuiltIn {
        remains_native(call, &mut raw, media_type == STRATEGIC_PATCH)?;
    } else if call.way != Way::Direct {
        body::other_version(&call.kind, &raw, options.unknown)?;
    }
    mismatched(call, &raw)?;
    is_named(&raw, call, name)?;
    let unknown = if validate::wrong_kind(&call.kind, &raw).is_empty() { options.unknown } else { Unknown::Ignore };
    let decoded = body::tidy(&call.kind, raw.clone(), unknown, &[]).map_err(|refusal| strict(refusal, options, &raw))?;
    let (manager, mut new) = (Some(call.manager()), decoded.object);
    if new["metadata"]["name"].is_null() {
        new["metadata"]["name"] = name.into();
    }
    change(world, call, Changing { name, old, new, options, warnings: decoded.warnings, manager, versioned: false })
}

/// A patch may not make another kind of a native object; where Go knows what it patches it does not look.
fn remains_native(call: &Call<'_>, raw: &mut Value, strategic: bool) -> Result<(), Refusal> {
    let (kind, api_version) = (&call.kind, call.kind.api_version());
    let text = |field: &str| raw[field].as_str().unwrap_or_default().to_owned();
    let (given, version) = (text("kind"), text("apiVersion"));
    let direct = call.way == Way::Direct;
    let is_open = (strategic && direct) || given.is_empty();
    let version = if version.is_empty() || is_open { api_version.clone() } else { version };
    if is_open || (given == *kind.names.kind && version == api_version) {
        (raw["kind"], raw["apiVersion"]) = ((&*kind.names.kind).into(), api_version.into());
        return Ok(());
    }
    if !direct {
        return Err(body::unhandled(kind, &given, &version));
    }
    let shown = serde_json::to_string(&raw.to_string()).unwrap_or_default();
    let cause = Cause::new("FieldValueInvalid", "patch", format!("Invalid value: {shown}: {}", body::misfit(kind, &given, &version)));
    Err(Refusal::invalid(About { group: "", kind: "", name: "" }, &[cause]))
}

/// A patch that makes text of a native kind something else.
fn mismatched(call: &Call<'_>, raw: &Value) -> Result<(), Refusal> {
    let maps = ["data", "binaryData", "stringData"].into_iter().filter(|_| call.kind.origin == Origin::BuiltIn);
    for field in maps {
        let wrong = raw[field].as_object().into_iter().flatten().find(|(_, value)| !value.is_string() && !value.is_null());
        if let Some((_, value)) = wrong {
            let what = if value.is_number() { "number" } else { "bool" };
            let shown = serde_json::to_string(&raw.to_string()).unwrap_or_default();
            let words = format!("json: cannot unmarshal {what} into Go struct field {}.{field} of type string", call.kind.names.kind);
            if call.way != Way::Direct {
                let (version, kind) = (&call.kind.version, &call.kind.names.kind);
                return Err(Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {words}")));
            }
            let cause = Cause::new("FieldValueInvalid", "patch", format!("Invalid value: {shown}: {words}"));
            return Err(Refusal::invalid(About { group: "", kind: "", name: "" }, &[cause]));
        }
    }
    Ok(())
}

type Patch = fn(&Value, &[u8]) -> Result<Value, Refusal>;

/// A patched object with fields that are unknown is refused in other words than a posted one.
fn strict(refusal: Refusal, options: WriteOptions, raw: &Value) -> Refusal {
    let Some((_, fields)) = refusal.message.split_once("strict decoding error: ").filter(|_| options.unknown == Unknown::Strict) else {
        return refusal;
    };
    let shown = serde_json::to_string(&raw.to_string()).unwrap_or_default();
    let message = format!("Invalid value: {shown}: strict decoding error: {fields}");
    Refusal::invalid(About { group: "", kind: "", name: "" }, &[Cause::new("FieldValueInvalid", "patch", message)])
}

fn accepted(call: &Call<'_>) -> String {
    let mut all = vec![JSON_PATCH, MERGE_PATCH];
    match (&call.kind.origin, &call.way) {
        (Origin::BuiltIn, _) => all.extend([APPLY_PATCH, STRATEGIC_PATCH]),
        (_, Way::Virtual { .. }) => all.push(APPLY_PATCH),
        // The real server names it twice.
        (_, Way::Direct) => all.extend([APPLY_PATCH, APPLY_PATCH]),
    }
    all.join(", ")
}

fn readable(bytes: &[u8]) -> Result<Value, Refusal> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {}", go_error(bytes, &error))))?;
    if value.is_object() {
        return Ok(value);
    }
    let what = match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Null => return Err(Refusal::bad_request("Invalid JSON Patch")),
        _ => "bool",
    };
    Err(Refusal::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
    )))
}

/// Go's words for what is commonly wrong, and those of our parser for the rest.
fn not_yaml(why: &str) -> Refusal {
    let line =
        why.split_once("line ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>()).unwrap_or_default();
    let why = if why.contains("unclosed bracket '{'") { format!("line {line}: did not find expected ',' or '}}'") } else { why.to_owned() };
    Refusal::bad_request(format!("error decoding YAML: error converting YAML to JSON: yaml: {why}"))
}

fn merge_patch(old: &Value, bytes: &[u8]) -> Result<Value, Refusal> {
    let mut new = old.clone();
    patch::merge(&mut new, &readable(bytes)?);
    Ok(new)
}

fn json_patch(old: &Value, bytes: &[u8]) -> Result<Value, Refusal> {
    patch::json(old, bytes)
}

/// The body of an apply, which is YAML; most are JSON as our own client writes it, which takes a tenth of the time to read.
fn decoded(text: &str) -> Result<Value, Refusal> {
    match serde_json::from_str::<Value>(text) {
        // A field that is there twice is one time in what was read, and then it is another text.
        Ok(value) if serde_json::to_string(&value).is_ok_and(|written| written == text) => Ok(value),
        _ => serde_saphyr::from_str(text).map_err(|error| not_yaml(&error.to_string())),
    }
}

/// Server-side apply. Through a virtual workspace it is a GET, a merge and a PUT: what it omits stays, and who applies is written down as one
/// who updates.
fn apply(world: &mut World, call: &Call<'_>, name: &str, options: WriteOptions) -> Answer {
    let kind = &call.kind;
    let text = std::str::from_utf8(&call.request.body).unwrap_or_default();
    let mut config = decoded(text)?;
    if config.is_null() {
        config = Value::Object(serde_json::Map::new());
    }
    if !config.is_object() {
        let what = match config {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "bool",
        };
        let words = "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";
        return Err(Refusal::bad_request(format!("error decoding YAML: {words} {what} into Go value of type map[string]interface {{}}")));
    }
    if config["metadata"]["managedFields"].as_array().is_some_and(|fields| !fields.is_empty()) {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    is_named(&config, call, name)?;
    meta::normalise(kind, &mut config)?;
    if config["kind"] != *kind.names.kind {
        let (version, given) = (config["apiVersion"].as_str().unwrap_or_default(), config["kind"].as_str().unwrap_or_default());
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(Refusal::bad_request(format!("invalid object type: {slash}{version}, Kind={given}")));
    }
    if config["apiVersion"].as_str().is_some_and(|given| given != kind.api_version()) {
        let given = config["apiVersion"].as_str().unwrap_or_default();
        return Err(Refusal::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {given}, expected: {}",
            kind.api_version()
        )));
    }
    let manager = call.manager();
    let (api_version, stamp) = (kind.api_version(), world.stamp());
    let subresource = call.subresource.as_str();
    let writer = Writer { manager, operation: Operation::Apply, api_version: &api_version, subresource, time: &stamp };
    let live = current(world, call, name);
    let through = matches!(call.way, Way::Virtual { .. });
    if live.is_none() && !subresource.is_empty() && !through {
        return Err(Refusal::not_found(kind.about(name)));
    }
    if let (None, Some(uid)) = (&live, config["metadata"]["uid"].as_str()) {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Refusal::conflict(kind.about(name), &why));
    }
    let mut merged = managed::apply(kind.schema.root(), live.as_ref(), &config, options.force, &writer, reset(kind, subresource))?;
    if live.is_none() && !subresource.is_empty() {
        return Err(Refusal::method_not_allowed(kind.about(name), "create"));
    }
    left_without(call, name, &merged)?;
    for object in [&mut merged, &mut config] {
        object["metadata"]["name"] = name.into();
        if let Some(namespace) = call.namespace.as_deref().filter(|_| kind.namespaced) {
            object["metadata"]["namespace"] = namespace.into();
        }
    }
    let Some(old) = live else {
        let (new, manager) = if through { (config, Some(manager)) } else { (merged, None) };
        let new = body::tidy(kind, new, Unknown::Ignore, &[])?.object;
        let made = create::make(world, call, new, WriteOptions { applied: !through, ..options }, manager)?;
        return Ok(Reply::Json { code: if through { 200 } else { 201 }, body: bytes_of(&made), warnings: Vec::new() });
    };
    // Through a virtual workspace the merged object is put, with its managed fields, by one who updates.
    let new = merged;
    let new = body::tidy(kind, new, Unknown::Ignore, &[])?.object;
    let manager = through.then_some(manager);
    change(world, call, Changing { name, old, new, options, warnings: Vec::new(), manager, versioned: false })
}

/// An apply may not take all of a spec or status, except through a virtual workspace, where a PUT follows in which `null` is nothing.
fn left_without(call: &Call<'_>, name: &str, merged: &Value) -> Result<(), Refusal> {
    let kind = &call.kind;
    let is_checked = kind.origin != Origin::BuiltIn && call.way == Way::Direct;
    let taken = ["spec", "status"].into_iter().filter(|field| is_checked && merged.get(*field) == Some(&Value::Null));
    let causes: Vec<Cause> = taken
        .map(|field| {
            // A status is checked by itself, and has no name then.
            let named = if call.subresource == field { "" } else { field };
            let words = format!("Invalid value: \"null\": {named} in body must be of type object: \"null\"");
            Cause::new("FieldValueTypeInvalid", field, words)
        })
        .collect();
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(kind.about_kind(name), &causes)) }
}

/// Checks a change and makes it. What was to be said about the body is said with a refusal, too.
fn change(world: &mut World, call: &Call<'_>, changing: Changing<'_>) -> Answer {
    let warnings = changing.warnings.clone();
    checked(world, call, changing).map_err(|refusal| refusal.warning(warnings))
}

fn checked(world: &mut World, call: &Call<'_>, changing: Changing<'_>) -> Answer {
    let Changing { name, old, mut new, options, mut warnings, manager, versioned } = changing;
    let kind = &call.kind;
    let workspace = call.workspace.clone().ok_or_else(Refusal::no_such_resource)?;
    let place = Place::new(&workspace, call.namespace.as_deref().unwrap_or_default(), name);
    is_current(call, &old, &new, name, versioned)?;
    admit::decoded(kind, &mut new);
    validate::default(kind, &mut new);
    // Nobody is said to have written what admission and strategies change, and what is sent counts, even where it is not kept.
    if let Some(manager) = manager {
        world.manage(kind, Some(&old), &mut new, manager, &call.subresource);
    }
    preserve(call, &old, &mut new);
    admit::update(world, call, &workspace, &old, &mut new)?;
    validate::default(kind, &mut new);
    let causes = validate::update(world, kind, &workspace, &old, &new, &call.subresource);
    if !causes.is_empty() {
        // It is called by what it says that it is.
        let named = new["kind"].as_str().unwrap_or(&kind.names.kind).to_owned();
        let group = new["apiVersion"].as_str().map_or(&*kind.names.group, |version| version.split_once('/').map_or("", |(group, _)| group));
        return Err(Refusal::invalid(About { group, kind: &named, name }, &causes));
    }
    // Those who write a status are not told about the rest.
    if call.subresource.is_empty() {
        warnings.extend(meta::warnings(kind, &new));
    }
    admit::encoded(kind, &mut new);
    managed::keep_times(&old, &mut new);
    let (old, new) = (convert::stored(kind, old), convert::stored(kind, new));
    let stored = if options.dry_run {
        let mut new = new;
        count(kind, &call.subresource, &old, &mut new);
        new
    } else {
        world.replace(Draft { kind, place, old: Some(old), new, subresource: &call.subresource, manager: None })
    };
    Ok(Reply::Json { code: 200, body: bytes_of(&convert::shown(kind, stored)), warnings })
}

/// The preconditions that a body carries: resourceVersion and uid.
fn is_current(call: &Call<'_>, old: &Value, new: &Value, name: &str, versioned: bool) -> Result<(), Refusal> {
    let kind = &call.kind;
    let (there, given) = (&old["metadata"]["resourceVersion"], &new["metadata"]["resourceVersion"]);
    if let Some(uid) =
        new["metadata"]["uid"].as_str().filter(|uid| (versioned || call.way != Way::Direct) && old["metadata"]["uid"] != *uid)
    {
        return Err(another(call, name, uid, old["metadata"]["uid"].as_str().unwrap_or_default()));
    }
    match given.as_str() {
        None if versioned && needs_version(call) => {
            let cause = Cause::new("FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update");
            Err(Refusal::invalid(kind.about(name), &[cause]))
        }
        None => Ok(()),
        Some(text) if text.parse::<u64>().is_err() => {
            Err(Refusal::unreasoned(500, format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))
        }
        Some(text) if there == text => Ok(()),
        Some(_) => Err(Refusal::modified(kind.about(name))),
    }
}

/// 409 of a uid that is not that of the object there, which may be none.
fn another(call: &Call<'_>, name: &str, uid: &str, there: &str) -> Refusal {
    let workspace = call.workspace.as_deref().unwrap_or_default();
    let key = key(&call.kind, workspace, call.namespace.as_deref().unwrap_or_default(), name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
    );
    Refusal::conflict(call.kind.about(name), &why)
}

/// Most native kinds may be replaced without saying which version is meant.
fn needs_version(call: &Call<'_>) -> bool {
    call.kind.origin != Origin::BuiltIn || matches!(&*call.kind.names.plural, "leases" | "customresourcedefinitions")
}

/// What an update cannot change is put back: the server's own metadata, and the half of the object that has another endpoint.
fn preserve(call: &Call<'_>, old: &Value, new: &mut Value) {
    let status = call.subresource == "status";
    if status {
        // The status and the managed fields are taken, and nothing else.
        let (given, managed) = (new["status"].take(), new["metadata"]["managedFields"].take());
        let asked = ["kind", "apiVersion"].map(|field| (field, new[field].take()));
        *new = old.clone();
        for (field, value) in asked {
            new[field] = value;
        }
        set(new, "status", given);
        set(&mut new["metadata"], "managedFields", managed);
        return;
    }
    if call.kind.status {
        set(new, "status", old["status"].clone());
    }
    let metadata = &mut new["metadata"];
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata[field].is_null() {
            set(metadata, field, old["metadata"][field].clone());
        }
    }
    for field in ["generation", "selfLink", "resourceVersion", "generateName"] {
        if field != "generateName" || metadata[field].is_null() {
            let kept = if field == "generateName" { Value::Null } else { old["metadata"][field].clone() };
            set(metadata, field, kept);
        }
    }
}

/// The key in etcd, which some errors show.
fn key(kind: &Served, workspace: &str, namespace: &str, name: &str) -> String {
    let (group, plural) = (&kind.names.group, &kind.names.plural);
    let namespace = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
    let identity = match &kind.origin {
        Origin::BuiltIn => {
            let group = if group.is_empty() { "core" } else { group };
            return format!("/registry/{group}/{plural}/{workspace}{namespace}/{name}");
        }
        Origin::Bound { identity, .. } => identity,
        _ => "customresources",
    };
    format!("/registry/{group}/{plural}/{identity}/{workspace}{namespace}/{name}")
}
