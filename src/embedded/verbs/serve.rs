//! From a request to its verb: who asks, through which door, for what.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::route::{self, Way};
use super::{Answer, Call, Reply, json};
use crate::embedded::Version;
use crate::embedded::access::{self, Attributes, User};
use crate::embedded::errors::Refusal;
use crate::embedded::front::{discovery, openapi};
use crate::embedded::request::{Door, Request, Target, What};
use crate::embedded::selector::name_asked_for;
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::Place;
use crate::embedded::world::World;
use crate::embedded::world::workspaces::exports;

pub(super) fn serve(world: &mut World, request: &Request) -> Answer {
    let user = world.authenticate(request)?;
    if request.shard >= world.shards.len() {
        return Err(unresolved(&user, request));
    }
    if request.moves.is_some_and(|moves| moves != world.shards[request.shard].moves) {
        return Err(Refusal::plain(503, "the shard is no longer here"));
    }
    match &request.door {
        Door::Direct(workspace) => direct(world, request, &user, workspace),
        Door::Virtual { provider, export, workspace } => virtually(world, request, &user, [provider, export, workspace]),
        Door::Broken => Err(unresolved(&user, request)),
        Door::Server => {
            if matches!(&request.what, What::Other(path) if ["/livez", "/readyz", "/healthz"].contains(&path.as_str())) {
                return Ok(Reply::Text(200, "ok".into()));
            }
            // An account's request without a workspace goes to its own.
            let own =
                request.bearer.as_ref().and_then(|bearer| world.tokens.account(bearer.expose_secret())).map(|account| account.workspace);
            direct(world, request, &user, own.as_deref().unwrap_or_default())
        }
    }
}

/// 403 of a virtual workspace's URL that leads nowhere. It is the server's own answer, so that the path is the whole one.
fn unresolved(user: &User, request: &Request) -> Refusal {
    let path = &request.raw_path;
    let nothing = crate::embedded::errors::About { group: "", kind: "", name: "" };
    let why = format!("User {:?} cannot get path {path:?}: Path not resolved to a valid virtual workspace", user.name);
    Refusal { details: json!({}), ..Refusal::forbidden(nothing, &why) }
}

fn direct(world: &mut World, request: &Request, user: &User, workspace: &str) -> Answer {
    let legal = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | ':' | '*');
    if !workspace.chars().all(legal) {
        return Err(Refusal::bad_request(format!("invalid cluster: {workspace:?} does not match the regex")));
    }
    let name = world.resolve(workspace);
    let user = access::impersonate(world, name.as_deref().unwrap_or_default(), user, &request.impersonation)?;
    let user = if world.options.version >= Version::V0_31 { user.global(name.as_deref().unwrap_or_default()) } else { user };
    let target = match &request.what {
        What::Objects(target) => target,
        what => {
            let path = request.path();
            access::direct(world, name.as_deref().unwrap_or_default(), &user, &Attributes::of_path("get", &path), None)?;
            let name = name.ok_or_else(not_found)?;
            let kinds = world.kinds(&name);
            let host = world.options.url.split_once("://").map_or("", |(_, host)| host);
            return documents(&kinds, what, request, false, host);
        }
    };
    let bound = name.as_deref().and_then(|name| world.bound_kind(name, &target.group, &target.resource));
    access::direct(world, name.as_deref().unwrap_or_default(), &user, &attributes(request, target), bound.as_ref())?;
    let name = name.ok_or_else(not_found)?;
    let kind = world.kind(&name, &target.group, &target.version, &target.resource).ok_or_else(|| route::unknown(target))?;
    let namespaced = target.namespace.is_some();
    let single = target.name.is_some() || request.method == http::Method::POST;
    if (kind.namespaced && !namespaced && single) || (!kind.namespaced && namespaced) {
        return Err(not_found());
    }
    let shard = world.shard_of(&name).unwrap_or_default();
    run(world, &call(request, user, Way::Direct, Some(name), shard, kind, target))
}

