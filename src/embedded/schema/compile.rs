//! From a schema document to a [`Node`].

use std::sync::Arc;

use serde_json::Value;

use super::super::errors::Cause;
use super::messages::invalid_shown;
use super::node::{ListType, Node, Rules, Type};
use super::structural::{fields, flag, join, list, nested, property, text};
use super::{cel, defaults, document, formats, patterns, structural};

/// Compiles a schema, or tells what a server would refuse of it. `at` is the path of the schema, empty for causes relative to it.
pub(super) fn compile(schema: &Value, at: &str) -> Result<Node, Vec<Cause>> {
    let mut causes = structural::check(schema, at);
    let is_structural = causes.is_empty();
    causes.extend(document::check(schema, at));
    if !causes.is_empty() && !is_structural {
        return Err(causes);
    }
    let mut compiler = Compiler { causes: Vec::new(), rules: causes.is_empty() };
    let node = compiler.node(schema, at, true, None);
    let wrong = defaults::check(&node, at);
    if wrong.is_empty() {
        causes.extend(compiler.causes);
    } else {
        causes.splice(0..0, wrong);
    }
    if causes.is_empty() { Ok(node) } else { Err(causes) }
}

struct Compiler {
    causes: Vec<Cause>,
    /// Whether rules are compiled; not in a schema that is refused for more.
    rules: bool,
}

impl Compiler {
    fn node(&mut self, schema: &Value, at: &str, is_root: bool, uncorrelatable: Option<&str>) -> Node {
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let mut node = Node {
            type_: type_of(schema),
            list: list_type(schema),
            atomic: text(schema, "x-kubernetes-map-type") == "atomic",
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded,
            nullable: flag(schema, "nullable"),
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            rules: self.rules(schema, at),
            ..Node::default()
        };
        match schema.get("additionalProperties") {
            Some(Value::Bool(allowed)) => {
                node.additional = Some(Box::default());
                node.rules.additional_flag = Some(*allowed);
            }
            Some(additional @ Value::Object(_)) => {
                node.additional = Some(Box::new(self.node(additional, &join(at, "additionalProperties"), false, uncorrelatable)));
            }
            _ => {}
        }
        for (name, child) in fields(schema, "properties") {
            let child = self.node(child, &property(at, name), false, uncorrelatable);
            node.properties.insert(name.clone(), child);
        }
        if let Some(items) = nested(schema, "items") {
            let broken_here = (!matches!(node.list, ListType::Map(_))).then_some(at);
            node.items = Some(Box::new(self.node(items, &join(at, "items"), false, uncorrelatable.or(broken_here))));
        }
        let below =
            node.properties.values().chain(node.additional.as_deref()).chain(node.items.as_deref()).any(|child| child.rules.cel_below);
        self.cel(&mut node, schema, at, is_root || embedded, uncorrelatable);
        node.rules.cel_below = below || node.rules.cel.is_some();
        node
    }

    fn cel(&mut self, node: &mut Node, schema: &Value, at: &str, is_resource: bool, uncorrelatable: Option<&str>) {
        let Some(rules) = schema.get("x-kubernetes-validations").and_then(Value::as_array).filter(|rules| self.rules && !rules.is_empty())
        else {
            return;
        };
        match cel::compile(node, is_resource, rules, uncorrelatable) {
            Ok(set) => node.rules.cel = Some(Arc::new(set)),
            Err(broken) => {
                let at = join(at, "x-kubernetes-validations");
                let told =
                    broken.into_iter().map(|rule| invalid_shown(format!("{at}[{}].{}", rule.index, rule.field), &rule.shown, &rule.detail));
                self.causes.extend(told);
            }
        }
    }

    fn rules(&mut self, schema: &Value, at: &str) -> Rules {
        let number = |field: &str| schema.get(field).and_then(Value::as_f64);
        let count = |field: &str| schema.get(field).and_then(Value::as_i64);
        let mut each = |field: &str| list(schema, field).map(|child| self.node(child, at, false, None)).collect();
        let (all_of, any_of, one_of) = (each("allOf"), each("anyOf"), each("oneOf"));
        let types = if flag(schema, "x-kubernetes-int-or-string") {
            vec!["integer".to_owned(), "string".to_owned()]
        } else {
            Some(text(schema, "type")).filter(|type_| !type_.is_empty()).map(str::to_owned).into_iter().collect()
        };
        Rules {
            required: list(schema, "required").filter_map(Value::as_str).map(str::to_owned).collect(),
            types,
            format: formats::known(text(schema, "format")),
            minimum: number("minimum").map(|least| (least, flag(schema, "exclusiveMinimum"))),
            maximum: number("maximum").map(|most| (most, flag(schema, "exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: Some(text(schema, "pattern"))
                .filter(|pattern| !pattern.is_empty())
                .and_then(|pattern| patterns::compile(pattern).ok()),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag(schema, "uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            allowed: list(schema, "enum").cloned().collect(),
            all_of,
            any_of,
            one_of,
            not: nested(schema, "not").map(|not| Box::new(self.node(not, at, false, None))),
            ..Rules::default()
        }
    }
}

fn type_of(schema: &Value) -> Type {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Type::IntOrString;
    }
    match text(schema, "type") {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_type(schema: &Value) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => {
            let keys = list(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str);
            ListType::Map(keys.map(str::to_owned).collect())
        }
        _ => ListType::Atomic,
    }
}
