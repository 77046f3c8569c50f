//! One rule, compiled once (apiextensions-apiserver `schema/cel/compilation.go`).

use std::collections::BTreeSet;

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::Value;

use super::super::node::Node;
use super::super::{field_path, messages};
use super::check;

/// The rules of one place.
#[derive(Debug)]
pub(in super::super) struct RuleSet {
    /// In the schema's order.
    pub(super) rules: Vec<Rule>,
    /// What any rule reads of `self`.
    pub(super) reads: Reads,
    /// What any rule reads of `oldSelf`.
    pub(super) reads_old: Reads,
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) expression: IdedExpr,
    pub(super) message: String,
    pub(super) message_expression: Option<IdedExpr>,
    pub(super) reason: Option<String>,
    /// Where a failure is told, below the place of the rule; empty for the place itself.
    pub(super) field_path: String,
    pub(super) optional_old_self: bool,
    pub(super) uses_old_self: bool,
}

/// Which fields of a variable an expression reads, by their names in CEL, so that no others are converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The variable is used as a whole.
    All,
    /// Only these.
    Fields(BTreeSet<String>),
}

impl Default for Reads {
    fn default() -> Self {
        Self::Fields(BTreeSet::new())
    }
}

impl Reads {
    /// Whether this field is read.
    pub(super) fn contains(&self, name: &str) -> bool {
        match self {
            Reads::All => true,
            Reads::Fields(names) => names.contains(name),
        }
    }

    fn add(&mut self, variable: &str, expression: &IdedExpr) {
        match &expression.expr {
            Expr::Ident(name) if name == variable => *self = Reads::All,
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) if name == variable => {
                    if let Reads::Fields(names) = self {
                        names.insert(select.field.clone());
                    }
                }
                _ => self.add(variable, &select.operand),
            },
            _ => children(expression, &mut |child| self.add(variable, child)),
        }
    }
}

/// The expressions directly below one.
pub(super) fn children<'a>(expression: &'a IdedExpr, visit: &mut impl FnMut(&'a IdedExpr)) {
    let entries = |entry: &'a EntryExpr, visit: &mut dyn FnMut(&'a IdedExpr)| match entry {
        EntryExpr::StructField(field) => visit(&field.value),
        EntryExpr::MapEntry(entry) => {
            visit(&entry.key);
            visit(&entry.value);
        }
    };
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(visit),
        Expr::Comprehension(each) => {
            [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result].into_iter().for_each(visit);
        }
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Map(map) => map.entries.iter().for_each(|entry| entries(&entry.expr, visit)),
        Expr::Struct(message) => message.entries.iter().for_each(|entry| entries(&entry.expr, visit)),
        Expr::Select(select) => visit(&select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

/// A rule that cannot be compiled: the field of the rule and why, in a server's words.
pub(in super::super) struct Broken {
    /// Which rule.
    pub(in super::super) index: usize,
    /// `rule`, `messageExpression`, `optionalOldSelf` or `fieldPath`.
    pub(in super::super) field: &'static str,
    /// The value as a server shows it.
    pub(in super::super) shown: String,
    /// Why.
    pub(in super::super) detail: String,
}

/// Compiles the rules of a place. `uncorrelatable` is the schema path above which makes old values unfindable.
pub(in super::super) fn compile(
    node: &Node,
    is_resource: bool,
    rules: &[Value],
    uncorrelatable: Option<&str>,
) -> Result<RuleSet, Vec<Broken>> {
    let (mut set, mut broken) = (RuleSet { rules: Vec::new(), reads: Reads::default(), reads_old: Reads::default() }, Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        let mut fail = |field, shown, detail| broken.push(Broken { index, field, shown, detail });
        let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
        let scope = check::Scope { node, is_resource, optional_old_self: optional == Some(true) };
        let expression = match check::compile(text(rule, "rule"), "", "bool", &scope) {
            Ok(expression) => expression,
            Err(detail) => {
                fail("rule", struct_shown(rule), detail);
                continue;
            }
        };
        let message_expression = match text(rule, "messageExpression") {
            "" => None,
            source => match check::compile(source, "messageExpression ", "string", &scope) {
                Ok(expression) => Some(expression),
                Err(detail) => {
                    fail("messageExpression", struct_shown(rule), detail);
                    None
                }
            },
        };
        let uses_old_self = expression.references().has_variable("oldSelf");
        if uses_old_self && let Some(path) = uncorrelatable {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {path}");
            fail("rule", messages::quoted(text(rule, "rule")), detail);
        } else if !uses_old_self && let Some(optional) = optional {
            fail("optionalOldSelf", optional.to_string(), "may not be set if oldSelf is not used in rule".to_owned());
        }
        let field_path = text(rule, "fieldPath");
        let normalized = field_path::normalized(node, field_path);
        if normalized.is_none() {
            fail("fieldPath", messages::quoted(field_path), "fieldPath must be a valid path".to_owned());
        }
        for expression in std::iter::once(&expression).chain(&message_expression) {
            set.reads.add("self", expression);
            set.reads_old.add("oldSelf", expression);
        }
        set.rules.push(Rule {
            text: text(rule, "rule").trim().to_owned(),
            expression,
            message: text(rule, "message").trim().to_owned(),
            message_expression,
            reason: rule.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: normalized.unwrap_or_default(),
            optional_old_self: optional == Some(true),
            uses_old_self,
        });
    }
    if broken.is_empty() { Ok(set) } else { Err(broken) }
}

fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A rule as `field.Invalid` prints its Go struct. Pointers that are set would show an address there, here the value.
fn struct_shown(rule: &Value) -> String {
    let of = |field| messages::quoted(text(rule, field));
    let reason = rule
        .get("reason")
        .and_then(Value::as_str)
        .map_or_else(|| "(*apiextensions.FieldValueErrorReason)(nil)".to_owned(), messages::quoted);
    let optional = rule.get("optionalOldSelf").and_then(Value::as_bool).map_or_else(|| "(*bool)(nil)".to_owned(), |flag| flag.to_string());
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, Reason:{reason}, FieldPath:{}, OptionalOldSelf:{optional}}}",
        of("rule"),
        of("message"),
        of("messageExpression"),
        of("fieldPath")
    )
}
