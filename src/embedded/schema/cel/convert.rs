//! JSON to CEL as the schema types it (apiserver `cel/common/values.go`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Program, Value as Cel};
use serde_json::Value;

use super::super::node::{Node, Type};
use super::check::escaped;
use super::library::library;
use super::rule::Reads;

/// A value for a rule. At the top, only the fields that are read are converted.
pub(super) fn convert(node: &Node, value: &Value, is_resource: bool, reads: &Reads) -> Cel {
    match (node.type_, value) {
        (Type::Object, Value::Object(_)) if is_resource || !node.properties.is_empty() => object(node, value, is_resource, reads),
        (Type::Object, Value::Object(fields)) => {
            let child = node.additional.as_deref().filter(|_| node.rules.additional_flag.is_none());
            map(fields.iter().map(|(name, value)| (name.clone(), child.map_or_else(|| untyped(value), |child| whole(child, value)))))
        }
        (Type::Array, Value::Array(entries)) => {
            let items = node.items.as_deref();
            let each = entries.iter().map(|entry| items.map_or_else(|| untyped(entry), |items| whole(items, entry)));
            Cel::List(Arc::new(each.collect()))
        }
        (Type::String, Value::String(text)) => string(node, text),
        (Type::Number, Value::Number(number)) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        _ => untyped(value),
    }
}

fn whole(node: &Node, value: &Value) -> Cel {
    convert(node, value, node.embedded, &Reads::All)
}

/// Only described fields are visible, and a null is like a field that is not there.
fn object(node: &Node, value: &Value, is_resource: bool, reads: &Reads) -> Cel {
    let mut fields = HashMap::new();
    let mut add = |name: String, value: Cel| fields.insert(Key::String(Arc::new(name)), value);
    for (name, value) in value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let is_meta = is_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        let Some(key) = escaped(name).filter(|key| reads.contains(key)) else { continue };
        if is_meta {
            add(key, meta(value));
        } else if let Some(property) = node.properties.get(name) {
            add(key, whole(property, value));
        }
    }
    Cel::Map(Map { map: Arc::new(fields) })
}

/// Of the metadata, rules see the names alone.
fn meta(value: &Value) -> Cel {
    let Value::Object(fields) = value else { return untyped(value) };
    let seen = ["name", "generateName"].into_iter().filter_map(|name| Some((name.to_owned(), untyped(fields.get(name)?))));
    map(seen)
}

fn map(entries: impl Iterator<Item = (String, Cel)>) -> Cel {
    let entries = entries.map(|(name, value)| (Key::String(Arc::new(name)), value));
    Cel::Map(Map { map: Arc::new(entries.collect()) })
}

fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap_or(f64::NAN)), Cel::Int),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(entries) => Cel::List(Arc::new(entries.iter().map(untyped).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (name.clone(), untyped(value)))),
    }
}

/// Some formats are types of their own. The interpreter makes them, from text that validation found well-formed.
fn string(node: &Node, text: &str) -> Cel {
    static TIMESTAMP: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("timestamp(text)").ok());
    static DURATION: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("duration(text)").ok());
    static BYTES: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("base64.decode(text)").ok());
    let made = match node.rules.format.as_ref().map(|format| format.name.as_str()) {
        Some("date-time") => call(TIMESTAMP.as_ref(), text).or_else(|| call(TIMESTAMP.as_ref(), &format!("{text}Z"))),
        Some("date") => call(TIMESTAMP.as_ref(), &format!("{text}T00:00:00Z")),
        Some("duration") => call(DURATION.as_ref(), text),
        Some("byte") => call(BYTES.as_ref(), text),
        _ => None,
    };
    made.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

fn call(program: Option<&Program>, text: &str) -> Option<Cel> {
    let mut scope = library().new_inner_scope();
    scope.add_variable_from_value("text", Cel::String(Arc::new(text.to_owned())));
    program?.execute(&scope).ok()
}
