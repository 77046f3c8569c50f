//! One value, one rule, one message.

use serde_json::{Value, json};

use super::{of_spec, told};

/// What is told of `spec`, which has this schema and value.
#[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
fn of(schema: Value, value: Value) -> Vec<String> {
    told(&of_spec(schema), &json!({"spec": value}), None)
}

#[test]
fn a_broken_rule_is_told_in_the_words_of_upstream() {
    let pattern = "^[a-z]+$";
    for (schema, value, message) in [
        (json!({"type": "string"}), json!(1), r#"Invalid value: "integer": spec in body must be of type string: "integer""#),
        (json!({"type": "string"}), json!(null), r#"Invalid value: "null": spec in body must be of type string: "null""#),
        (json!({"type": "integer"}), json!("1"), r#"Invalid value: "string": spec in body must be of type integer: "string""#),
        (json!({"type": "integer"}), json!(1.5), r#"Invalid value: "number": spec in body must be of type integer: "number""#),
        (json!({"type": "boolean"}), json!("true"), r#"Invalid value: "string": spec in body must be of type boolean: "string""#),
        (json!({"type": "object"}), json!([]), r#"Invalid value: "array": spec in body must be of type object: "array""#),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({}),
            r#"Invalid value: "object": spec in body must be of type array: "object""#,
        ),
        (json!({"type": "string", "maxLength": 2}), json!("äöü"), "Too long: may not be more than 2 bytes"),
        (json!({"type": "string", "minLength": 1}), json!(""), r#"Invalid value: "": spec in body should be at least 1 chars long"#),
        (json!({"type": "string", "pattern": pattern}), json!("A"), r#"Invalid value: "A": spec in body should match '^[a-z]+$'"#),
        (json!({"type": "string", "enum": ["a", "b"]}), json!("c"), r#"Unsupported value: "c": supported values: "a", "b""#),
        (json!({"type": "integer", "enum": [1, 2]}), json!(3), r#"Unsupported value: 3: supported values: "1", "2""#),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("now"),
            r#"Invalid value: "now": spec in body must be of type date-time: "now""#,
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(5),
            r#"Invalid value: "int64": spec in body must be of type date-time: "int64""#,
        ),
        (json!({"type": "string", "format": "date-time"}), json!(true), r#"Invalid value: "": spec in body must be of type date-time: """#),
        (json!({"type": "integer", "minimum": 0}), json!(-1), "Invalid value: -1: spec in body should be greater than or equal to 0"),
        (
            json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true}),
            json!(0),
            "Invalid value: 0: spec in body should be greater than 0",
        ),
        (json!({"type": "integer", "maximum": 9}), json!(10), "Invalid value: 10: spec in body should be less than or equal to 9"),
        (
            json!({"type": "number", "maximum": 0.5, "exclusiveMaximum": true}),
            json!(0.5),
            "Invalid value: 0.5: spec in body should be less than 0.5",
        ),
        (json!({"type": "integer", "multipleOf": 2}), json!(3), "Invalid value: 3: spec in body should be a multiple of 2"),
        (json!({"type": "number", "multipleOf": 0.5}), json!(0.7), "Invalid value: 0.7: spec in body should be a multiple of 0.5"),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "Invalid value: 0: spec in body should have at least 1 items",
        ),
        (json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}), json!(["a", "b"]), "Too many: 2: must have at most 1 items"),
        (json!({"type": "object", "minProperties": 1}), json!({}), "Invalid value: 0: spec in body should have at least 1 properties"),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
            json!({"a": "", "b": ""}),
            "Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": ""}),
            r#"Invalid value: "a": spec.a in body is a forbidden property"#,
        ),
    ] {
        assert_eq!(of(schema.clone(), value.clone()), [format!("spec: {message}")], "{schema} {value}");
    }
}

#[test]
fn what_fits_is_not_told() {
    let whole = json!({"type": "integer"});
    for (schema, value) in [
        (whole.clone(), json!(1.0)),
        (json!({"type": "number"}), json!(1)),
        (json!({"type": "string", "nullable": true}), json!(null)),
        (json!({"type": "string", "maxLength": 3}), json!("äöü")),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), json!([1, "a"])),
        // int32 is a format that no server checks.
        (json!({"type": "integer", "format": "int32"}), json!(9_999_999_999_i64)),
        (json!({"x-kubernetes-int-or-string": true}), json!("50%")),
        (json!({"x-kubernetes-int-or-string": true}), json!(50)),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3)),
    ] {
        assert_eq!(of(schema.clone(), value.clone()), Vec::<String>::new(), "{schema} {value}");
    }
}

#[test]
fn fields_are_named_where_they_are() {
    let entry = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}});
    let schema = json!({"type": "object", "required": ["region"], "properties": {
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "pools": {"type": "array", "items": entry},
    }});
    assert_eq!(
        of(schema, json!({"pools": [{}, {"name": ""}], "labels": {"a": 1}})),
        [
            r#"spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer""#,
            "spec.pools[0].name: Required value",
            r#"spec.pools[1].name: Invalid value: "": spec.pools[1].name in body should be at least 1 chars long"#,
            "spec.region: Required value",
        ]
    );
}

