//! `OpenAPI`: what `kubectl explain`, `apply` and validation read.
//!
//! Pure: from kinds to documents. As `k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder` does it: a kind's schema with standard
//! metadata put in, a list of it, and its paths.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use super::discovery::{group_versions, of};
use super::{meta, operations};
use crate::embedded::served::{Origin, Served};

/// `GET /openapi/v3`: where each document is. The address changes with what the document is made of, so that clients may keep it.
pub fn v3_index(kinds: &[Arc<Served>]) -> Value {
    let mut paths = Map::new();
    for (group, version) in group_versions(kinds) {
        let name = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let address = format!("/openapi/v3/{name}?hash={}", hash(&here(kinds, group, version)));
        paths.insert(name, json!({"serverRelativeURL": address}));
    }
    json!({"paths": paths})
}

/// `GET /openapi/v3/apis/<group>/<version>`, `GET /openapi/v3/api/v1`: an `OpenAPI` 3.0 document; `None` where nothing is served.
pub fn v3(kinds: &[Arc<Served>], group: &str, version: &str) -> Option<Value> {
    let here = here(kinds, group, version);
    if here.is_empty() {
        return None;
    }
    let mut schemas = meta::schemas();
    let mut paths = Map::new();
    for served in here {
        let (name, list_name) = (definition(served, &served.names.kind), definition(served, &served.names.list_kind));
        schemas.insert(name.clone(), object(served));
        schemas.insert(list_name.clone(), list(served, &name));
        operations::add(&mut paths, served, &name, &list_name);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

/// `GET /openapi/v2` in JSON: a Swagger 2.0 document with the schemas of all kinds. Paths are in the documents of version 3 only.
pub fn v2(kinds: &[Arc<Served>]) -> Value {
    let mut definitions = Map::new();
    for (group, version) in group_versions(kinds) {
        let document = v3(kinds, group, version);
        let schemas = document.and_then(|mut document| document["components"]["schemas"].as_object_mut().map(std::mem::take));
        definitions.extend(schemas.into_iter().flatten().map(|(name, schema)| (name, downgraded(schema))));
    }
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.32"}, "paths": {}, "definitions": definitions})
}

/// The media type of [`v2_protobuf`], as an answer says it.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `GET /openapi/v2` in protobuf, which is all that `kubectl apply` accepts there before it patches: a document of gnostic's `openapi.v2` with
/// a title and no kinds. `kubectl` then makes a merge patch, as it does for every custom kind, and as it does when it is refused.
pub fn v2_protobuf() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap_or_default()], bytes].concat();
    let info = [field(1, b"Kubernetes"), field(2, b"1.32")].concat();
    // Paths are there though empty: readers look into them without asking.
    [field(1, b"2.0"), field(2, &info), field(8, b"")].concat()
}

/// The name of a schema: the group's labels backwards for definitions, Go packages for what is compiled in.
fn definition(served: &Served, kind: &str) -> String {
    let (group, version) = (&*served.names.group, &served.version);
    let compiled = served.origin == Origin::BuiltIn && !group.ends_with(".kcp.io");
    match group {
        "" if compiled => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" if compiled => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"),
        _ if compiled => format!("io.k8s.api.{}.{version}.{kind}", group.split('.').next().unwrap_or_default()),
        _ => {
            let labels: Vec<&str> = group.rsplit('.').collect();
            format!("{}.{version}.{kind}", labels.join("."))
        }
    }
}

fn identity(served: &Served, kind: &str) -> Value {
    json!([{"group": served.names.group, "version": served.version, "kind": kind}])
}

fn object(served: &Served) -> Value {
    let mut schema = (*served.open_api).clone();
    if !schema.is_object() {
        schema = json!({});
    }
    with_merge_keys(&mut schema);
    schema["type"] = "object".into();
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = json!({"type": "string", "description": meta::API_VERSION});
    schema["properties"]["kind"] = json!({"type": "string", "description": meta::KIND});
    schema["properties"]["metadata"] = meta::reference("ObjectMeta", "Standard metadata of an object.");
    schema["x-kubernetes-group-version-kind"] = identity(served, &served.names.kind);
    schema
}

fn list(served: &Served, name: &str) -> Value {
    json!({
        "description": format!("{} is a list of {}", served.names.list_kind, served.names.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": meta::API_VERSION},
            "kind": {"type": "string", "description": meta::KIND},
            "metadata": meta::reference("ListMeta", "Standard metadata of a list."),
            "items": {
                "type": "array", "description": format!("List of {}.", served.names.plural),
                "items": {"$ref": format!("#/components/schemas/{name}")},
            },
        },
        "x-kubernetes-group-version-kind": identity(served, &served.names.list_kind),
    })
}

/// Calls `change` with every schema below a schema, and not with the maps of them.
fn below(schema: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    let Some(schema) = schema.as_object_mut() else { return };
    for (key, value) in schema {
        match key.as_str() {
            "properties" => value.as_object_mut().into_iter().flatten().for_each(|(_, property)| change(property)),
            "items" | "additionalProperties" | "not" => change(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array_mut().into_iter().flatten().for_each(&mut *change),
            _ => {}
        }
    }
}

/// Lists that are maps say so once more, in the older words that clients know.
fn with_merge_keys(schema: &mut Value) {
    below(schema, &mut with_merge_keys);
    let Some(keys) = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array) else { return };
    if let [key] = keys.as_slice() {
        let key = key.clone();
        schema["x-kubernetes-patch-merge-key"] = key;
        schema["x-kubernetes-patch-strategy"] = "merge".into();
    }
}

