use super::*;
use crate::api::manifest::{catalog, definition, exported};

fn tenant() -> Value {
    with_metadata(definition::tenant().schema(), true)
}

fn cluster(change: impl FnOnce(&mut Value)) -> Value {
    let pool = json!({ "name": "workers", "replicas": 3, "capabilities": { "cpu": "4", "memory": "16Gi" } });
    let mut cluster = json!({ "apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster",
        "metadata": { "name": "demo" }, "spec": { "region": "eu-de", "version": "1.34.2", "nodePools": [pool] } });
    change(&mut cluster);
    cluster
}

/// Keywords by which nothing is checked here.
const SILENT: [&str; 5] = ["description", "anyOf", "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields", "format"];
/// Those that [`check`] and [`prune`] read.
const HEEDED: [&str; 15] = [
    "type",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
];

fn keywords(schema: &Value, found: &mut BTreeSet<String>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        found.insert(keyword.clone());
        match keyword.as_str() {
            "properties" => value.as_object().into_iter().flatten().for_each(|(_, schema)| keywords(schema, found)),
            "items" | "additionalProperties" => keywords(value, found),
            _ => {}
        }
    }
}

#[test]
fn every_keyword_of_the_schemas_is_heeded() {
    let mut found = BTreeSet::new();
    for definition in exported().iter().chain(&catalog()) {
        keywords(&with_metadata(definition.schema(), definition.kind.namespaced), &mut found);
    }
    let known: BTreeSet<String> =
        SILENT.iter().chain(&HEEDED).chain(&["x-kubernetes-int-or-string"]).map(|&word| word.to_owned()).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(HEEDED.iter().all(|keyword| found.contains(*keyword)), "a keyword is heeded that no schema has: {found:?}");
}

#[test]
fn every_pattern_of_the_schemas_compiles() {
    fn compile(schema: &Value) {
        if let Some(pattern) = schema["pattern"].as_str() {
            Regex::new(pattern).unwrap();
        }
        schema["properties"].as_object().into_iter().flatten().for_each(|(_, schema)| compile(schema));
        schema.get("items").into_iter().for_each(compile);
    }
    for definition in exported().iter().chain(&catalog()) {
        compile(&with_metadata(definition.schema(), definition.kind.namespaced));
    }
}

#[test]
fn a_bound_that_is_crossed_is_named_with_its_field() {
    let pool = |name: usize| json!({ "name": format!("p{name}"), "replicas": 0, "capabilities": { "cpu": 1, "memory": 1 } });
    let at = |pointer: &'static str, value: Value| cluster(|cluster| *cluster.pointer_mut(pointer).unwrap() = value);
    for (object, field, says) in [
        (at("/spec/nodePools", json!([])), "spec.nodePools", "must not be empty"),
        (at("/spec/nodePools", (0..51).map(pool).collect()), "spec.nodePools", "has 51 items, at most 50"),
        (at("/spec/nodePools", json!([pool(1), pool(2), pool(1)])), "spec.nodePools[2].name", r#""p1" is listed twice"#),
        (at("/spec/nodePools/0/replicas", json!(10_001)), "spec.nodePools[0].replicas", "10001 is not between 0 and 10000"),
        (at("/spec/nodePools/0/replicas", json!(-1)), "spec.nodePools[0].replicas", "-1 is not between 0 and 10000"),
        (at("/spec/nodePools/0/replicas", json!("3")), "spec.nodePools[0].replicas", r#"must be an integer, not the string "3""#),
        (at("/spec/nodePools/0/replicas", json!(1.5)), "spec.nodePools[0].replicas", "must be an integer, not 1.5"),
        (at("/spec/nodePools/0/name", json!("Big Pool")), "spec.nodePools[0].name", r#""Big Pool" does not match"#),
        (at("/spec/nodePools/0/capabilities/cpu", json!("-4")), "spec.nodePools[0].capabilities.cpu", "must not be negative"),
        (at("/spec/nodePools/0/capabilities/cpu", json!(-4)), "spec.nodePools[0].capabilities.cpu", "must not be negative"),
        (at("/spec/nodePools/0/capabilities/memory", json!("16GB")), "spec.nodePools[0].capabilities.memory", "neither a suffix"),
        (at("/spec/nodePools/0/capabilities/memory", json!("9E99")), "spec.nodePools[0].capabilities.memory", "is not between -18 and 18"),
        (at("/spec/version", json!(1.34)), "spec.version", "must be a string, not 1.34; put it in quotes"),
        (at("/spec/region", json!("")), "spec.region", "must not be empty"),
        (at("/spec/region", json!("r".repeat(64))), "spec.region", "has 64 characters, at most 63"),
        (at("/metadata/name", json!("De_mo")), "metadata.name", "does not match"),
        (at("/metadata", json!({})), "metadata.name", "is missing"),
        (cluster(|cluster| drop(cluster.as_object_mut().unwrap().remove("spec"))), "spec", "is missing"),
    ] {
        let problems = check(&tenant(), &object);
        let [(found, problem)] = problems.as_slice() else { panic!("{field}: {problems:?}") };
        assert_eq!(found, field);
        assert!(problem.contains(says), "{field}: {problem}");
    }
    assert_eq!(check(&tenant(), &cluster(|_| {})), []);
}

#[test]
fn the_bounds_of_sets_words_and_times_are_heeded_too() {
    let config = with_metadata(definition::config().schema(), false);
    let offering = with_metadata(definition::offering().schema(), false);
    let of = |spec: Value| json!({ "metadata": { "name": "x" }, "spec": spec });
    let twice = of(json!({ "providerRef": { "name": "otc" }, "availableRegions": ["a", "b", "a"], "availableVersions": [],
        "availableVirtualMachineTypes": [] }));
    assert_eq!(check(&offering, &twice), [("spec.availableRegions[2]".to_owned(), r#""a" is listed twice"#.to_owned())]);
    let word = check(&config, &of(json!({ "kcp": { "exports": "Own" } })));
    assert_eq!(word, [("spec.kcp.exports".to_owned(), r#""Own" is none of Consume, Manage"#.to_owned())]);
    let time = json!({ "type": "string", "format": "date-time" });
    assert_eq!(check(&time, &json!("2026-01-31T12:00:00Z")), []);
    assert_eq!(check(&time, &json!("yesterday")).len(), 1);
}

#[test]
fn what_a_server_drops_is_dropped_and_named() {
    let mut object = cluster(|cluster| {
        cluster["spec"]["nodePools"][0]["taints"] = json!([]);
        cluster["spec"]["providerRef"] = Value::Null;
        cluster["metadata"]["nmae"] = json!("x");
        cluster["metadata"]["creationTimestamp"] = Value::Null;
        cluster["metadata"]["labels"] = json!({ "app": "x" });
        cluster["metadata"]["managedFields"] = json!([{ "manager": "kubectl" }]);
        cluster["sepc"] = json!({});
    });
    assert_eq!(prune(&tenant(), &mut object), ["metadata.nmae", "sepc", "spec.nodePools[0].taints"]);
    let expected = cluster(|cluster| {
        cluster["metadata"]["labels"] = json!({ "app": "x" });
        cluster["metadata"]["managedFields"] = json!([{ "manager": "kubectl" }]);
    });
    assert_eq!(object, expected);
}
