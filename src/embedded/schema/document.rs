//! What a schema document may say besides being structural (apiextensions-apiserver `apis/apiextensions/validation`).
//!
//! Pure: from a schema document to what is wrong with it.

use serde_json::Value;

use super::super::errors::Cause;
use super::messages::{forbidden, invalid, invalid_shown, quoted, required, unsupported};
use super::structural::{fields, flag, is_set, join, list, nested, property, text, wrong_type};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const META: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// Whether and where defaults may stand, and whether this is within metadata.
#[derive(Clone, Default)]
struct Place {
    no_defaults: Option<String>,
    in_metadata: bool,
}

/// What is wrong at and below a schema, in the order of upstream. `at` is its path.
pub(super) fn check(schema: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if flag(schema, "nullable") {
        causes.push(forbidden(join(at, "nullable"), "nullable cannot be true at the root"));
    }
    visit(schema, at, true, &Place::default(), &mut causes);
    causes
}

fn visit(schema: &Value, at: &str, is_root: bool, place: &Place, causes: &mut Vec<Cause>) {
    standard(schema, at, place, causes);
    if flag(schema, "uniqueItems") {
        let what = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(forbidden(join(at, "uniqueItems"), what));
    }
    additional(schema, at, place, causes);
    for (name, child) in fields(schema, "properties") {
        let mut below = place.clone();
        if (is_root || flag(schema, "x-kubernetes-embedded-resource")) && META.contains(&name.as_str()) {
            below.in_metadata = true;
            if is_root {
                below.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        visit(child, &property(at, name), false, &below, causes);
    }
    if let Some(not) = nested(schema, "not") {
        visit(not, &join(at, "not"), false, place, causes);
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for (index, child) in list(schema, keyword).enumerate() {
            visit(child, &format!("{}[{index}]", join(at, keyword)), false, place, causes);
        }
    }
    if let Some(items) = nested(schema, "items") {
        visit(items, &join(at, "items"), false, place, causes);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        causes.push(invalid(join(at, "x-kubernetes-preserve-unknown-fields"), &false.into(), "must be true or undefined"));
    }
    merging(schema, at, causes);
    map_keys(schema, at, causes);
    unnullable_entries(schema, at, causes);
    for (index, rule) in list(schema, "x-kubernetes-validations").enumerate() {
        rule_texts(rule, &format!("{}[{index}]", join(at, "x-kubernetes-validations")), causes);
    }
}

fn standard(schema: &Value, at: &str, place: &Place, causes: &mut Vec<Cause>) {
    let type_ = text(schema, "type");
    if !type_.is_empty() && !TYPES.contains(&type_) {
        causes.push(unsupported(join(at, "type"), &type_.into(), TYPES));
    }
    let has_default = schema.get("default").is_some_and(|default| !default.is_null());
    if let Some(reason) = place.no_defaults.as_ref().filter(|_| has_default) {
        causes.push(forbidden(join(at, "default"), &format!("must not be set {reason}")));
    }
    for field in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if is_set(schema, field) {
            causes.push(forbidden(join(at, field), &format!("{field} is not supported")));
        }
    }
    if type_ == "null" {
        causes.push(forbidden(join(at, "type"), "type cannot be set to null, use nullable as an alternative"));
    }
    if schema.get("items").is_some_and(|items| items.as_array().is_some_and(|items| !items.is_empty())) {
        causes.push(forbidden(join(at, "items"), "items must be a schema object and not an array"));
    }
    if place.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        causes.push(forbidden(join(at, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta"));
    }
}

fn additional(schema: &Value, at: &str, place: &Place, causes: &mut Vec<Cause>) {
    let Some(additional) = schema.get("additionalProperties").filter(|value| !value.is_null()) else { return };
    let at = join(at, "additionalProperties");
    if *additional != Value::Bool(true) && fields(schema, "properties").next().is_some() {
        causes.push(forbidden(at.clone(), "additionalProperties and properties are mutual exclusive"));
    }
    if additional.is_object() {
        let mut below = place.clone();
        if place.in_metadata {
            below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        visit(additional, &at, false, &below, causes);
    }
}

/// `x-kubernetes-map-type` and `x-kubernetes-list-type`.
fn merging(schema: &Value, at: &str, causes: &mut Vec<Cause>) {
    let type_ = text(schema, "type");
    let named = |field| schema.get(field).and_then(Value::as_str);
    let (map_type, list_type) = (named("x-kubernetes-map-type"), named("x-kubernetes-list-type"));
    if let Some(map_type) = map_type {
        if type_ != "object" {
            wrong_type(type_, "must be object if x-kubernetes-map-type is specified", at, causes);
        }
        if !["atomic", "granular"].contains(&map_type) {
            causes.push(unsupported(join(at, "x-kubernetes-map-type"), &map_type.into(), ["atomic", "granular"]));
        }
    }
    let Some(list_type) = list_type else { return };
    if type_ != "array" {
        wrong_type(type_, "must be array if x-kubernetes-list-type is specified", at, causes);
    } else if list_type == "set"
        && let Some(items) = nested(schema, "items")
    {
        let what = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let (field, is_atomic) = match text(items, "type") {
            "array" => ("x-kubernetes-list-type", matches!(text(items, "x-kubernetes-list-type"), "" | "atomic")),
            "object" => ("x-kubernetes-map-type", text(items, "x-kubernetes-map-type") == "atomic"),
            _ => ("", true),
        };
        if !is_atomic {
            let shown = items.get("x-kubernetes-list-type").and_then(Value::as_str).map_or_else(|| quoted("null"), quoted);
            causes.push(invalid_shown(join(&join(at, "items"), field), &shown, what));
        }
    }
    if !["atomic", "set", "map"].contains(&list_type) {
        causes.push(unsupported(join(at, "x-kubernetes-list-type"), &list_type.into(), ["atomic", "set", "map"]));
    }
}

/// `x-kubernetes-list-map-keys`.
fn map_keys(schema: &Value, at: &str, causes: &mut Vec<Cause>) {
    let keys: Vec<&str> = list(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str).collect();
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    if !keys.is_empty() && list_type != Some("map") {
        let (at, what) = (join(at, "x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        causes.push(list_type.map_or_else(|| required(at.clone(), what), |other| invalid(at.clone(), &other.into(), what)));
    }
    if list_type != Some("map") {
        return;
    }
    let keys_at = join(at, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        causes.push(required(keys_at.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_at = join(at, "items");
    let Some(items) = nested(schema, "items") else {
        causes.push(required(items_at, "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    let type_ = text(items, "type");
    if type_ != "object" {
        let what = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(invalid(join(&items_at, "type"), &type_.into(), what));
        return;
    }
    let shown = format!("[]string{{{}}}", keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(", "));
    for (index, key) in keys.iter().enumerate() {
        match items.get("properties").and_then(|properties| properties.get(key)) {
            Some(child) if matches!(text(child, "type"), "array" | "object") => {
                let what = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                causes.push(invalid(join(&property(&items_at, key), "type"), &type_.into(), what));
            }
            Some(_) => {}
            None => causes.push(invalid_shown(keys_at.clone(), &shown, "entries must all be names of item properties")),
        }
        if keys[..index].contains(key) {
            causes.push(invalid_shown(keys_at.clone(), &shown, "must not contain duplicate entries"));
        }
    }
}

/// Entries of sets and maps, and the keys of the latter, are always there.
fn unnullable_entries(schema: &Value, at: &str, causes: &mut Vec<Cause>) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let Some(items) = nested(schema, "items").filter(|_| matches!(list_type, "set" | "map")) else { return };
    let at = join(at, "items");
    if flag(items, "nullable") {
        let what = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        causes.push(forbidden(join(&at, "nullable"), &what));
    }
    for key in list(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str).filter(|_| list_type == "map") {
        let Some(child) = items.get("properties").and_then(|properties| properties.get(key)) else { continue };
        let at = property(&at, key);
        let is_required = list(items, "required").any(|name| name.as_str() == Some(key));
        if !is_required && child.get("default").is_none_or(Value::is_null) {
            let what = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            causes.push(required(join(&at, "default"), what));
        }
        if flag(child, "nullable") {
            let what = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.push(forbidden(join(&at, "nullable"), what));
        }
    }
}

fn rule_texts(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
    let trimmed = message.trim();
    if source.is_empty() {
        causes.push(required(join(at, "rule"), "rule is not specified"));
    } else if !message.is_empty() && trimmed.is_empty() {
        causes.push(invalid(join(at, "message"), &message.into(), "message must be non-empty if specified"));
    } else if breaks(trimmed) {
        causes.push(invalid(join(at, "message"), &message.into(), "message must not contain line breaks"));
    } else if breaks(source) && trimmed.is_empty() {
        causes.push(required(join(at, "message"), "message must be specified if rule contains line breaks"));
    }
    let expression = text(rule, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        causes.push(required(join(at, "messageExpression"), "messageExpression must be non-empty if specified"));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason)) {
        causes.push(unsupported(join(at, "reason"), &reason.into(), REASONS));
    }
    let path = text(rule, "fieldPath");
    if !path.is_empty() && path.trim().is_empty() {
        causes.push(invalid(join(at, "fieldPath"), &path.into(), "fieldPath must be non-empty if specified"));
    }
    if breaks(path) {
        causes.push(invalid(join(at, "fieldPath"), &path.into(), "fieldPath must not contain line breaks"));
    }
}
