//! The audit log of a real kcp as a source of events: `audit.k8s.io/v1` lines at level `RequestResponse`.
//!
//! Pure: text to events in the order of their commits. Versions order the writes of one server; a request whose answer has none stands after
//! everything that was answered before it came. What a collection's deletion does to each object, and that an object goes with its last
//! finalizer, is told as the change that it is.

mod unheard;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::checker::{Event, Key, Principal};

const CLUSTER: &str = "/metadata/annotations/kcp.io~1cluster";
/// Where kcp's own server says to which workspace a request went; its virtual workspaces do not.
const ASKED: &str = "tenancy.kcp.io/workspace";
/// Where kcp says whose an account is.
const HOME: &str = "authentication.kubernetes.io/cluster-name";

/// One line, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: User,
    user_agent: String,
    annotations: BTreeMap<String, String>,
    object_ref: ObjectRef,
    response_status: Status,
    request_object: Value,
    response_object: Value,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
    /// A virtual workspace asks this, on behalf of somebody.
    #[serde(skip)]
    is_inner: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    message: String,
}

/// What an API server writes of a request of which it does not know how it ended, since whoever asked went away: with the code of a success.
const CLOSED_EARLY: &str = "Connection closed early";

/// An entry of the log.
#[derive(Debug)]
pub(crate) enum Told {
    /// A request, and the workspace of the account that asked: `""` for users of no workspace.
    Request(Box<Event>, String),
    /// Here is the mark of this number among those that were given.
    Mark(usize),
}

/// States of objects that are known to have been there, by uid and version, whoever made them: which object, and how it was.
pub(crate) type Shown = BTreeMap<(String, u64), (Key, Value)>;

/// A place in the order of commits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// After everything that was answered until then.
    At(Timestamp),
    /// After the write that made this version.
    Version(u64),
}

/// Every request of a log that was answered, in the order of the commits, with these marks among them; `who` says of a user and a field manager
/// who that is, and `shown` what somebody saw whose look is in no log.
///
/// What went through a virtual workspace names no workspace: it is that of the object in the request or its answer, or of another one with the same
/// uid, or else of the only workspace in which an object of that name was ever seen.
///
/// # Errors
/// The first line that is no audit event. A last line without its end is left out: the server was killed while it wrote.
pub(crate) fn events(log: &str, marks: &[Mark], shown: &Shown, who: impl Fn(&str, &str) -> Principal) -> Result<Vec<Told>, String> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    let mut lines = Vec::new();
    for text in whole.lines().filter(|line| !line.is_empty()) {
        let mut line: Line = serde_json::from_str(text).map_err(|error| format!("no audit event: {error}: {text}"))?;
        // What a virtual workspace asks of the server behind it names the identity of the export, too.
        if let Some((plural, _)) = line.object_ref.resource.split_once(':') {
            (line.is_inner, line.object_ref.resource) = (true, plural.to_owned());
        }
        if line.response_status.message == CLOSED_EARLY {
            line.response_status.code = 0;
        }
        // A watch is one request, and lasts.
        let counts = if line.verb == "watch" { line.stage == "ResponseStarted" } else { line.stage == "ResponseComplete" };
        let dry = line.request_uri.contains("dryRun=");
        if counts && !dry && !line.object_ref.resource.is_empty() {
            lines.push(line);
        }
    }
    unheard::tell(&mut lines, shown);
    let homes = Homes::of(&lines);
    let told = |entry: Entry| match entry {
        Entry::Mark(number) => vec![Told::Mark(number)],
        Entry::Line(line) => {
            let home = line.user.extra.get(HOME).and_then(|homes| homes.first()).cloned().unwrap_or_default();
            line.events(&who, &homes).into_iter().map(|event| Told::Request(Box::new(event), home.clone())).collect()
        }
    };
    Ok(in_order(unheard::without_echoes(lines), marks).into_iter().flat_map(told).collect())
}