fn virtually(world: &mut World, request: &Request, user: &User, [provider, export, workspace]: [&String; 3]) -> Answer {
    if workspace.contains(':') {
        return Err(unresolved(user, request));
    }
    let known = world.workspaces.get_key_value(provider.as_str()).map(|(name, _)| name.clone());
    let object = known.as_ref().and_then(|name| world.parsed(exports(), &Place::new(name, "", export)));
    let (Some(provider), Some(object)) = (known, object) else {
        let path = &request.raw_path;
        return Err(Refusal::plain(
            500,
            format!("Internal Server Error: {path:?}: API export not found: apiexport.apis.kcp.io {export:?} not found\n"),
        ));
    };
    // A wildcard request acts as whom it impersonates; in a workspace the check runs where nobody has a right.
    let user = match workspace.as_str() {
        "*" => access::impersonate(world, &provider, user, &request.impersonation)?,
        _ => access::impersonate(world, "", user, &request.impersonation)?,
    };
    let shard = request.shard;
    let export: Arc<str> = export.as_str().into();
    let target = match &request.what {
        What::Objects(target) => target,
        what => {
            let path = request.path();
            access::content(world, &provider, &export, &user, "get")
                .map_err(|_| access::denied(&user, &Attributes::of_path("get", &path)))?;
            let kinds = world.virtual_kinds(&provider, &object);
            let host = world.options.url.split_once("://").map_or("", |(_, host)| host);
            return documents(&kinds, what, request, true, host);
        }
    };
    let attributes = attributes(request, target);
    let inside = if workspace == "*" { None } else { Some(world.resolve(workspace).filter(|name| world.shard_of(name) == Some(shard))) };
    if let Some(inside) = &inside {
        let binding = inside.as_ref().and_then(|inside| world.binding_to(inside, &provider, &export));
        let invited = binding.is_some_and(|binding| access::invited(&object, &binding, &attributes));
        if !invited && !user.is_in(access::MASTERS) {
            return Err(access::denied(&user, &attributes));
        }
    }
    let claimed = world.claimed_kinds(&object, target);
    access::through(world, &provider, &export, &user, &attributes, &claimed)?;
    let Some((kind, label)) = world.virtual_kind(&provider, &object, target) else {
        return Err(Refusal::plain(404, "404 page not found\n"));
    };
    let way = Way::Virtual { provider, export, label };
    let Some(inside) = inside else { return wildcard(world, request, user, way, kind, target) };
    let single = target.name.is_some() || request.method == http::Method::POST;
    if kind.namespaced && target.namespace.is_none() && single {
        return Err(Refusal::no_such_resource());
    }
    // The workspace's own kind does the work: its storage may still have the schema before.
    let kind = inside.as_ref().and_then(|inside| world.kind(inside, &target.group, &target.version, &target.resource)).unwrap_or(kind);
    let mut call = call(request, user, way, inside, shard, kind, target);
    if !call.kind.namespaced {
        call.namespace = None;
    }
    run(world, &call)
}

/// A request for all workspaces: lists and watches, nothing else.
fn wildcard(world: &mut World, request: &Request, user: User, way: Way, kind: Arc<Served>, target: &Target) -> Answer {
    if target.name.is_some() || request.method != http::Method::GET {
        return Err(Refusal::no_such_resource());
    }
    if let Some(namespace) = target.namespace.as_deref().filter(|_| kind.namespaced) {
        let words = "cross-cluster LIST and WATCH are required to be cross-namespace, not scoped to namespace";
        return Err(Refusal::unreasoned(400, format!("{words} {namespace}")));
    }
    let shard = request.shard;
    if !world.is_served_on(shard, &kind) {
        return match world.options.version {
            Version::Later => Ok(super::list::unserved(request, &kind)),
            _ => Err(Refusal::no_such_resource()),
        };
    }
    run(world, &call(request, user, way, None, shard, kind, target))
}

