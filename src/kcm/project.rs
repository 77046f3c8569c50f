//! The projection: what a provider gets to see of a scheduled cluster, and whose a projection is.
//!
//! Pure: it builds the object that should be there and says whether the one that is there differs. Nothing of the tenant object's labels and
//! annotations goes into it: what kcp writes there (`kcp.io/*`, `claimed.internal.apis.kcp.io/*`) speaks of that object alone.

use super::requests::Requests;
use super::schedule::PoolType;
use crate::api::meta::{Kind, Meta, OwnerReference};
use crate::api::projection::{Projection, ProjectionSpec, REQUESTS_ANNOTATION, TypedNodePool};
use crate::api::tenant::{self, KubernetesCluster, ProviderRef};
use crate::mutants::{Mutant, mutated};

/// Whose a projection is, seen from one tenant object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This very incarnation controls it.
    Ours,
    /// An earlier incarnation of the same name controls it: it is deleted first, then scheduling starts afresh (rule 6).
    Orphan {
        /// The earlier incarnation's uid.
        uid: String,
    },
    /// Somebody else made it: it is never overwritten nor deleted.
    Foreign,
}

/// Whose the projection of the cluster's name is.
///
/// Only the owner reference with `controller: true` counts; its version is not compared, as a later one of the same kind is ours too.
pub fn ownership(projection: &Projection, cluster: &KubernetesCluster) -> Ownership {
    let Some(controller) = projection.metadata.controller() else { return Ownership::Foreign };
    let group = controller.api_version.split_once('/').map_or("", |(group, _)| group);
    if group != tenant::GROUP || controller.kind != KubernetesCluster::REF.kind || controller.name != cluster.metadata.name {
        Ownership::Foreign
    } else if !controller.uid.is_empty() && (controller.uid == cluster.metadata.uid() || mutated(Mutant::OrphanIsOurs)) {
        Ownership::Ours
    } else {
        Ownership::Orphan { uid: controller.uid.clone() }
    }
}

/// The projection that should be there, as it is created.
///
/// `pools` are those of the decision: the cluster's own pools in their order, each with its type.
pub fn desired(cluster: &KubernetesCluster, provider: &str, pools: &[PoolType]) -> Projection {
    let spec = &cluster.spec;
    let typed = spec.node_pools.iter().zip(pools).map(|(pool, chosen)| TypedNodePool {
        name: pool.name.clone(),
        replicas: pool.replicas,
        type_: chosen.type_.clone(),
    });
    let metadata = Meta {
        name: cluster.metadata.name.clone(),
        namespace: cluster.metadata.namespace.clone(),
        annotations: [(REQUESTS_ANNOTATION.to_owned(), Requests::write(&spec.node_pools))].into(),
        owner_references: vec![owner(cluster)],
        ..Meta::default()
    };
    let spec = ProjectionSpec {
        provider_ref: ProviderRef { name: provider.to_owned() },
        region: spec.region.clone(),
        version: spec.version.clone(),
        node_pools: typed.collect(),
    };
    Projection { metadata, spec, status: None }
}

/// The object to PUT so that the current projection becomes the desired one of the same cluster; `None` if it already is.
///
/// It keeps everything of the current one that is not ours: labels, annotations, finalizers, other owners, status, uid and
/// resourceVersion. The record of requests is only rewritten when its amounts differ: `4` and `4000m` are the same request. Fields that
/// [`Meta`] does not hold are for the writer to keep.
pub fn differs(current: &Projection, desired: &Projection) -> Option<Projection> {
    let mut put = current.clone();
    put.spec.clone_from(&desired.spec);
    for ours in &desired.metadata.owner_references {
        own(&mut put.metadata, ours);
    }
    if !same_requests(current, desired) {
        put.metadata.annotations.extend(desired.metadata.annotations.clone());
    }
    (put != *current).then_some(put)
}

/// Puts this owner reference right and leaves those of others.
fn own(metadata: &mut Meta, ours: &OwnerReference) {
    metadata.owner_references.retain(|owner| owner == ours || owner.uid != ours.uid);
    if !metadata.owner_references.contains(ours) {
        metadata.owner_references.push(ours.clone());
    }
}

/// Whether both record the same amounts for the same pools.
fn same_requests(current: &Projection, desired: &Projection) -> bool {
    Requests::of(current) == Requests::of(desired)
}

/// The tenant object as the controlling owner. It does not block the owner's deletion: the finalizer does, and tells why.
fn owner(cluster: &KubernetesCluster) -> OwnerReference {
    OwnerReference {
        api_version: KubernetesCluster::REF.api_version(),
        kind: KubernetesCluster::REF.kind.to_owned(),
        name: cluster.metadata.name.clone(),
        uid: cluster.metadata.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

#[cfg(test)]
mod tests;
