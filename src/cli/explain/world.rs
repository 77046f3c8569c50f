//! What a decision depends on, gathered from documents or from a server, and the decisions.
//!
//! Pure: it decides by the production function and judges no rule itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::meta::Kind;
use crate::api::names::ObjectName;
use crate::api::projection::Projection;
use crate::api::tenant::KubernetesCluster;
use crate::kcm::catalog::{Catalog, Change};
use crate::kcm::explain::{Explanation, explain};
use crate::kcm::project::{Ownership, ownership};
use crate::kcm::schedule::Request;

/// A platform's catalog, a tenant's Provider names, and clusters with what they have.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) offerings: Vec<KubernetesClusterOffering>,
    pub(super) types: Vec<VirtualMachineType>,
    pub(super) providers: BTreeSet<String>,
    /// In the order in which they are explained.
    pub(super) clusters: Vec<KubernetesCluster>,
    pub(super) projections: BTreeMap<ObjectName, Projection>,
}

/// What is to be done with a projection of a cluster's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It counts: it is the cluster's own.
    Own,
    /// The scheduler decides without it; the text completes "the projection NS/NAME …".
    Without(&'static str),
}

impl World {
    /// One explanation per cluster, in their order, and what is to be said on projections that do not count.
    pub(super) fn explanations(&self, whose: fn(&Projection, &KubernetesCluster) -> Use) -> (Vec<Explanation>, Vec<String>) {
        let catalog = self.catalog();
        let mut notes = Vec::new();
        let explanations = self.clusters.iter().map(|cluster| {
            let mut projection = self.projections.get(&cluster.object_name());
            if let Some(Use::Without(why)) = projection.map(|projection| whose(projection, cluster)) {
                notes.push(format!("the projection {} {why}", cluster.object_name()));
                projection = None;
            }
            explain(Request { cluster, catalog: &catalog, providers: &self.providers, projection })
        });
        (explanations.collect(), notes)
    }

    fn catalog(&self) -> Catalog {
        let types = self.types.iter().map(|type_| Change::Type(&type_.metadata.name, Some(&type_.spec)));
        let offerings = self.offerings.iter().map(|offering| Change::Offering(&offering.metadata.name, Some(&offering.spec)));
        Catalog::default().apply(types.chain(offerings))
    }
}

/// Whose a projection is where both objects come from one server: as the scheduler sees it.
pub(super) fn on_a_server(projection: &Projection, cluster: &KubernetesCluster) -> Use {
    match ownership(projection, cluster) {
        Ownership::Ours => Use::Own,
        Ownership::Orphan { .. } => {
            Use::Without("belongs to an earlier cluster of this name: it is deleted first, then scheduling starts afresh")
        }
        Ownership::Foreign => {
            Use::Without("was not made by the scheduler: it is never overwritten, and the cluster gets none until it is gone")
        }
    }
}

/// Whose a projection is where objects come from files: uids and owners are usually left out there, and then the name alone decides.
pub(super) fn in_files(projection: &Projection, cluster: &KubernetesCluster) -> Use {
    let uids = [projection.metadata.controller().map(|owner| owner.uid.as_str()), cluster.metadata.uid.as_deref()];
    let unknown = uids.iter().any(|uid| uid.is_none_or(str::is_empty));
    match ownership(projection, cluster) {
        Ownership::Orphan { .. } if unknown => Use::Own,
        Ownership::Foreign if projection.metadata.owner_references.is_empty() => Use::Own,
        _ => on_a_server(projection, cluster),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn whose(owners: &Value, uid: Option<&str>) -> (bool, bool) {
        let spec = json!({"region": "eu-de", "version": "1.34.2", "nodePools": [], "providerRef": {"name": "otc"}});
        let cluster = serde_json::from_value(json!({"metadata": {"name": "demo", "uid": uid}, "spec": spec})).unwrap();
        let projection = serde_json::from_value(json!({"metadata": {"name": "demo", "ownerReferences": owners}, "spec": spec})).unwrap();
        (in_files(&projection, &cluster) == Use::Own, on_a_server(&projection, &cluster) == Use::Own)
    }

    #[test]
    fn in_files_what_is_left_out_speaks_for_the_cluster_and_on_a_server_against_it() {
        let owner = |name: &str, uid: &str| {
            json!([{"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "name": name, "uid": uid,
                "controller": true}])
        };
        for (why, owners, uid, expected) in [
            ("equal uids", owner("demo", "u1"), Some("u1"), (true, true)),
            ("another uid is an earlier cluster", owner("demo", "u0"), Some("u1"), (false, false)),
            ("the cluster's uid is left out", owner("demo", "u0"), None, (true, false)),
            ("the owner's uid is left out", owner("demo", ""), Some("u1"), (true, false)),
            ("no owner is named", json!([]), Some("u1"), (true, false)),
            ("another cluster owns it", owner("other", "u1"), Some("u1"), (false, false)),
            (
                "somebody else owns it",
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "demo", "uid": "", "controller": true}]),
                None,
                (false, false),
            ),
        ] {
            assert_eq!(whose(&owners, uid), expected, "{why}");
        }
    }
}
