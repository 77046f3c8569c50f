//! Removing what a schema does not know (apiextensions-apiserver `schema/pruning`).
//!
//! Pure: from an object to a smaller one and the paths of what went.

use std::fmt::Write as _;

use serde_json::Value;

use super::node::Node;

/// What every object has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields and returns their paths, sorted: `spec.nodePools[0].bar`. The root is an object with metadata.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new() };
    pruner.visit(object, Some(root), true, false);
    pruner.unknown.sort();
    pruner.unknown
}

/// Like [`prune`], for a value that is not the root of an object.
pub(super) fn prune_below(node: &Node, value: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new() };
    pruner.visit(value, Some(node), node.embedded, false);
    pruner.unknown
}

struct Pruner {
    path: String,
    unknown: Vec<String>,
}

impl Pruner {
    /// `preserve` is inherited from a list that preserves: its entries do too.
    fn visit(&mut self, value: &mut Value, node: Option<&Node>, is_resource: bool, preserve: bool) {
        let preserve = preserve || node.is_some_and(|node| node.preserve_unknown);
        let before = self.path.len();
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                if is_resource && META.contains(&name.as_str()) {
                    return true;
                }
                let Some(child) = node.and_then(|node| node.child(name)) else {
                    if !preserve && (before > 0 || !META.contains(&name.as_str())) {
                        self.unknown.push(self.field(name));
                    }
                    return preserve;
                };
                self.path = self.field(name);
                self.visit(value, Some(child), child.embedded, false);
                self.path.truncate(before);
                true
            }),
            Value::Array(entries) => {
                let items = node.and_then(|node| node.items.as_deref());
                for (index, entry) in entries.iter_mut().enumerate() {
                    // Writing to a String cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    self.visit(entry, items, items.is_some_and(|items| items.embedded), preserve);
                    self.path.truncate(before);
                }
            }
            _ => {}
        }
    }

    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
