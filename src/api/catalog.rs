//! The platform's catalog: offerings (`kco`) and machine types (`vmt`).
//!
//! Pure: the wire form. Neither kind has a status; both are written by the platform and only read here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::meta::{Meta, kind};
use super::quantity::Quantity;
use super::tenant::ProviderRef;
use super::{projection, provider};

/// What one provider serves, where, and in which versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubernetesClusterOffering {
    /// Standard metadata.
    #[serde(default)]
    pub metadata: Meta,
    /// What is on offer.
    pub spec: KubernetesClusterOfferingSpec,
}

kind!(KubernetesClusterOffering, projection::GROUP, "v1alpha1", "KubernetesClusterOffering", "kubernetesclusterofferings", namespaced: false);

/// What is on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct KubernetesClusterOfferingSpec {
    /// Whose offering it is: a Provider's name, as tenants use it too.
    pub provider_ref: ProviderRef,
    /// Regions in which the provider serves Kubernetes.
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub available_regions: Vec<String>,
    /// Kubernetes versions, as tenants write them.
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub available_versions: Vec<String>,
    /// Names of VirtualMachineTypes.
    #[schemars(length(max = 2048), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub available_virtual_machine_types: Vec<String>,
}

/// A machine type under the platform's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualMachineType {
    /// Standard metadata.
    #[serde(default)]
    pub metadata: Meta,
    /// What a machine of this type has.
    pub spec: VirtualMachineTypeSpec,
}

kind!(VirtualMachineType, provider::GROUP, "v1alpha1", "VirtualMachineType", "virtualmachinetypes", namespaced: false);

/// What a machine of this type has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct VirtualMachineTypeSpec {
    /// The provider's own word for it; any string.
    #[schemars(length(min = 1, max = 253))]
    pub provider_machine_type: String,
    /// Cores.
    pub cpu: Quantity,
    /// Bytes.
    pub memory: Quantity,
    /// Regions in which this shape exists.
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub available_regions: Vec<String>,
}
