//! What tenants order, what operators configure, and what is made on a workload cluster.

use std::collections::BTreeMap;

use kcp_provider_runtime::api::condition::Condition;
use kcp_provider_runtime::api::config::{FieldError, RuntimeSettings};
use kcp_provider_runtime::api::meta::{Kind, KindRef, Meta, ServiceObject};
use kcp_provider_runtime::kind;
use kcp_provider_runtime::reconciler::ProviderConfig;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A relay: something that runs elsewhere and works on the `ConfigMaps` of the workspace it was ordered in.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Relay {
    pub(crate) metadata: Meta,
    pub(crate) spec: RelaySpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<RelayStatus>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RelaySpec {
    /// One of the versions that the operator offers.
    pub(crate) version: String,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct RelayStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

kind!(Relay, "relays.example.org", "v1alpha1", "Relay", "relays", namespaced: true);

impl ServiceObject for Relay {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What the operator says: which versions there are, how kcp is reached from where workers run, and where workers run.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct RelayConfig {
    metadata: Meta,
    spec: RuntimeSettings,
}

kind!(RelayConfig, "relays.example.org", "v1alpha1", "RelayConfig", "relayconfigs", namespaced: false);

impl RelayConfig {
    /// Where the chart of a version is.
    pub(crate) fn chart(&self, version: &str) -> Option<&str> {
        self.spec.versions.iter().find(|source| source.name == version).map(|source| source.chart_url.as_str())
    }

    pub(crate) fn versions(&self) -> String {
        self.spec.versions.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl ProviderConfig for RelayConfig {
    const KIND: Option<KindRef> = Some(<Self as Kind>::REF);

    fn runtime(&self) -> &RuntimeSettings {
        &self.spec
    }

    fn validate(&self) -> Result<(), Vec<FieldError>> {
        let mut problems = self.spec.problems();
        if self.spec.versions.is_empty() {
            problems.push(FieldError::new("spec.versions", "a relay needs at least one version"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Without an object nobody knows which versions there are.
    fn absent() -> Option<Self> {
        None
    }
}

/// What the worker reads: the kubeconfig of the workspace.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Secret {
    pub(crate) metadata: Meta,
    /// In base64.
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}

kind!(Secret, "", "v1", "Secret", "secrets", namespaced: true);

/// The worker.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Deployment {
    pub(crate) metadata: Meta,
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: Value,
}

kind!(Deployment, "apps", "v1", "Deployment", "deployments", namespaced: true);
