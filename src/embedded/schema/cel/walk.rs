//! The rules of an object, from the top down (apiextensions-apiserver `schema/cel/validation.go`).

use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value as Cel};
use serde_json::Value;

use super::super::super::errors::Cause;
use super::super::messages;
use super::super::node::{Node, Type};
use super::super::path::Path;
use super::super::ratchet::{self, Ratchet};
use super::convert::convert;
use super::library::library;
use super::rule::{Rule, RuleSet};

/// Longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// Every rule that fails. With `ratchets`, one that looks at nothing that changed passes.
pub(in super::super) fn validate(root: &Node, object: &Value, old: Option<&Value>, ratchets: bool) -> Vec<Cause> {
    let ratchet = old.filter(|_| ratchets).map(|old| Ratchet::root(root, object, old)).unwrap_or_default();
    let mut causes = Vec::new();
    visit(root, object, old, &Path::Root, ratchet, &mut causes);
    causes
}

fn visit<'a>(node: &'a Node, value: &'a Value, old: Option<&'a Value>, path: &Path<'_>, ratchet: Ratchet<'a>, causes: &mut Vec<Cause>) {
    if !node.rules.cel_below || value.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    if let Some(set) = &node.rules.cel {
        evaluate(set, node, value, old, path, ratchet, causes);
    }
    match value {
        Value::Array(entries) => {
            let Some(items) = &node.items else { return };
            for (index, entry) in entries.iter().enumerate() {
                let previous = old.and_then(|old| ratchet::entry(node, old, entry));
                visit(items, entry, previous, &Path::Index(path, index), ratchet.index(index, items), causes);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let previous = old.and_then(|old| old.get(name));
                if let Some(property) = node.properties.get(name) {
                    visit(property, value, previous, &Path::Field(path, name), ratchet.key(name, property), causes);
                } else if let Some(child) = node.described(name) {
                    visit(child, value, previous, &Path::Key(path, name), ratchet.key(name, child), causes);
                }
            }
        }
        _ => {}
    }
}

fn evaluate(
    set: &RuleSet,
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    ratchet: Ratchet<'_>,
    causes: &mut Vec<Cause>,
) {
    let runs = |rule: &&Rule| !rule.uses_old_self || old.is_some() || rule.optional_old_self;
    let mut rules = set.rules.iter().filter(runs).peekable();
    if rules.peek().is_none() {
        return;
    }
    let is_resource = path.is_root() || node.embedded;
    let mut scope = library().new_inner_scope();
    scope.add_variable_from_value("self", convert(node, value, is_resource, &set.reads));
    let uses_old = set.rules.iter().any(|rule| rule.uses_old_self);
    let previous = old.filter(|_| uses_old).map(|old| convert(node, old, is_resource, &set.reads_old));
    if let Some(previous) = &previous {
        scope.add_variable_from_value("oldSelf", previous.clone());
    }
    for rule in rules {
        let result = if rule.optional_old_self {
            let mut optional = scope.new_inner_scope();
            let old = previous.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            optional.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
            optional.resolve(&rule.expression)
        } else {
            scope.resolve(&rule.expression)
        };
        match result {
            Ok(Cel::Bool(true)) => {}
            Ok(_) if !rule.uses_old_self && ratchet.forgives() => {}
            Ok(_) => causes.push(failed(rule, node, path, &scope)),
            Err(error) => causes.push(messages::invalid_shown(path.field(), &type_shown(node), &broken(&error, rule))),
        }
    }
}

/// A failed rule with its field, message and reason.
fn failed(rule: &Rule, node: &Node, path: &Path<'_>, scope: &Context<'_>) -> Cause {
    let field = match (path.is_root(), rule.field_path.is_empty()) {
        (_, true) => path.field(),
        (true, false) => rule.field_path.clone(),
        (false, false) => format!("{}.{}", path.field(), rule.field_path),
    };
    let made = rule.message_expression.as_ref().and_then(|expression| made_message(expression, scope));
    let detail = made.unwrap_or_else(|| match rule.message.as_str() {
        "" => format!("failed rule: {}", rule.text),
        message => message.to_owned(),
    });
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => messages::forbidden(field, &detail),
        Some("FieldValueRequired") => messages::required(field, &detail),
        Some("FieldValueDuplicate") => messages::duplicate(field, &type_name(node).into()),
        _ => messages::invalid_shown(field, &type_shown(node), &detail),
    }
}

/// What the expression says, if it is a message: text, of one line, not empty and not too long.
fn made_message(expression: &IdedExpr, scope: &Context<'_>) -> Option<String> {
    let Ok(Cel::String(text)) = scope.resolve(expression) else { return None };
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
}

/// An object is never shown by its rules, only its type.
fn type_shown(node: &Node) -> String {
    messages::quoted(type_name(node))
}

fn type_name(node: &Node) -> &'static str {
    match node.type_ {
        Type::Any | Type::IntOrString => "",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
    }
}

fn broken(error: &ExecutionError, rule: &Rule) -> String {
    let rule = if rule.message.is_empty() { &rule.text } else { &rule.message };
    let said = match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..) => {
            return format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            );
        }
        other => other.to_string(),
    };
    format!("{said} evaluating rule: {rule}")
}
