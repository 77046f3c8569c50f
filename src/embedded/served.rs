//! A kind as one workspace serves it in one version: what discovery shows and what a request is checked against.
//!
//! Pure: values and the parsing of a definition's JSON.

use std::sync::Arc;

use serde_json::Value;

use super::errors::{About, Cause};
use super::schema::Schema;

/// Where a kind in a workspace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Kubernetes compiles it in; lists of it do not repeat apiVersion and kind.
    BuiltIn,
    /// kcp's own, a custom resource inside kcp.
    System,
    /// A `CustomResourceDefinition` of this workspace.
    Definition,
    /// An `APIBinding`.
    Bound {
        /// The logical cluster of the export.
        provider: Arc<str>,
        /// The export's name.
        export: Arc<str>,
        /// The export's identity, hashed.
        identity: Arc<str>,
        /// The binding's name.
        binding: Arc<str>,
    },
}

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `boolean`, `date`, …
    pub type_: String,
    /// For machines; often empty.
    pub format: String,
    /// For people.
    pub description: String,
    /// 0 is always shown, more with `-o wide`.
    pub priority: i64,
    /// `.spec.region`.
    pub json_path: String,
}

/// The names of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// API group; `""` is core.
    pub group: Arc<str>,
    /// Lower case.
    pub plural: Arc<str>,
    /// Lower case.
    pub singular: Arc<str>,
    /// `ConfigMap`.
    pub kind: Arc<str>,
    /// `ConfigMapList`.
    pub list_kind: Arc<str>,
    /// `cm`.
    pub short: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
}

/// A kind in one version.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its names.
    pub names: Names,
    /// `v1alpha1`.
    pub version: Arc<str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What may be done with it, in discovery's order.
    pub verbs: &'static [&'static str],
    /// Whether it has `/status`.
    pub status: bool,
    /// Its columns; empty for name and age.
    pub columns: Vec<Column>,
    /// What its objects are held to.
    pub schema: Arc<Schema>,
    /// The document that the schema was compiled from.
    pub open_api: Arc<Value>,
    /// Where its objects are: the same for all versions of a kind, and another for each export's identity.
    pub storage: Arc<str>,
    /// Where it comes from.
    pub origin: Origin,
}

/// The verbs of a custom kind, as discovery lists them.
pub const CUSTOM_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl Served {
    /// `kubernetes.edge-connect.eu/v1alpha1`.
    pub fn api_version(&self) -> String {
        api_version(&self.names.group, &self.version)
    }

    /// What an answer about one object names.
    pub fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.names.group, kind: &self.names.plural, name }
    }

    /// The same for `Invalid`, which names the kind.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.names.group, kind: &self.names.kind, name }
    }
}

/// `v1`, `apps/v1`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The served versions that the `spec` of an `APIResourceSchema` or a `CustomResourceDefinition` defines.
///
/// # Errors
/// What a structural schema may not be.
pub fn versions(spec: &Value, storage: &Arc<str>, origin: &Origin) -> Result<Vec<Arc<Served>>, Vec<Cause>> {
    let names = &spec["names"];
    let text = |value: &Value| Arc::<str>::from(value.as_str().unwrap_or_default());
    let list = |value: &Value| value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(Into::into)).collect();
    let kind = text(&names["kind"]);
    let list_kind = names["listKind"].as_str().map_or_else(|| format!("{kind}List").into(), Arc::from);
    let singular = names["singular"].as_str().map_or_else(|| kind.to_lowercase().into(), Arc::from);
    let short = list(&names["shortNames"]);
    let categories = list(&names["categories"]);
    let names = Names { group: text(&spec["group"]), plural: text(&names["plural"]), singular, kind, list_kind, short, categories };
    let mut served = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true) {
        // An APIResourceSchema holds the schema itself, a CustomResourceDefinition below this name.
        let document = version["schema"].get("openAPIV3Schema").unwrap_or(&version["schema"]);
        served.push(Arc::new(Served {
            names: names.clone(),
            version: text(&version["name"]),
            namespaced: spec["scope"] == "Namespaced",
            verbs: CUSTOM_VERBS,
            status: version["subresources"]["status"].is_object(),
            columns: columns(&version["additionalPrinterColumns"]),
            schema: Schema::compiled(document)?,
            open_api: Arc::new(document.clone()),
            storage: storage.clone(),
            origin: origin.clone(),
        }));
    }
    Ok(served)
}

/// The columns of a definition's version.
pub fn columns(list: &Value) -> Vec<Column> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let column = |column: &Value| Column {
        name: text(&column["name"]),
        type_: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default(),
        json_path: text(&column["jsonPath"]),
    };
    list.as_array().into_iter().flatten().map(column).collect()
}
