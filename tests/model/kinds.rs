//! From the objects of the model to the real kinds and back.

use std::collections::BTreeSet;

use kcp_provider_runtime::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};
use kcp_provider_runtime::api::condition::{Condition, ConditionStatus};
use kcp_provider_runtime::api::meta::Meta;
use kcp_provider_runtime::api::projection::{Projection, ProjectionStatus, REQUESTS_ANNOTATION};
use kcp_provider_runtime::api::quantity::Quantity;
use kcp_provider_runtime::api::tenant::{
    Capabilities, KubernetesCluster, KubernetesClusterSpec, KubernetesClusterStatus, NodePool, PROJECTION_FINALIZER, ProviderRef,
};
use kcp_provider_runtime::kcm::catalog::{Catalog, Change};
use kcp_provider_runtime::kcm::project::desired;
use kcp_provider_runtime::kcm::schedule::PoolType;
use kcp_provider_runtime::reconciler::ReportedCondition;

use super::objects::{CONDITIONS, Projected, Provider, Said, Size, Spoken, Tenant};
use super::words::Word;

const REGION: &str = "eu-de";
const VERSION: &str = "1.34.2";
const MEMORY: &str = "16Gi";
/// What keeps a projection until its provider has taken the cluster down.
const OF_THE_PROVIDER: &str = "example.org/provider";
const SOME_TIME: &str = "2026-01-01T00:00:00Z";

fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}

/// The tenant's object.
pub(crate) fn cluster(tenant: &Tenant) -> KubernetesCluster {
    let metadata = Meta {
        name: "demo".into(),
        namespace: Some("default".into()),
        uid: Some(format!("t-{}", tenant.uid)),
        resource_version: Some(tenant.version.to_string()),
        generation: Some(tenant.generation.into()),
        deletion_timestamp: tenant.deleting.then(|| SOME_TIME.to_owned()),
        finalizers: tenant.held.then(|| PROJECTION_FINALIZER.to_owned()).into_iter().collect(),
        ..Meta::default()
    };
    let spec = KubernetesClusterSpec {
        region: REGION.into(),
        version: VERSION.into(),
        node_pools: vec![NodePool {
            name: "workers".into(),
            replicas: 3,
            capabilities: Capabilities { cpu: quantity(tenant.size.cpu()), memory: quantity(MEMORY) },
        }],
        provider_ref: tenant.pin.map(|provider| ProviderRef { name: provider.name().into() }),
    };
    let conditions = CONDITIONS.iter().zip(tenant.said).filter_map(|(type_, said)| Some(condition(type_, said?))).collect();
    let status = KubernetesClusterStatus {
        ready: tenant.rolled.map(|(ready, _)| ready),
        observed_generation: tenant.rolled.map(|(_, generation)| generation.into()),
        conditions,
    };
    KubernetesCluster { metadata, spec, status: Some(status) }
}

fn condition(type_: &str, Said { spoken, generation }: Said) -> Condition {
    Condition {
        type_: type_.into(),
        status: spoken.holds.map_or(ConditionStatus::Unknown, ConditionStatus::from),
        observed_generation: Some(generation.into()),
        last_transition_time: SOME_TIME.into(),
        reason: spoken.reason.text().into(),
        message: spoken.message.text().into(),
    }
}

/// The projection, as the scheduler made it for its owner and as its provider reports.
pub(crate) fn projection(projected: &Projected) -> Projection {
    let owner = Tenant {
        uid: projected.owner,
        version: 0,
        generation: 1,
        deleting: false,
        held: true,
        pin: None,
        size: projected.asked,
        said: [None; 4],
        rolled: None,
    };
    let pools = [PoolType { name: "workers".into(), type_: projected.type_.name().into() }];
    let mut made = desired(&cluster(&owner), projected.provider.name(), &pools);
    made.metadata.uid = Some(format!("p-{}", projected.uid));
    made.metadata.resource_version = Some(projected.version.to_string());
    made.metadata.generation = Some(projected.generation.into());
    made.metadata.deletion_timestamp = projected.deleting.then(|| SOME_TIME.to_owned());
    made.metadata.finalizers = projected.kept.then(|| OF_THE_PROVIDER.to_owned()).into_iter().collect();
    made.status = projected.report.map(|generation| ProjectionStatus {
        ready: Some(true),
        observed_generation: Some(generation.into()),
        ..ProjectionStatus::default()
    });
    made
}

/// What the scheduler wants to write; the server's own fields are those of `current`, or of a new object.
pub(crate) fn wanted(projection: &Projection, current: Option<&Projected>) -> Projected {
    let named = |name: &str| Provider::ALL.into_iter().find(|provider| provider.name() == name).expect("a known provider");
    let sized = |name: &str| Size::ALL.into_iter().find(|size| size.name() == name).expect("a known type");
    let owner = projection.metadata.controller().and_then(|owner| owner.uid.strip_prefix("t-")?.parse().ok()).expect("an owner");
    let record: serde_json::Value = serde_json::from_str(&projection.metadata.annotations[REQUESTS_ANNOTATION]).expect("a record");
    let asked = Size::ALL.into_iter().find(|size| record["workers"]["cpu"] == size.cpu()).expect("a known request");
    let [pool] = projection.spec.node_pools.as_slice() else { panic!("one pool") };
    let new = Projected {
        uid: 0,
        version: 0,
        generation: 1,
        deleting: false,
        kept: false,
        owner,
        provider: named(&projection.spec.provider_ref.name),
        type_: sized(&pool.type_),
        asked,
        report: None,
    };
    match current {
        None => new,
        Some(current) => Projected { owner, provider: new.provider, type_: new.type_, asked, ..*current },
    }
}

/// What is said, without its type.
pub(crate) fn spoken(said: &ReportedCondition) -> Spoken {
    let holds = match said.status {
        ConditionStatus::True => Some(true),
        ConditionStatus::False => Some(false),
        ConditionStatus::Unknown => None,
    };
    Spoken { holds, reason: Word::of(said.reason.as_str()), message: Word::of(&said.message) }
}

/// The names of these providers.
pub(crate) fn names(providers: u8) -> BTreeSet<String> {
    Provider::ALL.iter().filter(|provider| providers & provider.bit() != 0).map(|provider| provider.name().to_owned()).collect()
}

/// The catalog with these offerings.
pub(crate) fn catalog(offerings: u8) -> Catalog {
    let types = Size::ALL.map(|size| VirtualMachineTypeSpec {
        provider_machine_type: size.name().into(),
        cpu: quantity(size.cpu()),
        memory: quantity(MEMORY),
        available_regions: vec![REGION.into()],
    });
    let types = Size::ALL.iter().zip(&types).map(|(size, spec)| Change::Type(size.name(), Some(spec)));
    change(&Catalog::default().apply(types), 0, offerings)
}

/// The catalog after its offerings have changed.
pub(crate) fn change(catalog: &Catalog, before: u8, after: u8) -> Catalog {
    let mut changed = catalog.clone();
    for provider in Provider::ALL.iter().filter(|provider| (before ^ after) & provider.bit() != 0) {
        let spec = KubernetesClusterOfferingSpec {
            provider_ref: ProviderRef { name: provider.name().into() },
            available_regions: vec![REGION.into()],
            available_versions: vec![VERSION.into()],
            available_virtual_machine_types: provider.sizes().iter().map(|size| size.name().to_owned()).collect(),
        };
        let spec = (after & provider.bit() != 0).then_some(&spec);
        changed = changed.apply([Change::Offering(provider.name(), spec)]);
    }
    changed
}
