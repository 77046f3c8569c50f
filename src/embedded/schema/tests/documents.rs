//! Schemas that a server refuses.

use serde_json::{Value, json};

use super::super::Schema;

fn refused(schema: &Value, at: &str) -> Vec<String> {
    let causes = Schema::compile_at(schema, at).err().unwrap_or_default();
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// The causes of a schema whose `spec` is this.
fn of_spec(spec: &Value) -> Vec<String> {
    refused(&json!({"type": "object", "properties": {"spec": spec}}), "")
}

#[test]
fn a_schema_must_be_structural() {
    for (spec, causes) in [
        (json!({}), vec!["type: Required value: must not be empty for specified object fields"]),
        (json!({"type": "array"}), vec!["items: Required value: must be specified"]),
        (json!({"type": "array", "items": {}}), vec!["items.type: Required value: must not be empty for specified array items"]),
        (
            json!({"type": "foo"}),
            vec![r#"type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#],
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}),
            vec!["anyOf[0].properties[a].type: Forbidden: must be empty to be structural"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            vec!["additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (json!({"type": "string", "$ref": "#/x"}), vec!["$ref: Forbidden: $ref is not supported"]),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            vec!["uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}),
            vec![
                r#"x-kubernetes-list-map-keys: Invalid value: []string{"a", "b"}: entries must all be names of item properties"#,
                "items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default \
                 or be a required property",
            ],
        ),
        (
            json!({"type": "integer", "default": "a"}),
            vec![r#"default: Invalid value: "string": default in body must be of type integer: "string""#],
        ),
        (
            json!({"type": "object", "default": {"a": 1}}),
            vec![r#"default: Invalid value: map[string]interface {}{"a":1}: must not have unknown fields"#],
        ),
    ] {
        let below = |cause: &&str| format!("properties[spec].{cause}").replace("default in body", " in body");
        assert_eq!(of_spec(&spec), causes.iter().map(below).collect::<Vec<_>>(), "{spec}");
    }
}

#[test]
fn the_root_is_an_object_with_metadata_of_its_own() {
    for (schema, cause) in [
        (json!({}), "at.type: Required value: must not be empty at the root"),
        (json!({"type": "object", "nullable": true}), "at.nullable: Forbidden: nullable cannot be true at the root"),
        (json!({"type": "string"}), r#"at.type: Invalid value: "string": must be object at the root"#),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "at.additionalProperties: Forbidden: must not be used at the root",
        ),
        // Only what stands at the root is asked to be described.
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]}),
            "at.properties[a]: Required value: because it is defined in at.anyOf[0].properties[a]",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "at.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly \
             specified",
        ),
    ] {
        assert_eq!(refused(&schema, "at"), [cause], "{schema}");
    }
}

#[test]
fn a_rule_must_compile() {
    let rule = |rule: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [rule]});
    let shown = |rule: &str| {
        format!(
            r#"apiextensions.ValidationRule{{Rule:"{rule}", Message:"", MessageExpression:"", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", OptionalOldSelf:(*bool)(nil)}}"#
        )
    };
    for (given, cause) in [
        (json!({"rule": ""}), "rule: Required value: rule is not specified".to_owned()),
        (json!({"rule": "true", "reason": "Foo"}), "reason: Unsupported value: \"Foo\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"".to_owned()),
        (json!({"rule": "true", "fieldPath": ".b"}), "fieldPath: Invalid value: \".b\": fieldPath must be a valid path".to_owned()),
        (
            json!({"rule": "self.b == 'x'"}),
            format!("rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 'x'\n | ....^", shown("self.b == 'x'")),
        ),
        (
            json!({"rule": "foo"}),
            format!("rule: Invalid value: {}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^", shown("foo")),
        ),
        (
            json!({"rule": "self.a == 1"}),
            format!("rule: Invalid value: {}: compilation failed: ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'\n | self.a == 1\n | .......^", shown("self.a == 1")),
        ),
        (json!({"rule": "self.a"}), format!("rule: Invalid value: {}: cel expression must evaluate to a bool", shown("self.a"))),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule".to_owned(),
        ),
    ] {
        assert_eq!(of_spec(&rule(given.clone())), [format!("properties[spec].x-kubernetes-validations[0].{cause}")], "{given}");
    }
    let [broken] = of_spec(&rule(json!({"rule": "self."}))).try_into().unwrap();
    assert!(broken.contains("compilation failed: ERROR: <input>:1:6: Syntax error:"), "{broken}");
}

#[test]
fn of_the_metadata_rules_see_the_names() {
    let schema = |rule: &str| json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]});
    assert_eq!(refused(&schema("self.metadata.name.size() < 5 && self.kind == 'A'"), "at"), Vec::<String>::new());
    let [cause] = refused(&schema("has(self.metadata.labels)"), "at").try_into().unwrap();
    assert!(cause.contains("undefined field 'labels'"), "{cause}");
}

#[test]
fn old_values_of_entries_that_cannot_be_found_again_are_out_of_reach() {
    let entry = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    assert_eq!(
        refused(&json!({"type": "object", "properties": {"spec": {"type": "array", "items": entry}}}), "at"),
        [
            r#"at.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within at.properties[spec]"#
        ]
    );
}
