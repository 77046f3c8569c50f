//! Rules in CEL: their results, words and fields.

use serde_json::{Value, json};

use super::{of_spec, schemas, told};

fn with(mut schema: Value, rules: Value) -> Value {
    schema["x-kubernetes-validations"] = rules;
    schema
}

fn object() -> Value {
    json!({"type": "object", "properties": {
        "a": {"type": "integer"},
        "b": {"type": "integer", "nullable": true},
        "a-b": {"type": "string"},
        "namespace": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "for": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
        "share": {"x-kubernetes-int-or-string": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }})
}

#[test]
fn a_failed_rule_tells_its_message_where_it_says() {
    for (rule, spec, cause) in [
        (json!({"rule": "self.a > 1"}), json!({"a": 1}), r#"spec: Invalid value: "object": failed rule: self.a > 1"#),
        (json!({"rule": "self.a > 1", "message": " too small "}), json!({"a": 1}), r#"spec: Invalid value: "object": too small"#),
        (
            json!({"rule": "self.a > 1", "messageExpression": "'a is ' + string(self.a)"}),
            json!({"a": 1}),
            r#"spec: Invalid value: "object": a is 1"#,
        ),
        // A message that cannot be made gives way to the plain one.
        (
            json!({"rule": "self.a > 1", "message": "small", "messageExpression": "string(self.b)"}),
            json!({"a": 1}),
            r#"spec: Invalid value: "object": small"#,
        ),
        (json!({"rule": "self.a > 1", "message": "m", "fieldPath": ".a"}), json!({"a": 1}), r#"spec.a: Invalid value: "object": m"#),
        (
            json!({"rule": "self.a > 1", "message": "m", "fieldPath": ".labels['x/y']"}),
            json!({"a": 1}),
            r#"spec.labels[x/y]: Invalid value: "object": m"#,
        ),
        (json!({"rule": "self.a > 1", "message": "m", "reason": "FieldValueForbidden"}), json!({"a": 1}), "spec: Forbidden: m"),
        (json!({"rule": "self.a > 1", "message": "m", "reason": "FieldValueRequired"}), json!({"a": 1}), "spec: Required value: m"),
        (
            json!({"rule": "self.a > 1", "message": "m", "reason": "FieldValueDuplicate"}),
            json!({"a": 1}),
            r#"spec: Duplicate value: "object""#,
        ),
        (
            json!({"rule": "self.b > 1", "message": "m"}),
            json!({"a": 1}),
            r#"spec: Invalid value: "object": no such key: b evaluating rule: m"#,
        ),
        (
            json!({"rule": "self.a / 0 == 1"}),
            json!({"a": 1}),
            r#"spec: Invalid value: "object": division by zero evaluating rule: self.a / 0 == 1"#,
        ),
    ] {
        let schema = of_spec(with(object(), json!([rule])));
        assert_eq!(told(&schema, &json!({"spec": spec}), None), [cause], "{rule}");
    }
}

#[test]
fn a_rule_sees_values_as_the_schema_types_them() {
    let spec = json!({
        "a": 1, "b": null, "a-b": "x", "namespace": "n", "at": "2024-01-02T03:04:05Z", "for": "90m", "data": "aGk=", "share": "5%",
        "labels": {"x-y": "z"}, "set": ["b", "a"], "list": [{"n": 1}, {"n": 2}],
    });
    for rule in [
        "!has(self.b)",
        "self.a__dash__b == 'x'",
        "self.__namespace__ == 'n'",
        "self.at < timestamp('2024-01-02T03:04:06Z')",
        "self.__for__ == duration('1h30m')",
        "self.data == b'hi'",
        "type(self.share) == string && self.share.endsWith('%')",
        "self.labels['x-y'] == 'z' && 'x-y' in self.labels",
        "self.list.all(x, x.n > 0) && self.list.exists(x, x.n == 2) && size(self.list) == 2",
        "self.list.map(x, x.n).sum() == 3",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "self.a == 1 ? true : false",
        "self.set == ['a', 'b'] && !(self.set != ['a', 'b']) && self.set != ['a']",
        "string(true) + string(self.at) + string(self.__for__) + string(1) == 'true2024-01-02T03:04:05Z5400s1'",
        "optional.of(self.a).optMap(x, x + 1).orValue(0) == 2",
        "optional.of(self.a).optFlatMap(x, optional.of(x)).value() == 1",
        "self.?b.orValue(7) == 7 && self.?a.orValue(7) == 1",
        "self.?labels['x-y'].orValue('') == 'z' && !self.?labels.q.hasValue() && self.list[?5].orValue({'n': 9}).n == 9",
        "type(self.a) == int && type(self.at) == google.protobuf.Timestamp",
    ] {
        let schema = of_spec(with(object(), json!([{"rule": rule}])));
        assert_eq!(told(&schema, &json!({"spec": spec}), None), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn rules_run_only_on_what_is_valid() {
    let schema = of_spec(with(object(), json!([{"rule": "false", "message": "m"}])));
    assert_eq!(
        told(&schema, &json!({"spec": {"a": "x"}}), None),
        [
            r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#,
            "<nil>: Invalid value: \"null\": some validation rules were not checked because the object was invalid; correct the existing errors to \
             complete validation",
        ]
    );
}

#[test]
fn a_rule_of_the_old_value_runs_only_when_there_is_one() {
    let entry = with(
        json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}),
        json!([{"rule": "self.size >= oldSelf.size", "message": "shrinks"}]),
    );
    let schema = of_spec(json!({"type": "object", "properties": {
        "pools": {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "once": with(json!({"type": "string"}), json!([{"rule": "oldSelf.optMap(old, old == self).orValue(true)", "optionalOldSelf": true, "message": "fixed"}])),
    }}));
    let pool = |name: &str, size: i64| json!({"name": name, "size": size});
    for (old, new, causes) in [
        (
            json!({"pools": [pool("a", 2), pool("b", 1)]}),
            json!({"pools": [pool("b", 1), pool("a", 1)]}),
            vec![r#"spec.pools[1]: Invalid value: "object": shrinks"#],
        ),
        (json!({"pools": [pool("a", 2)]}), json!({"pools": [pool("b", 1)]}), vec![]),
        (json!({"once": "a"}), json!({"once": "b"}), vec![r#"spec.once: Invalid value: "string": fixed"#]),
        (json!({}), json!({"once": "b"}), vec![]),
    ] {
        assert_eq!(told(&schema, &json!({"spec": new}), Some(&json!({"spec": old}))), causes, "{old} {new}");
        assert_eq!(told(&schema, &json!({"spec": new}), None), Vec::<String>::new(), "{new}");
    }
}

#[test]
fn a_rule_that_failed_before_passes_while_nothing_it_sees_changes() {
    let inner =
        with(json!({"type": "object", "properties": {"x": {"type": "integer"}}}), json!([{"rule": "self.x > 1", "message": "small"}]));
    let schema = of_spec(json!({"type": "object", "properties": {"inner": inner, "other": {"type": "string"}}}));
    let small = [r#"spec.inner: Invalid value: "object": small"#];
    let of = |x: i64, other: &str| json!({"spec": {"inner": {"x": x}, "other": other}});
    assert_eq!(told(&schema, &of(1, "b"), Some(&of(1, "a"))), Vec::<String>::new());
    assert_eq!(told(&schema, &of(0, "a"), Some(&of(1, "a"))), small);
    assert_eq!(told(&schema, &of(1, "a"), None), small);
}

#[test]
fn the_provider_of_a_cluster_is_kept() {
    let cluster =
        schemas().into_iter().find(|(group, kind, _)| group == "kubernetes.edge-connect.eu" && kind == "KubernetesCluster").unwrap().2;
    let pools = json!([{"name": "a", "replicas": 1, "capabilities": {"cpu": "4", "memory": "16Gi"}}]);
    let of = |region: &str, provider: &str| {
        let mut spec = json!({"region": region, "version": "1.34.2", "nodePools": pools});
        if !provider.is_empty() {
            spec["providerRef"] = json!({"name": provider});
        }
        json!({"metadata": {"name": "a"}, "spec": spec})
    };
    for (old, new, fields) in [
        (of("eu", ""), of("de", "otc"), vec![]),
        (of("eu", "otc"), of("eu", "otc"), vec![]),
        (of("eu", "otc"), of("eu", ""), vec!["spec.providerRef"]),
        (of("eu", "otc"), of("de", "other"), vec!["spec.providerRef", "spec.region"]),
    ] {
        let found: Vec<String> = cluster.validate(&new, Some(&old)).into_iter().map(|cause| cause.field).collect();
        assert_eq!(found, fields, "{old} {new}");
    }
}
