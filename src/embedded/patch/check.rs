//! Whether an object has the form its schema says, as far as merging needs it.
//!
//! Pure: the checks and words of `structured-merge-diff/v4/typed` (`validate.go`). Messages name values as Go prints them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::{Form, Kind, Place};
use crate::embedded::schema::node::ListType;

/// Whether two entries of a set or keyed list may be the same: they may in what is stored, not in what is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may.
    Allowed,
    /// They may not.
    Refused,
}

/// Checks a whole object.
///
/// # Errors
/// Everything that is wrong, in upstream's words: one as `.path: what`, several as a list under `errors:`.
pub fn check(place: Place<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut walk = Walk { duplicates, wrong: Vec::new() };
    walk.value(place, value, "");
    match walk.wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("errors:\n{}", several.iter().map(|error| format!("  {error}")).collect::<Vec<_>>().join("\n"))),
    }
}

struct Walk {
    duplicates: Duplicates,
    wrong: Vec<String>,
}

impl Walk {
    fn say(&mut self, path: &str, what: impl std::fmt::Display) {
        self.wrong.push(if path.is_empty() { what.to_string() } else { format!("{path}: {what}") });
    }

    fn value(&mut self, place: Place<'_>, value: &Value, path: &str) {
        match (place.form(Some(value)), value) {
            (_, Value::Null) => {}
            (Form::Object, Value::Object(fields)) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    match place.field(name) {
                        Some(place) => self.value(place, value, &path),
                        // Upstream stops at the first of an object's undeclared fields.
                        None => return self.say(&path, "field not declared in schema"),
                    }
                }
            }
            (Form::List, Value::Array(entries)) => self.entries(place, entries, path),
            (Form::Scalar, value) => {
                if let Some(what) = place.scalar().and_then(|kind| wrong_scalar(kind, value)) {
                    self.say(path, what);
                }
            }
            (Form::Object, other) => self.say(path, format_args!("expected map, got &{{{}}}", in_go(other))),
            (Form::List, other) => self.say(path, format_args!("expected list, got &{{{}}}", in_go(other))),
        }
    }

    fn entries(&mut self, place: Place<'_>, entries: &[Value], path: &str) {
        let mut seen = BTreeSet::new();
        for (at, entry) in entries.iter().enumerate() {
            let step = if *place.list() == ListType::Atomic {
                format!("[{at}]")
            } else {
                let element = match place.element(entry) {
                    Ok(element) => element,
                    Err(why) => return self.say(path, format_args!("element {at}: {why}")),
                };
                let step = element.to_string();
                if !seen.insert(element) && self.duplicates == Duplicates::Refused {
                    self.say(path, format_args!("duplicate entries for key {step}"));
                }
                step
            };
            self.value(place.items(), entry, &format!("{path}{step}"));
        }
    }
}

fn wrong_scalar(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Numeric | Kind::Untyped, Value::Number(_))
        | (Kind::String | Kind::Untyped, Value::String(_))
        | (Kind::Boolean | Kind::Untyped, Value::Bool(_)) => None,
        (Kind::Numeric, other) => Some(format!("expected numeric (int or float), got {}", go_type(other))),
        (Kind::String, other) => Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))),
        (Kind::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", in_go(other))),
        (Kind::Untyped, other) => Some(format!("expected any scalar, got &{{{}}}", in_go(other))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of a decoded value.
fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => format!("[{}]", entries.iter().map(in_go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            format!("map[{}]", fields.iter().map(|(name, value)| format!("{name}:{}", in_go(value))).collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// `%#v` of a decoded value.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Array(entries) => format!("[]interface {{}}{{{}}}", entries.iter().map(go_syntax).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let each: Vec<String> = fields.iter().map(|(name, value)| format!("{name:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", each.join(", "))
        }
        other => other.to_string(),
    }
}
