//! What a cluster that is being deleted says of itself.

use serde_json::{Value, json};

use super::*;
use crate::kcm::project::desired;
use crate::kcm::schedule::PoolType;

/// A cluster that is being deleted, with these finalizers and this `Projected`.
fn leaving(finalizers: &[&str], projected: &Value) -> KubernetesCluster {
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "generation": 2, "finalizers": finalizers,
            "deletionTimestamp": "2026-11-30T00:00:00Z"},
        "spec": {"region": "eu-de", "version": "1.34.2", "providerRef": {"name": "otc"}, "nodePools": [
            {"name": "web", "replicas": 3, "capabilities": {"cpu": "4", "memory": "16Gi"}}]},
        "status": {"ready": true, "conditions": [projected]},
    }))
    .unwrap()
}

fn condition(status: &str, reason: &str, message: &str) -> Value {
    json!({"type": PROJECTED, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-11-30T00:00:00Z"})
}

fn in_sync() -> Value {
    condition("True", "InSync", "")
}

/// Its projection; with finalizers, it is being deleted.
fn projection(finalizers: &[&str]) -> Projection {
    let pools = [PoolType { name: "web".to_owned(), type_: "m".to_owned() }];
    let mut projection = desired(&leaving(&[], &in_sync()), "otc", &pools);
    projection.metadata.finalizers = finalizers.iter().map(|&name| name.to_owned()).collect();
    projection.metadata.deletion_timestamp = (!finalizers.is_empty()).then(|| "2026-11-30T00:00:00Z".to_owned());
    projection
}

#[test]
fn a_cluster_that_is_about_to_go_says_nothing() {
    let demo = leaving(&[PROJECTION_FINALIZER], &in_sync());
    assert_eq!(judge_deletion(&demo, Some(&projection(&[]))), None, "the scheduler is about to delete it");
    assert_eq!(judge_deletion(&demo, None), None, "the scheduler is about to release it");
    let mut foreign = projection(&["x.example.org/y"]);
    foreign.metadata.owner_references.clear();
    assert_eq!(judge_deletion(&demo, Some(&foreign)), None, "another's projection holds nothing");
}

#[test]
fn whatever_holds_a_cluster_that_is_being_deleted_takes_its_readiness_and_is_named() {
    let refused = condition("False", "Deleting", "the projection cannot be deleted: forbidden");
    let machines = projection(&["otc.example.org/machines"]);
    let cases: [(&str, &[&str], _, _, &str); 4] = [
        ("its projection", &[PROJECTION_FINALIZER], in_sync(), Some(&machines), "the projection waits for: otc.example.org/machines"),
        (
            "somebody else, to the end",
            &["tenant.example.org/hold"],
            in_sync(),
            None,
            "the cluster itself waits for: tenant.example.org/hold",
        ),
        (
            "both",
            &["tenant.example.org/hold", PROJECTION_FINALIZER],
            in_sync(),
            Some(&machines),
            "the projection waits for: otc.example.org/machines; the cluster itself waits for: tenant.example.org/hold",
        ),
        ("a refusal", &[PROJECTION_FINALIZER], refused, Some(&projection(&[])), "the projection cannot be deleted: forbidden"),
    ];
    for (why, finalizers, projected, projection, message) in cases {
        let verdict = judge_deletion(&leaving(finalizers, &projected), projection).expect(why);
        assert!(!verdict.is_ready(), "{why}");
        assert_eq!(
            (verdict.ready.reason, &*verdict.ready.message),
            (Reason::Deleting, &*format!("the cluster is being deleted; {message}")),
            "{why}"
        );
    }
}
