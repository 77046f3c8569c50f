//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902).
//!
//! Pure: from a document and a patch to a document. Where `evanphx/json-patch` v4, which the API server uses, differs
//! from the RFC, so does this.

use json_patch::{AddOperation, CopyOperation, MoveOperation, PatchOperation};
use serde_json::{Map, Value};

use crate::embedded::errors::{Refusal, go_error};

/// More operations than these are refused in one JSON patch.
const MOST_OPERATIONS: usize = 10_000;

/// What the API server says of every JSON patch that cannot be applied, whatever the reason.
const UNPROCESSABLE: &str = "the server rejected our request due to an error in our request";

/// Merges a patch into a target: null removes a field. Fields that are null inside of a list are dropped, too, unless the list takes the
/// place of an object.
pub fn merge(target: &mut Value, patch: &Value) {
    let patch = without_nulls_in_lists(Some(target), patch);
    json_patch::merge(target, &patch);
}

fn without_nulls_in_lists(target: Option<&Value>, patch: &Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let inner = |name: &String| target.and_then(|target| target.get(name));
            fields.iter().map(|(name, value)| (name.clone(), without_nulls_in_lists(inner(name), value))).collect()
        }
        Value::Array(_) if !target.is_some_and(Value::is_object) => without_nulls(patch),
        other => other.clone(),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(entries) => entries.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Applies a JSON patch.
///
/// # Errors
/// 400 for what is no list of operations, 413 for more than 10,000 of them, 422 if one of them fails; then none is applied.
pub fn json(target: &Value, patch: &[u8]) -> Result<Value, Refusal> {
    let operations = decode(patch)?;
    if operations.len() > MOST_OPERATIONS {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Refusal {
            code: 413,
            reason: "RequestEntityTooLarge",
            message,
            details: Value::Null,
            retry_after: None,
            warnings: Vec::new(),
        });
    }
    let mut document = target.clone();
    for operation in operations {
        perform(&mut document, operation)
            .ok_or_else(|| Refusal { details: Value::Object(Map::new()), ..Refusal::unprocessable(UNPROCESSABLE) })?;
    }
    Ok(document)
}

