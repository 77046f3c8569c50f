//! Objects within objects have an apiVersion and a kind (apiextensions-apiserver `schema/objectmeta/validation.go`).
//!
//! Pure: from an object to what is wrong with those in it. Their metadata is only asked to be an object.

use serde_json::{Map, Value};

use super::super::errors::Cause;
use super::messages::{invalid, required};
use super::node::Node;
use super::path::Path;

/// What is wrong with the objects below the root, whose own type is checked elsewhere.
pub(super) fn validate(root: &Node, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(root, value, &Path::Root, &mut causes);
    causes
}

fn visit(node: &Node, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if node.embedded {
                resource(fields, path, causes);
            }
            for (name, value) in fields {
                if let Some(property) = node.properties.get(name) {
                    visit(property, value, &Path::Field(path, name), causes);
                } else if let Some(child) = node.described(name) {
                    visit(child, value, &Path::Key(path, name), causes);
                }
            }
        }
        Value::Array(entries) => {
            let Some(items) = &node.items else { return };
            for (index, entry) in entries.iter().enumerate() {
                visit(items, entry, &Path::Index(path, index), causes);
            }
        }
        _ => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            causes.push(required(Path::Field(path, name).field(), "must not be empty"));
        }
    }
    for name in ["apiVersion", "kind"] {
        let Some(value) = fields.get(name) else { continue };
        let what = match value.as_str() {
            None => "must be a string".to_owned(),
            Some("") => "must not be empty".to_owned(),
            Some(text) if name == "apiVersion" && text.matches('/').count() > 1 => format!("unexpected GroupVersion string: {text}"),
            Some(text) if name == "kind" && !is_label(&text.to_lowercase()) => WRONG_KIND.to_owned(),
            Some(_) => continue,
        };
        causes.push(invalid(Path::Field(path, name).field(), value, &what));
    }
}

const WRONG_KIND: &str = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric \
    characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
    regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn is_label(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.ends_with(plain)
        && text.chars().all(|letter| plain(letter) || letter == '-')
}
