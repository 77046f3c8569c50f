//! The form of a case file.

use std::collections::{BTreeMap, BTreeSet};

use kcp_provider_runtime::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};
use kcp_provider_runtime::api::meta::Meta;
use kcp_provider_runtime::api::projection::{Projection, ProjectionSpec, REQUESTS_ANNOTATION, TypedNodePool};
use kcp_provider_runtime::api::quantity::Quantity;
use kcp_provider_runtime::api::tenant::{Capabilities, KubernetesCluster, KubernetesClusterSpec, NodePool, ProviderRef};
use kcp_provider_runtime::kcm::catalog::{Catalog, Change};
use serde::Deserialize;

/// Cases that share a catalog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) why: String,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) offerings: BTreeMap<String, Offering>,
    pub(crate) providers: BTreeSet<String>,
    pub(crate) cases: Vec<Case>,
}

/// One request and what must come of it. What it does not say is the file's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) why: String,
    /// Added to the file's catalog; null takes away.
    #[serde(default)]
    pub(crate) types: BTreeMap<String, Option<Type>>,
    #[serde(default)]
    pub(crate) offerings: BTreeMap<String, Option<Offering>>,
    pub(crate) providers: Option<BTreeSet<String>>,
    pub(crate) cluster: Cluster,
    pub(crate) projection: Option<Projected>,
    pub(crate) expect: Expectation,
    /// By offering name; those not named are not looked at.
    #[serde(default)]
    pub(crate) verdicts: BTreeMap<String, String>,
    /// Texts that the details of all offerings together must hold.
    #[serde(default)]
    pub(crate) details: Vec<String>,
    /// Texts that the advice must hold.
    #[serde(default)]
    pub(crate) advice: Vec<String>,
    /// Texts that it must not hold.
    #[serde(default)]
    pub(crate) no_advice: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Type {
    cpu: Quantity,
    memory: Quantity,
    regions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offering {
    provider: String,
    regions: Vec<String>,
    versions: Vec<String>,
    types: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    region: String,
    version: String,
    pin: Option<String>,
    pools: Vec<Pool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    name: String,
    cpu: Quantity,
    memory: Quantity,
    #[serde(default)]
    replicas: i32,
}

/// The projection that exists: pool to type, and the annotation's text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Projected {
    provider: String,
    /// Where it lives; the cluster's region if left out.
    region: Option<String>,
    pools: BTreeMap<String, String>,
    requests: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    pub(crate) provider: Option<String>,
    pub(crate) offering: Option<String>,
    #[serde(default)]
    pub(crate) pools: BTreeMap<String, String>,
    pub(crate) reason: Option<String>,
    /// The whole message.
    pub(crate) message: Option<String>,
    /// What the message must hold.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// What it must not hold.
    #[serde(default)]
    pub(crate) silent_on: Vec<String>,
}

impl File {
    /// The catalog of one of its cases.
    pub(crate) fn catalog(&self, case: &Case) -> Catalog {
        let types = self.types.iter().map(|(name, type_)| (name, Some(type_)));
        let types = types.chain(case.types.iter().map(|(name, type_)| (name, type_.as_ref())));
        let types: Vec<_> = types.map(|(name, type_)| (name, type_.map(Type::spec))).collect();
        let offerings = self.offerings.iter().map(|(name, offering)| (name, Some(offering)));
        let offerings = offerings.chain(case.offerings.iter().map(|(name, offering)| (name, offering.as_ref())));
        let offerings: Vec<_> = offerings.map(|(name, offering)| (name, offering.map(Offering::spec))).collect();
        let offerings = offerings.iter().map(|(name, spec)| Change::Offering(name, spec.as_ref()));
        Catalog::default().apply(types.iter().map(|(name, spec)| Change::Type(name, spec.as_ref())).chain(offerings))
    }
}

impl Type {
    fn spec(&self) -> VirtualMachineTypeSpec {
        VirtualMachineTypeSpec {
            provider_machine_type: "any".to_owned(),
            cpu: self.cpu.clone(),
            memory: self.memory.clone(),
            available_regions: self.regions.clone(),
        }
    }
}

impl Offering {
    fn spec(&self) -> KubernetesClusterOfferingSpec {
        KubernetesClusterOfferingSpec {
            provider_ref: ProviderRef { name: self.provider.clone() },
            available_regions: self.regions.clone(),
            available_versions: self.versions.clone(),
            available_virtual_machine_types: self.types.clone(),
        }
    }
}

impl Cluster {
    pub(crate) fn object(&self) -> KubernetesCluster {
        let pools = self.pools.iter().map(|pool| NodePool {
            name: pool.name.clone(),
            replicas: pool.replicas,
            capabilities: Capabilities { cpu: pool.cpu.clone(), memory: pool.memory.clone() },
        });
        KubernetesCluster {
            metadata: Meta { name: "demo".to_owned(), namespace: Some("default".into()), uid: Some("u1".to_owned()), ..Meta::default() },
            spec: KubernetesClusterSpec {
                region: self.region.clone(),
                version: self.version.clone(),
                node_pools: pools.collect(),
                provider_ref: self.pin.clone().map(|name| ProviderRef { name }),
            },
            status: None,
        }
    }
}

impl Projected {
    pub(crate) fn object(&self, cluster: &KubernetesCluster) -> Projection {
        let pools = self.pools.iter().map(|(name, type_)| TypedNodePool { name: name.clone(), replicas: 1, type_: type_.clone() });
        let annotations = self.requests.iter().map(|text| (REQUESTS_ANNOTATION.to_owned(), text.clone()));
        Projection {
            metadata: Meta { name: cluster.metadata.name.clone(), annotations: annotations.collect(), ..Meta::default() },
            spec: ProjectionSpec {
                provider_ref: ProviderRef { name: self.provider.clone() },
                region: self.region.as_ref().unwrap_or(&cluster.spec.region).clone(),
                version: cluster.spec.version.clone(),
                node_pools: pools.collect(),
            },
            status: None,
        }
    }
}