fn decode(patch: &[u8]) -> Result<Vec<Map<String, Value>>, Refusal> {
    let refuse = |why: String| Refusal::bad_request(format!("error decoding patch: {why}"));
    let wrong = |value: &Value, place: &str| refuse(format!("json: cannot unmarshal {} into Go {place}", json_type(value)));
    let operations = match serde_json::from_slice(patch).map_err(|error| refuse(go_error(patch, &error)))? {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => return Err(wrong(&other, "value of type []handlers.jsonPatchOp")),
    };
    let mut decoded = Vec::with_capacity(operations.len());
    for operation in operations {
        let Value::Object(fields) = operation else { return Err(wrong(&operation, "value of type handlers.jsonPatchOp")) };
        for name in ["op", "path", "from"] {
            if let Some(value) = fields.get(name).filter(|value| !value.is_string() && !value.is_null()) {
                return Err(wrong(value, &format!("struct field jsonPatchOp.{name} of type string")));
            }
        }
        decoded.push(fields);
    }
    Ok(decoded)
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `None` if the operation is none, or fails.
fn perform(document: &mut Value, mut fields: Map<String, Value>) -> Option<()> {
    let adds = matches!(fields.get("op").and_then(Value::as_str), Some("add" | "copy" | "move"));
    for name in ["path", "from"] {
        if let Some(Value::String(path)) = fields.get(name) {
            let path = plain(document, path, adds && name == "path");
            fields.insert(name.into(), path.into());
        }
    }
    if !fields.contains_key("value") {
        fields.insert("value".into(), Value::Null);
    }
    let operation: PatchOperation = serde_json::from_value(Value::Object(fields)).ok()?;
    let is_root = operation.path().is_root();
    let field_is_missing = |path: &str| {
        let parent = path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
        parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
    };
    let operation = match operation {
        PatchOperation::Replace(replace) if is_root => {
            // Upstream replaces the document by nothing else than an object or a list, and passes over the rest.
            if replace.value.is_object() || replace.value.is_array() {
                *document = replace.value;
            }
            return Some(());
        }
        PatchOperation::Test(test) if is_root => return (*document == test.value).then_some(()),
        _ if is_root => return None,
        PatchOperation::Move(MoveOperation { from, .. }) | PatchOperation::Copy(CopyOperation { from, .. }) if from.is_root() => {
            return None;
        }
        PatchOperation::Replace(replace) if field_is_missing(replace.path.as_str()) => {
            PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
        }
        PatchOperation::Test(test) if test.value.is_null() && field_is_missing(test.path.as_str()) => return Some(()),
        PatchOperation::Copy(copy) if field_is_missing(copy.from.as_str()) => {
            PatchOperation::Add(AddOperation { path: copy.path, value: Value::Null })
        }
        other => other,
    };
    json_patch::patch(document, &[operation]).ok()
}

/// The path with indices as the RFC has them: not from the end of their list (`-1` is its last entry, or where one is added, the place
/// after it), and without zeros before them.
fn plain(document: &Value, path: &str, adds: bool) -> String {
    let mut plain = String::new();
    let mut tokens = path.split('/').skip(1).peekable();
    while let Some(token) = tokens.next() {
        let list = document.pointer(&plain).and_then(Value::as_array);
        let places = list.map_or(0, |list| list.len() + usize::from(adds && tokens.peek().is_none()));
        let index = list.and_then(|_| match token.strip_prefix('-') {
            Some(back) => back.parse().ok().and_then(|back| places.checked_sub(back)),
            None => token.parse::<usize>().ok(),
        });
        plain.push('/');
        plain.push_str(&index.map_or_else(|| token.to_owned(), |index| index.to_string()));
    }
    if path.is_empty() || path.starts_with('/') { plain } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(target: &Value, patch: &Value) -> Result<Value, Refusal> {
        super::json(target, patch.to_string().as_bytes())
    }

    #[test]
    fn a_merge_patch_replaces_fields_and_null_removes_them() {
        let cases = [
            (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"b": {"c": null, "e": 4}}), json!({"a": 1, "b": {"d": 3, "e": 4}}), "fields"),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]}), "a list is one value"),
            (json!({}), json!({"a": {"b": null}}), json!({"a": {}}), "a null in a new object"),
            (json!({}), json!({"a": [{"b": null, "c": 1}]}), json!({"a": [{"c": 1}]}), "a null in a list, where upstream leaves the RFC"),
            (json!({"a": {}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]}), "a list with a null for an object"),
            (json!({"a": 1}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}), "an object for a number"),
        ];
        for (mut target, patch, wanted, why) in cases {
            merge(&mut target, &patch);
            assert_eq!(target, wanted, "{why}");
        }
    }

    #[test]
    fn the_operations_of_a_json_patch_follow_one_another() {
        let target = json!({"a": 1, "b": [1, 2], "c": {"d": 1}, "e/f": 1});
        let cases = [
            (json!([{"op": "test", "path": "/a", "value": 1}, {"op": "replace", "path": "/a", "value": 2}]), "/a", json!(2)),
            (json!([{"op": "add", "path": "/b/-", "value": 3}]), "/b", json!([1, 2, 3])),
            (json!([{"op": "add", "path": "/b/0", "value": 0}]), "/b", json!([0, 1, 2])),
            (json!([{"op": "remove", "path": "/b/-1"}]), "/b", json!([1])),
            (json!([{"op": "add", "path": "/b/-1", "value": 3}]), "/b", json!([1, 2, 3])),
            (json!([{"op": "remove", "path": "/b/01"}]), "/b", json!([1])),
            (json!([{"op": "move", "from": "/a", "path": "/c/x"}]), "/c", json!({"d": 1, "x": 1})),
            (json!([{"op": "copy", "from": "/c", "path": "/g"}]), "/g", json!({"d": 1})),
            (json!([{"op": "replace", "path": "/new", "value": 1}]), "/new", json!(1)),
            (json!([{"op": "remove", "path": "/e~1f"}]), "", json!({"a": 1, "b": [1, 2], "c": {"d": 1}})),
            (json!([{"op": "test", "path": "/no", "value": null}]), "", target.clone()),
            (json!([{"op": "replace", "path": "", "value": {"a": 2}}]), "", json!({"a": 2})),
            (json!([{"op": "replace", "path": "", "value": 1}]), "", target.clone()),
        ];
        for (patch, at, wanted) in cases {
            assert_eq!(patched(&target, &patch).unwrap().pointer(at), Some(&wanted), "{patch}");
        }
    }

    #[test]
    fn a_json_patch_that_does_not_fit_is_refused_in_one_sentence() {
        let target = json!({"a": 1, "b": [1]});
        for patch in [
            json!([{"op": "test", "path": "/a", "value": 2}]),
            json!([{"op": "remove", "path": "/c"}]),
            json!([{"op": "add", "path": "/c/d", "value": 1}]),
            json!([{"op": "add", "path": "/b/5", "value": 1}]),
            json!([{"op": "grow", "path": "/a"}]),
            json!([{"op": "add", "value": 1}]),
            json!([{"op": "remove", "path": ""}]),
            json!([{"op": "copy", "from": "", "path": "/c"}]),
            json!([{"op": "move", "from": "/a", "path": ""}]),
        ] {
            let refusal = patched(&target, &patch).unwrap_err();
            let wanted = (422, "Invalid", "the server rejected our request due to an error in our request");
            assert_eq!((refusal.code, refusal.reason, refusal.message.as_str()), wanted, "{patch}");
        }
    }

    #[test]
    fn what_is_no_json_patch_is_a_bad_request() {
        let cases = [
            ("{", "unexpected end of JSON input"),
            ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
            (r#"[{"op": 1}]"#, "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ];
        for (patch, why) in cases {
            let refusal = super::json(&json!({}), patch.as_bytes()).unwrap_err();
            assert_eq!((refusal.code, refusal.message), (400, format!("error decoding patch: {why}")), "{patch}");
        }
    }

    #[test]
    fn more_than_ten_thousand_operations_are_too_many() {
        let operations = |count: usize| Value::Array(vec![json!({"op": "test", "path": "/a", "value": 1}); count]);
        let target = json!({"a": 1});
        assert!(patched(&target, &operations(10_000)).is_ok());
        let refusal = patched(&target, &operations(10_001)).unwrap_err();
        let message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
        assert_eq!((refusal.code, refusal.reason, refusal.message.as_str()), (413, "RequestEntityTooLarge", message));
    }
}
