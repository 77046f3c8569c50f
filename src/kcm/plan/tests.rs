//! What is planned for a projection that is going, and what a refused workspace is told.

use serde_json::json;

use super::*;
use crate::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};
use crate::api::names::LogicalCluster;
use crate::kcm::catalog::Change;
use crate::kcm::schedule::PoolType;

fn cluster() -> KubernetesCluster {
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": [
            {"name": "web", "replicas": 3, "capabilities": {"cpu": "4", "memory": "16Gi"}}]},
    }))
    .unwrap()
}

fn catalog() -> Catalog {
    let offering: KubernetesClusterOfferingSpec =
        serde_json::from_value(json!({"providerRef": {"name": "otc"}, "availableRegions": ["eu-de"],
        "availableVersions": ["1.34.2"], "availableVirtualMachineTypes": ["m"]}))
        .unwrap();
    let type_: VirtualMachineTypeSpec =
        serde_json::from_value(json!({"providerMachineType": "any", "cpu": "4", "memory": "16Gi", "availableRegions": ["eu-de"]})).unwrap();
    Catalog::default().apply([Change::Type("m", Some(&type_)), Change::Offering("otc-eu", Some(&offering))])
}

/// The cluster's own projection, which somebody deletes.
fn leaving() -> Projection {
    let mut projection = desired(&cluster(), "otc", &[PoolType { name: "web".to_owned(), type_: "m".to_owned() }]);
    projection.metadata.deletion_timestamp = Some("2026-11-30T00:00:00Z".to_owned());
    projection.metadata.finalizers = vec!["otc.example.org/machines".to_owned()];
    projection
}

fn planned(catalog: &Catalog, projection: Option<&Projection>) -> Plan {
    let providers = BTreeSet::from(["otc".to_owned()]);
    plan(&Gathered { cluster: &cluster(), catalog: Ok(catalog), providers: Ok(&providers), projection, entitled: Ok(()) })
}

#[test]
fn a_projection_that_somebody_deletes_is_waited_for_and_then_created_anew() {
    let catalog = catalog();
    let going = leaving();
    let Plan::Place { act, .. } = planned(&catalog, Some(&going)) else { panic!("it is not placed") };
    assert_eq!(act, Act::AwaitRemoval { blockers: vec!["otc.example.org/machines".to_owned()] }, "though its spec is what it should be");
    let Plan::Place { act: Act::Create(anew), .. } = planned(&catalog, None) else { panic!("it is not created anew") };
    assert_eq!(anew.spec, going.spec);
}

#[test]
fn a_projection_that_somebody_deletes_is_not_in_sync_when_nothing_can_be_placed() {
    let stand = |projection: &Projection| match planned(&Catalog::default(), Some(projection)) {
        Plan::Refuse { stand, .. } => stand,
        plan => panic!("{plan:?}"),
    };
    assert_eq!(stand(&leaving()), Stand::Leaving { blockers: vec!["otc.example.org/machines".to_owned()] });
    let mut staying = leaving();
    staying.metadata.deletion_timestamp = None;
    assert_eq!(stand(&staying), Stand::InSync);
    staying.spec.version = "1.33.6".to_owned();
    assert_eq!(stand(&staying), Stand::Other);
}

fn refusal(path: Option<&str>, rules: &[&str]) -> Result<(), String> {
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    entitled(&Workspace { logical_cluster: LogicalCluster::new("2hx7k1z"), path: path.map(str::to_owned) }, &rules)
}

#[test]
fn a_workspace_is_served_under_any_rule_that_covers_it() {
    assert_eq!(refusal(None, &[]), Ok(()));
    assert_eq!(refusal(None, &["root:orgs:*", "other", "2hx7k1z"]), Ok(()), "its name needs no path");
    assert_eq!(refusal(Some("root:orgs:acme"), &["other", "root:orgs:*"]), Ok(()));
}

#[test]
fn a_refused_workspace_reads_the_reason_first_and_three_rules_at_most() {
    let names = ["acme", "bolt", "corp", "dyne", "echo"];
    assert_eq!(
        refusal(Some("root:orgs:me"), &names).unwrap_err(),
        "this workspace is under none of the platform's allowedWorkspaces (acme, bolt, corp and 2 more)"
    );
    assert_eq!(
        refusal(Some("root:orgs:me"), &names[..3]).unwrap_err(),
        "this workspace is under none of the platform's allowedWorkspaces (acme, bolt, corp)"
    );
    let long = "x".repeat(400);
    assert!(refusal(None, &[long.as_str(); 256]).unwrap_err().len() < 500);
}

#[test]
fn a_path_that_could_not_be_resolved_is_what_a_refused_workspace_reads_first() {
    assert_eq!(
        refusal(None, &["acme", "bolt", "corp", "dyne", "root:orgs:*"]).unwrap_err(),
        "the path of this workspace could not be resolved, so it is not known to be under any of the platform's allowedWorkspaces (root:orgs:*)"
    );
    let names = refusal(None, &["acme"]).unwrap_err();
    assert_eq!(names, "this workspace is under none of the platform's allowedWorkspaces (acme)", "no path would help it");
}
