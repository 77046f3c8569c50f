//! Whether a schema is structural (apiextensions-apiserver `schema/validation.go`, `schema/complete.go`).
//!
//! Pure: from a schema document to what is wrong with it.

use serde_json::{Map, Value, json};

use super::super::errors::Cause;
use super::messages::{forbidden, invalid, required};
use super::patterns;

/// Where a schema stands, which decides what it must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What breaks the invariants, sorted by its words. `at` is the path of the schema.
pub(super) fn check(schema: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    invariants(schema, Level::Root, at, &mut causes);
    complete(schema, Some(schema), at, at, &mut causes);
    causes.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    causes
}

/// A child of a path that may be empty.
pub(super) fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// The path of a property's schema.
pub(super) fn property(at: &str, name: &str) -> String {
    format!("{}[{name}]", join(at, "properties"))
}

/// A text of a schema, or "".
pub(super) fn text<'a>(schema: &'a Value, field: &str) -> &'a str {
    schema.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A flag of a schema, or false.
pub(super) fn flag(schema: &Value, field: &str) -> bool {
    schema.get(field).and_then(Value::as_bool).unwrap_or_default()
}

/// An object of a schema, or nothing.
pub(super) fn fields<'a>(schema: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(field).and_then(Value::as_object).into_iter().flatten()
}

/// A list of a schema, or nothing.
pub(super) fn list<'a>(schema: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// A schema within a schema.
pub(super) fn nested<'a>(schema: &'a Value, field: &str) -> Option<&'a Value> {
    schema.get(field).filter(|value| value.is_object())
}

/// Whether a field is there and is not what Go has without it.
pub(super) fn is_set(schema: &Value, field: &str) -> bool {
    schema.get(field).is_some_and(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Object(_) | Value::Bool(true) | Value::Number(_) => true,
    })
}

