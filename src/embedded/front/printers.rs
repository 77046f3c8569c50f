//! The columns of the kinds that an API server compiles in.
//!
//! Pure: from objects to cells. Names, types and the contents of cells are those of `k8s.io/kubernetes/pkg/printers/internalversion`.

use serde_json::{Value, json};

use super::duration::age;
use crate::embedded::served::Served;

/// A column: heading, type, format, priority, and what it means.
pub(super) type Heading = (&'static str, &'static str, &'static str, i64, &'static str);

/// What the column `Name` means.
pub(super) const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may \
    allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and \
    configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What the columns `Age` and `Created At` mean.
pub(super) const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
    guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 \
    form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

const NAMED: Heading = ("Name", "string", "name", 0, NAME);
const AGED: Heading = ("Age", "string", "", 0, CREATED);
const CREATED_AT: &[Heading] = &[NAMED, ("Created At", "date", "", 0, CREATED)];
const NAMESPACE: &[Heading] = &[NAMED, ("Status", "string", "", 0, "The status of the namespace"), AGED];
const CONFIG_MAP: &[Heading] = &[
    NAMED,
    (
        "Data",
        "string",
        "",
        0,
        "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte \
         sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is \
         enforced during validation process.",
    ),
    AGED,
];
const SECRET: &[Heading] =
    &[NAMED, ("Type", "string", "", 0, "What the secret is for."), ("Data", "string", "", 0, "How many entries there are."), AGED];
const SERVICE_ACCOUNT: &[Heading] = &[NAMED, ("Secrets", "string", "", 0, "How many secrets are listed."), AGED];
const RESOURCE_QUOTA: &[Heading] = &[
    NAMED,
    AGED,
    ("Request", "string", "", 0, "What is used and allowed."),
    ("Limit", "string", "", 0, "What is used and allowed of limits."),
];
const LEASE: &[Heading] = &[NAMED, ("Holder", "string", "", 0, "Who holds the lease."), AGED];
const WEBHOOKS: &[Heading] =
    &[NAMED, ("Webhooks", "integer", "", 0, "Webhooks indicates the number of webhooks registered in this configuration"), AGED];
const BINDING: &[Heading] = &[
    NAMED,
    ("Role", "string", "", 0, "The role that is given."),
    AGED,
    ("Users", "string", "", 1, "Users that have it."),
    ("Groups", "string", "", 1, "Groups that have it."),
    ("ServiceAccounts", "string", "", 1, "ServiceAccounts that have it."),
];
const EVENT: &[Heading] = &[
    ("Last Seen", "string", "", 0, "The time at which the most recent occurrence of this event was recorded."),
    ("Type", "string", "", 0, "Type of this event (Normal, Warning), new types could be added in the future"),
    ("Reason", "string", "", 0, "One word for machines."),
    ("Object", "string", "", 0, "The object that this event is about."),
    ("Subobject", "string", "", 1, "The part of the object."),
    ("Source", "string", "", 1, "Who reports it."),
    ("Message", "string", "", 0, "A human-readable description of the status of this operation."),
    ("First Seen", "string", "", 1, "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)"),
    ("Count", "string", "", 1, "The number of times this event has occurred."),
    ("Name", "string", "name", 1, NAME),
];

/// How one kind is shown.
pub(super) struct Printer {
    /// Its columns.
    pub headings: &'static [Heading],
    /// The cells of one object at a moment in Unix seconds.
    pub cells: fn(&Value, i64) -> Vec<Value>,
}

