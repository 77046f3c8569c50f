//! A short form of structural schemas, for the kinds that we write down ourselves.
//!
//! Pure: from the short form to an `OpenAPI` document. `string`, `integer`, `int32`, `boolean`, `time`, `any`, `atom` (the same, owned as a whole), `enum A|B`; `{field: …}` is an object and
//! `{<>: …}` a map; `[x]` is an atomic list, `[set, x]` a set, `[map, "a,b", x]` a list keyed by fields; `field!` is required.

use serde_json::{Map, Value, json};

/// The document of a whole object whose fields besides metadata are `shape`.
pub(super) fn open_api(shape: &Value) -> Value {
    let mut root = expand(shape);
    if !root["properties"].is_object() {
        root["properties"] = json!({});
    }
    root["type"] = "object".into();
    root["properties"]["apiVersion"] = json!({"type": "string"});
    root["properties"]["kind"] = json!({"type": "string"});
    root["properties"]["metadata"] = json!({"type": "object"});
    root
}

fn expand(shape: &Value) -> Value {
    match shape {
        Value::String(word) => scalar(word),
        Value::Array(parts) => list(parts),
        Value::Object(fields) => object(fields),
        _ => json!({"type": "object"}),
    }
}

fn scalar(word: &str) -> Value {
    if let Some(values) = word.strip_prefix("enum ") {
        return json!({"type": "string", "enum": values.split('|').collect::<Vec<_>>()});
    }
    match word {
        "time" | "microtime" => json!({"type": "string", "format": "date-time"}),
        "int32" => json!({"type": "integer", "format": "int32"}),
        "int64" => json!({"type": "integer", "format": "int64"}),
        "any" => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        "atom" => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic"}),
        "anything" => json!({"x-kubernetes-preserve-unknown-fields": true}),
        "quantity" => json!({"x-kubernetes-int-or-string": true}),
        type_ => json!({"type": type_}),
    }
}

fn list(parts: &[Value]) -> Value {
    match parts {
        [Value::String(set), items] if set == "set" => json!({"type": "array", "items": expand(items), "x-kubernetes-list-type": "set"}),
        [Value::String(map), Value::String(keys), items] if map == "map" => {
            let keys: Vec<&str> = keys.split(',').collect();
            let mut items = expand(items);
            // An entry without a key could not be told from another; the order of required fields is that of their names then.
            for key in keys.iter().filter(|key| items["properties"][**key]["default"].is_null()).copied().collect::<Vec<_>>() {
                let required = items["required"].as_array().cloned().unwrap_or_default();
                if !required.iter().any(|name| name == key) {
                    items["required"] = required.into_iter().chain([key.into()]).collect();
                }
            }
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
        }
        parts => json!({"type": "array", "items": expand(parts.first().unwrap_or(&Value::Null))}),
    }
}

fn object(fields: &Map<String, Value>) -> Value {
    if let Some(values) = fields.get("<>") {
        return json!({"type": "object", "additionalProperties": expand(values)});
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut default = None;
    let mut atomic = false;
    for (name, shape) in fields {
        match name.as_str() {
            "=" => default = Some(shape.clone()),
            "atomic" => atomic = true,
            _ => {
                let field = name.trim_end_matches('!');
                if field.len() < name.len() {
                    required.push(field.to_owned());
                }
                properties.insert(field.to_owned(), expand(shape));
            }
        }
    }
    let mut object = if let (Some(Value::String(type_)), true) = (fields.get("type:"), properties.len() == 1) {
        scalar(type_)
    } else {
        json!({"type": "object", "properties": properties})
    };
    if !required.is_empty() {
        object["required"] = required.into();
    }
    if let Some(default) = default {
        object["default"] = default;
    }
    if atomic {
        object["x-kubernetes-map-type"] = "atomic".into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_says_what_a_schema_says() {
        let shape = json!({"spec": {"names!": ["set", "string"], "pools": ["map", "name", {"name!": "string"}], "kind": {"type:": "enum A|B", "=": "A"}},
            "data": {"<>": "string"}});
        let open_api = open_api(&shape);
        let spec = &open_api["properties"]["spec"];
        assert_eq!(spec["required"], json!(["names"]));
        assert_eq!(spec["properties"]["names"]["x-kubernetes-list-type"], "set");
        assert_eq!(spec["properties"]["pools"]["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(spec["properties"]["kind"], json!({"type": "string", "enum": ["A", "B"], "default": "A"}));
        assert_eq!(open_api["properties"]["data"]["additionalProperties"], json!({"type": "string"}));
    }
}
