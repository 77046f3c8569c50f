//! Whether a new schema takes something away from those who live with the old one.
//!
//! Pure: two schemas in, findings out. All bindings of an export follow a new schema at once, so that what it refuses is refused to every tenant,
//! and what it does not know is dropped from every object at its next write. The rules are those of structural schemas
//! (`apiextensions.k8s.io/v1`); rules in CEL are compared as text, since nobody can tell whether one implies another.

use std::fmt;

use serde_json::{Map, Value};

/// A field of which objects or writes that were right are not any more, or mean something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// As a path from the object: `spec.nodePools[].replicas`; empty for the kind itself.
    pub field: String,
    /// What changes about it.
    pub what: String,
}

impl fmt::Display for Narrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { "the kind" } else { &self.field };
        write!(f, "{field}: {}", self.what)
    }
}

/// Bounds, and whether more of them allows more.
const BOUNDS: [(&str, bool); 8] = [
    ("maximum", true),
    ("maxLength", true),
    ("maxItems", true),
    ("maxProperties", true),
    ("minimum", false),
    ("minLength", false),
    ("minItems", false),
    ("minProperties", false),
];

/// What a definition takes away that is the `spec` of an `APIResourceSchema` or of a `CustomResourceDefinition`, in the order of its fields; a
/// field is named once for each change of it.
pub fn narrowed(old: &Value, new: &Value) -> Vec<Narrowed> {
    let mut found = Findings::default();
    for field in ["/group", "/scope", "/names/plural", "/names/kind", "/names/singular"] {
        let (old, new) = (old.pointer(field), new.pointer(field));
        found.unless(old == new, "", || format!("its {} was {} and would be {}", &field[1..], shown(old), shown(new)));
    }
    for old in items(&old["versions"]) {
        let name = old["name"].as_str().unwrap_or_default();
        let Some(new) = items(&new["versions"]).find(|new| new["name"] == name) else {
            found.add("", format!("version {name} would go"));
            continue;
        };
        found.unless(old["served"] != true || new["served"] == true, "", || format!("version {name} would not be served any more"));
        found.unless(old["storage"] == new["storage"], "", || {
            format!("version {name} would be stored in another version, or another in it")
        });
        let has = |version: &Value, subresource: &str| version["subresources"].get(subresource).is_some();
        found.unless(has(old, "status") == has(new, "status"), "status", || "it would become a subresource, or stop being one".into());
        found.unless(!has(old, "scale") || has(new, "scale"), "", || "its subresource scale would go".into());
        let selectable: Vec<&Value> = items(&new["selectableFields"]).map(|field| &field["jsonPath"]).collect();
        for field in items(&old["selectableFields"]).map(|field| &field["jsonPath"]).filter(|field| !selectable.contains(field)) {
            found.add("", format!("nobody could select by {field} any more"));
        }
        node(&mut found, "", schema(old), schema(new));
    }
    found.0
}

/// An `APIResourceSchema` has the schema itself where a definition wraps it.
fn schema(version: &Value) -> &Value {
    version["schema"].get("openAPIV3Schema").unwrap_or(&version["schema"])
}

#[derive(Default)]
struct Findings(Vec<Narrowed>);

impl Findings {
    fn add(&mut self, field: &str, what: impl Into<String>) {
        self.0.push(Narrowed { field: field.to_owned(), what: what.into() });
    }

    fn unless(&mut self, holds: bool, field: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.add(field, what());
        }
    }
}

fn node(found: &mut Findings, at: &str, old: &Value, new: &Value) {
    if is_open(old) && !is_open(new) {
        found.add(at, "unknown fields would be dropped");
    }
    let (before, after) = (kind_of(old), kind_of(new));
    let wider = (after == "any" && is_open(new)) || (before == "integer" && after == "number");
    if before != after {
        if !wider {
            found.add(at, format!("its type was {before} and would be {after}"));
        }
        return;
    }
    value(found, at, old, new);
    let embedded = |schema: &Value| schema["x-kubernetes-embedded-resource"] == true;
    found.unless(embedded(old) == embedded(new), at, || "it would become a whole object, or stop being one".into());
    for (extension, unsaid) in [
        ("x-kubernetes-list-type", "atomic".into()),
        ("x-kubernetes-list-map-keys", Value::Null),
        ("x-kubernetes-map-type", "granular".into()),
    ] {
        let of = |schema: &Value| schema.get(extension).unwrap_or(&unsaid).clone();
        let (before, after) = (of(old), of(new));
        found.unless(before == after, at, || format!("{extension} was {} and would be {}", shown(Some(&before)), shown(Some(&after))));
    }
    properties(found, at, old, new);
    if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
        node(found, &format!("{at}[]"), old, new);
    }
    let open = |schema: &Value| schema.get("additionalProperties").is_some_and(|more| *more != false);
    if open(old) && open(new) {
        node(found, &format!("{at}.*"), &old["additionalProperties"], &new["additionalProperties"]);
    } else {
        found.unless(!open(old), at, || "names of one's own would not be allowed any more".into());
    }
}

