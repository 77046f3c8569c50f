//! The `KubernetesCluster` that a tenant writes (`kc`).
//!
//! Pure: the wire form of `kubernetes.edge-connect.eu/v1alpha1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::meta::{Meta, ServiceObject, kind};
use super::quantity::Quantity;

/// The API group of the tenant kind, and the name of the export that carries it.
pub const GROUP: &str = "kubernetes.edge-connect.eu";
/// Keeps a `KubernetesCluster` until its projection is gone from the server.
pub const PROJECTION_FINALIZER: &str = "kubernetes.edge-connect.eu/cluster-projection";

/// A Kubernetes cluster, as a tenant orders it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubernetesCluster {
    /// Standard metadata.
    #[serde(default)]
    pub metadata: Meta,
    /// What the tenant wants.
    pub spec: KubernetesClusterSpec,
    /// What the controllers report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<KubernetesClusterStatus>,
}

kind!(KubernetesCluster, GROUP, "v1alpha1", "KubernetesCluster", "kubernetesclusters", namespaced: true);

impl ServiceObject for KubernetesCluster {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What the tenant wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct KubernetesClusterSpec {
    /// One of the platform's regions; fixed once spec.providerRef is set.
    #[schemars(length(min = 1, max = 63))]
    pub region: String,
    /// The Kubernetes version: an exact string of the offering's list.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// Groups of equal nodes, keyed by name.
    #[schemars(length(min = 1, max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub node_pools: Vec<NodePool>,
    /// The provider that runs the cluster. Written by the scheduler, once; a tenant may set it up front to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
}

/// The name of a `Provider`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ProviderRef {
    /// The Provider's metadata.name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A group of equal nodes, described by what each node must at least have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NodePool {
    /// Unique in the list; a DNS label.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// How many nodes.
    #[schemars(range(min = 0, max = 10000), extend("format" = "int32"))]
    pub replicas: i32,
    /// What each node must at least have.
    pub capabilities: Capabilities,
}

/// What a node must at least have; compared as numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Capabilities {
    /// Cores, for example 4 or 500m.
    pub cpu: Quantity,
    /// Bytes, for example 16Gi.
    pub memory: Quantity,
}

/// What the controllers report on a tenant's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct KubernetesClusterStatus {
    /// Follows the condition Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub ready: Option<bool>,
    /// The generation that `ready` speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Scheduled, Projected, ProviderClusterReady and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl KubernetesCluster {
    /// The provider named in the spec, if any.
    pub fn provider(&self) -> Option<&str> {
        self.spec.provider_ref.as_ref().map(|reference| reference.name.as_str())
    }
}
