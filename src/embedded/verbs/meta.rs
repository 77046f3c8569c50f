//! An object's metadata: decoded like Go's `ObjectMeta`, and checked.
//!
//! Pure: the rules are those of `k8s.io/apimachinery/pkg/api/validation`.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::embedded::errors::{Cause, Refusal};
use crate::embedded::served::{Origin, Served};

/// The fields of `ObjectMeta`, and what each is.
const FIELDS: [(&str, Shape); 15] = [
    ("annotations", Shape::Texts),
    ("creationTimestamp", Shape::Text),
    ("deletionGracePeriodSeconds", Shape::Number),
    ("deletionTimestamp", Shape::Text),
    ("finalizers", Shape::List),
    ("generateName", Shape::Text),
    ("generation", Shape::Number),
    ("labels", Shape::Texts),
    ("managedFields", Shape::Objects),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::Objects),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Number,
    Texts,
    List,
    Objects,
}

impl Shape {
    fn go(self) -> &'static str {
        match self {
            Self::Text | Self::Texts | Self::List => "string",
            Self::Number => "int64",
            Self::Objects => "v1.OwnerReference",
        }
    }
}

/// Brings metadata to what a decoded and encoded `ObjectMeta` is: no nulls, nothing empty, nothing unknown. Returns the unknown fields.
///
/// # Errors
/// 400 for a field of another type.
pub(super) fn normalise(kind: &Served, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let Some(fields) = object.as_object_mut() else { return Ok(Vec::new()) };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return Err(cannot(kind, go_type(metadata), "", "v1.ObjectMeta")) };
    let mut unknown = Vec::new();
    let mut empty = Vec::new();
    for (name, value) in metadata.iter() {
        let Some((_, shape)) = FIELDS.iter().find(|(field, _)| field == name) else {
            unknown.push(name.clone());
            continue;
        };
        if let Some(wrong) = wrong(*shape, value) {
            return Err(cannot(kind, wrong, &field(kind, name), shape.go()));
        }
        if is_empty(value) {
            empty.push(name.clone());
        }
    }
    for name in empty.iter().chain(&unknown) {
        metadata.remove(name);
    }
    Ok(unknown.into_iter().map(|name| format!("metadata.{name}")).collect())
}

/// How Go names a field of metadata: the decoder of native kinds knows where it is.
fn field(kind: &Served, name: &str) -> String {
    if kind.origin == Origin::BuiltIn { format!("ObjectMeta.metadata.{name}") } else { format!("ObjectMeta.{name}") }
}

fn wrong(shape: Shape, value: &Value) -> Option<&'static str> {
    let fits = |value: &Value, shape: Shape| match shape {
        Shape::Text | Shape::Texts | Shape::List => value.is_string(),
        Shape::Number => value.is_i64(),
        Shape::Objects => value.is_object(),
    };
    match (shape, value) {
        (_, Value::Null) => None,
        (Shape::Text | Shape::Number, value) => (!fits(value, shape)).then(|| go_type(value)),
        (Shape::Texts, Value::Object(fields)) => fields.values().find(|value| !value.is_null() && !fits(value, shape)).map(go_type),
        (Shape::List | Shape::Objects, Value::Array(items)) => {
            items.iter().find(|value| !value.is_null() && !fits(value, shape)).map(go_type)
        }
        (_, value) => Some(go_type(value)),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn cannot(kind: &Served, found: &str, field: &str, wanted: &str) -> Refusal {
    let (version, kind) = (&kind.version, &kind.names.kind);
    let into = if field.is_empty() { "value".to_owned() } else { format!("struct field {field}") };
    Refusal::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: json: cannot unmarshal {found} into Go {into} of type {wanted}"
    ))
}

const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

fn matches(pattern: &'static str, cell: &'static OnceLock<Regex>, text: &str) -> bool {
    // A pattern of ours compiles, or no test passes.
    #[allow(clippy::unwrap_used, reason = "the pattern is a constant")]
    cell.get_or_init(|| Regex::new(&format!("^(?:{pattern})$")).unwrap()).is_match(text)
}

fn is_subdomain(text: &str) -> bool {
    static CELL: OnceLock<Regex> = OnceLock::new();
    text.len() <= 253 && matches(SUBDOMAIN, &CELL, text)
}

fn is_label_value(text: &str) -> bool {
    static CELL: OnceLock<Regex> = OnceLock::new();
    matches(LABEL_VALUE, &CELL, text)
}

fn is_label(text: &str) -> bool {
    static CELL: OnceLock<Regex> = OnceLock::new();
    text.len() <= 63 && matches(LABEL, &CELL, text)
}

