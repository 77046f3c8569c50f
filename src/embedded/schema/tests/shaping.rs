//! Pruning and defaulting.

use serde_json::{Value, json};

use super::super::Schema;

fn shaped() -> Schema {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "object"}}});
    let resource = json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}});
    Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "any": any,
        "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "pools": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "free": {"type": "object", "additionalProperties": true},
        "template": resource,
    }}}}))
    .unwrap()
}

#[test]
fn unknown_fields_go_and_are_named() {
    for (object, kept, named) in [
        (json!({"spec": {"foo": 1}, "bar": 2}), json!({"spec": {}}), vec!["bar", "spec.foo"]),
        (json!({"spec": {"pools": [{"name": "a", "bar": 1}]}}), json!({"spec": {"pools": [{"name": "a"}]}}), vec!["spec.pools[0].bar"]),
        (json!({"spec": {"labels": {"x": {"a": "", "b": ""}}}}), json!({"spec": {"labels": {"x": {"a": ""}}}}), vec!["spec.labels.x.b"]),
        (json!({"spec": {"any": {"foo": {"bar": 1}}}}), json!({"spec": {"any": {"foo": {"bar": 1}}}}), vec![]),
        // A known field of a preserving object is pruned again.
        (json!({"spec": {"any": {"known": {"x": 1}}}}), json!({"spec": {"any": {"known": {}}}}), vec!["spec.any.known.x"]),
        (json!({"spec": {"free": {"a": 1, "b": {"c": 1}}}}), json!({"spec": {"free": {"a": 1, "b": {}}}}), vec!["spec.free.b.c"]),
        (
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}),
            vec![],
        ),
        (
            json!({"spec": {"template": {"kind": "A", "metadata": {"x": 1}, "status": 1}}}),
            json!({"spec": {"template": {"kind": "A", "metadata": {"x": 1}}}}),
            vec!["spec.template.status"],
        ),
        (json!({"spec": {"kind": "A"}}), json!({"spec": {}}), vec!["spec.kind"]),
    ] {
        let mut pruned = object.clone();
        assert_eq!(shaped().prune(&mut pruned), named, "{object}");
        assert_eq!(pruned, kept, "{object}");
    }
}

#[test]
fn defaults_fill_what_is_missing_and_nulls_go() {
    let inner = json!({"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}});
    let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "name": {"type": "string", "default": "x"},
        "plain": {"type": "string"},
        "nullable": {"type": "string", "nullable": true, "default": "y"},
        "inner": inner,
        "outer": {"type": "object", "properties": {"size": {"type": "integer", "default": 4}}},
        "pools": {"type": "array", "items": {"type": "object", "properties": {"size": {"type": "integer", "default": 5}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"size": {"type": "integer", "default": 6}}}},
    }}}}))
    .unwrap();
    let base = |more: Value| {
        let mut spec = json!({"name": "x", "nullable": "y", "inner": {"size": 3}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"spec": spec})
    };
    for (object, filled) in [
        // Nothing is filled in below what is not there.
        (json!({}), json!({})),
        (json!({"spec": {}}), base(json!({}))),
        (json!({"spec": {"name": null, "plain": null}}), base(json!({}))),
        (json!({"spec": {"nullable": null}}), base(json!({"nullable": null}))),
        (json!({"spec": {"outer": {}, "inner": {"size": 1}}}), base(json!({"outer": {"size": 4}, "inner": {"size": 1}}))),
        (json!({"spec": {"pools": [{}, null]}}), base(json!({"pools": [{"size": 5}, null]}))),
        (json!({"spec": {"map": {"a": {}, "b": null}}}), base(json!({"map": {"a": {"size": 6}}}))),
    ] {
        let mut found = object.clone();
        schema.default(&mut found);
        assert_eq!(found, filled, "{object}");
    }
}