/// Whether it keeps what it does not know.
fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// Integers, and what may also be one, are types of their own.
fn kind_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "int-or-string".into();
    }
    schema["type"].as_str().unwrap_or("any").to_owned()
}

/// What is asked of the value itself.
fn value(found: &mut Findings, at: &str, old: &Value, new: &Value) {
    let (before, after) = (old.get("enum"), new.get("enum"));
    if let Some(after) = after {
        let gone: Vec<String> = before.map_or_else(
            || vec!["all but those of a list".into()],
            |before| items(before).filter(|value| !items(after).any(|kept| kept == *value)).map(Value::to_string).collect(),
        );
        found.unless(gone.is_empty(), at, || format!("values would not be allowed any more: {}", gone.join(", ")));
    }
    for (bound, more) in BOUNDS {
        let (before, after) = (old[bound].as_f64(), new[bound].as_f64());
        let narrower = match (before, after) {
            (_, None) => false,
            // Lengths have a minimum of 0 of their own, numbers have none.
            (None, Some(after)) => more || bound == "minimum" || after > 0.0,
            (Some(before), Some(after)) => {
                if more {
                    after < before
                } else {
                    after > before
                }
            }
        };
        found.unless(!narrower, at, || format!("{bound} was {} and would be {}", shown(old.get(bound)), new[bound]));
    }
    for rule in ["pattern", "format", "multipleOf", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "not", "allOf", "anyOf", "oneOf"]
    {
        // What is false asks for nothing.
        let (before, after) = (old.get(rule), new.get(rule).filter(|asks| **asks != false));
        let wider = rule == "format" && before.is_some_and(|format| format == "int32") && after.is_some_and(|format| format == "int64");
        let holds = after.is_none() || before == after || wider;
        found.unless(holds, at, || format!("{rule} was {} and would be {}", shown(before), shown(after)));
    }
    found.unless(old["nullable"] != true || new["nullable"] == true, at, || "null would not be allowed any more".into());
    let (before, after) = (old.get("default"), new.get("default"));
    // To begin to have one changes no object that has the field, and gives the others what they were read as, if that.
    found.unless(before.is_none() || before == after, at, || format!("its default was {} and would be {}", shown(before), shown(after)));
    let rule = |validation: &Value| (validation["rule"].as_str().unwrap_or_default().to_owned(), validation["optionalOldSelf"] == true);
    let known: Vec<(String, bool)> = items(&old["x-kubernetes-validations"]).map(rule).collect();
    for (added, _) in items(&new["x-kubernetes-validations"]).map(rule).filter(|rule| !known.contains(rule)) {
        found.add(at, format!("it would have to satisfy {added}"));
    }
}