/// Where objects live, by uid and by name.
#[derive(Debug, Default)]
struct Homes {
    by_uid: BTreeMap<String, String>,
    by_name: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Homes {
    fn of(lines: &[Line]) -> Self {
        let mut homes = Self::default();
        for object in lines.iter().flat_map(|line| [&line.request_object, &line.response_object]) {
            let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (home, uid) = (text(CLUSTER), text("/metadata/uid"));
            if !home.is_empty() {
                homes.by_name.entry((text("/metadata/namespace"), text("/metadata/name"))).or_default().insert(home.clone());
            }
            if !home.is_empty() && !uid.is_empty() {
                homes.by_uid.insert(uid, home);
            }
        }
        homes
    }

    fn find(&self, line: &Line) -> String {
        if let Some(asked) = line.asked() {
            return asked.to_owned();
        }
        let said = [&line.response_object, &line.request_object].into_iter().find_map(|object| object.pointer(CLUSTER)?.as_str());
        if let Some(said) = said {
            return said.to_owned();
        }
        let uids = [line.object_ref.uid.as_str(), line.uid().unwrap_or_default()];
        if let Some(home) = uids.into_iter().find_map(|uid| self.by_uid.get(uid)) {
            return home.clone();
        }
        // A create names its object in the body alone.
        let name = Some(line.object_ref.name.as_str()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| text(&line.request_object["metadata"]["name"]));
        let name = (line.object_ref.namespace.clone(), name.to_owned());
        let only = self.by_name.get(&name).filter(|homes| homes.len() == 1).and_then(|homes| homes.first());
        only.cloned().unwrap_or_default()
    }
}

enum Entry {
    Line(Box<Line>),
    Mark(usize),
}

/// By version where there is one. What has none goes after the latest version that was answered when it came.
fn in_order(lines: Vec<Line>, marks: &[Mark]) -> Vec<Entry> {
    let mut answered: Vec<(Timestamp, u64)> = lines.iter().filter_map(|line| Some((line.stage_timestamp, line.version()?))).collect();
    answered.sort_unstable();
    let mut latest = 0;
    for (_, version) in &mut answered {
        latest = latest.max(*version);
        *version = latest;
    }
    let known_at =
        |at: Timestamp| answered.partition_point(|(answered, _)| *answered <= at).checked_sub(1).map_or(0, |last| answered[last].1);
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &lines {
        if let (Some(uid), Some(version)) = (line.uid(), line.version()) {
            let last = last.entry(uid).or_default();
            *last = version.max(*last);
        }
    }
    let last: BTreeMap<String, u64> = last.into_iter().map(|(uid, version)| (uid.to_owned(), version)).collect();
    let place = |line: &Line| {
        if let Some(version) = line.version() {
            return (version, Timestamp::MIN);
        }
        // Nothing is written to an incarnation after its end.
        let end = line.uid().filter(|_| line.is_end()).and_then(|uid| last.get(uid)).copied().unwrap_or_default();
        (known_at(line.request_received_timestamp).max(end), line.stage_timestamp)
    };
    let marks = marks.iter().enumerate().map(|(number, mark)| match *mark {
        Mark::At(at) => ((known_at(at), at), Entry::Mark(number)),
        Mark::Version(version) => ((version, Timestamp::MAX), Entry::Mark(number)),
    });
    let lines = lines.into_iter().map(|line| (place(&line), Entry::Line(Box::new(line))));
    let mut placed: Vec<((u64, Timestamp), Entry)> = lines.chain(marks).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, entry)| entry).collect()
}

impl Line {
    fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether it is known to have succeeded.
    fn is_done(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }

    /// Whether nobody knows what became of it: who asked was gone, or the way to the server behind broke.
    fn is_unheard(&self) -> bool {
        matches!(self.response_status.code, 0 | 499 | 500..)
    }

    /// The workspace that kcp's own server was asked about, where it was one.
    fn asked(&self) -> Option<&str> {
        self.annotations.get(ASKED).map(String::as_str).filter(|asked| *asked != "*")
    }

    /// `<plural>.<group>`, or the plural alone for core kinds.
    fn kind(&self) -> String {
        let ObjectRef { resource, api_group, .. } = &self.object_ref;
        if api_group.is_empty() { resource.clone() } else { format!("{resource}.{api_group}") }
    }

    /// The version that this write changed, where it says so.
    fn base(&self) -> Option<u64> {
        let places = ["/metadata/resourceVersion", "/preconditions/resourceVersion"];
        places.into_iter().find_map(|at| self.request_object.pointer(at)?.as_str()?.parse().ok())
    }

