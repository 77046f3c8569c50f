//! Random worlds for the properties: few names, so that things meet, and small sizes, so that they nearly fit.

use std::collections::{BTreeMap, BTreeSet};

use kcp_provider_runtime::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};
use kcp_provider_runtime::api::condition::{Condition, ConditionStatus};
use kcp_provider_runtime::api::meta::Meta;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::quantity::Quantity;
use kcp_provider_runtime::api::tenant::{
    Capabilities, KubernetesCluster, KubernetesClusterSpec, KubernetesClusterStatus, NodePool, ProviderRef,
};
use kcp_provider_runtime::kcm::catalog::{Catalog, Change};
use kcp_provider_runtime::kcm::project::desired;
use kcp_provider_runtime::kcm::schedule::{Decision, Request};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const REGIONS: [&str; 2] = ["eu-de", "eu-nl"];
const VERSIONS: [&str; 2] = ["1.33.6", "1.34.2"];
const PROVIDERS: [&str; 3] = ["aws", "gcp", "otc"];
const OFFERINGS: [&str; 4] = ["a", "b", "c", "d"];
const TYPES: [&str; 5] = ["m1", "m2", "m3", "m4", "m5"];

/// One change of the catalog, owned.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Offering(String, Option<KubernetesClusterOfferingSpec>),
    Type(String, Option<VirtualMachineTypeSpec>),
}

impl Edit {
    pub(crate) fn change(&self) -> Change<'_> {
        match self {
            Self::Offering(name, spec) => Change::Offering(name, spec.as_ref()),
            Self::Type(name, spec) => Change::Type(name, spec.as_ref()),
        }
    }
}

/// The catalog's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) offerings: BTreeMap<String, KubernetesClusterOfferingSpec>,
    pub(crate) types: BTreeMap<String, VirtualMachineTypeSpec>,
}

impl Objects {
    /// The edits that make them from nothing.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        let offerings = self.offerings.iter().map(|(name, spec)| Edit::Offering(name.clone(), Some(spec.clone())));
        offerings.chain(self.types.iter().map(|(name, spec)| Edit::Type(name.clone(), Some(spec.clone())))).collect()
    }

    pub(crate) fn edit(&mut self, edit: &Edit) {
        match edit.clone() {
            Edit::Offering(name, Some(spec)) => drop(self.offerings.insert(name, spec)),
            Edit::Offering(name, None) => drop(self.offerings.remove(&name)),
            Edit::Type(name, Some(spec)) => drop(self.types.insert(name, spec)),
            Edit::Type(name, None) => drop(self.types.remove(&name)),
        }
    }

    pub(crate) fn catalog(&self) -> Catalog {
        apply(&Catalog::default(), &self.edits())
    }
}

pub(crate) fn apply(catalog: &Catalog, edits: &[Edit]) -> Catalog {
    catalog.apply(edits.iter().map(Edit::change))
}

/// What a cluster's decision depends on besides the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) cluster: KubernetesCluster,
    pub(crate) providers: BTreeSet<String>,
    pub(crate) projection: Option<Projection>,
}

impl Tenant {
    pub(crate) fn request<'a>(&'a self, catalog: &'a Catalog) -> Request<'a> {
        Request { cluster: &self.cluster, catalog, providers: &self.providers, projection: self.projection.as_ref() }
    }

    /// The tenant after the decision was carried out; `None` if there is nothing to carry out.
    pub(crate) fn settled(&self, decision: &Decision) -> Option<Self> {
        let Decision::Scheduled { provider, pools, .. } = decision else { return None };
        let mut settled = self.clone();
        settled.projection = Some(desired(&self.cluster, provider, pools));
        settled.cluster.spec.provider_ref = Some(ProviderRef { name: provider.clone() });
        settled.cluster.status = Some(KubernetesClusterStatus {
            conditions: vec![Condition {
                type_: "Scheduled".to_owned(),
                status: ConditionStatus::True,
                observed_generation: settled.cluster.metadata.generation,
                last_transition_time: "2026-11-30T00:00:00Z".to_owned(),
                reason: "Scheduled".to_owned(),
                message: String::new(),
            }],
            ..KubernetesClusterStatus::default()
        });
        Some(settled)
    }
}