fn properties(found: &mut Findings, at: &str, old: &Value, new: &Value) {
    let under = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let none = Map::new();
    let (before, after) = (old["properties"].as_object().unwrap_or(&none), new["properties"].as_object().unwrap_or(&none));
    let keeps = is_open(new);
    for (name, new) in after.iter().filter(|(name, _)| is_open(old) && !before.contains_key(*name)) {
        // Whatever was there was kept as it was; a schema that says anything about it may refuse it.
        found.unless(is_open(new) && kind_of(new) == "any", &under(name), || "anything was right, and it would be checked".into());
    }
    for (name, old) in before {
        match after.get(name) {
            Some(new) => node(found, &under(name), old, new),
            None => found.unless(keeps, &under(name), || "it would be dropped from every object".into()),
        }
    }
    let required = |schema: &Value, name: &str| items(&schema["required"]).any(|required| required == name);
    for name in items(&new["required"]).filter_map(Value::as_str) {
        let has_default = after.get(name).is_some_and(|property| property.get("default").is_some());
        found.unless(required(old, name) || has_default, &under(name), || "it would be required".into());
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn shown(value: Option<&Value>) -> String {
    value.filter(|value| !value.is_null()).map_or_else(|| "absent".to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::manifest::{api_resource_schema, catalog, crd, exported};

    /// A kind whose `spec` is this.
    fn kind(spec: &Value) -> Value {
        json!({"group": "play.example.org", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"type": "object", "properties": {"spec": spec}}}]})
    }

    fn found(old: &Value, new: &Value) -> Vec<String> {
        narrowed(&kind(old), &kind(new)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_takes_something_away_is_named_with_its_field() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let cases = [
            (object(json!({"a": {"type": "string"}})), object(json!({})), "spec.a: it would be dropped from every object"),
            (
                object(json!({"a": {"type": "string"}})),
                object(json!({"a": {"type": "integer"}})),
                "spec.a: its type was string and would be integer",
            ),
            (
                object(json!({"a": {"type": "string"}})),
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
                "spec.a: it would be required",
            ),
            (
                object(json!({"a": {"type": "string", "enum": ["x", "y"]}})),
                object(json!({"a": {"type": "string", "enum": ["x"]}})),
                "spec.a: values would not be allowed any more: \"y\"",
            ),
            (
                object(
                    json!({"a": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}}}),
                ),
                object(
                    json!({"a": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 8}}}}}),
                ),
                "spec.a[].n: maximum was 9 and would be 8",
            ),
            (
                object(json!({"a": {"type": "integer"}})),
                object(json!({"a": {"type": "integer", "minimum": 1}})),
                "spec.a: minimum was absent and would be 1",
            ),
            (
                object(json!({"a": {"type": "integer"}})),
                object(json!({"a": {"type": "integer", "minimum": 0}})),
                "spec.a: minimum was absent and would be 0",
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}}),
                "spec.a: anything was right, and it would be checked",
            ),
            (
                json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a"}]}),
                json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a", "optionalOldSelf": true}]}),
                "spec: it would have to satisfy self.a == oldSelf.a",
            ),
            (
                object(json!({"a": {"type": "object"}})),
                object(json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true}})),
                "spec.a: it would become a whole object, or stop being one",
            ),
            (
                object(json!({"a": {"type": "string"}})),
                object(json!({"a": {"type": "string", "pattern": "^x"}})),
                "spec.a: pattern was absent and would be \"^x\"",
            ),
            (
                object(json!({"a": {"type": "object", "additionalProperties": {"type": "string"}}})),
                object(json!({"a": {"type": "object"}})),
                "spec.a: names of one's own would not be allowed any more",
            ),
            (
                object(json!({"a": {"type": "object", "additionalProperties": {"type": "string"}}})),
                object(json!({"a": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}})),
                "spec.a.*: maxLength was absent and would be 3",
            ),
            (
                object(json!({"a": {"type": "string", "default": "x"}})),
                object(json!({"a": {"type": "string", "default": "y"}})),
                "spec.a: its default was \"x\" and would be \"y\"",
            ),
            (
                object(json!({})),
                json!({"type": "object", "properties": {}, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
                "spec: it would have to satisfy self == oldSelf",
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                object(json!({})),
                "spec: unknown fields would be dropped",
            ),
            (
                object(json!({"a": {"type": "string", "nullable": true}})),
                object(json!({"a": {"type": "string"}})),
                "spec.a: null would not be allowed any more",
            ),
            (
                object(json!({"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}})),
                object(json!({"a": {"type": "array", "items": {"type": "string"}}})),
                "spec.a: x-kubernetes-list-type was \"set\" and would be \"atomic\"",
            ),
        ];
        for (old, new, expected) in cases {
            assert_eq!(found(&old, &new), [expected]);
        }
    }

    #[test]
    fn what_gives_more_takes_nothing_away() {
        let old = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "maxLength": 5, "enum": ["x"], "pattern": "^x", "description": "old"},
            "b": {"type": "integer", "format": "int32", "minimum": 2, "x-kubernetes-validations": [{"rule": "self > 1", "message": "old"}]},
            "e": {"type": "integer"}, "f": {"type": "array", "items": {"type": "string"}}, "g": {"type": "object"}}});
        let new = json!({"type": "object", "required": ["a", "c"], "properties": {
            "a": {"type": "string", "maxLength": 6, "enum": ["x", "y"], "description": "new"},
            "b": {"type": "integer", "format": "int64", "minimum": 1, "default": 3, "nullable": true,
                "x-kubernetes-validations": [{"rule": "self > 1", "message": "new"}]},
            "e": {"type": "number"}, "f": {"type": "array", "items": {"type": "string"}, "uniqueItems": false, "minItems": 0},
            "g": {"x-kubernetes-preserve-unknown-fields": true},
            "c": {"type": "string", "default": "z"}, "d": {"type": "object"}}});
        assert_eq!(found(&old, &new), [] as [&str; 0]);
        assert_eq!(found(&old, &old), [] as [&str; 0]);
    }

    #[test]
    fn a_kind_keeps_its_names_and_its_versions() {
        let old = kind(&json!({"type": "object"}));
        let mut new = old.clone();
        new["scope"] = "Cluster".into();
        new["versions"][0]["name"] = "v2".into();
        let found: Vec<String> = narrowed(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["the kind: its scope was \"Namespaced\" and would be \"Cluster\"", "the kind: version v1 would go"]);
        let mut unserved = old.clone();
        unserved["versions"][0]["served"] = false.into();
        assert_eq!(narrowed(&old, &unserved)[0].what, "version v1 would not be served any more");
        assert_eq!(narrowed(&unserved, &old), []);
    }

    #[test]
    fn each_kind_of_ours_is_compatible_with_itself() {
        let schemas = exported().iter().map(api_resource_schema).chain(catalog().iter().map(crd)).collect::<Vec<_>>();
        assert!(schemas.len() > 4);
        for schema in schemas {
            assert_eq!(narrowed(&schema["spec"], &schema["spec"]), [], "{}", schema["metadata"]["name"]);
        }
    }
}
