//! The provider-facing `KubernetesCluster` (`pkc`), the projection that the scheduler writes.
//!
//! Pure: the wire form of `provider.kubernetes.edge-connect.eu/v1alpha1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::meta::{Meta, ServiceObject, kind};
use super::tenant::ProviderRef;

/// The API group of the Kubernetes service's provider layer.
pub const GROUP: &str = "provider.kubernetes.edge-connect.eu";
/// Annotation: what each pool's type was chosen for, as JSON `{"<pool>":{"cpu":"4","memory":"16Gi"}}`.
pub const REQUESTS_ANNOTATION: &str = "kubernetes.edge-connect.eu/requests";

/// A Kubernetes cluster, as its provider builds it. Written by the scheduler; same namespace and name as the tenant's object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Projection {
    /// Standard metadata; the controller owner is the tenant's object.
    #[serde(default)]
    pub metadata: Meta,
    /// What the provider is to build.
    pub spec: ProjectionSpec,
    /// What the provider's controller reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ProjectionStatus>,
}

kind!(Projection, GROUP, "v1alpha1", "KubernetesCluster", "kubernetesclusters", namespaced: true);

impl ServiceObject for Projection {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What the provider is to build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProjectionSpec {
    /// The provider that builds it: a provider's controller takes the projections that name it.
    pub provider_ref: ProviderRef,
    /// Where.
    #[schemars(length(min = 1, max = 63))]
    pub region: String,
    /// The Kubernetes version.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The tenant's pools, in their order, each with its machine type.
    #[schemars(length(min = 1, max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub node_pools: Vec<TypedNodePool>,
}

/// A group of nodes of one machine type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TypedNodePool {
    /// The tenant's name of the pool.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// How many nodes.
    #[schemars(range(min = 0, max = 10000), extend("format" = "int32"))]
    pub replicas: i32,
    /// A VirtualMachineType's metadata.name.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
}

/// What the provider's controller reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProjectionStatus {
    /// Whether the cluster runs as the spec says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub ready: Option<bool>,
    /// The generation of the projection that the report speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// The provider's conditions, Ready among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Reserved: how the ordered cluster is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretName")]
    pub kubeconfig_secret_ref: Option<SecretName>,
}

/// The name of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SecretName {
    /// The Secret's metadata.name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