pub(crate) fn objects() -> impl Strategy<Value = Objects> {
    let offerings = btree_map(select(&OFFERINGS[..]).prop_map(str::to_owned), offering(), 0..=OFFERINGS.len());
    let types = btree_map(select(&TYPES[..]).prop_map(str::to_owned), machine_type(), 0..=TYPES.len());
    (offerings, types).prop_map(|(offerings, types)| Objects { offerings, types })
}

pub(crate) fn edits(max: usize) -> impl Strategy<Value = Vec<Edit>> {
    let offering =
        (select(&OFFERINGS[..]), option::weighted(0.7, offering())).prop_map(|(name, spec)| Edit::Offering(name.to_owned(), spec));
    let type_ = (select(&TYPES[..]), option::weighted(0.7, machine_type())).prop_map(|(name, spec)| Edit::Type(name.to_owned(), spec));
    vec(prop_oneof![offering, type_], 1..=max)
}

/// A tenant without a projection: half of them pinned.
pub(crate) fn tenant() -> impl Strategy<Value = Tenant> {
    let pin = option::of(select(&PROVIDERS[..]).prop_map(|name| ProviderRef { name: name.to_owned() }));
    let providers = subsequence(&PROVIDERS[..], 0..=PROVIDERS.len());
    (select(&REGIONS[..]), select(&VERSIONS[..]), pools(), pin, providers).prop_map(
        |(region, version, node_pools, provider_ref, providers)| {
            let metadata = Meta {
                name: "demo".to_owned(),
                namespace: Some("default".into()),
                uid: Some("u1".to_owned()),
                generation: Some(1),
                ..Meta::default()
            };
            let spec = KubernetesClusterSpec { region: region.to_owned(), version: version.to_owned(), node_pools, provider_ref };
            let providers = providers.into_iter().map(str::to_owned).collect();
            Tenant { cluster: KubernetesCluster { metadata, spec, status: None }, providers, projection: None }
        },
    )
}

fn pools() -> impl Strategy<Value = Vec<NodePool>> {
    let names = subsequence(&["blue", "green", "red"][..], 1..=3).prop_shuffle();
    let capabilities = || (amount(), amount()).prop_map(|(cpu, memory)| Capabilities { cpu, memory });
    (names, vec(capabilities(), 3), vec(0..5_i32, 3)).prop_map(|(names, capabilities, replicas)| {
        let parts = names.into_iter().zip(capabilities).zip(replicas);
        parts.map(|((name, capabilities), replicas)| NodePool { name: name.to_owned(), replicas, capabilities }).collect()
    })
}

fn offering() -> impl Strategy<Value = KubernetesClusterOfferingSpec> {
    let lists = (
        subsequence(&REGIONS[..], 0..=REGIONS.len()).prop_shuffle(),
        subsequence(&VERSIONS[..], 0..=VERSIONS.len()).prop_shuffle(),
        subsequence(&TYPES[..], 0..=TYPES.len()).prop_shuffle(),
    );
    (select(&PROVIDERS[..]), lists).prop_map(|(provider, (regions, versions, types))| KubernetesClusterOfferingSpec {
        provider_ref: ProviderRef { name: provider.to_owned() },
        available_regions: regions.into_iter().map(str::to_owned).collect(),
        available_versions: versions.into_iter().map(str::to_owned).collect(),
        available_virtual_machine_types: types.into_iter().map(str::to_owned).collect(),
    })
}

fn machine_type() -> impl Strategy<Value = VirtualMachineTypeSpec> {
    (amount(), amount(), subsequence(&REGIONS[..], 0..=REGIONS.len())).prop_map(|(cpu, memory, regions)| VirtualMachineTypeSpec {
        provider_machine_type: "any".to_owned(),
        cpu,
        memory,
        available_regions: regions.into_iter().map(str::to_owned).collect(),
    })
}

fn amount() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        (0..4_i64).prop_map(|value| Quantity::try_from(value).unwrap()),
        (0..4_i64).prop_map(|value| format!("{value}000m").parse().unwrap())
    ]
}