fn invariants(schema: &Value, level: Level, at: &str, causes: &mut Vec<Cause>) {
    let type_ = text(schema, "type");
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if type_ == "array" && nested(schema, "items").is_none() {
        causes.push(required(join(at, "items"), "must be specified"));
    }
    if let Some(items) = nested(schema, "items") {
        invariants(items, Level::Item, &join(at, "items"), causes);
    }
    for (name, child) in fields(schema, "properties") {
        invariants(child, Level::Field, &property(at, name), causes);
    }
    if let Some(additional) = additional {
        let at = join(at, "additionalProperties");
        if level == Level::Root {
            causes.push(forbidden(at.clone(), "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &at, causes);
        }
    }
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let (preserve, embedded) = (flag(schema, "x-kubernetes-preserve-unknown-fields"), flag(schema, "x-kubernetes-embedded-resource"));
    for (field, set) in [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)] {
        if int_or_string && set {
            causes.push(invalid(join(at, field), &true.into(), "must be false if x-kubernetes-int-or-string is true"));
        }
    }
    let first = list(schema, "allOf").next();
    values(schema, is_int_or_string(Some(schema)), is_int_or_string(first), at, causes);
    if embedded && type_ != "object" {
        wrong_type(type_, "must be object if x-kubernetes-embedded-resource is true", at, causes);
    } else if type_.is_empty() && !int_or_string && !preserve {
        let what = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(required(join(at, "type"), what));
    }
    if embedded && additional.is_some() {
        causes.push(forbidden(join(at, "additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"));
    }
    if level == Level::Root && !type_.is_empty() && type_ != "object" {
        causes.push(invalid(join(at, "type"), &type_.into(), "must be object at the root"));
    }
    metadata(schema, level, embedded, at, causes);
    if embedded && !preserve && fields(schema, "properties").next().is_none() {
        let what = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        causes.push(required(join(at, "properties"), what));
    }
}

/// A type that is missing is required, another one is invalid.
pub(super) fn wrong_type(type_: &str, what: &str, at: &str, causes: &mut Vec<Cause>) {
    let at = join(at, "type");
    causes.push(if type_.is_empty() { required(at, what) } else { invalid(at, &type_.into(), what) });
}

/// What an object has anyway may be restricted little.
fn metadata(schema: &Value, level: Level, embedded: bool, at: &str, causes: &mut Vec<Cause>) {
    let properties = schema.get("properties");
    let checked = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        let type_ = properties.and_then(|properties| properties.get(name)).map(|child| text(child, "type"));
        if let Some(type_) = type_.filter(|type_| checked && *type_ != "string") {
            causes.push(invalid(join(&property(at, name), "type"), &type_.into(), "must be string"));
        }
    }
    let Some(metadata) = properties.and_then(|properties| properties.get("metadata")) else { return };
    let (at, type_) = (property(at, "metadata"), text(metadata, "type"));
    if checked && type_ != "object" {
        causes.push(invalid(join(&at, "type"), &type_.into(), "must be object"));
    }
    let allowed = |(field, value): (&String, &Value)| match field.as_str() {
        "type" | "default" => true,
        "properties" => value.as_object().is_some_and(|names| names.keys().all(|name| name == "name" || name == "generateName")),
        other => !is_set(metadata, other),
    };
    if level == Level::Root && !metadata.as_object().into_iter().flatten().all(allowed) {
        causes.push(forbidden(at, "must not specify anything other than name and generateName, but metadata is implicitly specified"));
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where types may stand below an alternative.
fn is_int_or_string(schema: Option<&Value>) -> bool {
    schema.and_then(|schema| schema.get("anyOf")) == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn values(schema: &Value, skip_any_of: bool, skip_first: bool, at: &str, causes: &mut Vec<Cause>) {
    if !skip_any_of {
        each_nested(schema, "anyOf", at, false, causes);
    }
    each_nested(schema, "allOf", at, skip_first, causes);
    each_nested(schema, "oneOf", at, false, causes);
    if let Some(not) = nested(schema, "not") {
        below(not, false, &join(at, "not"), causes);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = patterns::compile(pattern)
    {
        let what = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(invalid(join(at, "pattern"), &pattern.into(), &what));
    }
}

fn each_nested(schema: &Value, keyword: &str, at: &str, skip_first: bool, causes: &mut Vec<Cause>) {
    for (index, child) in list(schema, keyword).enumerate() {
        below(child, skip_first && index == 0, &format!("{}[{index}]", join(at, keyword)), causes);
    }
}

/// Below an alternative, nothing may be said that shapes the object.
fn below(schema: &Value, skip_any_of: bool, at: &str, causes: &mut Vec<Cause>) {
    values(schema, skip_any_of, false, at, causes);
    if let Some(items) = nested(schema, "items") {
        below(items, false, &join(at, "items"), causes);
    }
    for (name, child) in fields(schema, "properties") {
        below(child, false, &property(at, name), causes);
    }
    let additional = schema.get("additionalProperties");
    for (field, what) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let set = if field == "default" { schema.get(field).is_some_and(|value| !value.is_null()) } else { is_set(schema, field) };
        if set && !(field == "additionalProperties" && additional == Some(&Value::Bool(false))) {
            causes.push(forbidden(join(at, field), what));
        }
    }
    if schema.get("properties").and_then(|properties| properties.get("metadata")).is_some() {
        causes.push(forbidden(property(at, "metadata"), "must not be specified in a nested context"));
    }
}

/// What is restricted by an alternative of `values` must be described by `shape`.
fn complete(values: &Value, shape: Option<&Value>, shape_at: &str, at: &str, causes: &mut Vec<Cause>) {
    if let Some(not) = nested(values, "not") {
        complete_below(not, shape, shape_at, &join(at, "not"), causes);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, child) in list(values, keyword).enumerate() {
            complete_below(child, shape, shape_at, &format!("{}[{index}]", join(at, keyword)), causes);
        }
    }
}

fn complete_below(values: &Value, shape: Option<&Value>, shape_at: &str, at: &str, causes: &mut Vec<Cause>) {
    let Some(shape) = shape else {
        causes.push(required(shape_at, &format!("because it is defined in {at}")));
        return;
    };
    complete(values, Some(shape), shape_at, at, causes);
    if let Some(items) = nested(values, "items") {
        complete_below(items, nested(shape, "items"), &join(shape_at, "items"), &join(at, "items"), causes);
    }
    let described = shape.get("properties").and_then(Value::as_object);
    for (name, child) in fields(values, "properties") {
        let (shape_at, at) = (property(shape_at, name), property(at, name));
        complete_below(child, described.and_then(|described: &Map<String, Value>| described.get(name)), &shape_at, &at, causes);
    }
}
