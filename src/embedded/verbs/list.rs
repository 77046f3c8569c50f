//! One object, and lists with their pages.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::options::{self, At, ListOptions};
use super::{Answer, Call, Reply, Way, bytes_of, json};
use crate::embedded::base64;
use crate::embedded::convert;
use crate::embedded::errors::Refusal;
use crate::embedded::front::negotiation::{Representation, Shape, is_foreign, negotiate};
use crate::embedded::front::table::{self, IncludeObject};
use crate::embedded::request::Request;
use crate::embedded::selector::{Fields, Selector};
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::{Place, Stored};
use crate::embedded::world::World;

impl Call<'_> {
    /// What the query selects, and through a virtual workspace the label of the claim.
    pub(super) fn selector(&self) -> Result<Selector, Refusal> {
        let query = &self.request.query;
        let names = &self.kind.names;
        let known = if self.is_native() { Fields::of_native(&names.group, &names.plural) } else { Fields::Plain };
        let selector = Selector::parse(query.get("labelSelector"), query.get("fieldSelector"), known)?;
        if query.get("fieldSelector").is_some_and(|fields| fields.contains("metadata.namespace")) && !self.kind.namespaced {
            return Err(Refusal::bad_request("field label not supported: metadata.namespace"));
        }
        // The key of a list over all workspaces begins with a workspace, so that none begins with the namespace that a selector asks for.
        let namespaced = query.get("fieldSelector").is_some_and(|fields| fields.contains("metadata.namespace="));
        let selector = if self.workspace.is_none() && namespaced { selector.with_label("", "nothing has this") } else { selector };
        Ok(match &self.way {
            Way::Virtual { label: Some((key, value)), .. } => selector.with_label(key, value),
            _ => selector,
        })
    }

    pub(super) fn represented(&self, shape: Shape) -> Result<Representation, Refusal> {
        negotiate(&self.request.accept, shape).map_err(|refusal| {
            // A virtual workspace knows no protobuf, and says so.
            if self.way != Way::Direct && refusal.reason == "NotAcceptable" && refusal.message.starts_with("only the following") {
                let streams = refusal.message.contains("stream=watch");
                return Refusal::not_acceptable(if streams {
                    "application/json;stream=watch"
                } else {
                    "application/json, application/yaml"
                });
            }
            if self.is_native() && is_foreign(&self.request.accept) {
                let all = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
                let streams = match shape {
                    Shape::One => "",
                    Shape::List | Shape::Watch => ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
                };
                let message = format!("406: Not Acceptable\n\nAvailable representations: {all}{streams}");
                return Refusal { message, details: json!({}), ..refusal };
            }
            if self.is_native() {
                let own = format!("*core.{}", self.kind.names.list_kind);
                return Refusal { message: refusal.message.replace("*unstructured.UnstructuredList", &own), ..refusal };
            }
            refusal
        })
    }

    /// Whether a table has one column only: what the workspace itself adds to a kind that defines no columns is not there through another door.
    pub(super) fn shows_names_only(&self) -> bool {
        self.way != Way::Direct && self.kind.columns.is_empty()
    }

    /// Whether items of a list show apiVersion and kind: those of native kinds do not, except through a virtual workspace.
    fn is_native(&self) -> bool {
        self.kind.origin == Origin::BuiltIn && self.way == Way::Direct
    }
}

