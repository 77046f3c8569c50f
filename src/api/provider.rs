//! `Provider`: a tenant's statement that it can pay for a provider.
//!
//! Pure: the wire form. Schedulers read only its name; the credentials are for the provider's own controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::meta::{Meta, kind};

/// The API group of provider infrastructure that is not about Kubernetes.
pub const GROUP: &str = "provider.edge-connect.eu";

/// A provider that this workspace may use; metadata.name is the provider's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provider {
    /// Standard metadata.
    #[serde(default)]
    pub metadata: Meta,
    /// Whose account is used.
    pub spec: ProviderSpec,
}

kind!(Provider, GROUP, "v1alpha1", "Provider", "providers", namespaced: false);

/// Whose account is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProviderSpec {
    /// The Secret with the tenant's own account at the provider. Never read by the scheduler.
    pub credentials_secret_ref: SecretReference,
}

/// A Secret by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SecretReference {
    /// The Secret's namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
