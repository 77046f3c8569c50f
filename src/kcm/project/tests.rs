//! What the projection holds, when it is written, and whose it is.

use serde_json::json;

use super::*;

fn cluster() -> KubernetesCluster {
    serde_json::from_value(json!({
        "metadata": {
            "name": "demo", "namespace": "shop", "uid": "u1", "generation": 1,
            "annotations": {"kcp.io/cluster": "2hx7k1z", "team": "web"},
            "labels": {"claimed.internal.apis.kcp.io/abc": "def", "team": "web"},
        },
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": [
            {"name": "web", "replicas": 3, "capabilities": {"cpu": "4", "memory": "16Gi"}},
            {"name": "db", "replicas": 1, "capabilities": {"cpu": 8, "memory": "64Gi"}},
        ]},
    }))
    .unwrap()
}

fn pools() -> [PoolType; 2] {
    [("web", "m-4-16"), ("db", "r-8-64")].map(|(name, type_)| PoolType { name: name.to_owned(), type_: type_.to_owned() })
}

fn projection() -> Projection {
    desired(&cluster(), "otc", &pools())
}

/// As the server holds it, with what others have written.
fn stored() -> Projection {
    let mut stored = projection();
    stored.metadata.resource_version = Some("41".to_owned());
    stored.metadata.uid = Some("p1".to_owned());
    stored.metadata.annotations.insert("kcp.io/cluster".to_owned(), "2hx7k1z".to_owned());
    stored.metadata.labels.insert("claimed.internal.apis.kcp.io/abc".to_owned(), "def".to_owned());
    stored.metadata.finalizers.push("otc.example.org/cluster".to_owned());
    stored.status = Some(crate::api::projection::ProjectionStatus { ready: Some(true), ..Default::default() });
    stored
}

#[test]
fn it_holds_the_pools_in_the_tenants_order_and_nothing_of_the_tenants_metadata() {
    let wire = serde_json::to_value(projection()).unwrap();
    assert_eq!(
        wire,
        json!({
            "metadata": {
                "name": "demo", "namespace": "shop",
                "annotations": {"kubernetes.edge-connect.eu/requests":
                    r#"{"db":{"cpu":8,"memory":"64Gi"},"web":{"cpu":"4","memory":"16Gi"}}"#},
                "ownerReferences": [{"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "name": "demo",
                    "uid": "u1", "controller": true, "blockOwnerDeletion": false}],
            },
            "spec": {"providerRef": {"name": "otc"}, "region": "eu-de", "version": "1.34.2", "nodePools": [
                {"name": "web", "replicas": 3, "type": "m-4-16"},
                {"name": "db", "replicas": 1, "type": "r-8-64"},
            ]},
        })
    );
}

#[test]
fn what_others_wrote_is_no_difference() {
    assert_eq!(differs(&stored(), &projection()), None);
}

#[test]
fn the_same_amounts_written_otherwise_are_no_difference() {
    let mut cluster = cluster();
    cluster.spec.node_pools[0].capabilities.cpu = "4000m".parse().unwrap();
    assert_eq!(differs(&stored(), &desired(&cluster, "otc", &pools())), None);
}

#[test]
fn a_change_keeps_what_is_not_ours() {
    let mut cluster = cluster();
    cluster.spec.node_pools[0].replicas = 5;
    let put = differs(&stored(), &desired(&cluster, "otc", &pools())).unwrap();
    let mut expected = stored();
    expected.spec.node_pools[0].replicas = 5;
    assert_eq!(put, expected);
}

#[test]
fn a_changed_request_is_recorded_even_if_the_type_stays() {
    let mut cluster = cluster();
    cluster.spec.node_pools[0].capabilities.cpu = "3".parse().unwrap();
    let put = differs(&stored(), &desired(&cluster, "otc", &pools())).unwrap();
    assert_eq!(put.spec, stored().spec);
    assert!(put.metadata.annotations[REQUESTS_ANNOTATION].contains(r#""web":{"cpu":"3","memory":"16Gi"}"#));
    assert_eq!(put.metadata.annotations["kcp.io/cluster"], "2hx7k1z");
}

#[test]
fn a_missing_damaged_or_outdated_record_is_written_anew() {
    let damages = [None, Some("{"), Some("{}"), Some(r#"{"web":{"cpu":"4","memory":"16Gi"}}"#), Some(r#"{"web":7,"db":8}"#)];
    for damage in damages {
        let mut current = stored();
        current.metadata.annotations.remove(REQUESTS_ANNOTATION);
        current.metadata.annotations.extend(damage.map(|text| (REQUESTS_ANNOTATION.to_owned(), text.to_owned())));
        assert_eq!(differs(&current, &projection()), Some(stored()), "{damage:?}");
    }
}

#[test]
fn a_removed_pool_goes_from_spec_and_record() {
    let mut cluster = cluster();
    cluster.spec.node_pools.remove(0);
    let put = differs(&stored(), &desired(&cluster, "otc", &pools()[1..])).unwrap();
    assert_eq!(put.spec.node_pools.len(), 1);
    assert_eq!(put.metadata.annotations[REQUESTS_ANNOTATION], r#"{"db":{"cpu":8,"memory":"64Gi"}}"#);
}

#[test]
fn an_owner_reference_that_was_altered_is_put_right_beside_those_of_others() {
    let mut current = stored();
    current.metadata.owner_references[0].block_owner_deletion = Some(true);
    let other = OwnerReference { uid: "other".to_owned(), controller: None, ..current.metadata.owner_references[0].clone() };
    current.metadata.owner_references.push(other.clone());
    let put = differs(&current, &projection()).unwrap();
    assert_eq!(put.metadata.owner_references, [other, projection().metadata.owner_references[0].clone()]);
    assert_eq!(differs(&put, &projection()), None);
}

#[test]
fn the_controlling_owner_says_whose_it_is() {
    let cluster = cluster();
    let owned = |change: fn(&mut OwnerReference)| {
        let mut projection = projection();
        change(&mut projection.metadata.owner_references[0]);
        ownership(&projection, &cluster)
    };
    assert_eq!(owned(|_| {}), Ownership::Ours);
    assert_eq!(owned(|owner| owner.api_version = "kubernetes.edge-connect.eu/v1".to_owned()), Ownership::Ours, "a later version");
    assert_eq!(owned(|owner| owner.uid = "u0".to_owned()), Ownership::Orphan { uid: "u0".to_owned() });
    assert_eq!(owned(|owner| owner.name = "another".to_owned()), Ownership::Foreign);
    assert_eq!(owned(|owner| owner.kind = "Namespace".to_owned()), Ownership::Foreign);
    assert_eq!(owned(|owner| owner.api_version = "provider.kubernetes.edge-connect.eu/v1alpha1".to_owned()), Ownership::Foreign);
    assert_eq!(owned(|owner| owner.api_version = "v1".to_owned()), Ownership::Foreign);
    assert_eq!(owned(|owner| owner.controller = None), Ownership::Foreign);
}

#[test]
fn a_projection_without_owners_is_foreign() {
    let mut projection = projection();
    projection.metadata.owner_references.clear();
    assert_eq!(ownership(&projection, &cluster()), Ownership::Foreign);
}

#[test]
fn a_cluster_that_has_no_uid_yet_owns_nothing() {
    let mut cluster = cluster();
    cluster.metadata.uid = None;
    let unowned = desired(&cluster, "otc", &pools());
    assert_ne!(ownership(&unowned, &cluster), Ownership::Ours);
}
