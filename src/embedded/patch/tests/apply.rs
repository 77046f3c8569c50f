//! Server-side apply.

use serde_json::{Value, json};

use super::*;

#[test]
fn an_apply_that_creates_owns_its_leaves_and_not_the_objects_around_them() {
    let live = applied(None, "m", &json!({"size": 1, "inner": {"a": "x"}, "limits": {"cpu": 1}})).unwrap();
    assert_eq!(live["spec"], json!({"size": 1, "inner": {"a": "x"}, "limits": {"cpu": 1}}));
    let fields = json!({"f:spec": {"f:size": {}, "f:inner": {"f:a": {}}, "f:limits": {"f:cpu": {}}}});
    let wanted = json!([{"manager": "m", "operation": "Apply", "apiVersion": VERSION, "time": "2025-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    assert_eq!(live["metadata"]["managedFields"], wanted);
}

#[test]
fn every_sort_of_field_is_owned_in_its_own_way() {
    let cases = [
        (json!({"nodes": [{"name": "a", "size": 1}]}), json!({"f:nodes": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:size": {}}}})),
        (json!({"ports": [{"port": 1}]}), json!({"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}})),
        (json!({"zones": ["a"]}), json!({"f:zones": {"v:\"a\"": {}}})),
        (json!({"args": ["a", "b"]}), json!({"f:args": {}})),
        (json!({"selector": {"a": "b"}}), json!({"f:selector": {}})),
        (json!({"any": {"a": {"b": 1}, "c": [1]}}), json!({"f:any": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}})),
        (json!({"inner": {}}), json!({"f:inner": {}})),
        (json!({"limits": {"cpu": "1"}}), json!({"f:limits": {"f:cpu": {}}})),
        (json!({"name": null}), json!({"f:name": {}})),
    ];
    for (spec, fields) in cases {
        let live = applied(None, "m", &spec).unwrap();
        assert_eq!(owned(&live, &applier("m"))["f:spec"], fields, "{spec}");
    }
}

#[test]
fn metadata_is_owned_by_key_by_value_and_by_uid() {
    let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"});
    let metadata = json!({"name": "x", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "ownerReferences": [owner]});
    let config = json!({"apiVersion": VERSION, "kind": "Thing", "metadata": metadata});
    let live = apply(&schema(), None, &config, false, &applier("m"), Reset::None).unwrap();
    let fields = json!({"f:labels": {"f:a": {}}, "f:annotations": {"f:c": {}}, "f:finalizers": {"v:\"e/f\"": {}},
        "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}});
    assert_eq!(owned(&live, &applier("m")), json!({"f:metadata": fields}));
}

#[test]
fn what_is_not_applied_any_more_goes() {
    let cases = [
        (json!({"size": 1, "name": "a"}), json!({"size": 1}), "a leaf"),
        (json!({"nodes": [{"name": "a"}, {"name": "b"}]}), json!({"nodes": [{"name": "b"}]}), "an entry"),
        (json!({"nodes": [{"name": "a", "size": 1}]}), json!({"nodes": [{"name": "a"}]}), "a field of an entry"),
        (json!({"zones": ["a", "b"]}), json!({"zones": ["b"]}), "a value of a set"),
        (json!({"args": ["a", "b"]}), json!({"args": ["c"]}), "entries of an atomic list"),
        (json!({"selector": {"a": "b"}}), json!({"selector": {"c": "d"}}), "fields of an atomic object"),
        (json!({"any": {"a": 1, "b": 2}}), json!({"any": {"a": 1}}), "an unknown field"),
        (json!({"size": 1, "inner": {"a": "x"}}), json!({"size": 1}), "an object with all that is in it"),
        (json!({"size": 1, "limits": {"a": 1}}), json!({"size": 1}), "a map with all that is in it"),
        (json!({"size": 1, "zones": ["a"]}), json!({"size": 1}), "a list with all that is in it"),
    ];
    for (first, then, why) in cases {
        let live = applied(None, "m", &first).unwrap();
        assert_eq!(applied(Some(&live), "m", &then).unwrap()["spec"], then, "{why}");
    }
}

#[test]
fn what_another_applies_as_well_stays_and_is_the_others() {
    let live = applied(None, "a", &json!({"size": 1, "name": "x"})).unwrap();
    let live = applied(Some(&live), "b", &json!({"size": 1})).unwrap();
    let live = applied(Some(&live), "a", &json!({"name": "x"})).unwrap();
    assert_eq!(live["spec"], json!({"size": 1, "name": "x"}));
    assert_eq!(owned(&live, &applier("a")), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(owned(&live, &applier("b")), json!({"f:spec": {"f:size": {}}}));
}

#[test]
fn a_change_of_what_another_owns_is_a_conflict() {
    let live = applied(None, "a", &json!({"size": 1, "nodes": [{"name": "n", "size": 1}]})).unwrap();
    let refusal = applied(Some(&live), "b", &json!({"size": 2})).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (409, "Conflict"));
    assert_eq!(refusal.message, r#"Apply failed with 1 conflict: conflict with "a": .spec.size"#);
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": ".spec.size"});
    assert_eq!(refusal.details, json!({"causes": [cause]}));
    let refusal = applied(Some(&live), "b", &json!({"size": 2, "nodes": [{"name": "n", "size": 2}]})).unwrap_err();
    let message = "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.size\n- .spec.nodes[name=\"n\"].size";
    assert_eq!(refusal.message, message);
}

#[test]
fn a_conflict_names_how_the_other_writes() {
    let live = created("a", &json!({"size": 1}));
    let refusal = applied(Some(&live), "b", &json!({"size": 2})).unwrap_err();
    assert_eq!(refusal.message, r#"Apply failed with 1 conflict: conflict with "a" using things.example.com/v1: .spec.size"#);
    let mut new = live.clone();
    new["status"] = json!({"phase": "Up"});
    update(&schema(), Some(&live), &mut new, &Writer { subresource: "status", ..updater("c") }, Reset::AllButStatus);
    let config = json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "x"}, "status": {"phase": "Down"}});
    let refusal = apply(&schema(), Some(&new), &config, false, &Writer { subresource: "status", ..applier("b") }, Reset::AllButStatus);
    let message = r#"conflict with "c" with subresource "status" using things.example.com/v1: .status.phase"#;
    assert!(refusal.unwrap_err().message.ends_with(message));
}

#[test]
fn force_takes_what_is_changed_and_leaves_the_rest() {
    let live = applied(None, "a", &json!({"size": 1, "name": "x"})).unwrap();
    let live = forced(&live, "b", &json!({"size": 2}));
    assert_eq!(live["spec"], json!({"size": 2, "name": "x"}));
    assert_eq!(owned(&live, &applier("a")), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(owned(&live, &applier("b")), json!({"f:spec": {"f:size": {}}}));
}

#[test]
fn lists_are_merged_by_key_in_the_order_that_is_applied() {
    let named = |names: &[&str]| Value::from(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>());
    let cases = [
        (vec!["a", "b"], vec!["c"], vec!["a", "b", "c"], "a new one comes last"),
        (
            vec!["a", "b", "c"],
            vec!["c", "a"],
            vec!["b", "c", "a"],
            "shared ones as applied, the others before the shared one that follows them",
        ),
        (vec!["a", "b"], vec!["a", "x", "b"], vec!["a", "x", "b"], "a new one between shared ones"),
        (vec!["a", "b"], vec!["x", "a"], vec!["x", "a", "b"], "a new one before a shared one"),
        (vec!["a"], vec!["a"], vec!["a"], "nothing new"),
        (vec!["a", "s", "b"], vec!["x", "s", "y"], vec!["a", "x", "s", "b", "y"], "both sides have their own"),
    ];
    for (live, config, wanted, why) in cases {
        let old = created("a", &json!({"nodes": named(&live), "zones": live}));
        let new = applied(Some(&old), "b", &json!({"nodes": named(&config), "zones": config})).unwrap();
        assert_eq!(new["spec"]["nodes"], named(&wanted), "{why}");
        assert_eq!(new["spec"]["zones"], json!(wanted), "{why}");
    }
}

#[test]
fn an_atomic_list_is_replaced_and_owned_whole() {
    let live = created("a", &json!({"args": ["x", "y"]}));
    let refusal = applied(Some(&live), "b", &json!({"args": ["y"]})).unwrap_err();
    assert!(refusal.message.ends_with(": .spec.args"));
    let live = forced(&live, "b", &json!({"args": ["y"]}));
    assert_eq!(live["spec"]["args"], json!(["y"]));
    assert_eq!(owned(&live, &applier("b")), json!({"f:spec": {"f:args": {}}}));
    assert_eq!(owned(&live, &updater("a")), json!({"f:spec": {}}));
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_in_upstreams_words() {
    let about = "failed to create typed patch object (/x; things.example.com/v1, Kind=Thing): ";
    let missing = r#"element 0: associative list with keys has an element that omits key field "name" (and doesn't have default value)"#;
    let cases = [
        (json!({"no": 1}), ".spec.no: field not declared in schema".to_owned()),
        (json!({"nodes": [{"size": 1}]}), format!(".spec.nodes: {missing}")),
        (json!({"nodes": [{"name": "a"}, {"name": "a"}]}), r#".spec.nodes: duplicate entries for key [name="a"]"#.into()),
        (json!({"zones": ["a", "a"]}), r#".spec.zones: duplicate entries for key [="a"]"#.into()),
        (json!({"size": "x"}), ".spec.size: expected numeric (int or float), got string".into()),
        (json!({"name": 1}), ".spec.name: expected string, got &value.valueUnstructured{Value:1}".into()),
        (
            json!({"inner": [], "flag": 1}),
            "errors:\n  .spec.flag: expected boolean, got &{1}\n  .spec.inner: expected map, got &{[]}".into(),
        ),
        (json!({"args": {"a": 1}}), ".spec.args: expected list, got &{map[a:1]}".into()),
    ];
    for (spec, wanted) in cases {
        let refusal = applied(None, "m", &spec).unwrap_err();
        assert_eq!((refusal.code, refusal.message), (500, format!("{about}{wanted}")), "{spec}");
    }
}

#[test]
fn a_configuration_of_another_kind_or_with_managed_fields_is_a_bad_request() {
    let live = applied(None, "m", &json!({"size": 1})).unwrap();
    let mut other = thing(&json!({}));
    other["kind"] = "Other".into();
    let refusal = apply(&schema(), Some(&live), &other, false, &applier("m"), Reset::None).unwrap_err();
    assert_eq!((refusal.code, refusal.message.as_str()), (400, "invalid object type: things.example.com/v1, Kind=Other"));
    let refusal = apply(&schema(), Some(&live), &live, false, &applier("m"), Reset::None).unwrap_err();
    assert_eq!((refusal.code, refusal.message.as_str()), (400, "metadata.managedFields must be nil"));
}

#[test]
fn status_and_main_are_owned_apart() {
    let mut live = applied(None, "m", &json!({"size": 1})).unwrap();
    let status = Writer { subresource: "status", ..applier("m") };
    let mut config = thing(&json!({"size": 5}));
    config["status"] = json!({"phase": "Up"});
    live = apply(&schema(), Some(&live), &config, true, &status, Reset::AllButStatus).unwrap();
    assert_eq!(owned(&live, &status), json!({"f:status": {"f:phase": {}}}), "spec is reset by the endpoint");
    assert_eq!(owned(&live, &applier("m")), json!({"f:spec": {"f:size": {}}}));
    live = apply(&schema(), Some(&live), &config, true, &applier("m"), Reset::Status).unwrap();
    assert_eq!(owned(&live, &applier("m")), json!({"f:spec": {"f:size": {}}}), "status is reset by the endpoint");
}

#[test]
fn an_apply_that_changes_nothing_leaves_everything() {
    let live = applied(None, "a", &json!({"size": 1})).unwrap();
    let later = Writer { time: "2025-01-01T00:00:09Z", ..applier("a") };
    let again = apply(&schema(), Some(&live), &thing(&json!({"size": 1})), false, &later, Reset::None).unwrap();
    assert_eq!(again.to_string(), live.to_string());
    let other = apply(&schema(), Some(&live), &thing(&json!({"size": 1})), false, &applier("b"), Reset::None).unwrap();
    assert_eq!(entry(&other, &applier("b")).unwrap().get("time"), None, "upstream sets a time only when a value changed");
}

#[test]
fn an_object_without_owners_is_first_given_to_before_first_apply() {
    let live = stored(thing(&json!({"size": 1, "name": "x"})));
    let unowned = updated(&live, "u", |object| object["spec"]["size"] = 2.into());
    assert_eq!(unowned["metadata"].get("managedFields"), None, "an update does not begin to tell who owns what");
    let refusal = applied(Some(&unowned), "a", &json!({"size": 3})).unwrap_err();
    let message = r#"Apply failed with 1 conflict: conflict with "before-first-apply" using things.example.com/v1: .spec.size"#;
    assert_eq!(refusal.message, message);
    let forced = forced(&unowned, "a", &json!({"size": 3}));
    assert_eq!(owned(&forced, &updater("before-first-apply")), json!({"f:spec": {".": {}, "f:name": {}}}));
}

#[test]
fn what_became_one_value_since_is_owned_whole() {
    let mut granular = schema();
    let spec = granular.properties.get_mut("spec").unwrap();
    spec.properties.get_mut("selector").unwrap().atomic = false;
    spec.properties.get_mut("args").unwrap().list = ListType::Set;
    let config = thing(&json!({"selector": {"a": "b"}, "args": ["x"], "size": 1}));
    let live = stored(apply(&granular, None, &config, false, &applier("a"), Reset::None).unwrap());
    assert_eq!(owned(&live, &applier("a"))["f:spec"]["f:selector"], json!({"f:a": {}}));
    let live = applied(Some(&live), "b", &json!({"name": "x"})).unwrap();
    assert_eq!(owned(&live, &applier("a")), json!({"f:spec": {"f:selector": {}, "f:args": {}, "f:size": {}}}));
}

/// As `kubectl apply` leaves an object: what it applied is in the annotation, and owned by an update.
fn applied_by_kubectl(spec: &Value) -> Value {
    let mut new = thing(spec);
    new["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": thing(spec).to_string()});
    update(&schema(), None, &mut new, &updater("kubectl-client-side-apply"), Reset::None);
    stored(new)
}

#[test]
fn kubectl_takes_over_what_it_applied_client_side() {
    let live = applied_by_kubectl(&json!({"size": 1, "name": "x"}));
    let refusal = applied(Some(&live), "other", &json!({"size": 2})).unwrap_err();
    assert_eq!(refusal.code, 409, "nobody else does");
    let live = applied(Some(&live), "kubectl", &json!({"size": 2})).unwrap();
    assert_eq!(live["spec"], json!({"size": 2, "name": "x"}));
    assert_eq!(owned(&live, &applier("kubectl")), json!({"f:spec": {"f:size": {}}}));
    let annotation = &live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert_eq!(annotation.as_str(), Some(format!("{}\n", thing(&json!({"size": 2}))).as_str()));
}

#[test]
fn kubectl_does_not_take_what_changed_since_it_applied() {
    let live = applied_by_kubectl(&json!({"size": 1, "name": "x"}));
    let live = updated(&live, "u", |object| object["spec"]["size"] = 5.into());
    let refusal = applied(Some(&live), "kubectl", &json!({"size": 2, "name": "y"})).unwrap_err();
    assert_eq!(refusal.message, r#"Apply failed with 1 conflict: conflict with "u" using things.example.com/v1: .spec.size"#);
}

#[test]
fn an_object_that_loses_all_that_was_in_it_becomes_null_even_if_applied_empty() {
    let live = applied(None, "m", &json!({"inner": {"a": "x"}})).unwrap();
    assert_eq!(applied(Some(&live), "m", &json!({"inner": {}})).unwrap()["spec"], json!({"inner": null}), "as upstream");
}
