//! What holds of every sequence of applies.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::embedded::patch::print::parse;
use crate::embedded::patch::shape::Place;
use crate::embedded::patch::walk::set_of;

type Spec = (Option<i64>, (Vec<&'static str>, Vec<Option<i64>>), Vec<&'static str>, Option<Vec<&'static str>>, Option<Vec<&'static str>>);

/// Fields of every sort, each there or not, with few values, so that two of them meet often.
fn specs() -> impl Strategy<Value = Value> {
    let names = || proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle();
    // An object that loses all that was in it becomes null, even if it is applied empty.
    let some = || proptest::sample::subsequence(vec!["a", "b", "c"], 1..=3);
    let nodes = names().prop_flat_map(|names| {
        let count = names.len();
        (Just(names), proptest::collection::vec(proptest::option::of(0..2_i64), count))
    });
    let (size, args, any) = (proptest::option::of(0..2_i64), proptest::option::of(names()), proptest::option::of(some()));
    (size, nodes, names(), args, any).prop_map(|(size, (names, sizes), zones, args, any): Spec| {
        let mut spec = json!({"name": "x"});
        if let Some(size) = size {
            spec["size"] = size.into();
        }
        let nodes: Vec<Value> = names
            .iter()
            .zip(sizes)
            .map(|(name, size)| size.map_or(json!({"name": name}), |size| json!({"name": name, "size": size})))
            .collect();
        if !nodes.is_empty() {
            spec["nodes"] = nodes.into();
        }
        if !zones.is_empty() {
            spec["zones"] = zones.into();
        }
        if let Some(args) = args {
            spec["args"] = args.into();
        }
        if let Some(keys) = any {
            spec["any"] = keys.into_iter().map(|key| (key.to_owned(), json!({"of": key}))).collect();
        }
        spec
    })
}

/// Whether everything of the second is in the first.
fn has(live: &Value, config: &Value) -> bool {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) => {
            config.iter().all(|(name, value)| live.get(name).is_some_and(|live| has(live, value)))
        }
        (Value::Array(live), Value::Array(config)) => config.iter().all(|entry| live.iter().any(|live| has(live, entry))),
        (live, config) => live == config,
    }
}

proptest! {
    #[test]
    fn what_is_forced_is_there_and_the_managers(specs in proptest::collection::vec((any::<bool>(), specs()), 1..6)) {
        let mut live = created("u", &json!({"size": 1, "nodes": [{"name": "a"}]}));
        let root = schema();
        for (first, spec) in specs {
            let manager = if first { "a" } else { "b" };
            live = forced(&live, manager, &spec);
            let wanted = set_of(Place::root(&root), &json!({"spec": spec}));
            prop_assert_eq!(&parse(&owned(&live, &applier(manager))).unwrap(), &wanted);
            prop_assert!(has(&live["spec"], &spec), "{} lacks some of {spec}", live["spec"]);
            let merged = apply(&root, Some(&live), &thing(&spec), false, &applier(manager), Reset::None).unwrap();
            prop_assert_eq!(merged, live.clone(), "and applying it again changes nothing");
        }
    }
}