fn is_qualified(text: &str) -> bool {
    static CELL: OnceLock<Regex> = OnceLock::new();
    matches(QUALIFIED, &CELL, text)
}

/// What is wrong with an object's metadata.
pub(super) fn validate(kind: &Served, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    name(kind, metadata, &mut causes);
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        causes.extend(qualified(key).map(|why| invalid("metadata.labels", key, &why)));
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            causes.push(invalid("metadata.labels", value, "must be no more than 63 bytes"));
        } else if !is_label_value(value) {
            let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is";
            causes.push(invalid("metadata.labels", value, &format!("{words} '{LABEL_VALUE}')")));
        }
    }
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        causes.extend(qualified(&key.to_lowercase()).map(|why| invalid("metadata.annotations", key, &why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > 256 << 10 {
        causes.push(Cause::new("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes"));
    }
    owners(metadata, &mut causes);
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        causes.extend(qualified(finalizer).map(|why| invalid("metadata.finalizers", finalizer, &why)));
    }
    causes
}

fn name(kind: &Served, metadata: &Value, causes: &mut Vec<Cause>) {
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::new("FieldValueRequired", "metadata.name", "Required value: name or generateName is required"));
        return;
    }
    // Names of roles are path segments: they hold colons.
    if &*kind.names.group == "rbac.authorization.k8s.io" {
        if name.contains('/') || name.contains('%') || name == "." || name == ".." {
            causes.push(invalid("metadata.name", name, "may not contain '/' or '%'"));
        }
        return;
    }
    if &*kind.names.plural == "namespaces" && kind.names.group.is_empty() {
        if !is_label(name) {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is";
            causes.push(invalid("metadata.name", name, &format!("{words} '{LABEL}')")));
        }
        return;
    }
    if name.len() > 253 {
        causes.push(invalid("metadata.name", name, "must be no more than 253 bytes"));
    }
    if !is_subdomain(name) && name.len() <= 253 {
        let why = format!("{SUBDOMAIN_WORDS} (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')");
        causes.push(invalid("metadata.name", name, &why));
    }
}

/// What is wrong with a qualified name, such as a label's key.
fn qualified(text: &str) -> Option<String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if name.contains('/') {
        let words = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        return Some(format!(
            "{words} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ));
    }
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".into());
        }
        if !is_subdomain(prefix) {
            return Some(format!("prefix part {SUBDOMAIN_WORDS} (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"));
        }
    }
    if name.is_empty() {
        return Some("name part must be non-empty".into());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".into());
    }
    (!is_qualified(name)).then(|| {
        let words =
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        format!("{words} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED}')")
    })
}

fn owners(metadata: &Value, causes: &mut Vec<Cause>) {
    let mut controllers = 0;
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        for (field, words) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                causes.push(invalid(&format!("metadata.ownerReferences.{field}"), "", &format!("{words} must not be empty")));
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let message = "Only one reference can have Controller set to true. Found \"true\" in references";
        causes.push(Cause::new("FieldValueInvalid", "metadata.ownerReferences", format!("Invalid value: {message}")));
    }
}

fn invalid(field: &str, value: &str, why: &str) -> Cause {
    Cause::new("FieldValueInvalid", field, format!("Invalid value: {value:?}: {why}"))
}

/// What may not change in an update. Both are normalised.
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<Cause> {
    let (old, new) = (&old["metadata"], &new["metadata"]);
    let mut causes = Vec::new();
    if old["deletionTimestamp"].is_string() {
        let there: Vec<&Value> = old["finalizers"].as_array().into_iter().flatten().collect();
        let added: Vec<String> = new["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|finalizer| !there.contains(finalizer))
            .map(|finalizer| format!("{:?}", finalizer.as_str().unwrap_or_default()))
            .collect();
        if !added.is_empty() {
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
            causes.push(Cause::new(
                "FieldValueForbidden",
                "metadata.finalizers",
                format!("Forbidden: {why} []string{{{}}}", added.join(", ")),
            ));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if old[field] != new[field] {
            let shown = if new[field].is_null() { "null".to_owned() } else { new[field].to_string() };
            causes.push(Cause::new(
                "FieldValueInvalid",
                format!("metadata.{field}"),
                format!("Invalid value: {shown}: field is immutable"),
            ));
        }
    }
    causes
}

/// The warnings about metadata that is allowed and unwise.
pub(super) fn warnings(kind: &Served, object: &Value) -> Vec<String> {
    if kind.origin == Origin::BuiltIn {
        return Vec::new();
    }
    let plain = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let plain = plain.filter(|finalizer| !finalizer.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(finalizer));
    let words = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    plain.map(|finalizer| format!("metadata.finalizers: {finalizer:?}: {words}")).collect()
}
