//! What every kind has in common: where it is served, and its metadata.
//!
//! Pure: values and their wire form. The metadata leaves `managedFields` out, which is most of an object's size, and no reader here needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::names::ObjectName;

/// What a person asks of the runtime about one object: `reconcile` has it looked at once more, over inputs that are listed afresh, and is taken
/// away by the runtime; `ignore` leaves it as it is, also while it is deleted, until the annotation goes.
pub const OPERATION_ANNOTATION: &str = "openmcp.cloud/operation";

/// Where a kind is served: enough to build its URL and to write its `apiVersion` and `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindRef {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, for example `v1alpha1`.
    pub version: &'static str,
    /// `CamelCase` kind.
    pub kind: &'static str,
    /// Lower-case plural as it stands in a URL.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl KindRef {
    /// The `apiVersion` of an object of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `plural.group`, as it names a `CustomResourceDefinition`, and as messages name the kind.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl std::fmt::Display for KindRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.resource())
    }
}

/// A kind of the Kubernetes API as a Rust type.
///
/// The type holds `metadata`, `spec` and `status`; `apiVersion` and `kind` come from [`Kind::REF`] when it is written.
pub trait Kind: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// Where it is served.
    const REF: KindRef;

    /// The object's metadata.
    fn meta(&self) -> &Meta;

    /// The object's metadata, to be changed before a write.
    fn meta_mut(&mut self) -> &mut Meta;

    /// Namespace and name.
    fn object_name(&self) -> ObjectName {
        ObjectName::namespaced(self.meta().namespace.clone().unwrap_or_default(), self.meta().name.as_str())
    }
}

/// A kind that tenants write and the runtime hands to a reconciler: it carries conditions in its status.
pub trait ServiceObject: Kind {
    /// The conditions in the object's status, as they were read.
    fn conditions(&self) -> &[super::condition::Condition];
}

/// The part of `metav1.ObjectMeta` that this project reads or writes.
///
/// Unknown fields are dropped when it is read; whoever writes a whole object back writes the raw object, not this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name, unique per kind and namespace.
    pub name: String,
    /// Namespace; `None` for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
    /// Identity of this incarnation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Version for optimistic concurrency; opaque, and comparable only within one shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Counts changes of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// RFC 3339; set once the object is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers that keep the object from vanishing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners in the same workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

impl Meta {
    /// Whether somebody has asked for the object's deletion.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// `metadata.generation`; 0 where the server set none.
    pub fn generation(&self) -> i64 {
        self.generation.unwrap_or_default()
    }

    /// The uid; empty where the server set none yet.
    pub fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }

    /// The owner with `controller: true`, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}

/// The server types `metadata` by itself: a structural schema only says that it is an object.
impl JsonSchema for Meta {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ObjectMeta".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// `metav1.OwnerReference`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace or cluster-scoped.
    pub name: String,
    /// Identity of the owner's incarnation.
    pub uid: String,
    /// Whether this owner is the one that manages the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Implements [`Kind`] for a struct with a field `metadata` of type [`Meta`]: the type, its API group (`""` for the core group), version, kind and
/// plural, and whether its objects live in namespaces.
///
/// ```
/// use kcp_provider_runtime::api::meta::Meta;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Toy {
///     metadata: Meta,
///     colour: String,
/// }
/// kcp_provider_runtime::kind!(Toy, "toys.example.org", "v1", "Toy", "toys", namespaced: true);
/// ```
#[macro_export]
macro_rules! kind {
    ($type:ty, $group:expr, $version:literal, $kind:literal, $plural:literal, namespaced: $namespaced:literal) => {
        impl $crate::api::meta::Kind for $type {
            const REF: $crate::api::meta::KindRef =
                $crate::api::meta::KindRef { group: $group, version: $version, kind: $kind, plural: $plural, namespaced: $namespaced };

            fn meta(&self) -> &$crate::api::meta::Meta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut $crate::api::meta::Meta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use kind;