#[test]
fn alternatives_tell_themselves_and_the_best_of_them() {
    let either = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let with = |keyword: &str, rules: Value| {
        let mut schema = either.clone();
        schema[keyword] = rules;
        schema
    };
    let required = json!([{"required": ["a"]}, {"required": ["b"]}]);
    for (schema, value, messages) in [
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!(true),
            vec![
                r#"spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean""#,
                r#"<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)"#,
                r#"spec: Invalid value: "boolean": spec in body must be of type integer: "boolean""#,
            ],
        ),
        (
            with("anyOf", required.clone()),
            json!({}),
            vec![r#"<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)"#, "spec.a: Required value"],
        ),
        (
            with("oneOf", required.clone()),
            json!({}),
            vec![
                r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
                "spec.a: Required value",
            ],
        ),
        (
            with("oneOf", required.clone()),
            json!({"a": "", "b": ""}),
            vec![r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#],
        ),
        (
            with("allOf", required.clone()),
            json!({"a": ""}),
            vec!["spec.b: Required value", r#"<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)"#],
        ),
        (
            with("allOf", required),
            json!({}),
            vec![
                "spec.a: Required value",
                "spec.b: Required value",
                r#"<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated"#,
            ],
        ),
        (
            with("not", json!({"required": ["a"]})),
            json!({"a": ""}),
            vec![r#"<nil>: Invalid value: "": "spec" must not validate the schema (not)"#],
        ),
    ] {
        assert_eq!(of(schema.clone(), value.clone()), messages, "{schema} {value}");
    }
}

#[test]
fn what_is_there_twice_is_told_once() {
    let entry = json!({"type": "object", "required": ["name", "port"], "properties": {
        "name": {"type": "string"}, "port": {"type": "integer"},
    }});
    let list =
        |keys: &[&str]| json!({"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let (a, b) = (json!({"name": "a", "port": 1}), json!({"name": "a", "port": 2}));
    for (schema, value, messages) in [
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "b", "a", "a"]),
            vec![r#"spec[2]: Duplicate value: "a""#],
        ),
        (list(&["name"]), json!([a, b]), vec![r#"spec[1]: Duplicate value: map[string]interface {}{"name":"a"}"#]),
        (list(&["name", "port"]), json!([a, b]), vec![]),
        (list(&["name", "port"]), json!([b, a, b]), vec![r#"spec[2]: Duplicate value: map[string]interface {}{"name":"a", "port":2}"#]),
    ] {
        assert_eq!(of(schema.clone(), value.clone()), messages, "{schema} {value}");
    }
}

#[test]
fn what_was_wrong_and_did_not_change_passes() {
    let entry = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "size": {"type": "integer", "minimum": 1},
    }});
    let schema = of_spec(json!({"type": "object", "properties": {
        "region": {"type": "string", "minLength": 1},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "atomic": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "pools": {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    }}));
    let short = |field: &str| format!(r#"spec.{field}: Invalid value: "": spec.{field} in body should be at least 1 chars long"#);
    for (old, new, messages) in [
        (json!({"region": ""}), json!({"region": "", "set": []}), vec![]),
        (json!({"region": "a"}), json!({"region": ""}), vec![short("region")]),
        (json!({"set": ["a", "a"]}), json!({"set": ["a", "a", "b"]}), vec![]),
        (json!({"set": ["a"]}), json!({"set": ["a", "a"]}), vec![r#"spec.set[1]: Duplicate value: "a""#.to_owned()]),
        (json!({"atomic": ["", "a"]}), json!({"atomic": ["", "a"]}), vec![]),
        // Entries of an atomic list have no old values.
        (json!({"atomic": ["", "a"]}), json!({"atomic": ["", "b"]}), vec![short("atomic[0]")]),
        (
            json!({"pools": [{"name": "a", "size": 0}, {"name": "b", "size": 1}]}),
            json!({"pools": [{"name": "b", "size": 2}, {"name": "a", "size": 0}]}),
            vec![],
        ),
        (
            json!({"pools": [{"name": "a", "size": 0}]}),
            json!({"pools": [{"name": "b", "size": 0}]}),
            vec!["spec.pools[0].size: Invalid value: 0: spec.pools[0].size in body should be greater than or equal to 1".to_owned()],
        ),
    ] {
        assert_eq!(told(&schema, &json!({"spec": new}), Some(&json!({"spec": old}))), messages, "{old} {new}");
    }
}

#[test]
fn an_object_within_an_object_has_a_type() {
    let template = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    for (value, messages) in [
        (json!({"apiVersion": "v1", "kind": "A"}), vec![]),
        (json!({}), vec!["spec.apiVersion: Required value: must not be empty", "spec.kind: Required value: must not be empty"]),
        (
            json!({"apiVersion": "", "kind": 1}),
            vec![r#"spec.apiVersion: Invalid value: "": must not be empty"#, "spec.kind: Invalid value: 1: must be a string"],
        ),
    ] {
        assert_eq!(of(template.clone(), value.clone()), messages, "{value}");
    }
}

#[test]
fn an_update_of_the_status_is_told_as_below_the_status_and_forgives_nothing() {
    let status = json!({"type": "object", "properties": {"phase": {"type": "string", "minLength": 1}}});
    let schema = json!({"type": "object", "properties": {"status": status, "spec": {"type": "string"}}});
    let schema = super::Schema::compile(&schema).unwrap();
    let object = json!({"spec": 1, "status": {"phase": ""}});
    let [cause] = schema.validate_status(&object, &object, Vec::new()).try_into().unwrap();
    assert_eq!(cause.field, "status.phase");
    assert_eq!(cause.message, r#"Invalid value: "": phase in body should be at least 1 chars long"#);
}
