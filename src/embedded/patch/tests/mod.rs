//! What apply and update do to an object and to who owns what of it. Here: the kind they do it to, and short words for doing it.

mod apply;
mod property;
mod update;

use serde_json::{Value, json};

use super::managed::{Operation, Reset, Writer, apply, update};
use crate::embedded::errors::Refusal;
use crate::embedded::schema::node::{ListType, Node, Type};

const VERSION: &str = "things.example.com/v1";

fn of(type_: Type) -> Node {
    Node { type_, ..Node::default() }
}

fn object<const N: usize>(fields: [(&str, Node); N]) -> Node {
    Node { properties: fields.map(|(name, node)| (name.to_owned(), node)).into(), ..of(Type::Object) }
}

fn list(list: ListType, items: Node) -> Node {
    Node { list, items: Some(Box::new(items)), ..of(Type::Array) }
}

/// A kind with one field of every sort.
fn schema() -> Node {
    let tcp = Node { default: Some(json!("TCP")), ..of(Type::String) };
    let port = object([("port", of(Type::Integer)), ("protocol", tcp), ("note", of(Type::String))]);
    let node = object([("name", of(Type::String)), ("size", of(Type::Integer)), ("zone", of(Type::String))]);
    let condition = object([("type", of(Type::String)), ("status", of(Type::String))]);
    let spec = object([
        ("size", of(Type::Integer)),
        ("flag", of(Type::Boolean)),
        ("name", of(Type::String)),
        ("nodes", list(ListType::Map(vec!["name".into()]), node)),
        ("ports", list(ListType::Map(vec!["port".into(), "protocol".into()]), port)),
        ("zones", list(ListType::Set, of(Type::String))),
        ("args", list(ListType::Atomic, of(Type::String))),
        ("limits", Node { additional: Some(Box::new(of(Type::IntOrString))), ..of(Type::Object) }),
        ("selector", Node { atomic: true, additional: Some(Box::new(of(Type::String))), ..of(Type::Object) }),
        ("any", Node { preserve_unknown: true, ..Node::default() }),
        ("inner", object([("a", of(Type::String)), ("b", of(Type::String))])),
    ]);
    let status = object([("phase", of(Type::String)), ("conditions", list(ListType::Map(vec!["type".into()]), condition))]);
    object([("spec", spec), ("status", status)])
}

fn applier(manager: &str) -> Writer<'_> {
    Writer { manager, operation: Operation::Apply, api_version: VERSION, subresource: "", time: "2025-01-01T00:00:00Z" }
}

fn updater(manager: &str) -> Writer<'_> {
    Writer { operation: Operation::Update, ..applier(manager) }
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

/// What the store adds to a new object.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = "u".into();
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

fn applied(live: Option<&Value>, manager: &str, spec: &Value) -> Result<Value, Refusal> {
    apply(&schema(), live, &thing(spec), false, &applier(manager), Reset::None).map(stored)
}

fn forced(live: &Value, manager: &str, spec: &Value) -> Value {
    stored(apply(&schema(), Some(live), &thing(spec), true, &applier(manager), Reset::None).unwrap())
}

fn created(manager: &str, spec: &Value) -> Value {
    let mut new = thing(spec);
    update(&schema(), None, &mut new, &updater(manager), Reset::None);
    stored(new)
}

fn updated(old: &Value, manager: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    update(&schema(), Some(old), &mut new, &updater(manager), Reset::None);
    new
}

fn entry<'a>(object: &'a Value, writer: &Writer<'_>) -> Option<&'a Value> {
    let operation = if writer.operation == Operation::Apply { "Apply" } else { "Update" };
    object["metadata"]["managedFields"].as_array()?.iter().find(|entry| {
        entry["manager"] == writer.manager
            && entry["operation"] == operation
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default() == writer.subresource
    })
}

/// What the writer owns, as `fieldsV1`; null for nothing.
fn owned(object: &Value, writer: &Writer<'_>) -> Value {
    entry(object, writer).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}