pub(super) fn get(world: &World, call: &Call<'_>, name: &str) -> Answer {
    let representation = call.represented(Shape::One);
    // Whether it is a list shows only once it is there.
    let representation = match representation {
        Err(refusal) if refusal.code != 500 => return Err(refusal),
        other => other,
    };
    let not_found = || Refusal::not_found(call.kind.about(name));
    let workspace = call.workspace.as_ref().ok_or_else(not_found)?;
    let place = Place::new(workspace, call.namespace.as_deref().unwrap_or_default(), name);
    let stored = world.stored(&call.kind, &place).ok_or_else(not_found)?;
    let selector = call.selector()?;
    if !selector.is_empty() && matches!(call.way, Way::Virtual { .. }) && !selector.matches(&stored.value()) {
        return Err(not_found());
    }
    let representation = representation.map_err(|refusal| {
        let what =
            format!("you requested PartialObjectMetadataList, but the requested object is not a list (*core.{})", call.kind.names.kind);
        if call.is_native() { Refusal { message: what, ..Refusal::not_acceptable("") } } else { refusal }
    })?;
    match representation {
        Representation::Object => Ok(Reply::Json { code: 200, body: convert::bytes(&call.kind, stored), warnings: Vec::new() }),
        Representation::Table { v1 } => {
            let object = convert::value(&call.kind, stored);
            let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            shown(call, &[object], &meta, world.now.as_second(), v1)
        }
        Representation::Partial { v1 } => {
            let partial = table::partial(&convert::value(&call.kind, stored));
            Ok(json(200, &if v1 { partial } else { table::in_v1beta1(partial) }))
        }
    }
}

fn shown(call: &Call<'_>, objects: &[Value], meta: &Value, now: i64, v1: bool) -> Answer {
    let include = IncludeObject::parse(call.request.query.get("includeObject").unwrap_or_default())?;
    let mut table = table::table(&call.kind, objects, meta, now, include);
    if call.shows_names_only() {
        table::names_only(&mut table);
    }
    Ok(json(200, &if v1 { table } else { table::in_v1beta1(table) }))
}

/// A page of a list: what is on it, and what its metadata says.
struct Page {
    objects: Vec<Arc<Stored>>,
    revision: u64,
    next: Option<Place>,
    remaining: usize,
}

pub(super) fn list(world: &World, call: &Call<'_>) -> Answer {
    let options = options::list(&call.request.query, false)?;
    let selector = call.selector()?;
    let representation = call.represented(Shape::List)?;
    let page = page(world, call, &options, &selector)?;
    let mut meta = json!({"resourceVersion": page.revision.to_string()});
    if let Some(next) = &page.next {
        meta["continue"] = token(page.revision, next).into();
        if selector.is_empty() {
            meta["remainingItemCount"] = page.remaining.into();
        }
    }
    let values = || page.objects.iter().map(|stored| convert::value(&call.kind, stored)).collect::<Vec<_>>();
    match representation {
        Representation::Object => {
            if call.kind.origin != Origin::BuiltIn && meta["continue"].is_null() {
                meta["continue"] = "".into();
            }
            Ok(Reply::Json { code: 200, body: joined(call, &page.objects, &meta), warnings: Vec::new() })
        }
        Representation::Table { v1 } => shown(call, &values(), &meta, world.now.as_second(), v1),
        Representation::Partial { v1 } => {
            let mut objects = values();
            if call.workspace.is_none() {
                for object in &mut objects {
                    table::of_version(object, &call.kind);
                }
            }
            let list = table::partial_list(&objects, &meta);
            Ok(json(200, &if v1 { list } else { table::in_v1beta1(list) }))
        }
    }
}

/// The list of a kind that no workspace of the shard serves, as later versions of kcp answer it: empty and without resourceVersion.
pub(super) fn unserved(request: &Request, kind: &Served) -> Reply {
    if request.verb() == "watch" {
        return Reply::Watch(Box::new(super::watch::Plan::silent()));
    }
    let list = json!({"apiVersion": kind.api_version(), "kind": &*kind.names.list_kind, "metadata": {"continue": "", "resourceVersion": ""}, "items": []});
    json(200, &list)
}

/// The objects of a list as they are stored, joined without parsing them.
fn joined(call: &Call<'_>, objects: &[Arc<Stored>], meta: &Value) -> Bytes {
    let size = objects.iter().map(|stored| stored.json.len() + 1).sum::<usize>() + 256;
    let mut body = Vec::with_capacity(size);
    let (api_version, kind) = (call.kind.api_version(), &call.kind.names.list_kind);
    body.extend_from_slice(format!("{{\"apiVersion\":{api_version:?},\"kind\":{kind:?},\"metadata\":{meta},\"items\":[").as_bytes());
    for (at, stored) in objects.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        if call.is_native() {
            let mut object = convert::value(&call.kind, stored);
            if let Some(fields) = object.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            body.extend_from_slice(&bytes_of(&object));
        } else {
            body.extend_from_slice(&convert::bytes(&call.kind, stored));
        }
    }
    body.extend_from_slice(b"]}");
    body.into()
}

