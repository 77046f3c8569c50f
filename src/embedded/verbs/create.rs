//! Creating objects, and tokens of accounts.

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::{self, WriteOptions};
use super::{Answer, Call, Reply, Way, admit, body, bytes_of, json, meta, validate};
use crate::embedded::access::tokens::{token_answer, token_request};
use crate::embedded::access::{self};
use crate::embedded::convert;
use crate::embedded::errors::{About, Refusal};
use crate::embedded::store::Place;
use crate::embedded::world::objects::has_generation;
use crate::embedded::world::workspaces::accounts;
use crate::embedded::world::{Draft, World};

pub(super) fn create(world: &mut World, call: &Call<'_>) -> Answer {
    let options = options::write(&call.request.query, "CreateOptions", false)?;
    let virtually = matches!(call.way, Way::Virtual { .. });
    let decoded = body::object(&call.kind, &call.request.content_type, &call.request.body, options.unknown, virtually)?;
    if let Some(answer) = review(world, call, &decoded.object)? {
        return Ok(answer);
    }
    let (object, mut warnings) = (decoded.object, decoded.warnings);
    // What the workspace itself warns of gets lost on the way through a virtual one.
    if !virtually {
        warnings.extend(meta::warnings(&call.kind, &object));
    }
    let made = make(world, call, object, options, Some(call.manager())).map_err(|refusal| refusal.warning(warnings.clone()))?;
    Ok(Reply::Json { code: 201, body: bytes_of(&made), warnings })
}

/// Kinds that are asked and not kept.
fn review(world: &World, call: &Call<'_>, body: &Value) -> Result<Option<Reply>, Refusal> {
    let kind = &*call.kind.names.kind;
    let workspace = call.workspace.as_deref().unwrap_or_default();
    let mut answer = match (&*call.kind.names.group, kind) {
        ("authorization.k8s.io", "SelfSubjectRulesReview") => access::rules_review(world, workspace, &call.user, body),
        ("authorization.k8s.io", _) => {
            access::reviewable(kind, call.namespace.as_deref().unwrap_or_default(), body)?;
            access::review(world, workspace, kind, &call.user, body)
        }
        ("authentication.k8s.io", "SelfSubjectReview") => access::who_am_i(&call.user, &world.stamp()),
        ("authentication.k8s.io", _) => return Err(Refusal::method_not_allowed(call.kind.about(""), "create")),
        _ => return Ok(None),
    };
    if let Some(spec) = body["spec"].as_object().filter(|_| &*call.kind.names.group == "authorization.k8s.io") {
        answer["metadata"]["managedFields"] = json!([{"manager": call.manager(), "operation": "Update", "apiVersion": call.kind.api_version(),
            "time": world.stamp(), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields_of(spec)}}]);
    }
    Ok(Some(json(201, &answer)))
}

/// Who is said to have written the fields of a review.
fn fields_of(spec: &serde_json::Map<String, Value>) -> Value {
    let below = |value: &Value| match value {
        Value::Object(inner) => {
            let mut fields = fields_of(inner);
            fields["."] = json!({});
            fields
        }
        _ => json!({}),
    };
    spec.iter().filter(|(_, value)| !value.is_null() && *value != "").map(|(name, value)| (format!("f:{name}"), below(value))).collect()
}

/// Makes an object that is decoded: `manager` writes it, or `None` when it carries its managed fields already. A dry run changes nothing, not
/// even which names are drawn next.
pub(super) fn make(
    world: &mut World,
    call: &Call<'_>,
    object: Value,
    options: WriteOptions,
    manager: Option<&str>,
) -> Result<Value, Refusal> {
    // What a rehearsal draws is its own: what comes after it is as if it had not been, and no two of them draw the same.
    if options.dry_run {
        std::mem::swap(&mut world.dice, &mut world.rehearsal);
    }
    let made = make_or_rehearse(world, call, object, options, manager);
    if options.dry_run {
        std::mem::swap(&mut world.dice, &mut world.rehearsal);
    }
    made
}

