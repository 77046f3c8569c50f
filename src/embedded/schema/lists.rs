//! Lists of type set and map hold each entry once (apiextensions-apiserver `schema/listtype`).
//!
//! Pure: from an object to what is there twice.

use serde_json::{Map, Value};

use super::super::errors::Cause;
use super::messages::{duplicate, invalid};
use super::node::{ListType, Node};
use super::path::Path;

/// Every entry that is there a second time; the third and later of the same are not told.
pub(super) fn duplicates(node: &Node, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(node, value, &Path::Root, &mut causes);
    causes
}

fn visit(node: &Node, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if let Some(additional) = &node.additional {
                for (name, value) in fields {
                    visit(additional, value, &Path::Key(path, name), causes);
                }
            }
            for (name, value) in fields {
                if let Some(property) = node.properties.get(name) {
                    visit(property, value, &Path::Field(path, name), causes);
                }
            }
        }
        Value::Array(entries) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => set(entries, path, causes),
                ListType::Map(keys) => map(entries, keys, path, causes),
            }
            if let Some(items) = &node.items {
                for (index, entry) in entries.iter().enumerate() {
                    visit(items, entry, &Path::Index(path, index), causes);
                }
            }
        }
        _ => {}
    }
}

fn set(entries: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let entries: Vec<&Value> = entries.iter().collect();
    for index in second(&entries) {
        causes.push(duplicate(Path::Index(path, index).field(), entries[index]));
    }
}

fn map(entries: &[Value], keys: &[String], path: &Path<'_>, causes: &mut Vec<Cause>) {
    if let Some((index, entry)) = entries.iter().enumerate().find(|(_, entry)| !entry.is_object() && !entry.is_null()) {
        causes.push(invalid(Path::Index(path, index).field(), entry, "must be an object for an array of list-type map"));
        return;
    }
    let of = |entry: &'_ Value| -> Vec<Option<Value>> { keys.iter().map(|key| entry.get(key).cloned()).collect() };
    let found: Vec<Vec<Option<&Value>>> = entries.iter().map(|entry| keys.iter().map(|key| entry.get(key)).collect()).collect();
    for index in second(&found) {
        let named = keys.iter().cloned().zip(of(&entries[index])).filter_map(|(key, value)| Some((key, value?)));
        causes.push(duplicate(Path::Index(path, index).field(), &Value::Object(named.collect::<Map<_, _>>())));
    }
}

/// Where each value is that was there exactly once before.
fn second<T: PartialEq>(entries: &[T]) -> Vec<usize> {
    let before = |index: usize| entries[..index].iter().filter(|other| **other == entries[index]).take(2).count();
    (1..entries.len()).filter(|&index| before(index) == 1).collect()
}
