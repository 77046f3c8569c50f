//! The words of `field.Error` (k8s.io/apimachinery 1.32), and how Go prints values in them.
//!
//! Pure: values to text.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::super::errors::Cause;

/// `field.Required`.
pub(super) fn required(field: impl Into<String>, detail: &str) -> Cause {
    Cause::new("FieldValueRequired", field, with("Required value".to_owned(), detail))
}

/// `field.Forbidden`.
pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Cause {
    Cause::new("FieldValueForbidden", field, with("Forbidden".to_owned(), detail))
}

/// `field.Invalid` of a JSON value.
pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Cause {
    invalid_shown(field, &shown(value), detail)
}

/// `field.Invalid` of a value that is already printed.
pub(super) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Cause {
    Cause::new("FieldValueInvalid", field, with(format!("Invalid value: {shown}"), detail))
}

/// `field.TypeInvalid` of text.
pub(super) fn type_invalid(field: impl Into<String>, value: &str, detail: &str) -> Cause {
    Cause::new("FieldValueTypeInvalid", field, with(format!("Invalid value: {}", quoted(value)), detail))
}

/// `field.Duplicate`.
pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Cause {
    Cause::new("FieldValueDuplicate", field, format!("Duplicate value: {}", shown(value)))
}

/// `field.NotSupported`.
pub(super) fn unsupported<'a>(field: impl Into<String>, value: &Value, supported: impl IntoIterator<Item = &'a str>) -> Cause {
    let supported: Vec<String> = supported.into_iter().map(quoted).collect();
    let detail = if supported.is_empty() { String::new() } else { format!("supported values: {}", supported.join(", ")) };
    Cause::new("FieldValueNotSupported", field, with(format!("Unsupported value: {}", shown(value)), &detail))
}

/// `field.TooLong`. The number is of characters, though the words say bytes.
pub(super) fn too_long(field: impl Into<String>, most: i64) -> Cause {
    Cause::new("FieldValueTooLong", field, format!("Too long: may not be more than {most} bytes"))
}

/// `field.TooMany`.
pub(super) fn too_many(field: impl Into<String>, actual: usize, most: i64) -> Cause {
    Cause::new("FieldValueTooMany", field, format!("Too many: {actual}: must have at most {most} items"))
}

fn with(message: String, detail: &str) -> String {
    if detail.is_empty() { message } else { format!("{message}: {detail}") }
}

/// A value as `field.Error` shows it: scalars plainly, null as the text `"null"`, the rest in Go's syntax.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => quoted("null"),
        Value::String(text) => quoted(text),
        other => go_syntax(other),
    }
}

/// `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_shown(number),
        Value::String(text) => quoted(text),
        Value::Array(entries) => format!("[]interface {{}}{{{}}}", entries.iter().map(go_syntax).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let each: Vec<String> = fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", each.join(", "))
        }
    }
}

/// `%v` of a number.
pub(super) fn number_shown(number: &Number) -> String {
    match number.as_i64() {
        Some(whole) => whole.to_string(),
        None => float_shown(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// `%v` of a float64: the shortest form, with an exponent from 1e6 on and below 1e-4.
pub(super) fn float_shown(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude == 0.0 || (1e-4..1e6).contains(&magnitude) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// `%q`, `strconv.Quote`.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            plain if is_printed(plain) => out.push(plain),
            _ => escape(&mut out, u32::from(letter)),
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, code: u32) {
    // Writing to a String cannot fail.
    let _ = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Go prints letters, marks, numbers, punctuation, symbols and the plain space; of white space and control characters nothing else.
fn is_printed(letter: char) -> bool {
    let is_format = matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    letter == ' ' || !(letter.is_control() || letter.is_whitespace() || is_format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_go_shows_them() {
        for (value, text) in [
            (json!(null), r#""null""#),
            (json!("a\"\n\u{1}é"), r#""a\"\n\x01é""#),
            (json!(5), "5"),
            (json!(1.5), "1.5"),
            (json!(2.0), "2"),
            (json!(1e21), "1e+21"),
            (json!(1_000_000.0), "1e+06"),
            (json!(0.00001), "1e-05"),
            (json!(true), "true"),
            (json!({"b": [1, null], "a": "x"}), r#"map[string]interface {}{"a":"x", "b":[]interface {}{1, interface {}(nil)}}"#),
        ] {
            assert_eq!(shown(&value), text, "{value}");
        }
    }

    #[test]
    fn causes_have_the_words_of_field_errors() {
        for (cause, message) in [
            (required("a", ""), "Required value"),
            (required("a", "must be specified"), "Required value: must be specified"),
            (forbidden("a", "no"), "Forbidden: no"),
            (invalid("a", &json!("x"), "bad"), r#"Invalid value: "x": bad"#),
            (type_invalid("a", "integer", "bad"), r#"Invalid value: "integer": bad"#),
            (duplicate("a", &json!({"name": "a"})), r#"Duplicate value: map[string]interface {}{"name":"a"}"#),
            (unsupported("a", &json!("x"), ["a", "b"]), r#"Unsupported value: "x": supported values: "a", "b""#),
            (too_long("a", 63), "Too long: may not be more than 63 bytes"),
            (too_many("a", 51, 50), "Too many: 51: must have at most 50 items"),
        ] {
            assert_eq!(cause.message, message);
        }
    }
}
