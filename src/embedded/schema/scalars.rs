//! The checks of one value without what is below it (kube-openapi `validation/validate`: type, string, format, number, enum).
//!
//! Pure: predicates with words.

use serde_json::{Number, Value};

use super::formats::Format;
use super::messages::{float_shown, invalid, shown, too_long, unsupported};
use super::node::{Node, Rules};
use super::path::Path;
use super::values::{Issue, about, mistyped};

/// Greatest number that JSON carries without loss.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The type, as far as the schema says one.
pub(super) fn wrong_type(node: &Node, value: &Value, path: &Path<'_>) -> Option<Issue> {
    let types = &node.rules.types;
    let is = |name: &str| types.iter().any(|type_| type_ == name);
    if value.is_null() {
        let wrong = !types.is_empty() && !is("null") && !node.nullable;
        return wrong.then(|| mistyped(path, &types.join(","), "null"));
    }
    if types.is_empty() && node.rules.format.is_none() {
        return None;
    }
    let (found, found_format) = kind(value);
    let is_whole_float = found == "number" && value.as_f64().is_some_and(is_whole) && is("integer");
    let fits = is(found) || is_whole_float || (found == "integer" && is("number"));
    let is_textual = value.is_string() || value.is_array();
    if let Some(format) = &node.rules.format {
        if !is_textual && !fits && format.name != found_format {
            return Some(mistyped(path, &format.name, found_format));
        }
        if is_textual && !is("number") && !is("integer") {
            return None;
        }
    }
    (!fits).then(|| mistyped(path, &types.join(","), found))
}

/// The type and format that a value has by itself.
fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a float is an integer to JSON (`swag.IsFloat64AJSONInteger`).
fn is_whole(float: f64) -> bool {
    if !float.is_finite() || float.abs() > MAX_SAFE {
        return false;
    }
    if float.fract() == 0.0 {
        return true;
    }
    let whole = float.trunc().max(0.0);
    whole != 0.0 && (float - whole).abs() / (float.abs() + whole) < 1e-9
}

/// Length and pattern; the first that fails is told.
pub(super) fn string(rules: &Rules, text: &str, path: &Path<'_>) -> Option<Issue> {
    let value = || Value::from(text);
    if rules.max_length.is_some() || rules.min_length.is_some() {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = rules.max_length.filter(|most| length > *most) {
            return Some(about(path, &format!("should be at most {most} chars long"), |_| too_long("", most)));
        }
        if let Some(least) = rules.min_length.filter(|least| length < *least) {
            return Some(about(path, &format!("should be at least {least} chars long"), |said| invalid("", &value(), said)));
        }
    }
    let pattern = rules.pattern.as_ref().filter(|pattern| !pattern.regex.is_match(text))?;
    Some(about(path, &format!("should match '{}'", pattern.text), |said| invalid("", &value(), said)))
}

/// The format of a string.
pub(super) fn formatted(format: &Format, text: &str, path: &Path<'_>) -> Option<Issue> {
    (!(format.accepts)(text)).then(|| mistyped(path, &format.name, text))
}

/// Factor, least and greatest.
pub(super) fn number(rules: &Rules, number: &Number, path: &Path<'_>) -> Vec<Issue> {
    let mut issues = Vec::new();
    let value = || Value::Number(number.clone());
    match rules.multiple_of {
        // The words of upstream are about what is left of the factor.
        Some(factor) if number.is_i64() && whole_part(factor) <= 0 => {
            let (at, factor) = (path.open_api(), whole_part(factor));
            let said = format!("factor MultipleOf declared for {at} must be positive: {factor}");
            issues.push(Issue::new(at, said, |said| invalid("", &factor.into(), said)));
        }
        Some(factor) if !is_multiple(number, factor) => {
            let what = format!("should be a multiple of {}", bound(number, factor));
            issues.push(about(path, &what, |said| invalid("", &value(), said)));
        }
        _ => {}
    }
    let mut tell = |what: &str| issues.push(about(path, what, |said| invalid("", &value(), said)));
    if let Some((least, exclusive)) = rules.minimum {
        let order = compare(number, least);
        if order.is_lt() || (exclusive && order.is_eq()) {
            let than = if exclusive { "greater than" } else { "greater than or equal to" };
            tell(&format!("should be {than} {}", bound(number, least)));
        }
    }
    if let Some((most, exclusive)) = rules.maximum {
        let order = compare(number, most);
        if order.is_gt() || (exclusive && order.is_eq()) {
            let than = if exclusive { "less than" } else { "less than or equal to" };
            tell(&format!("should be {than} {}", bound(number, most)));
        }
    }
    issues
}

/// Integers are compared with the integer part of a bound, as upstream does.
fn compare(number: &Number, bound: f64) -> std::cmp::Ordering {
    match number.as_i64() {
        Some(whole) => whole.cmp(&whole_part(bound)),
        None => number.as_f64().unwrap_or(f64::NAN).partial_cmp(&bound).unwrap_or(std::cmp::Ordering::Equal),
    }
}

fn bound(number: &Number, bound: f64) -> String {
    if number.is_i64() { whole_part(bound).to_string() } else { float_shown(bound) }
}

/// Go's conversion of a float to an integer, which on amd64 makes the least one of what does not fit.
#[allow(clippy::cast_possible_truncation, reason = "this is the conversion")]
fn whole_part(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    if let Some(whole) = number.as_i64() {
        return whole.checked_rem(whole_part(factor)).is_none_or(|rest| rest == 0);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    is_whole(if factor < 1.0 { 1.0 / factor * float } else { float / factor })
}

/// `enum`.
pub(super) fn not_allowed(rules: &Rules, value: &Value, path: &Path<'_>) -> Option<Issue> {
    let allowed = &rules.allowed;
    if allowed.is_empty() || allowed.iter().any(|allowed| equals(value, allowed)) {
        return None;
    }
    let text = |allowed: &Value| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned);
    let supported: Vec<String> = allowed.iter().map(text).collect();
    let what = format!("should be one of [{}]", allowed.iter().map(shown).collect::<Vec<_>>().join(" "));
    Some(about(path, &what, |_| unsupported("", value, supported.iter().map(String::as_str))))
}

/// A number is converted to the type of the allowed one first; null is never allowed by being listed.
fn equals(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match allowed.as_i64() {
            Some(whole) => value.as_i64().or_else(|| value.as_f64().map(whole_part)) == Some(whole),
            None => value.as_f64() == allowed.as_f64(),
        },
        (value, allowed) => value == allowed,
    }
}
