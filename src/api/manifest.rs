//! The manifests of the wire API: what an operator applies and a tenant binds, all of it built from the Rust types.
//!
//! Pure: every function here maps constants and its arguments to JSON. `files::all` is what `kcm manifests` prints and what the golden
//! files under `apiexports/` and `config/` hold; `kcm init` applies the same values to a provider workspace.

pub mod binding;
pub mod definition;
pub mod door;
pub mod export;
pub mod files;
pub mod rbac;
pub mod samples;
pub mod schema;

pub use definition::{Definition, catalog, exported};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The `CustomResourceDefinition` of a kind, for a provider workspace or a plain Kubernetes cluster.
pub fn crd(definition: &Definition) -> Value {
    let Definition { kind, .. } = definition;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": kind.resource() },
        "spec": {
            "group": kind.group,
            "scope": definition.scope(),
            "names": definition.names(),
            "versions": [version(definition, &json!({ "openAPIV3Schema": definition.schema() }))],
        },
    })
}

/// The `APIResourceSchema` of a kind, under the name of [`schema_name`].
pub fn api_resource_schema(definition: &Definition) -> Value {
    let spec = api_resource_schema_spec(definition);
    json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": { "name": name_of(definition, &spec) },
        "spec": spec,
    })
}

/// `v<8 hex digits>.<plural>.<group>`: a digest of the spec, so that the name changes exactly when the spec does. kcp keeps a schema's
/// spec immutable and takes only names that begin with a letter.
pub fn schema_name(definition: &Definition) -> String {
    name_of(definition, &api_resource_schema_spec(definition))
}

fn name_of(definition: &Definition, spec: &Value) -> String {
    // Maps are sorted by key, so equal specs have equal text.
    let digest = Sha256::digest(spec.to_string());
    format!("v{:02x}{:02x}{:02x}{:02x}.{}", digest[0], digest[1], digest[2], digest[3], definition.kind.resource())
}

fn api_resource_schema_spec(definition: &Definition) -> Value {
    json!({
        "group": definition.kind.group,
        "scope": definition.scope(),
        "names": definition.names(),
        "versions": [version(definition, &definition.schema())],
    })
}

fn version(definition: &Definition, schema: &Value) -> Value {
    let mut version = json!({
        "name": definition.kind.version,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": definition.columns(),
        "schema": schema,
    });
    if definition.has_status {
        version["subresources"] = json!({ "status": {} });
    }
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_begins_with_a_letter_and_ends_with_plural_and_group() {
        for definition in exported() {
            let name = schema_name(&definition);
            let (prefix, rest) = name.split_once('.').unwrap();
            assert_eq!(rest, definition.kind.resource());
            assert!(prefix.len() == 9 && prefix.starts_with('v') && prefix[1..].bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        }
    }

    #[test]
    fn a_schema_name_changes_with_the_spec_and_only_with_it() {
        let same = definition::tenant();
        assert_eq!(schema_name(&same), schema_name(&definition::tenant()));
        let mut other = definition::tenant();
        other.rules[0].message = "another sentence";
        assert_ne!(schema_name(&same), schema_name(&other));
    }
}