    /// Which object it is about, and which part of it.
    fn meant(&self) -> String {
        let ObjectRef { resource, namespace, name, api_group, subresource, .. } = &self.object_ref;
        // A create names its object in the body alone.
        let in_body = [&self.response_object, &self.request_object].map(|object| text(&object["metadata"]["name"]));
        let name = std::iter::once(name.as_str()).chain(in_body).find(|name| !name.is_empty()).unwrap_or_default();
        format!("{resource}.{api_group}/{namespace}/{name}/{subresource}")
    }

    /// The incarnation that is meant or answered with.
    fn uid(&self) -> Option<&str> {
        let said = [
            (&self.response_object, "/metadata/uid"),
            (&self.response_object, "/details/uid"),
            (&self.request_object, "/preconditions/uid"),
            (&self.request_object, "/metadata/uid"),
        ];
        said.into_iter().find_map(|(object, at)| object.pointer(at)?.as_str())
    }

    /// Whether nothing is left after it.
    fn is_end(&self) -> bool {
        let deletes = self.verb == "delete" && !is_going(&self.response_object);
        self.is_write() && self.is_done() && (deletes || is_gone(&self.response_object))
    }

    /// The version that this write made. An answer that shows an object that is gone has the version before.
    fn version(&self) -> Option<u64> {
        let done = self.is_write() && self.is_done() && !is_gone(&self.response_object);
        let version = self.response_object.pointer("/metadata/resourceVersion").and_then(Value::as_str).filter(|_| done);
        version.and_then(|version| version.parse().ok()).filter(|version| *version > 0)
    }

    fn manager(&self) -> &str {
        let (_, query) = self.request_uri.split_once('?').unwrap_or_default();
        let named = query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="));
        named.unwrap_or_else(|| self.user_agent.split('/').next().unwrap_or_default())
    }

    fn events(self, who: &impl Fn(&str, &str) -> Principal, homes: &Homes) -> Vec<Event> {
        let manager = self.manager().to_owned();
        let path = self.request_uri.split('?').next().unwrap_or_default().to_owned();
        let (workspace, done, kind) = (homes.find(&self), self.is_done(), self.kind());
        let ObjectRef { namespace, name, subresource, .. } = self.object_ref;
        let body = if self.request_object.is_null() { Value::Null } else { self.request_object };
        let event = Event {
            at: self.stage_timestamp,
            principal: who(&self.user.username, &manager),
            user: self.user.username,
            manager,
            verb: self.verb.clone(),
            key: Key::new(&workspace, &kind, &namespace, &name),
            subresource,
            before: None,
            after: None,
            code: self.response_status.code,
            path,
            body,
            gone: false,
        };
        let answer = self.response_object;
        let has_name = !answer["metadata"]["name"].is_null();
        match self.verb.as_str() {
            "deletecollection" if done => deleted(&event, answer),
            "create" | "update" | "patch" | "delete" if done && has_name => {
                let key = Key::new(workspace_of(&answer, &workspace), &kind, &namespace, text(&answer["metadata"]["name"]));
                let gone = is_gone(&answer) || (event.verb == "delete" && !is_going(&answer));
                vec![Event { key, gone, after: (!gone).then_some(answer), ..event }]
            }
            // Answered with a status: nothing of it is left.
            "delete" if done => vec![Event { gone: true, ..event }],
            _ => vec![event],
        }
    }
}

/// What became of each object of a collection: those that somebody holds are being deleted, the others are gone.
fn deleted(event: &Event, answer: Value) -> Vec<Event> {
    let items = match answer {
        Value::Object(mut list) => list.remove("items").and_then(|items| if let Value::Array(items) = items { Some(items) } else { None }),
        _ => None,
    };
    let each = items.unwrap_or_default().into_iter().map(|mut item| {
        let metadata = &item["metadata"];
        let key =
            Key::new(workspace_of(&item, &event.key.workspace), &event.key.kind, text(&metadata["namespace"]), text(&metadata["name"]));
        let gone = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        if !is_going(&item) {
            item["metadata"]["deletionTimestamp"] = event.at.to_string().into();
        }
        Event { key, gone, after: (!gone).then_some(item), ..event.clone() }
    });
    each.collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// An object whose last finalizer has just gone is shown once more.
fn is_gone(object: &Value) -> bool {
    is_going(object) && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

fn workspace_of<'a>(object: &'a Value, asked: &'a str) -> &'a str {
    object.pointer(CLUSTER).and_then(Value::as_str).unwrap_or(asked)
}
