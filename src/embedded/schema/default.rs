//! Filling in defaults (apiextensions-apiserver `schema/defaulting`).
//!
//! Pure: from an object to a fuller one.

use serde_json::Value;

use super::node::Node;

/// Removes nulls that may not be null and have no default, then fills in defaults, those below defaults too.
pub(super) fn default(root: &Node, object: &mut Value) {
    prune_nulls(object, Some(root));
    fill(object, root);
}

fn prune_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            // `additionalProperties: true` describes nothing, so its nulls stay.
            let child = node.and_then(|node| node.described(name));
            if value.is_null() && child.is_some_and(|child| !child.nullable && child.default.is_none()) {
                return false;
            }
            prune_nulls(value, child);
            true
        }),
        Value::Array(entries) => {
            let items = node.and_then(|node| node.items.as_deref());
            for entry in entries {
                prune_nulls(entry, items);
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else { continue };
                if fields.get(name).is_none_or(|value| value.is_null() && !property.nullable) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(property) = node.properties.get(name) {
                    fill(value, property);
                } else if let Some(child) = node.described(name) {
                    fill_entry(value, child);
                }
            }
        }
        Value::Array(entries) => {
            let Some(items) = node.items.as_deref() else { return };
            for entry in entries {
                fill_entry(entry, items);
            }
        }
        _ => {}
    }
}

fn fill_entry(value: &mut Value, node: &Node) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or(Value::Null);
    }
    fill(value, node);
}
