//! What makes `kubectl` and other clients feel at home: discovery, `OpenAPI`, tables, content negotiation, TLS, and a kubeconfig.
//!
//! Reading order: [`discovery`], [`negotiation`], [`table`] (with [`printers`] and [`path`]), [`openapi`] (with [`operations`] and
//! [`meta`]), [`protobuf`], [`listener`], [`kubeconfig`].

pub mod discovery;
pub mod duration;
pub mod kubeconfig;
pub mod listener;
mod messages;
pub mod meta;
pub mod negotiation;
pub mod openapi;
pub mod operations;
pub mod path;
pub mod printers;
pub mod protobuf;
pub mod table;

/// Base64 with padding, as JSON has bytes.
fn base64(bytes: &[u8]) -> String {
    super::base64::encode(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::embedded::schema::Schema;
    use crate::embedded::served::{self, Names, Origin, Served};

    const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    /// A kind of an API server's own.
    pub(super) fn built_in(group: &str, kind: &str) -> Arc<Served> {
        let served = custom(group, "v1", kind, Origin::BuiltIn);
        Arc::new(Served { verbs: VERBS, status: false, ..Served::clone(&served) })
    }

    /// A kind of a definition.
    pub(super) fn custom(group: &str, version: &str, kind: &str, origin: Origin) -> Arc<Served> {
        let singular = kind.to_lowercase();
        Arc::new(Served {
            names: Names {
                group: group.into(),
                plural: format!("{singular}s").into(),
                singular: singular.into(),
                kind: kind.into(),
                list_kind: format!("{kind}List").into(),
                short: Vec::new(),
                categories: Vec::new(),
            },
            version: version.into(),
            namespaced: true,
            verbs: served::CUSTOM_VERBS,
            status: true,
            columns: Vec::new(),
            schema: Schema::compiled(&json!({"type": "object"})).unwrap(),
            open_api: Arc::new(json!({"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted."}}})),
            storage: "".into(),
            origin,
        })
    }

    /// A kind of this repository's, as its export has it.
    pub(super) fn clusters() -> Arc<Served> {
        let text = include_str!("../../../apiexports/apiresourceschema-kubernetesclusters.kubernetes.edge-connect.eu.yaml");
        let schema: Value = serde_saphyr::from_str(text).unwrap();
        served::versions(&schema["spec"], &"s".into(), &Origin::Definition).unwrap().remove(0)
    }
}
