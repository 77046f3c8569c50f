//! What the interpreter does not expand, or not as cel-go: `optMap`, `optFlatMap`, `.?` and `[?]` (cel-go `cel/library.go`).
//!
//! Pure: from an expression to an expression.

use std::collections::BTreeSet;

use kube_cel::cel::Program;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue};
use kube_cel::cel::common::types::CelString;

/// The function of a field or entry that may not be there: `(container, key)`, optional if the container is. No rule can name it.
pub(super) const OPTIONAL_ENTRY: &str = "@optional_entry";

/// `string(value)`, in place of the interpreter's.
pub(super) const STRING: &str = "@string";

/// Equality of lists of type set or map, `(left, right)`.
pub(super) const SAME_ENTRIES: &str = "@same_entries";

/// Has lists compared without their order, in the calls of these numbers.
pub(super) fn compare_unordered(expression: &mut IdedExpr, calls: &BTreeSet<u64>) {
    children_mut(expression, &mut |child| compare_unordered(child, calls));
    let id = expression.id;
    let Expr::Call(equality) = &mut expression.expr else { return };
    let is_equal = equality.func_name == "_==_";
    if !calls.contains(&id) || !(is_equal || equality.func_name == "_!=_") {
        return;
    }
    let same = call(SAME_ENTRIES, None, std::mem::take(&mut equality.args));
    expression.expr = if is_equal { same } else { call("!_", None, vec![IdedExpr { id, expr: same }]) };
}

/// Rewrites the macros in an expression, the innermost first.
pub(super) fn expand(expression: &mut IdedExpr) {
    children_mut(expression, &mut expand);
    match &mut expression.expr {
        Expr::Call(call) => {
            if let Some(expanded) = expanded(call) {
                *expression = expanded;
            }
        }
        Expr::Select(select) if is_optional(&select.operand) => {
            let found = optional_entry(std::mem::take(&mut *select.operand), text(&select.field));
            expression.expr = if select.test { call("hasValue", Some(found), Vec::new()) } else { found.expr };
        }
        Expr::Select(select) => {
            if let Some(name) = type_name(&select.operand, &select.field) {
                expression.expr = Expr::Ident(name);
            }
        }
        _ => {}
    }
}

/// The names of types that have dots are variables with dots in the library.
fn type_name(package: &IdedExpr, name: &str) -> Option<String> {
    let Expr::Select(select) = &package.expr else { return None };
    let is_package = select.field == "protobuf" && matches!(&select.operand.expr, Expr::Ident(name) if name == "google");
    is_package.then(|| format!("google.protobuf.{name}"))
}

/// An entry of an optional value is optional itself.
fn is_optional(operand: &IdedExpr) -> bool {
    matches!(&operand.expr, Expr::Call(call) if call.func_name == OPTIONAL_ENTRY)
}

fn optional_entry(container: IdedExpr, key: IdedExpr) -> IdedExpr {
    let id = container.id;
    IdedExpr { id, expr: call(OPTIONAL_ENTRY, None, vec![container, key]) }
}

fn call(name: &str, target: Option<IdedExpr>, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: name.to_owned(), target: target.map(Box::new), args })
}

fn text(text: &str) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(CelString::from(text))) }
}

fn expanded(call: &mut CallExpr) -> Option<IdedExpr> {
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        ("string", [_]) if call.target.is_none() => {
            STRING.clone_into(&mut call.func_name);
            None
        }
        ("_?._" | "_[?_]", [container, key]) => Some(optional_entry(std::mem::take(container), std::mem::take(key))),
        ("_[_]", [container, key]) if is_optional(container) => Some(optional_entry(std::mem::take(container), std::mem::take(key))),
        ("optMap", [name, body]) => {
            optional("target.hasValue() ? optional.of(body) : optional.none()", name, body, call.target.as_deref()?)
        }
        ("optFlatMap", [name, body]) => optional("target.hasValue() ? body : optional.none()", name, body, call.target.as_deref()?),
        _ => None,
    }
}

/// A loop over nothing, whose result is the body with the variable.
fn bind(name: &IdedExpr, value: IdedExpr, body: &IdedExpr) -> Option<IdedExpr> {
    let Expr::Ident(name) = &name.expr else { return None };
    let of = |expr| IdedExpr { id: body.id, expr };
    let never = parsed("false")?;
    Some(of(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: of(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.clone(),
        accu_init: value,
        loop_cond: never,
        loop_step: of(Expr::Ident(name.clone())),
        result: body.clone(),
    }))))
}

fn optional(template: &str, name: &IdedExpr, body: &IdedExpr, target: &IdedExpr) -> Option<IdedExpr> {
    let mut value = parsed("target.value()")?;
    replace(&mut value, "target", target);
    let body = bind(name, value, body)?;
    let mut expression = parsed(template)?;
    // The target stands outside of the body, which is put in last so that its own names stay.
    replace(&mut expression, "target", target);
    replace(&mut expression, "body", &body);
    Some(expression)
}

fn parsed(source: &str) -> Option<IdedExpr> {
    Program::compile(source).ok().map(|program| program.expression().clone())
}

/// Puts an expression in the place of a variable of a template.
fn replace(expression: &mut IdedExpr, variable: &str, by: &IdedExpr) {
    if matches!(&expression.expr, Expr::Ident(name) if name == variable) {
        *expression = by.clone();
    } else {
        children_mut(expression, &mut |child| replace(child, variable, by));
    }
}

fn children_mut(expression: &mut IdedExpr, visit: &mut dyn FnMut(&mut IdedExpr)) {
    match &mut expression.expr {
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(visit),
        Expr::Comprehension(each) => {
            let each = each.as_mut();
            [&mut each.iter_range, &mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result]
                .into_iter()
                .for_each(visit);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(visit),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| entry_mut(&mut entry.expr, visit)),
        Expr::Struct(message) => message.entries.iter_mut().for_each(|entry| entry_mut(&mut entry.expr, visit)),
        Expr::Select(select) => visit(&mut select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn entry_mut(entry: &mut EntryExpr, visit: &mut dyn FnMut(&mut IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => visit(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            visit(&mut entry.key);
            visit(&mut entry.value);
        }
    }
}
