//! A kind as a server is told of it.
//!
//! Pure: from a schema to manifests.

use serde_json::{Value, json};

use crate::api::manifest::{Definition, api_resource_schema, crd};
use crate::api::meta::{Kind, KindRef};

/// A kind with its schema: for an export, or for the provider workspace itself.
///
/// A [`Definition`] becomes one by `into()`, with its columns and rules.
#[derive(Clone, Debug)]
pub struct Resource {
    pub(super) kind: KindRef,
    /// The spec of an `APIResourceSchema`.
    schema: Value,
    /// The spec of a `CustomResourceDefinition`.
    definition: Value,
}

impl Resource {
    /// A kind with this structural schema (`openAPIV3Schema`) and the status subresource.
    ///
    /// From a type that implements [`schemars::JsonSchema`], [`structural`] makes one. To let everything in, as a test of undecodable objects
    /// wants it: `json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})`.
    ///
    /// [`structural`]: crate::api::manifest::schema::structural
    pub fn new<K: Kind>(schema: Value) -> Self {
        Self::of(K::REF, schema)
    }

    /// The same for a kind that is no [`Kind`], such as a configuration.
    #[allow(clippy::needless_pass_by_value, reason = "the argument is a literal")]
    pub fn of(kind_ref: KindRef, schema: Value) -> Self {
        let KindRef { group, version, kind, plural, namespaced } = kind_ref;
        let scope = if namespaced { "Namespaced" } else { "Cluster" };
        let names = json!({ "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_ascii_lowercase() });
        let of = |schema: Value| {
            let version = json!({ "name": version, "served": true, "storage": true, "subresources": { "status": {} }, "schema": schema });
            json!({ "group": group, "scope": scope, "names": names, "versions": [version] })
        };
        Self { kind: kind_ref, schema: of(schema.clone()), definition: of(json!({ "openAPIV3Schema": schema })) }
    }

    /// As an `APIResourceSchema`; `serial` tells it from earlier ones of the same kind.
    pub(super) fn api_resource_schema(&self, serial: usize) -> Value {
        let name = format!("v{serial}.{}", self.kind.resource());
        json!({ "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": name }, "spec": self.schema })
    }

    pub(super) fn crd(&self) -> Value {
        let name = self.kind.resource();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": self.definition,
        })
    }
}

impl From<Definition> for Resource {
    fn from(definition: Definition) -> Self {
        let spec = |mut manifest: Value| manifest["spec"].take();
        Self { kind: definition.kind, schema: spec(api_resource_schema(&definition)), definition: spec(crd(&definition)) }
    }
}