fn call<'a>(
    request: &'a Request,
    user: User,
    way: Way,
    workspace: Option<Arc<str>>,
    shard: usize,
    kind: Arc<Served>,
    target: &Target,
) -> Call<'a> {
    let Target { namespace, name, subresource, .. } = target.clone();
    Call { request, user, way, workspace, shard, kind, namespace, name, subresource }
}

/// 405 of a path that is there and does not know the method.
fn not_allowed(about: crate::embedded::errors::About<'_>) -> Refusal {
    let message = "the server does not allow this method on the requested resource".to_owned();
    Refusal { message, details: json!({}), ..Refusal::method_not_allowed(about, "") }
}

fn attributes<'a>(request: &'a Request, target: &'a Target) -> Attributes<'a> {
    let verb = request.verb();
    let selected = || request.query.get("fieldSelector").filter(|_| ["list", "watch"].contains(&verb)).and_then(name_asked_for);
    Attributes {
        verb,
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: target.namespace.as_deref().unwrap_or_default(),
        name: target.name.as_deref().or_else(selected).unwrap_or_default(),
        path: "",
    }
}

fn run(world: &mut World, call: &Call<'_>) -> Answer {
    let about = call.kind.about(call.name.as_deref().unwrap_or_default());
    match (call.request.method.as_str(), &call.name, call.subresource.as_str()) {
        ("POST", Some(_), "token") if &*call.kind.names.plural == "serviceaccounts" => return super::create::token(world, call),
        ("GET" | "PUT" | "PATCH", Some(_), "status") if call.kind.status => {}
        ("PUT", Some(_), "finalize") if &*call.kind.names.plural == "namespaces" => {}
        ("POST", Some(_), "") if call.kind.origin == Origin::BuiltIn && call.way == Way::Direct => return Err(not_allowed(about)),
        (_, _, "") if call.request.verb().is_empty() && call.kind.origin == Origin::BuiltIn && call.way == Way::Direct => {
            return Err(not_allowed(about));
        }
        (_, _, "") => {}
        _ if call.kind.origin == Origin::BuiltIn && call.way == Way::Direct => return Err(route::unknown_below(&call.kind.names.group)),
        ("GET", Some(_), _) => return Err(Refusal::not_found(about)),
        (_, _, "status") if call.kind.status => return Err(Refusal::method_not_allowed(about, call.request.verb())),
        _ => return Err(Refusal::not_found(about)),
    }
    if !call.kind.verbs.contains(&call.request.verb()) && call.subresource.is_empty() {
        return Err(Refusal::method_not_allowed(about, call.request.verb()));
    }
    match (call.request.verb(), &call.name) {
        ("list", None) => super::list::list(world, call),
        ("watch", None) => super::watch::watch(world, call),
        // A GET of one object that asks for a watch gets the object.
        ("get" | "watch", Some(name)) => super::list::get(world, call, name),
        ("create", _) => super::create::create(world, call),
        ("update" | "patch", None) if call.kind.origin == Origin::BuiltIn && call.way == Way::Direct => Err(not_allowed(about)),
        ("update" | "patch", None) => Err(Refusal::bad_request("name must be provided")),
        ("update", Some(name)) => super::update::put(world, call, name),
        ("patch", Some(name)) => super::update::patch(world, call, name),
        ("delete", Some(name)) => super::delete::delete(world, call, name),
        ("deletecollection", None) => super::delete::collection(world, call),
        (verb, _) => Err(Refusal::method_not_allowed(about, verb)),
    }
}

