//! What apply and update do to an object and to who owns what of it.

use serde_json::{Value, json};

use super::fields::Set;
use super::managed::{Operation, Reset, Writer, apply, keep_times, update};
use super::print::{parse, print};
use super::shape::Place;
use super::walk::set_of;
use crate::embedded::errors::Refusal;
use crate::embedded::schema::node::{ListType, Node, Type};

const VERSION: &str = "things.example.com/v1";

fn of(type_: Type) -> Node {
    Node { type_, ..Node::default() }
}

fn object<const N: usize>(fields: [(&str, Node); N]) -> Node {
    Node { properties: fields.map(|(name, node)| (name.to_owned(), node)).into(), ..of(Type::Object) }
}

fn list(list: ListType, items: Node) -> Node {
    Node { list, items: Some(Box::new(items)), ..of(Type::Array) }
}

/// A kind with one field of every sort.
fn schema() -> Node {
    let tcp = Node { default: Some(json!("TCP")), ..of(Type::String) };
    let port = object([("port", of(Type::Integer)), ("protocol", tcp), ("note", of(Type::String))]);
    let node = object([("name", of(Type::String)), ("size", of(Type::Integer)), ("zone", of(Type::String))]);
    let condition = object([("type", of(Type::String)), ("status", of(Type::String))]);
    let spec = object([
        ("size", of(Type::Integer)),
        ("flag", of(Type::Boolean)),
        ("name", of(Type::String)),
        ("nodes", list(ListType::Map(vec!["name".into()]), node)),
        ("ports", list(ListType::Map(vec!["port".into(), "protocol".into()]), port)),
        ("zones", list(ListType::Set, of(Type::String))),
        ("args", list(ListType::Atomic, of(Type::String))),
        ("limits", Node { additional: Some(Box::new(of(Type::IntOrString))), ..of(Type::Object) }),
        ("selector", Node { atomic: true, additional: Some(Box::new(of(Type::String))), ..of(Type::Object) }),
        ("any", Node { preserve_unknown: true, ..Node::default() }),
        ("inner", object([("a", of(Type::String)), ("b", of(Type::String))])),
    ]);
    let status = object([("phase", of(Type::String)), ("conditions", list(ListType::Map(vec!["type".into()]), condition))]);
    object([("spec", spec), ("status", status)])
}

fn applier(manager: &str) -> Writer<'_> {
    Writer { manager, operation: Operation::Apply, api_version: VERSION, subresource: "", time: "2025-01-01T00:00:00Z" }
}

fn updater(manager: &str) -> Writer<'_> {
    Writer { operation: Operation::Update, ..applier(manager) }
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

/// What the store adds to a new object.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = "u".into();
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

fn applied(live: Option<&Value>, manager: &str, spec: &Value) -> Result<Value, Refusal> {
    apply(&schema(), live, &thing(spec), false, &applier(manager), Reset::None).map(stored)
}

fn forced(live: &Value, manager: &str, spec: &Value) -> Value {
    stored(apply(&schema(), Some(live), &thing(spec), true, &applier(manager), Reset::None).unwrap())
}

fn created(manager: &str, spec: &Value) -> Value {
    let mut new = thing(spec);
    update(&schema(), None, &mut new, &updater(manager), Reset::None);
    stored(new)
}

fn updated(old: &Value, manager: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    update(&schema(), Some(old), &mut new, &updater(manager), Reset::None);
    new
}

fn entry<'a>(object: &'a Value, writer: &Writer<'_>) -> Option<&'a Value> {
    let operation = if writer.operation == Operation::Apply { "Apply" } else { "Update" };
    object["metadata"]["managedFields"].as_array()?.iter().find(|entry| {
        entry["manager"] == writer.manager
            && entry["operation"] == operation
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default() == writer.subresource
    })
}

