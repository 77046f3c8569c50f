//! Structural schemas from Rust types, as API servers admit them.
//!
//! Pure: descriptions are the doc comments; what a server refuses or would act upon unasked (titles, defaults, foreign formats,
//! nullability of optional fields) is taken out.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Formats that API servers know; others (`uint32`, `double`) are dropped.
const KNOWN_FORMATS: [&str; 3] = ["int32", "int64", "date-time"];

/// The structural schema of a kind's root: type, description, `spec` and `status`, with `apiVersion`, `kind` and `metadata` as bare types.
pub fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut root = cleaned(schema.to_value());
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("apiVersion".into(), json!({ "type": "string" }));
        properties.insert("kind".into(), json!({ "type": "string" }));
        properties.insert("metadata".into(), json!({ "type": "object" }));
    }
    root
}

/// Rewrites one schema and, by its keywords, those under it: a property may be called `title` or `default`.
fn cleaned(schema: Value) -> Value {
    let Value::Object(fields) = schema else { return schema };
    let mut kept = Map::new();
    for (keyword, value) in fields {
        match keyword.as_str() {
            "$schema" | "title" | "default" | "nullable" | "$defs" | "definitions" | "components" => {}
            "format" if !value.as_str().is_some_and(|format| KNOWN_FORMATS.contains(&format)) => {}
            "properties" => {
                let properties = value.as_object().cloned().unwrap_or_default();
                kept.insert(keyword, properties.into_iter().map(|(name, schema)| (name, cleaned(schema))).collect());
            }
            "items" | "additionalProperties" => {
                kept.insert(keyword, cleaned(value));
            }
            "oneOf" => kept.extend(words(&value)),
            "description" => {
                kept.insert(keyword, one_line(&value));
            }
            "minimum" | "maximum" => {
                kept.insert(keyword, whole(value));
            }
            _ => {
                kept.insert(keyword, value);
            }
        }
    }
    Value::Object(kept)
}

/// An enum whose words are documented comes as one schema for each word; a server wants the list of words.
fn words(alternatives: &Value) -> [(String, Value); 2] {
    let of = |alternative: &Value| alternative["enum"].as_array().cloned().unwrap_or_default();
    let words: Vec<Value> = alternatives.as_array().into_iter().flatten().flat_map(of).collect();
    [("type".into(), "string".into()), ("enum".into(), words.into())]
}

/// A doc comment's lines are broken for the source's width; `kubectl explain` breaks them for its own.
fn one_line(text: &Value) -> Value {
    let words: Vec<&str> = text.as_str().unwrap_or_default().split_whitespace().collect();
    words.join(" ").replace('`', "").into()
}

/// `0.0` as `0`: bounds of integers are written as integers.
#[allow(clippy::cast_possible_truncation, reason = "only whole numbers within i32 are converted")]
fn whole(number: Value) -> Value {
    match number.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX) => json!(value as i64),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind.
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Odd {
        /// A word
        /// over `two` lines.
        title: String,
        #[serde(default)]
        count: u32,
        #[schemars(range(min = 0))]
        size: f32,
        /// Which.
        choice: Choice,
    }

    /// What can be chosen.
    #[derive(schemars::JsonSchema)]
    #[schemars(inline)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    enum Choice {
        /// This.
        One,
        /// That.
        Other,
    }

    #[test]
    fn an_enum_with_documented_words_is_a_list_of_words() {
        let schema = structural::<Odd>();
        assert_eq!(schema["properties"]["choice"], json!({ "type": "string", "description": "Which.", "enum": ["One", "Other"] }));
    }

    #[test]
    fn keywords_go_but_a_property_of_the_same_name_stays() {
        let schema = structural::<Odd>();
        assert_eq!(schema["properties"]["title"], json!({ "type": "string", "description": "A word over two lines." }));
        assert!(schema.get("title").is_none() && schema.get("$schema").is_none());
    }

    #[test]
    fn formats_that_no_server_knows_and_defaults_go() {
        let schema = structural::<Odd>();
        assert_eq!(schema["properties"]["count"], json!({ "type": "integer", "minimum": 0 }));
        assert_eq!(schema["properties"]["size"], json!({ "type": "number", "minimum": 0 }));
    }
}
