//! The few fields of kcp's own kinds that the runtime reads.
//!
//! Pure: `apis.kcp.io`, as kcp v0.28 to v0.32 serve it.

use serde::Deserialize;

use super::meta::KindRef;

/// Where an export's virtual workspaces are: one URL per shard with at least one binding.
pub const ENDPOINT_SLICE: KindRef = KindRef {
    group: "apis.kcp.io",
    version: "v1alpha1",
    kind: "APIExportEndpointSlice",
    plural: "apiexportendpointslices",
    namespaced: false,
};

/// A tenant's binding to an export; the virtual workspace serves those of its own export, always and in every phase.
pub const BINDING: KindRef =
    KindRef { group: "apis.kcp.io", version: "v1alpha2", kind: "APIBinding", plural: "apibindings", namespaced: false };

/// A workspace below another.
pub const WORKSPACE: KindRef =
    KindRef { group: "tenancy.kcp.io", version: "v1alpha1", kind: "Workspace", plural: "workspaces", namespaced: false };

/// An `APIExportEndpointSlice`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointSlice {
    /// What the shards have written.
    pub status: EndpointSliceStatus,
}

/// The status of an `APIExportEndpointSlice`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointSliceStatus {
    /// One entry per shard; absent before the first binding.
    pub endpoints: Vec<Endpoint>,
}

/// One shard's virtual workspace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    /// To be taken verbatim; `/clusters/*` or `/clusters/<logical cluster>` is appended.
    pub url: String,
}

/// An `APIBinding`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Binding {
    /// How far it is.
    pub status: BindingStatus,
}

/// The status of an `APIBinding`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BindingStatus {
    /// Empty, `Binding` or `Bound`; a binding that is being deleted stays `Bound` and is still served.
    pub phase: String,
    /// The claims that the tenant grants, as kcp has put them into effect.
    #[serde(rename = "appliedPermissionClaims")]
    pub applied_permission_claims: serde_json::Value,
}

/// A `Workspace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WorkspaceObject {
    /// What it stands for.
    pub spec: WorkspaceSpec,
}

/// The spec of a `Workspace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WorkspaceSpec {
    /// The logical cluster's name.
    pub cluster: String,
}
