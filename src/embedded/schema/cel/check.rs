//! What a rule names must be there. The interpreter does not check types beforehand, so this finds what a server would refuse most:
//! variables, functions and fields that do not exist, and results of a wrong type.

use std::collections::BTreeSet;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::parser::Parser;

use super::super::node::{ListType, Node, Type};
use super::library::{FUNCTIONS, NAMESPACES, TYPES};
use super::macros;
use super::rule::children;

/// Words of CEL that cannot be names of fields.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The type that a rule sees as `self`.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) node: &'a Node,
    pub(super) is_resource: bool,
    pub(super) optional_old_self: bool,
}

/// A field's name in CEL; `None` for a name that cannot be written there (apiserver `cel/escaping.go`).
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter)) {
        return None;
    }
    let name = name.replace("__", "\0").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__");
    Some(name.replace('\0', "__underscores__"))
}

/// Parses and checks an expression; `what` stands before the words of a failure.
pub(super) fn compile(source: &str, what: &str, result: &str, scope: &Scope<'_>) -> Result<IdedExpr, String> {
    let mut expression = Parser::new()
        .enable_optional_syntax(true)
        .parse(source)
        .map_err(|errors| format!("{what}compilation failed: {}", parse_errors(&errors)))?;
    macros::expand(&mut expression);
    let mut checker = Checker { source, errors: Vec::new(), scope, variables: Vec::new(), unordered: BTreeSet::new(), in_has: false };
    let found = checker.infer(&expression);
    if !checker.errors.is_empty() {
        return Err(format!("{what}compilation failed: {}", checker.errors.join("\n")));
    }
    if found.name().is_some_and(|name| name != result) {
        let subject = if what.is_empty() { "cel expression" } else { "messageExpression" };
        return Err(format!("{subject} must evaluate to a {result}"));
    }
    macros::compare_unordered(&mut expression, &checker.unordered);
    Ok(expression)
}

fn parse_errors(errors: &kube_cel::cel::ParseErrors) -> String {
    errors.errors.iter().map(|error| error.to_string().replace("\n|", "\n |")).collect::<Vec<_>>().join("\n")
}

/// What is known of an expression's type.
#[derive(Clone, Copy)]
enum Inferred<'a> {
    Unknown,
    Named(&'static str),
    /// The metadata of an object.
    Metadata,
    Of(&'a Node, bool),
}

impl Inferred<'_> {
    fn is_unordered(&self) -> bool {
        matches!(self, Inferred::Of(node, _) if node.list != ListType::Atomic)
    }

    fn name(&self) -> Option<&'static str> {
        match self {
            Inferred::Unknown => None,
            Inferred::Metadata => Some("object"),
            Inferred::Named(name) => Some(name),
            Inferred::Of(node, _) => match (node.type_, node.rules.format.as_ref().map(|format| format.name.as_str())) {
                (Type::Any | Type::IntOrString, _) => None,
                (Type::Object, _) => Some("object"),
                (Type::Array, _) => Some("list"),
                (Type::String, Some("date" | "date-time" | "duration" | "byte")) => Some("other"),
                (Type::String, _) => Some("string"),
                (Type::Integer, _) => Some("int"),
                (Type::Number, _) => Some("double"),
                (Type::Boolean, _) => Some("bool"),
            },
        }
    }
}

struct Checker<'a> {
    source: &'a str,
    errors: Vec<String>,
    scope: &'a Scope<'a>,
    variables: Vec<(String, Inferred<'a>)>,
    /// Comparisons of lists of type set or map, by number.
    unordered: BTreeSet<u64>,
    /// Whether the field is only asked for, which is told at the parenthesis of `has(`.
    in_has: bool,
}