fn make_or_rehearse(
    world: &mut World,
    call: &Call<'_>,
    object: Value,
    options: WriteOptions,
    manager: Option<&str>,
) -> Result<Value, Refusal> {
    let kind = &call.kind;
    let workspace = call.workspace.clone().ok_or_else(Refusal::no_such_resource)?;
    let mut new = object;
    namespace(world, call, &workspace, &mut new)?;
    if world.is_leaving(&workspace, kind) {
        let message = "create not allowed while custom resource definition is terminating";
        return Err(Refusal { message: message.into(), ..Refusal::method_not_allowed(kind.about(""), "create") });
    }
    let generated = new["metadata"]["generateName"].as_str().filter(|_| new["metadata"]["name"].is_null()).map(ToOwned::to_owned);
    if let Some(prefix) = &generated {
        let prefix: String = prefix.chars().take(58).collect();
        new["metadata"]["name"] = format!("{prefix}{}", world.dice.suffix()).into();
    }
    for field in ["uid", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "creationTimestamp"] {
        // What does not count its changes keeps the count that it came with.
        let kept = field == "generation" && !has_generation(kind);
        if let Some(metadata) = new["metadata"].as_object_mut().filter(|_| !kept) {
            metadata.remove(field);
        }
    }
    admit::decoded(kind, &mut new);
    validate::default(kind, &mut new);
    // Nobody is said to have written what admission and strategies add.
    if let Some(manager) = manager {
        world.manage(kind, None, &mut new, manager, "");
    }
    if kind.status
        && let Some(fields) = new.as_object_mut()
    {
        fields.remove("status");
    }
    admit::create(world, call, &workspace, &mut new)?;
    validate::default(kind, &mut new);
    let name = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let place = Place::new(&workspace, call.namespace.as_deref().unwrap_or_default(), &name);
    let causes = validate::create(world, kind, &workspace, &new);
    if !causes.is_empty() {
        let named = new["kind"].as_str().unwrap_or(&kind.names.kind).to_owned();
        return Err(Refusal::invalid(About { group: &kind.names.group, kind: &named, name: &name }, &causes));
    }
    if !options.dry_run && !options.applied && new["metadata"]["resourceVersion"].as_str().is_some_and(|version| version != "0") {
        return Err(Refusal::unreasoned(500, "resourceVersion should not be set on objects to be created"));
    }
    if let Some(there) = world.stored(kind, &place) {
        let refusal = Refusal::already_exists(kind.about(&name));
        let leaving = there.value()["metadata"]["deletionTimestamp"].is_string();
        let message = if leaving { format!("object is being deleted: {}", refusal.message) } else { refusal.message };
        return Err(Refusal { message, ..refusal });
    }
    admit::encoded(kind, &mut new);
    let new = convert::stored(kind, new);
    if options.dry_run {
        return Ok(rehearsed(world, call, &place, new));
    }
    let made = world.insert(Draft { kind, place, old: None, new, subresource: "", manager: None });
    Ok(convert::shown(kind, made))
}

/// What a dry run would have made: without resourceVersion and logical cluster.
fn rehearsed(world: &mut World, call: &Call<'_>, place: &Place, mut new: Value) -> Value {
    new["metadata"]["uid"] = world.dice.uid().into();
    new["metadata"]["creationTimestamp"] = world.stamp().into();
    if has_generation(&call.kind) {
        new["metadata"]["generation"] = 1.into();
    }
    world.label(&call.kind, place, &mut new);
    convert::shown(&call.kind, new)
}

/// The namespace of the body is that of the URL, and there is such a namespace, and it is open.
fn namespace(world: &World, call: &Call<'_>, workspace: &Arc<str>, new: &mut Value) -> Result<(), Refusal> {
    let inside = new["metadata"]["namespace"].as_str().unwrap_or_default();
    let Some(namespace) = call.namespace.as_deref().filter(|_| call.kind.namespaced) else {
        // The namespace of what has none is dropped.
        if let Some(metadata) = new["metadata"].as_object_mut().filter(|_| !call.kind.namespaced) {
            metadata.remove("namespace");
        }
        return Ok(());
    };
    if !inside.is_empty() && inside != namespace {
        return Err(Refusal::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    new["metadata"]["namespace"] = namespace.into();
    match world.namespace_is_open(workspace, namespace) {
        None => Err(Refusal::not_found(About { group: "", kind: "namespaces", name: namespace })),
        Some(true) => Ok(()),
        Some(false) => {
            let name = new["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let mut refusal = Refusal::forbidden(call.kind.about(name), &why);
            refusal.details["causes"] = json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated")}]);
            Err(refusal)
        }
    }
}

/// `serviceaccounts/<name>/token`.
pub(super) fn token(world: &mut World, call: &Call<'_>) -> Answer {
    let (Some(workspace), Some(name)) = (&call.workspace, &call.name) else { return Err(Refusal::no_such_resource()) };
    let namespace = call.namespace.as_deref().unwrap_or_default();
    let not_found = || Refusal::not_found(call.kind.about(name));
    if call.way != Way::Direct {
        return Err(not_found());
    }
    let account = world.read(accounts(), workspace, namespace, name).ok_or_else(not_found)?;
    let body = body::value(&call.request.content_type, &call.request.body)?;
    let ask = token_request(namespace, name, &body)?;
    let uid = account["metadata"]["uid"].as_str().unwrap_or_default();
    let now = world.now.as_second();
    let mut spec = json!({"f:expirationSeconds": {}});
    if body["spec"]["audiences"].as_array().is_some_and(|audiences| !audiences.is_empty()) {
        spec["f:audiences"] = json!({});
    }
    if let Some(bound) = body["spec"]["boundObjectRef"].as_object() {
        let mut fields: Value = bound.keys().map(|field| (format!("f:{field}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
        fields["."] = json!({});
        spec["f:boundObjectRef"] = fields;
    }
    let managed = json!([{"manager": call.manager(), "operation": "Update", "apiVersion": "authentication.k8s.io/v1",
        "time": world.stamp(), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec}, "subresource": "token"}]);
    let (token, _) = world.tokens.issue(workspace, namespace, name, uid, &ask.audiences, ask.seconds, now);
    let mut answer = token_answer(namespace, name, &ask, &token, now);
    answer["metadata"]["managedFields"] = managed;
    Ok(json(201, &answer))
}
