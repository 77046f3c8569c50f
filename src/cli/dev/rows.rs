//! Pure: what the server shows of each cluster, as one row each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::api::condition::{Condition, ConditionStatus};
use crate::api::meta::{Kind, ServiceObject as _};
use crate::api::names::{LogicalCluster, ObjectKey};
use crate::api::projection::Projection;
use crate::api::tenant::KubernetesCluster;

/// The conditions of a cluster, in the order in which they come true.
pub const CONDITIONS: [&str; 4] = ["Scheduled", "Projected", "ProviderClusterReady", "Ready"];

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The workspace: a path where it is known, the logical cluster's name otherwise.
    pub workspace: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `spec.providerRef.name`.
    pub provider: Option<String>,
    /// Pool and machine type, as the projection has them; empty without one.
    pub types: BTreeMap<String, String>,
    /// `status.ready`.
    pub ready: Option<bool>,
    /// By type.
    pub conditions: BTreeMap<String, Shown>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Whether it speaks of the spec as it is now.
    pub current: bool,
}

impl Row {
    /// Whether a condition holds for the spec as it is now.
    pub fn holds(&self, type_: &str) -> bool {
        self.conditions.get(type_).is_some_and(|shown| shown.current && shown.status == ConditionStatus::True.as_str())
    }
}

/// Joins clusters and projections of all workspaces; `paths` names the workspaces that are known. Sorted by workspace, namespace and name.
pub fn rows(clusters: &[Value], projections: &[Value], paths: &BTreeMap<LogicalCluster, String>) -> Vec<Row> {
    let projections: BTreeMap<ObjectKey, Projection> = keyed(projections);
    let clusters: BTreeMap<ObjectKey, KubernetesCluster> = keyed(clusters);
    let mut rows: Vec<Row> = clusters.iter().map(|(key, cluster)| row(key, cluster, projections.get(key), paths)).collect();
    rows.sort_by(|a, b| (&a.workspace, &a.namespace, &a.name).cmp(&(&b.workspace, &b.namespace, &b.name)));
    rows
}

fn keyed<K: Kind>(objects: &[Value]) -> BTreeMap<ObjectKey, K> {
    let read = |object: &Value| {
        let workspace = LogicalCluster::new(object["metadata"]["annotations"]["kcp.io/cluster"].as_str()?);
        let object: K = serde_json::from_value(object.clone()).ok()?;
        Some((ObjectKey::new(workspace, object.object_name()), object))
    };
    objects.iter().filter_map(read).collect()
}

fn row(key: &ObjectKey, cluster: &KubernetesCluster, projection: Option<&Projection>, paths: &BTreeMap<LogicalCluster, String>) -> Row {
    let generation = cluster.metadata.generation();
    let shown = |condition: &Condition| Shown {
        status: condition.status.as_str(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        current: condition.observed_generation == Some(generation),
    };
    let pools = projection.map_or(&[][..], |projection| &projection.spec.node_pools);
    Row {
        workspace: paths.get(&key.workspace).cloned().unwrap_or_else(|| key.workspace.to_string()),
        namespace: key.name.namespace.to_string(),
        name: key.name.name.to_string(),
        provider: cluster.provider().map(ToOwned::to_owned),
        types: pools.iter().map(|pool| (pool.name.clone(), pool.type_.clone())).collect(),
        ready: cluster.status.as_ref().and_then(|status| status.ready),
        conditions: cluster.conditions().iter().map(|condition| (condition.type_.clone(), shown(condition))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cluster(workspace: &str, generation: i64) -> Value {
        json!({
            "metadata": {"name": "shop", "namespace": "default", "generation": generation, "annotations": {"kcp.io/cluster": workspace}},
            "spec": {"region": "eu-de", "version": "1.34.2", "providerRef": {"name": "otc"},
                "nodePools": [{"name": "w", "replicas": 1, "capabilities": {"cpu": "4", "memory": "16Gi"}}]},
            "status": {"ready": true, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "m",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        })
    }

    fn projection(workspace: &str) -> Value {
        json!({
            "metadata": {"name": "shop", "namespace": "default", "annotations": {"kcp.io/cluster": workspace}},
            "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2",
                "nodePools": [{"name": "w", "replicas": 1, "type": "m-4-16"}]},
        })
    }

    #[test]
    fn clusters_of_the_same_name_in_two_workspaces_are_two_rows_each_with_its_own_projection() {
        let paths = BTreeMap::from([(LogicalCluster::new("1abc"), "root:globex".to_owned())]);
        let rows = rows(&[cluster("1abc", 1), cluster("2def", 2)], &[projection("1abc")], &paths);
        let seen: Vec<_> = rows.iter().map(|row| (row.workspace.as_str(), row.types.len(), row.holds("Ready"))).collect();
        assert_eq!(seen, [("2def", 0, false), ("root:globex", 1, true)], "the second Ready speaks of an older generation");
    }

    #[test]
    fn what_cannot_be_read_is_no_row() {
        assert_eq!(rows(&[json!({"metadata": {"name": "x"}}), json!(null)], &[], &BTreeMap::new()), []);
    }
}
