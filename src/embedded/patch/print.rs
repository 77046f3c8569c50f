//! Sets of paths as `fieldsV1`: `{"f:spec": {".": {}, "f:nodes": {"k:{\"name\":\"x\"}": {}}}}`.
//!
//! Pure: JSON to sets and back, as `structured-merge-diff/v4/fieldpath` reads and writes it.

use serde_json::{Map, Value};

use super::fields::{Element, Scalar, Set};

/// The set as JSON.
pub fn print(set: &Set) -> Value {
    let mut fields = Map::new();
    for (at, below) in set.children() {
        let mut inner = print(below);
        if let (true, Some(inner)) = (set.has_member(at), inner.as_object_mut()) {
            inner.insert(".".into(), Value::Object(Map::new()));
        }
        fields.insert(print_element(at), inner);
    }
    for member in set.members().filter(|member| set.below(member).is_none()) {
        fields.insert(print_element(member), Value::Object(Map::new()));
    }
    Value::Object(fields)
}

/// The set that JSON says. `null` and nothing are the empty set; elements of unknown kinds are skipped.
///
/// # Errors
/// What is wrong, in few words: a step without a colon, a key that is no JSON.
pub fn parse(fields: &Value) -> Result<Set, String> {
    parse_below(fields).map(|(set, _)| set)
}

/// The set below a place, and whether the place is a member itself: it says so with `.`, or by having nothing below.
fn parse_below(fields: &Value) -> Result<(Set, bool), String> {
    let none = Map::new();
    let fields = match fields {
        Value::Null => &none,
        Value::Object(fields) => fields,
        _ => return Err("expect { or n".into()),
    };
    let mut set = Set::default();
    let (mut member, mut empty) = (false, true);
    for (key, below) in fields {
        if key == "." {
            member = true;
            continue;
        }
        let Some(at) = parse_element(key)? else { continue };
        let (below, is_member) = parse_below(below)?;
        if is_member {
            set.insert(std::slice::from_ref(&at));
        }
        set.put(at, below);
        empty = false;
    }
    Ok((set, member || empty))
}

fn print_element(element: &Element) -> String {
    match element {
        Element::Field(name) => format!("f:{name}"),
        Element::Key(fields) => {
            let object: Map<String, Value> = fields.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
            format!("k:{}", escaped(&Value::Object(object)))
        }
        Element::Value(value) => format!("v:{}", escaped(&value.0)),
        Element::Index(at) => format!("i:{at}"),
    }
}

/// Go's JSON escapes what HTML would read; outside of strings these characters do not occur.
pub(super) fn escaped(value: &Value) -> String {
    let escape = |character: char| match character {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    };
    value.to_string().chars().map(escape).collect()
}

fn parse_element(key: &str) -> Result<Option<Element>, String> {
    if key.len() < 2 {
        return Err("key must be 2 characters long:".into());
    }
    let Some((kind, rest)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(format!("missing colon: {key}"));
    };
    let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
    Ok(Some(match kind {
        "f" => Element::field(rest),
        "v" => Element::Value(Scalar(json()?)),
        "i" => Element::Index(rest.parse().map_err(|error: std::num::ParseIntError| error.to_string())?),
        "k" => match json()? {
            Value::Object(fields) => Element::Key(fields.into_iter().map(|(name, value)| (name, Scalar(value))).collect()),
            _ => return Err(format!("key is no object: {key}")),
        },
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_reads_as_it_was_written() {
        let cases = [
            (json!({}), "nothing"),
            (json!({"f:spec": {"f:size": {}}}), "a leaf, its parent not owned"),
            (json!({"f:spec": {".": {}, "f:size": {}}}), "a leaf and its parent"),
            (json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}), "an entry by two keys"),
            (json!({"f:finalizers": {".": {}, "v:\"a.b/c\"": {}}}), "a value of a set"),
            (json!({"f:values": {"v:\"\\u003c1\\u003e\"": {}, "v:1": {}, "v:true": {}}}), "values of other types, and escapes"),
            (json!({"f:list": {"i:3": {}}}), "an index"),
            (json!({"f:a:b": {}}), "a colon in a name"),
        ];
        for (fields, why) in cases {
            assert_eq!(print(&parse(&fields).unwrap()), fields, "{why}");
        }
    }

    #[test]
    fn what_is_empty_is_a_member_and_what_is_unknown_is_skipped() {
        assert_eq!(print(&parse(&json!({"f:a": {".": {}}, "f:b": null, "x:c": {}})).unwrap()), json!({"f:a": {}, "f:b": {}}));
        assert_eq!(parse(&Value::Null).unwrap(), Set::default());
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for (fields, why) in [
            (json!({"a": {}}), "no kind"),
            (json!({"abc": {}}), "no colon"),
            (json!({"v:{": {}}), "no JSON"),
            (json!({"i:x": {}}), "no number"),
            (json!({"k:1": {}}), "no object"),
            (json!({"f:a": 1}), "no place"),
            (json!([]), "no object"),
        ] {
            assert!(parse(&fields).is_err(), "{why}");
        }
    }
}
