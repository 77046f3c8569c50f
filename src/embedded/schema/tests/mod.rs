//! The schemas of the project, and one table for each group of rules. The words are upstream's.

mod cel;
mod documents;
mod shaping;
mod values;

use std::path::Path;

use serde_json::{Value, json};

use super::Schema;

/// Compiles a schema of an object whose `spec` is this.
#[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
fn of_spec(spec: Value) -> Schema {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Schema::compile(&schema).unwrap_or_else(|causes| panic!("{causes:#?}"))
}

/// `field: message` of everything that is wrong.
fn told(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<String> {
    schema.validate(object, old).iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// All documents of the YAML files of a folder.
fn documents(folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let yaml = files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    yaml.flat_map(|file| serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap()).collect()
}

/// The schemas of the project by group and kind.
fn schemas() -> Vec<(String, String, Schema)> {
    let of = |document: &Value| {
        let spec = &document["spec"];
        let version = &spec["versions"][0]["schema"];
        let open_api = version.get("openAPIV3Schema").unwrap_or(version);
        let schema = Schema::compile(open_api).unwrap_or_else(|causes| panic!("{}: {causes:#?}", document["metadata"]["name"]));
        (spec["group"].as_str().unwrap().to_owned(), spec["names"]["kind"].as_str().unwrap().to_owned(), schema)
    };
    let all = ["apiexports", "config/crds", "config/crds/onboarding"].map(documents).concat();
    all.iter()
        .filter(|document| ["APIResourceSchema", "CustomResourceDefinition"].contains(&document["kind"].as_str().unwrap()))
        .map(of)
        .collect()
}

#[test]
fn every_sample_passes_the_schema_of_its_kind() {
    let schemas = schemas();
    assert!(schemas.len() >= 9, "only {} schemas", schemas.len());
    let samples = documents("config/samples");
    assert!(samples.len() >= 6, "only {} samples", samples.len());
    for mut sample in samples {
        let (group, _) = sample["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let found: Vec<_> = schemas.iter().filter(|(of, kind, _)| of == group && *kind == sample["kind"]).collect();
        assert!(!found.is_empty(), "no schema for {}", sample["kind"]);
        for (_, kind, schema) in found {
            assert_eq!(schema.prune(&mut sample), Vec::<String>::new(), "{kind}");
            schema.default(&mut sample);
            assert_eq!(told(schema, &sample, Some(&sample)), Vec::<String>::new(), "{kind}");
        }
    }
}

#[test]
fn the_same_document_is_compiled_once() {
    let schema = json!({"type": "object", "description": "the_same_document_is_compiled_once"});
    let (first, second) = (Schema::compiled(&schema).unwrap(), Schema::compiled(&schema.clone()).unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert!(Schema::compiled(&json!({})).is_err());
}