/// What the writer owns, as `fieldsV1`; null for nothing.
fn owned(object: &Value, writer: &Writer<'_>) -> Value {
    entry(object, writer).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

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
fn a_create_owns_the_objects_around_its_leaves_too() {
    let live = created("m", &json!({"size": 1, "inner": {"a": "x"}}));
    let fields = json!({"f:spec": {".": {}, "f:size": {}, "f:inner": {".": {}, "f:a": {}}}});
    assert_eq!(owned(&live, &updater("m")), fields);
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
    let cases: [(&[&str], &[&str], &[&str], &str); 6] = [
        (&["a", "b"], &["c"], &["a", "b", "c"], "a new one comes last"),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"], "shared ones as applied, the others before the shared one that follows them"),
        (&["a", "b"], &["a", "x", "b"], &["a", "x", "b"], "a new one between shared ones"),
        (&["a", "b"], &["x", "a"], &["x", "a", "b"], "a new one before a shared one"),
        (&["a"], &["a"], &["a"], "nothing new"),
        (&["a", "s", "b"], &["x", "s", "y"], &["a", "x", "s", "b", "y"], "both sides have their own"),
    ];
    for (live, config, wanted, why) in cases {
        let old = created("a", &json!({"nodes": named(live), "zones": live}));
        let new = applied(Some(&old), "b", &json!({"nodes": named(config), "zones": config})).unwrap();
        assert_eq!(new["spec"]["nodes"], named(wanted), "{why}");
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
fn an_update_takes_what_it_changes_from_an_applier() {
    let live = applied(None, "a", &json!({"size": 1, "name": "x"})).unwrap();
    let live = updated(&live, "u", |object| object["spec"]["size"] = 2.into());
    assert_eq!(owned(&live, &applier("a")), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(owned(&live, &updater("u")), json!({"f:spec": {"f:size": {}}}));
    let live = updated(&live, "u", |object| drop(object["spec"].as_object_mut().unwrap().remove("name")));
    assert_eq!(owned(&live, &applier("a")), Value::Null, "what nobody has is nobody's");
}

#[test]
fn an_update_that_changes_nothing_leaves_everything() {
    let live = created("u", &json!({"size": 1, "nodes": [{"name": "a"}]}));
    for manager in ["u", "v"] {
        let mut new = live.clone();
        let later = Writer { time: "2025-01-01T00:00:09Z", ..updater(manager) };
        update(&schema(), Some(&live), &mut new, &later, Reset::None);
        assert_eq!(new.to_string(), live.to_string(), "{manager}");
        new["metadata"].as_object_mut().unwrap().remove("managedFields");
        update(&schema(), Some(&live), &mut new, &later, Reset::None);
        assert_eq!(new.to_string(), live.to_string(), "{manager} without managed fields");
    }
}

#[test]
fn times_alone_are_no_change() {
    let live = applied(None, "a", &json!({"size": 1})).unwrap();
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:00:00Z".into();
    keep_times(&live, &mut new);
    assert_eq!(new, live);
    new["spec"]["size"] = 2.into();
    new["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:00:00Z".into();
    keep_times(&live, &mut new);
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "2026-01-01T00:00:00Z");
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
fn an_empty_list_resets_who_owns_what() {
    let live = applied(None, "a", &json!({"size": 1})).unwrap();
    for empty in [json!([]), json!([{}])] {
        let new = updated(&live, "u", |object| object["metadata"]["managedFields"] = empty.clone());
        assert_eq!(new["metadata"].get("managedFields"), None, "{empty}");
    }
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([]);
    update(&schema(), Some(&live), &mut new, &Writer { subresource: "status", ..updater("u") }, Reset::AllButStatus);
    assert_eq!(new, live, "not through a subresource");
}

#[test]
fn more_than_ten_updaters_become_ancient_changes() {
    let names: Vec<String> = (0..12).map(|at| format!("u{at:02}")).collect();
    let mut live = created("u00", &json!({"limits": {"u00": 1}}));
    for (at, name) in names.iter().enumerate().skip(1) {
        let time = format!("2025-01-01T00:00:{at:02}Z");
        let mut new = live.clone();
        new["spec"]["limits"][name] = 1.into();
        update(&schema(), Some(&live), &mut new, &Writer { time: &time, ..updater(name) }, Reset::None);
        live = new;
    }
    let managers: Vec<&str> =
        live["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(managers, ["ancient-changes", "u03", "u04", "u05", "u06", "u07", "u08", "u09", "u10", "u11"]);
    let limits = json!({".": {}, "f:u00": {}, "f:u01": {}, "f:u02": {}});
    assert_eq!(owned(&live, &updater("ancient-changes")), json!({"f:spec": {".": {}, "f:limits": limits}}));
    assert_eq!(entry(&live, &updater("ancient-changes")).unwrap()["time"], "2025-01-01T00:00:02Z");
}

#[test]
fn appliers_come_first_then_the_oldest() {
    let live = created("z", &json!({"size": 1}));
    let live = updated(&live, "b", |object| object["spec"]["name"] = "x".into());
    let live = applied(Some(&live), "m", &json!({"flag": true})).unwrap();
    let managers: Vec<&Value> = live["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["m", "b", "z"]);
}

#[test]
fn what_does_not_fit_the_schema_is_owned_by_nobody() {
    let live = created("a", &json!({"size": 1}));
    let new = updated(&live, "u", |object| object["spec"]["no"] = 1.into());
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn an_updated_list_may_have_an_entry_twice() {
    let live = created("a", &json!({"zones": ["x", "x", "y"]}));
    assert_eq!(owned(&live, &updater("a"))["f:spec"]["f:zones"], json!({".": {}, "v:\"x\"": {}, "v:\"y\"": {}}));
    let live = updated(&live, "b", |object| object["spec"]["zones"] = json!(["x", "y"]));
    assert_eq!(owned(&live, &updater("b")), json!({"f:spec": {"f:zones": {"v:\"x\"": {}}}}), "once where it was twice is a change");
}
