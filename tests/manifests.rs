//! The manifests in the repository are those of the Rust types, and every schema is bounded.
//!
//! `UPDATE_MANIFESTS=1 cargo test --test manifests` writes them anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kcp_provider_runtime::api::manifest::{Definition, catalog, exported, files};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_manifests_in_the_repository_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_MANIFESTS").is_some();
    for (path, text) in files::all() {
        let path = root().join(path);
        if update {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is not what src/api says; refresh it with UPDATE_MANIFESTS=1 cargo test --test manifests",
            path.display()
        );
    }
    let expected: BTreeSet<PathBuf> = files::all().into_iter().map(|(path, _)| root().join(path)).collect();
    for folder in ["apiexports", "config/crds", "config/crds/onboarding"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let ours = path.is_dir() || path.extension().is_some_and(|e| e != "yaml") || expected.contains(&path);
            assert!(ours, "{} is left over from an earlier name", path.display());
        }
    }
}

#[test]
fn every_file_reads_back_as_the_objects_it_was_made_from() {
    for (path, text) in files::all() {
        for document in text.split("---\n") {
            let object: Value = serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(object["apiVersion"].is_string() && object["kind"].is_string() && object["metadata"]["name"].is_string(), "{path}");
            let again: Value = serde_saphyr::from_str(&files::yaml(&object)).unwrap();
            assert_eq!(again, object, "{path}");
        }
    }
}

/// What one schema node lacks; the caller knows where it stands.
fn faults(schema: &Value) -> Vec<&'static str> {
    let has = |key: &str| schema.get(key).is_some();
    let mut faults = Vec::new();
    if schema["type"] == "string" && !has("maxLength") && !has("enum") && schema["format"] != "date-time" {
        faults.push("a string without maxLength");
    }
    if schema["type"] == "array" && !has("maxItems") {
        faults.push("a list without maxItems");
    }
    let named = ["name", "type"].iter().any(|key| schema.pointer(&format!("/items/properties/{key}")).is_some());
    if schema["type"] == "array" && named && schema["x-kubernetes-list-type"] != "map" {
        faults.push("a list of named things that is no map list");
    }
    if schema["type"] == "array"
        && schema["items"]["type"] == "string"
        && !has("x-kubernetes-list-type")
        && schema["maxItems"].as_u64() > Some(256)
    {
        faults.push("a long list of words that is no set");
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !has("maxLength") || !has("pattern") || !has("minimum") {
            faults.push("a quantity without bounds");
        }
        if schema["anyOf"] != serde_json::json!([{ "type": "integer" }, { "type": "string" }]) {
            faults.push("a quantity that is not an integer or a string");
        }
    } else if !schema["type"].is_string() {
        faults.push("no type");
    }
    if has("additionalProperties") || has("x-kubernetes-preserve-unknown-fields") {
        faults.push("open to unknown fields");
    }
    for keyword in ["title", "default", "nullable", "$schema", "$ref", "oneOf", "allOf", "const"] {
        if has(keyword) {
            faults.push(keyword);
        }
    }
    faults
}

fn walk(schema: &Value, at: &str, found: &mut Vec<String>) {
    found.extend(faults(schema).into_iter().map(|fault| format!("{at}: {fault}")));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{at}.{name}"), found);
        if property["description"].as_str().is_none_or(str::is_empty) {
            found.push(format!("{at}.{name}: no description"));
        }
    }
    if schema.get("items").is_some() {
        walk(&schema["items"], &format!("{at}[]"), found);
    }
}

fn definitions() -> Vec<Definition> {
    exported().into_iter().chain(catalog()).collect()
}

#[test]
fn every_string_and_list_is_bounded_and_every_field_described() {
    for definition in definitions() {
        let schema = definition.schema();
        let mut found = Vec::new();
        for part in ["spec", "status"] {
            let part_schema = &schema["properties"][part];
            if part == "spec" || definition.has_status {
                walk(part_schema, &format!("{} {part}", definition.kind), &mut found);
            }
        }
        assert!(found.is_empty(), "{found:#?}");
        assert!(schema["description"].is_string());
    }
}

#[test]
fn a_kind_has_the_status_subresource_exactly_when_it_has_a_status() {
    for definition in definitions() {
        assert_eq!(definition.schema().pointer("/properties/status").is_some(), definition.has_status, "{}", definition.kind);
    }
}

#[test]
fn short_names_are_unique() {
    let all: Vec<&str> = definitions().iter().flat_map(|definition| definition.short_names).copied().collect();
    let unique: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(all.len(), unique.len(), "{all:?}");
    assert!(["kc", "pkc", "kco", "vmt"].iter().all(|name| unique.contains(name)));
}

#[test]
fn every_column_and_rule_speaks_of_fields_that_exist() {
    for definition in definitions() {
        let schema = definition.schema();
        for column in &definition.columns {
            let fields = column.path.split('[').next().unwrap().trim_start_matches('.');
            let pointer = format!("/properties/{}", fields.replace('.', "/properties/"));
            assert!(schema.pointer(&pointer).is_some(), "{}: column {} looks at {}", definition.kind, column.name, column.path);
        }
        for rule in &definition.rules {
            let pointer = format!("{}{}", rule.at, rule.field.replace('.', "/")).replace('/', "/properties/");
            assert!(schema.pointer(&pointer).is_some(), "{}: rule at {pointer}", definition.kind);
        }
    }
}

#[test]
fn the_fault_finder_finds_faults() {
    let bad: [(&str, Value); 4] = [
        ("a string without maxLength", serde_json::json!({ "type": "string" })),
        ("a list without maxItems", serde_json::json!({ "type": "array", "items": { "type": "integer" } })),
        ("no type", serde_json::json!({})),
        ("open to unknown fields", serde_json::json!({ "type": "object", "additionalProperties": true })),
    ];
    for (fault, schema) in bad {
        assert!(faults(&schema).contains(&fault), "{fault}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    for verb in [&["manifests"][..], &["completions", "bash"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kcm")).args(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{verb:?}: {:?} {said}", output.status);
    }
}