/// Discovery, and what else describes the kinds.
/// `address` is where the server is reached.
fn documents(kinds: &[Arc<Served>], what: &What, request: &Request, virtually: bool, address: &str) -> Answer {
    let host = Some(address).filter(|_| !virtually);
    let found = match what {
        What::Versions => Some(discovery::api_versions()),
        What::Groups => Some(discovery::api_groups(kinds)),
        What::Group(group) => discovery::api_group(kinds, group),
        What::Resources(group, version) => discovery::resources(kinds, group, version),
        What::Other(path) => {
            return other(kinds, path, request, virtually).or_else(|refusal| {
                let paths =
                    ["/api", "/api/v1", "/api/v1/", "/apis", "/apis/", "/metrics", "/metrics/slis", "/openapi", "/openapi/", "/version"];
                if virtually && !path.starts_with("/openapi") { Ok(json(404, &json!({"paths": paths}))) } else { Err(refusal) }
            });
        }
        What::Objects(_) => None,
    };
    let core = matches!(what, What::Resources(group, _) if group.is_empty());
    let mut document = found.ok_or_else(|| if core && !virtually { route::unknown_below("") } else { not_found() })?;
    if virtually && is_missing(&document) {
        return Err(not_found());
    }
    match host {
        None => {
            virtual_discovery(&mut document, &request.raw_path);
            if document["kind"] == "APIVersions" {
                discovery::address(&mut document, address);
            }
        }
        Some(host) => discovery::address(&mut document, host),
    }
    Ok(json(200, &document))
}

/// A virtual workspace does not list what it does not have.
fn is_missing(document: &Value) -> bool {
    document["resources"].as_array().is_some_and(Vec::is_empty)
}

/// Discovery as a virtual workspace writes it: verbs by name, hashes of its own, no address, and of bindings only how to read them.
fn virtual_discovery(document: &mut Value, path: &str) {
    for group in document.get_mut("groups").and_then(Value::as_array_mut).into_iter().flatten() {
        group.as_object_mut().map(|group| group.remove("serverAddressByClientCIDRs"));
    }
    let export: String = path.split('/').take(5).collect();
    // Native kinds are claimed as kcp describes them, which is without these.
    let is_core = document["groupVersion"] == "v1";
    let mut twice = None;
    for resource in document.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(hash) = resource.get_mut("storageVersionHash") {
            *hash = discovery::hash(&format!("{export}/{hash}")).into();
        }
        resource.as_object_mut().filter(|_| is_core).map(|resource| resource.remove("shortNames"));
        if resource["name"] == "apibindings" {
            resource["verbs"] = json!(["get", "list", "watch"]);
        }
        if resource["name"] == "apibindings/status" {
            resource["verbs"] = Value::Null;
            twice = Some(resource.clone());
        }
        if let Some(verbs) = resource["verbs"].as_array_mut() {
            verbs.sort_by_key(ToString::to_string);
        }
    }
    if let (Some(twice), Some(all)) = (twice, document.get_mut("resources").and_then(Value::as_array_mut)) {
        all.push(twice);
    }
}

fn other(kinds: &[Arc<Served>], path: &str, request: &Request, virtually: bool) -> Answer {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let found = match parts.as_slice() {
        ["version"] => Some(version()),
        ["livez" | "readyz" | "healthz", ..] => return Ok(Reply::Text(200, "ok".into())),
        ["openapi", ..] if virtually => None,
        ["openapi", "v2"] if request.accept.contains("protobuf") && !request.accept.contains("application/json") => {
            return Ok(Reply::Bytes("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", openapi::v2_protobuf().into()));
        }
        ["openapi", "v2"] => Some(openapi::v2(kinds)),
        ["openapi", "v3"] => Some(openapi::v3_index(kinds)),
        ["openapi", "v3", "api", version] => openapi::v3(kinds, "", version),
        ["openapi", "v3", "apis", group, version] => openapi::v3(kinds, group, version),
        [] => Some(json!({"paths": ["/api", "/api/v1", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/version"]})),
        _ => None,
    };
    found.map(|document| json(200, &document)).ok_or_else(not_found)
}

fn version() -> Value {
    json!({"major": "1", "minor": "32", "gitVersion": "v1.32.3+kcp-embedded", "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": "embedded"})
}

fn not_found() -> Refusal {
    Refusal::plain(404, "404 page not found\n")
}
