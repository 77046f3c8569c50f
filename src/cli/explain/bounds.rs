//! Checks an object against a structural schema, as an API server does at admission.
//!
//! Pure: it heeds the keywords that the generated schemas use, so that no bound is written down twice; a test finds a keyword that it
//! does not know. CEL rules are not evaluated: those that need no older object are what `ProviderConfig::problems` says.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::api::quantity::Quantity;

/// A field, by its path, and what is wrong with it.
pub(super) type Problem = (String, String);

/// A kind's schema with its metadata's, which a server knows by itself and a structural schema does not say.
pub(super) fn with_metadata(mut schema: Value, namespaced: bool) -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let opaque = || json!({ "x-kubernetes-preserve-unknown-fields": true });
    let subdomain = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    let mut properties = json!({
        "name": { "type": "string", "minLength": 1, "maxLength": 253, "pattern": subdomain },
        "uid": text(), "resourceVersion": text(), "generation": { "type": "integer" }, "creationTimestamp": text(),
        "deletionTimestamp": text(), "labels": texts(), "annotations": texts(),
        "finalizers": { "type": "array", "items": text() },
        "ownerReferences": { "type": "array", "items": { "type": "object", "required": ["apiVersion", "kind", "name"], "properties": {
            "apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
            "controller": { "type": "boolean" }, "blockOwnerDeletion": { "type": "boolean" },
        } } },
        "generateName": opaque(), "selfLink": opaque(), "deletionGracePeriodSeconds": opaque(), "managedFields": opaque(),
    });
    if namespaced {
        properties["namespace"] =
            json!({ "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" });
    }
    schema["properties"]["metadata"] = json!({ "type": "object", "required": ["name"], "properties": properties });
    schema
}

/// Takes away what a server takes away before it looks: unknown fields, whose paths are returned, and fields that are null.
pub(super) fn prune(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(schema, value, "", &mut unknown);
    unknown
}

fn prune_at(schema: &Value, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            let Some(properties) = schema["properties"].as_object() else { return };
            fields.retain(|name, value| {
                let path = member(path, name);
                match properties.get(name) {
                    Some(schema) => prune_at(schema, value, &path, unknown),
                    None => unknown.push(path),
                }
                properties.contains_key(name)
            });
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                prune_at(&schema["items"], item, &format!("{path}[{at}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Everything in which the value is not what the schema asks for, in the order of its fields.
pub(super) fn check(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_at(schema, value, "", &mut problems);
    problems
}

fn member(path: &str, name: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{name}")
}

fn check_at(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut wrong = |problem: String| problems.push((path.to_owned(), problem));
    if schema["x-kubernetes-int-or-string"] == true {
        // Quantities are the only such values of this API, and their parser says more than the pattern can.
        if let Err(problem) = serde_json::from_value::<Quantity>(value.clone()) {
            wrong(problem.to_string());
        }
        return;
    }
    if let Some(type_) = schema["type"].as_str().filter(|type_| !is_a(type_, value)) {
        return wrong(format!("must be {}, not {}", wanted(type_), found(type_, value)));
    }
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
        let words: Vec<String> = words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
        return wrong(format!("{value} is none of {}", words.join(", ")));
    }
    match value {
        Value::String(text) => string(schema, text).into_iter().for_each(wrong),
        Value::Number(_) => number(schema, value).into_iter().for_each(wrong),
        Value::Array(items) => {
            list(schema, items).into_iter().for_each(wrong);
            for (at, item) in items.iter().enumerate() {
                check_at(&schema["items"], item, &format!("{path}[{at}]"), problems);
            }
            problems.extend(repeated(schema, items, path));
        }
        Value::Object(fields) => object(schema, fields, path, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, path: &str, problems: &mut Vec<Problem>) {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !fields.contains_key(*name));
    problems.extend(missing.map(|name| (member(path, name), "is missing".to_owned())));
    for (name, value) in fields {
        let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        check_at(schema, value, &member(path, name), problems);
    }
}

fn string(schema: &Value, text: &str) -> Vec<String> {
    let length = text.chars().count();
    let mut wrong = Vec::new();
    if let Some(most) = bound(schema, "maxLength").filter(|most| length > *most) {
        return vec![format!("has {length} characters, at most {most} are allowed")];
    }
    if bound(schema, "minLength").is_some_and(|least| length < least) {
        wrong.push("must not be empty".to_owned());
    } else if let Some(pattern) = schema["pattern"].as_str() {
        let matches = Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text));
        wrong.extend((!matches).then(|| format!("{text:?} does not match {pattern}")));
    }
    if schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
        wrong.push(format!("{text:?} is not a time such as 2026-01-31T12:00:00Z"));
    }
    wrong
}

fn number(schema: &Value, value: &Value) -> Option<String> {
    let within = |least: f64, most: f64| value.as_f64().is_some_and(|number| (least..=most).contains(&number));
    let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
    let most = schema["maximum"].as_f64().unwrap_or(if schema["format"] == "int32" { f64::from(i32::MAX) } else { f64::MAX });
    if within(least, most) {
        return None;
    }
    Some(match (schema["minimum"].as_f64(), most < f64::MAX) {
        (Some(least), true) => format!("{value} is not between {least} and {most}"),
        (Some(least), false) => format!("{value} is less than {least}"),
        (None, _) => format!("{value} is more than {most}"),
    })
}

fn list(schema: &Value, items: &[Value]) -> Option<String> {
    let count = items.len();
    if bound(schema, "minItems").is_some_and(|least| count < least) {
        Some("must not be empty".to_owned())
    } else {
        bound(schema, "maxItems").filter(|most| count > *most).map(|most| format!("has {count} items, at most {most} are allowed"))
    }
}

/// Items of a set, or of a list keyed by some fields, that were there before.
fn repeated(schema: &Value, items: &[Value], path: &str) -> Vec<Problem> {
    let is_set = schema["x-kubernetes-list-type"] == "set";
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !is_set && keys.is_empty() {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let identity = if is_set { item.to_string() } else { keys.iter().map(|key| item[*key].to_string()).collect::<Vec<_>>().join(", ") };
        if seen.insert(identity.clone()) {
            continue;
        }
        let field = if is_set { String::new() } else { format!(".{}", keys.join(",")) };
        problems.push((format!("{path}[{at}]{field}"), format!("{identity} is listed twice")));
    }
    problems
}

fn bound(schema: &Value, keyword: &str) -> Option<usize> {
    schema[keyword].as_u64().and_then(|bound| usize::try_from(bound).ok())
}

fn is_a(type_: &str, value: &Value) -> bool {
    match type_ {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => value.is_number(),
    }
}

const fn wanted(type_: &str) -> &str {
    match type_.as_bytes() {
        b"object" => "an object",
        b"array" => "a list",
        b"string" => "a string",
        b"boolean" => "true or false",
        b"integer" => "an integer",
        _ => "a number",
    }
}

/// What stands there instead; a scalar where a string belongs most likely lacks its quotes, as in `version: 1.34`.
fn found(wanted: &str, value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the string {:?}", text.chars().take(64).collect::<String>()),
        Value::Null => "null".to_owned(),
        scalar if wanted == "string" => format!("{scalar}; put it in quotes"),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests;