/// A schema as Swagger 2.0 can say it.
fn downgraded(mut schema: Value) -> Value {
    downgrade(&mut schema);
    schema
}

fn downgrade(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let reference = |value: &Value| value.as_str().map(|text| text.replace("#/components/schemas/", "#/definitions/"));
    let pointed = map.get("$ref").or_else(|| map.get("allOf").and_then(|all| all.get(0)?.get("$ref"))).and_then(reference);
    if let Some(target) = pointed {
        map.insert("$ref".to_owned(), target.into());
    }
    for key in ["allOf", "anyOf", "oneOf", "not", "nullable", "default"] {
        map.remove(key);
    }
    let free = map.get("x-kubernetes-int-or-string").or_else(|| map.get("x-kubernetes-preserve-unknown-fields"));
    if free.is_some_and(|free| free == true) && !map.contains_key("x-kubernetes-group-version-kind") {
        for key in ["type", "properties", "items", "additionalProperties"] {
            map.remove(key);
        }
    }
    below(schema, &mut downgrade);
}

/// The kinds of one document, by name.
fn here<'a>(kinds: &'a [Arc<Served>], group: &'a str, version: &'a str) -> Vec<&'a Arc<Served>> {
    let mut here: Vec<&Arc<Served>> = of(kinds, group, version).collect();
    here.sort_by_key(|served| served.names.kind.clone());
    here
}

/// A hash of what a document is made of, which costs a tenth of making it.
fn hash(here: &[&Arc<Served>]) -> String {
    let parts = |served: &Served| format!("{:?}{:?}{}{}", served.names, served.verbs, served.status, served.namespaced);
    let all = here.iter().fold(Sha512::new(), |hash, served| hash.chain_update(parts(served)).chain_update(served.open_api.to_string()));
    all.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::front::tests::{built_in, clusters};

    const GROUP: &str = "kubernetes.edge-connect.eu";
    const NAME: &str = "eu.edge-connect.kubernetes.v1alpha1.KubernetesCluster";

    fn every_reference(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| match value.as_str().filter(|_| key == "$ref") {
                Some(target) => found.push(target.to_owned()),
                None => every_reference(value, found),
            }),
            Value::Array(list) => list.iter().for_each(|value| every_reference(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let kinds = [clusters(), built_in("", "ConfigMap")];
        for (document, prefix) in [(v3(&kinds, GROUP, "v1alpha1").unwrap(), "/components/schemas/"), (v2(&kinds), "/definitions/")] {
            let mut references = Vec::new();
            every_reference(&document, &mut references);
            assert!(!references.is_empty());
            for reference in references {
                assert!(reference.starts_with(&format!("#{prefix}")), "{reference}");
                assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn a_patch_says_that_it_validates_fields() {
        let document = v3(&[clusters()], GROUP, "v1alpha1").unwrap();
        let item = &document["paths"][format!("/apis/{GROUP}/v1alpha1/namespaces/{{namespace}}/kubernetesclusters/{{name}}")];
        let parameters = item["patch"]["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation" && parameter["in"] == "query"));
        assert_eq!(item["patch"]["x-kubernetes-group-version-kind"]["kind"], "KubernetesCluster");
        assert_eq!(document["paths"].as_object().unwrap().len(), 4, "in a namespace, in all, one, and its status");
    }

    #[test]
    fn a_schema_has_standard_metadata_and_merge_keys() {
        let document = v3(&[clusters()], GROUP, "v1alpha1").unwrap();
        let schema = &document["components"]["schemas"][NAME];
        assert_eq!(
            schema["properties"]["metadata"]["allOf"][0]["$ref"],
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
        assert_eq!(schema["properties"]["spec"]["properties"]["nodePools"]["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(schema["x-kubernetes-group-version-kind"][0]["group"], GROUP);
    }

    #[test]
    fn an_address_changes_with_its_document() {
        let index = v3_index(&[clusters(), built_in("", "ConfigMap")]);
        let address = |index: &Value| index["paths"][format!("apis/{GROUP}/v1alpha1")]["serverRelativeURL"].as_str().unwrap().to_owned();
        assert!(address(&index).starts_with(&format!("/openapi/v3/apis/{GROUP}/v1alpha1?hash=")));
        assert!(index["paths"]["api/v1"].is_object());
        let mut other = Served::clone(&clusters());
        other.open_api = Arc::new(json!({"type": "object"}));
        assert_ne!(address(&index), address(&v3_index(&[other.into()])));
    }

    #[test]
    fn swagger_has_no_words_of_openapi_3() {
        let document = v2(&[clusters()]);
        let schema = &document["definitions"][NAME];
        let cpu = "/properties/spec/properties/nodePools/items/properties/capabilities/properties/cpu";
        assert_eq!(schema.pointer(cpu).unwrap().get("anyOf"), None);
        assert_eq!(schema["properties"]["metadata"]["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    }

    #[test]
    fn compiled_kinds_have_the_names_of_their_packages() {
        for (group, kind, name) in [
            ("", "ConfigMap", "io.k8s.api.core.v1.ConfigMap"),
            ("rbac.authorization.k8s.io", "Role", "io.k8s.api.rbac.v1.Role"),
            ("apis.kcp.io", "APIExport", "io.kcp.apis.v1.APIExport"),
        ] {
            assert_eq!(definition(&built_in(group, kind), kind), name);
        }
    }
}