fn page(world: &World, call: &Call<'_>, options: &ListOptions, selector: &Selector) -> Result<Page, Refusal> {
    let store = &world.shards[call.shard].store;
    let (scope, latest) = (call.scope(), store.revision());
    let from = options.continue_.as_deref().map(untoken).transpose()?;
    let too_large = |version: u64| {
        let details =
            json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1});
        let message = format!("Timeout: Too large resource version: {version}, current: {latest}");
        Refusal { code: 504, reason: "Timeout", message, details, retry_after: Some(1), warnings: Vec::new() }
    };
    let at = match (&from, options.at) {
        (Some((revision, _)), _) => Some(*revision),
        (None, At::Exact(version)) if version > latest => {
            return Err(Refusal::unreasoned(500, "etcdserver: mvcc: required revision is a future revision"));
        }
        (None, At::NotOlderThan(version)) if version > latest => return Err(too_large(version)),
        (None, At::Exact(version)) => Some(version),
        (None, At::Latest | At::NotOlderThan(_)) => None,
    };
    let all: Vec<(Place, Arc<Stored>)> = match at.filter(|version| *version != latest) {
        None => store.list(&call.kind.storage, &scope).map(|(place, stored)| (place.clone(), stored.clone())).collect(),
        Some(version) => store.list_at(&call.kind.storage, &scope, version).map_err(|_| expired(from.is_some()))?,
    };
    let after = from.map(|(_, place)| place);
    let last = all.last().map(|(place, _)| place.clone());
    let rest = all.into_iter().filter(|(place, _)| after.as_ref().is_none_or(|after| place > after));
    let mut chosen: Vec<(Place, Arc<Stored>)> =
        rest.filter(|(_, stored)| selector.is_empty() || selector.matches(&stored.value())).collect();
    let remaining = options.limit.map_or(0, |limit| chosen.len().saturating_sub(limit));
    if let Some(limit) = options.limit {
        chosen.truncate(limit);
    }
    // A full page is followed by another one if there is anything, whether it is selected or not.
    let full = options.limit.is_some_and(|limit| chosen.len() == limit);
    let next = chosen.last().map(|(place, _)| place.clone()).filter(|place| full && last.as_ref() > Some(place));
    let objects = chosen.into_iter().map(|(_, stored)| stored).collect();
    Ok(Page { objects, revision: at.unwrap_or(latest), next, remaining })
}

fn expired(continued: bool) -> Refusal {
    if continued {
        return Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        );
    }
    Refusal::expired("The resourceVersion for the provided list is too old.")
}

pub(super) fn token(revision: u64, last: &Place) -> String {
    let start = format!("{}/{}/{}", last.workspace, last.namespace, last.name);
    base64::encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string().as_bytes()).trim_end_matches('=').to_owned()
}

fn untoken(token: &str) -> Result<(u64, Place), Refusal> {
    let invalid = |why: &str| Refusal::bad_request(format!("invalid continue token: {why}"));
    let padded = format!("{token}{}", "=".repeat((4 - token.len() % 4) % 4));
    let bytes = base64::decode(&padded).ok_or_else(|| invalid("continue key is not valid: illegal base64 data at input byte 0"))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = bytes.first().map_or_else(String::new, |byte| char::from(*byte).to_string());
        invalid(&format!("continue key is not valid: invalid character '{first}' looking for beginning of value"))
    })?;
    let mut start = value["start"].as_str().unwrap_or_default().splitn(3, '/');
    let mut part = || Arc::<str>::from(start.next().unwrap_or_default());
    let place = Place { workspace: part(), namespace: part(), name: part() };
    let revision = value["rv"].as_u64().filter(|revision| *revision > 0).ok_or_else(|| invalid("incorrect encoded resource version"))?;
    Ok((revision, place))
}