/// The printer of a kind that is compiled in. Kinds of definitions have none, and neither have kcp's own, which are definitions there.
pub(super) fn printer(served: &Served) -> Option<Printer> {
    if served.names.group.ends_with(".kcp.io") || served.origin != crate::embedded::served::Origin::BuiltIn || !served.columns.is_empty() {
        return None;
    }
    let (headings, cells): (_, fn(&Value, i64) -> Vec<Value>) = match (&*served.names.group, &*served.names.kind) {
        ("", "Namespace") => (NAMESPACE, |object, now| vec![name(object), text(object, "/status/phase"), since(object, now)]),
        ("", "ConfigMap") => (CONFIG_MAP, |object, now| {
            vec![name(object), (count(object, "/data") + count(object, "/binaryData")).into(), since(object, now)]
        }),
        ("", "Secret") => {
            (SECRET, |object, now| vec![name(object), text(object, "/type"), count(object, "/data").into(), since(object, now)])
        }
        ("", "ServiceAccount") => (SERVICE_ACCOUNT, |object, now| vec![name(object), count(object, "/secrets").into(), since(object, now)]),
        ("", "ResourceQuota") => (RESOURCE_QUOTA, quota),
        ("" | "events.k8s.io", "Event") => (EVENT, event),
        ("coordination.k8s.io", "Lease") => {
            (LEASE, |object, now| vec![name(object), text(object, "/spec/holderIdentity"), since(object, now)])
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (BINDING, binding),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            (WEBHOOKS, |object, now| vec![name(object), count(object, "/webhooks").into(), since(object, now)])
        }
        _ => (CREATED_AT, |object, _| vec![name(object), text(object, "/metadata/creationTimestamp")]),
    };
    Some(Printer { headings, cells })
}

fn at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn text(object: &Value, pointer: &str) -> Value {
    at(object, pointer).into()
}

fn name(object: &Value) -> Value {
    text(object, "/metadata/name")
}

fn since(object: &Value, now: i64) -> Value {
    age(at(object, "/metadata/creationTimestamp"), now).into()
}

fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

fn quota(object: &Value, now: i64) -> Vec<Value> {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let (limits, requests): (Vec<_>, Vec<_>) = hard.into_iter().flatten().partition(|(resource, _)| resource.starts_with("limits."));
    let line = |resources: Vec<(&String, &Value)>| {
        let one = |(resource, hard): (&String, &Value)| {
            let used = object["status"]["used"][resource].as_str().unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default())
        };
        Value::from(resources.into_iter().map(one).collect::<Vec<_>>().join(", "))
    };
    vec![name(object), since(object, now), line(requests), line(limits)]
}

fn binding(object: &Value, now: i64) -> Vec<Value> {
    let subjects = |kind: &str| {
        let of_kind = object["subjects"].as_array().into_iter().flatten().filter(|subject| subject["kind"] == kind);
        let shown = of_kind.map(|subject| match subject["namespace"].as_str() {
            Some(namespace) if kind == "ServiceAccount" && !namespace.is_empty() => format!("{namespace}/{}", at(subject, "/name")),
            _ => at(subject, "/name").to_owned(),
        });
        Value::from(shown.collect::<Vec<_>>().join(", "))
    };
    let role = format!("{}/{}", at(object, "/roleRef/kind"), at(object, "/roleRef/name"));
    vec![name(object), role.into(), since(object, now), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

/// An event of either group: the newer one renamed most of what this shows.
fn event(object: &Value, now: i64) -> Vec<Value> {
    let either = |old: &str, new: &str| match at(object, old) {
        "" => at(object, new).to_owned(),
        text => text.to_owned(),
    };
    let first = either("/firstTimestamp", "/deprecatedFirstTimestamp");
    let first = age(if first.is_empty() { at(object, "/eventTime") } else { &first }, now);
    let last = either("/lastTimestamp", "/deprecatedLastTimestamp");
    let last = if object["series"].is_object() {
        age(at(object, "/series/lastObservedTime"), now)
    } else if last.is_empty() {
        first.clone()
    } else {
        age(&last, now)
    };
    let counts = ["/series/count", "/count", "/deprecatedCount"].into_iter().filter_map(|pointer| object.pointer(pointer)?.as_i64());
    let count = counts.into_iter().find(|count| *count > 0).unwrap_or(1);
    let subject = if object["involvedObject"].is_object() { &object["involvedObject"] } else { &object["regarding"] };
    let kind = at(subject, "/kind").to_lowercase();
    let target = if at(subject, "/name").is_empty() { kind } else { format!("{kind}/{}", at(subject, "/name")) };
    let component = either("/source/component", "/deprecatedSource/component");
    let component = if component.is_empty() { either("/reportingComponent", "/reportingController") } else { component };
    let host = either("/source/host", "/deprecatedSource/host");
    let host = if host.is_empty() { at(object, "/reportingInstance").to_owned() } else { host };
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    let message = either("/message", "/note");
    vec![
        last.into(),
        text(object, "/type"),
        text(object, "/reason"),
        target.into(),
        text(subject, "/fieldPath"),
        source.into(),
        message.trim().into(),
        first.into(),
        json!(count),
        name(object),
    ]
}
