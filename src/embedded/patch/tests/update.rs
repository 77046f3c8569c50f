//! Create, update, and the other patches.

use serde_json::{Value, json};

use super::*;
use crate::embedded::patch::managed::keep_times;

#[test]
fn a_create_owns_the_objects_around_its_leaves_too() {
    let live = created("m", &json!({"size": 1, "inner": {"a": "x"}}));
    let fields = json!({"f:spec": {".": {}, "f:size": {}, "f:inner": {".": {}, "f:a": {}}}});
    assert_eq!(owned(&live, &updater("m")), fields);
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