impl<'a> Checker<'a> {
    fn infer(&mut self, expression: &IdedExpr) -> Inferred<'a> {
        match &expression.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Literal(literal) => Inferred::Named(match literal {
                LiteralValue::Boolean(_) => "bool",
                LiteralValue::Bytes(_) => "bytes",
                LiteralValue::Double(_) => "double",
                LiteralValue::Int(_) => "int",
                LiteralValue::Null => "null",
                LiteralValue::String(_) => "string",
                LiteralValue::UInt(_) => "uint",
            }),
            Expr::Select(select) => {
                if matches!(&select.operand.expr, Expr::Ident(name) if self.is_namespace(name)) {
                    return Inferred::Unknown;
                }
                let operand = self.infer(&select.operand);
                self.in_has = select.test;
                let field = self.field(operand, &select.field);
                self.in_has = false;
                if select.test { Inferred::Named("bool") } else { field }
            }
            Expr::Call(call) => self.call(expression.id, call),
            Expr::Comprehension(each) => {
                let range = self.infer(&each.iter_range);
                self.infer(&each.accu_init);
                let depth = self.variables.len();
                self.variables.push((each.accu_var.clone(), Inferred::Unknown));
                self.variables.extend(each.iter_var2.clone().map(|name| (name, Inferred::Unknown)));
                let entry = match range {
                    Inferred::Of(node, _) if each.iter_var2.is_none() => {
                        node.items.as_deref().map_or(Inferred::Unknown, |items| Inferred::Of(items, items.embedded))
                    }
                    _ => Inferred::Unknown,
                };
                self.variables.push((each.iter_var.clone(), entry));
                for part in [&each.loop_cond, &each.loop_step, &each.result] {
                    self.infer(part);
                }
                self.variables.truncate(depth);
                Inferred::Unknown
            }
            _ => {
                children(expression, &mut |child| {
                    self.infer(child);
                });
                Inferred::Unknown
            }
        }
    }

    fn variable(&mut self, name: &str) -> Inferred<'a> {
        if let Some((_, found)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return *found;
        }
        match name {
            "oldSelf" if self.scope.optional_old_self => Inferred::Unknown,
            "self" | "oldSelf" => Inferred::Of(self.scope.node, self.scope.is_resource),
            _ if name.starts_with('@') || TYPES.contains(&name) => Inferred::Unknown,
            _ => self.fail(name, &format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn is_namespace(&self, name: &str) -> bool {
        NAMESPACES.contains(&name) && !self.variables.iter().any(|(known, _)| known == name)
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Inferred<'a> {
        let name = call.func_name.as_str();
        let is_operator = !name.starts_with(|first: char| first.is_alphabetic());
        if !is_operator && !FUNCTIONS.contains(&name.rsplit('.').next().unwrap_or(name)) {
            self.fail_call(name, &format!("undeclared reference to '{name}' (in container '')"));
        }
        let target = call.target.as_deref().filter(|target| !matches!(&target.expr, Expr::Ident(name) if self.is_namespace(name)));
        let operands: Vec<Inferred<'a>> = target.into_iter().chain(&call.args).map(|operand| self.infer(operand)).collect();
        if let (macros::OPTIONAL_ENTRY, [_, key], Some(container)) = (name, call.args.as_slice(), operands.first())
            && let Expr::Literal(LiteralValue::String(field)) = &key.expr
        {
            let (container, field) = (*container, field.inner().to_owned());
            self.field(container, &field);
            return Inferred::Unknown;
        }
        self.operator(name, &operands);
        if matches!(name, "_==_" | "_!=_") && operands.iter().any(Inferred::is_unordered) {
            self.unordered.insert(id);
        }
        match (name, operands.first().and_then(Inferred::name)) {
            ("size", Some(sized @ ("int" | "uint" | "double" | "bool"))) => {
                self.fail_call(name, &format!("found no matching overload for 'size' applied to '({sized})'"));
            }
            ("!_", Some(found @ ("int" | "uint" | "double" | "string" | "bytes")))
            | ("-_", Some(found @ ("bool" | "string" | "bytes"))) => {
                self.fail(name.trim_matches('_'), &format!("found no matching overload for '{name}' applied to '({found})'"));
            }
            _ => {}
        }
        match (name, operands.first()) {
            ("_?_:_", _) => match (operands.get(1).and_then(Inferred::name), operands.get(2).and_then(Inferred::name)) {
                (Some(one), Some(other)) if one == other => operands[1],
                _ => Inferred::Unknown,
            },
            ("size", _) => Inferred::Named("int"),
            (
                "_&&_" | "_||_" | "!_" | "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in" | "startsWith" | "endsWith" | "matches",
                _,
            ) => Inferred::Named("bool"),
            (macros::STRING | "lowerAscii" | "upperAscii" | "trim", _) => Inferred::Named("string"),
            ("_[_]", Some(Inferred::Of(node, _))) => {
                let entry = node.items.as_deref().or(node.additional.as_deref());
                entry.map_or(Inferred::Unknown, |entry| Inferred::Of(entry, entry.embedded))
            }
            _ => Inferred::Unknown,
        }
    }

    fn field(&mut self, operand: Inferred<'a>, name: &str) -> Inferred<'a> {
        let (node, is_resource) = match operand {
            Inferred::Of(node, is_resource) => (node, is_resource),
            Inferred::Metadata if !matches!(name, "name" | "generateName") => return self.undefined(name),
            Inferred::Metadata => return Inferred::Named("string"),
            _ => return Inferred::Unknown,
        };
        if node.type_ != Type::Object {
            return Inferred::Unknown;
        }
        if is_resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            return if name == "metadata" { Inferred::Metadata } else { Inferred::Named("string") };
        }
        if node.properties.is_empty()
            && let Some(additional) = node.additional.as_deref().filter(|_| node.rules.additional_flag.is_none())
        {
            return Inferred::Of(additional, additional.embedded);
        }
        let found = node.properties.iter().find(|(property, _)| escaped(property).as_deref() == Some(name));
        match found.filter(|(_, property)| property.type_ != Type::Any) {
            Some((_, property)) => Inferred::Of(property, property.embedded),
            None => self.undefined(name),
        }
    }

    fn undefined(&mut self, name: &str) -> Inferred<'a> {
        if self.in_has {
            return self.fail_call("has", &format!("undefined field '{name}'"));
        }
        let selected = [format!(".{name}"), format!(".?{name}")].into_iter().find(|selected| self.source.contains(selected));
        self.fail(&selected.unwrap_or_default(), &format!("undefined field '{name}'"))
    }

    /// Scalars of different types are neither equal nor in an order; numbers are in an order with each other.
    fn operator(&mut self, name: &str, operands: &[Inferred<'a>]) {
        const SCALARS: [&str; 6] = ["int", "uint", "double", "bool", "string", "bytes"];
        let symbol = name.trim_matches('_');
        let numbers = |name: &str| matches!(name, "int" | "uint" | "double");
        let (Some(left), Some(right)) = (operands.first().and_then(Inferred::name), operands.get(1).and_then(Inferred::name)) else {
            return;
        };
        let is_equality = matches!(symbol, "==" | "!=");
        let fits =
            left == right || !SCALARS.contains(&left) || !SCALARS.contains(&right) || (!is_equality && numbers(left) && numbers(right));
        let differ = left != right && SCALARS.contains(&left) && SCALARS.contains(&right);
        let is_arithmetic = matches!(symbol, "+" | "-" | "*" | "/" | "%") && differ;
        if is_arithmetic || ((is_equality || matches!(symbol, "<" | "<=" | ">" | ">=")) && !fits) {
            self.fail(symbol, &format!("found no matching overload for '{name}' applied to '({left}, {right})'"));
        }
    }

    /// Of a call, the parenthesis is shown.
    fn fail_call(&mut self, name: &str, message: &str) -> Inferred<'a> {
        let at = self.source.find(&format!("{name}(")).map_or(0, |at| at + name.len());
        self.fail_at(at, message)
    }

    /// Tells a failure at the first place where `word` stands; the parser does not say where an expression is.
    fn fail(&mut self, word: &str, message: &str) -> Inferred<'a> {
        self.fail_at(self.source.find(word).unwrap_or_default(), message)
    }

    fn fail_at(&mut self, at: usize, message: &str) -> Inferred<'a> {
        let before = &self.source[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let shown = self.source.lines().nth(line - 1).unwrap_or_default();
        let error = format!("ERROR: <input>:{line}:{}: {message}\n | {shown}\n | {}^", column + 1, ".".repeat(column));
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        Inferred::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_escaped_as_upstream() {
        for (name, written) in [
            ("plain_name", Some("plain_name")),
            ("a__b", Some("a__underscores__b")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("ä", None),
        ] {
            assert_eq!(escaped(name).as_deref(), written, "{name}");
        }
    }
}
