//! Which changes wake whom, and above all whom they do not.

use serde_json::{Value, json};

use super::*;
use crate::kcm::catalog::Change;

const OFFERING: &str = r#"{"providerRef":{"name":"otc"},"availableRegions":["eu-de"],"availableVersions":["1.34.2"],
    "availableVirtualMachineTypes":["m1","later"]}"#;

/// The wakings of four clusters: needy, needy and pinned to otc, settled on otc, settled on aws; all in eu-de with 1.34.2.
const NOBODY: [bool; 4] = [false; 4];
const WAITING: [bool; 4] = [true, true, false, false];
const ALL_OF_OTC: [bool; 4] = [true, true, true, false];

fn cluster(region: &str, provider: Option<&str>, scheduled: bool) -> KubernetesCluster {
    let conditions = if scheduled {
        json!([{"type": "Scheduled", "status": "True", "observedGeneration": 2, "lastTransitionTime": "", "reason": "Scheduled", "message": ""}])
    } else {
        json!([])
    };
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "generation": 2},
        "spec": {"region": region, "version": "1.34.2", "nodePools": [], "providerRef": provider.map(|name| json!({"name": name}))},
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

fn machine_type(cpu: i64, regions: &[&str]) -> Value {
    json!({"providerMachineType": "any", "cpu": cpu, "memory": "1Gi", "availableRegions": regions})
}

/// A catalog with one offering of otc that lists m1, which exists in eu-de, and `later`, which does not exist; `known` exists there too.
fn catalog() -> Catalog {
    let offering = serde_json::from_str(OFFERING).unwrap();
    let type_ = serde_json::from_value(machine_type(4, &["eu-de"])).unwrap();
    let known = Change::Type("known", Some(&type_));
    Catalog::default().apply([Change::Offering("otc-eu", Some(&offering)), Change::Type("m1", Some(&type_)), known])
}

/// Who wakes when the offering is merged with this patch; `null` removes it.
fn wakes_offering(name: &str, patch: &Value) -> [bool; 4] {
    let mut spec: Value = serde_json::from_str(OFFERING).unwrap();
    let gone = patch.is_null();
    for (key, value) in patch.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let spec = serde_json::from_value(spec).unwrap();
    wakes(Change::Offering(name, (!gone).then_some(&spec)))
}

fn wakes_type(name: &str, spec: Value) -> [bool; 4] {
    let spec = serde_json::from_value::<Option<_>>(spec).unwrap();
    wakes(Change::Type(name, spec.as_ref()))
}

fn wakes(change: Change<'_>) -> [bool; 4] {
    let before = catalog();
    let raised = raised(&before, &before.apply([change]));
    let clusters = [(None, false), (Some("otc"), false), (Some("otc"), true), (Some("aws"), true)];
    let elsewhere = cluster("eu-nl", None, false);
    assert!(change_names_eu_nl(&change) || !concerns_of(&elsewhere).iter().any(|topic| raised.contains(topic)), "eu-nl woke");
    clusters.map(|(provider, scheduled)| concerns_of(&cluster("eu-de", provider, scheduled)).iter().any(|topic| raised.contains(topic)))
}

fn change_names_eu_nl(change: &Change<'_>) -> bool {
    format!("{change:?}").contains("eu-nl")
}

#[test]
fn an_offering_that_begins_to_serve_wakes_who_waits() {
    assert_eq!(wakes_offering("new", &json!({})), WAITING);
    assert_eq!(
        wakes_offering("new", &json!({"providerRef": {"name": "aws"}})),
        [true, false, false, false],
        "otc's clusters never migrate"
    );
    assert_eq!(wakes_offering("new", &json!({"availableVersions": ["1.35.0"]})), NOBODY);
    assert_eq!(wakes_offering("new", &json!({"availableRegions": ["ap-sg"]})), NOBODY);
}

#[test]
fn an_offering_that_ceases_to_serve_wakes_its_own_clusters_too() {
    assert_eq!(wakes_offering("otc-eu", &Value::Null), ALL_OF_OTC);
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVersions": ["1.35.0"]})), ALL_OF_OTC);
    assert_eq!(wakes_offering("otc-eu", &json!({"availableRegions": ["eu-nl"]})), ALL_OF_OTC);
    assert_eq!(wakes_offering("otc-eu", &json!({"providerRef": {"name": "aws"}})), ALL_OF_OTC);
}

#[test]
fn an_offering_that_gains_elsewhere_wakes_nobody_here() {
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVersions": ["1.34.2", "1.35.0"]})), NOBODY);
    assert_eq!(wakes_offering("otc-eu", &json!({"availableRegions": ["eu-de", "ap-sg"]})), NOBODY);
}

#[test]
fn a_listed_name_counts_once_its_type_exists() {
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVirtualMachineTypes": ["m1", "later", "unknown"]})), NOBODY);
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVirtualMachineTypes": ["m1"]})), NOBODY, "nobody could use `later`");
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVirtualMachineTypes": ["later"]})), ALL_OF_OTC, "m1 was lost");
    assert_eq!(wakes_offering("otc-eu", &json!({"availableVirtualMachineTypes": ["m1", "known"]})), WAITING);
    assert_eq!(wakes_type("later", machine_type(8, &["eu-de"])), WAITING);
    assert_eq!(wakes_type("unlisted", machine_type(8, &["eu-de"])), NOBODY);
    assert_eq!(wakes_type("later", machine_type(8, &["eu-nl"])), NOBODY);
}

#[test]
fn a_type_that_grows_wakes_who_waits_and_one_that_shrinks_or_goes_wakes_all_who_may_use_it() {
    assert_eq!(wakes_type("m1", machine_type(5, &["eu-de"])), WAITING);
    assert_eq!(wakes_type("m1", machine_type(3, &["eu-de"])), ALL_OF_OTC);
    assert_eq!(wakes_type("m1", machine_type(4, &["eu-nl"])), ALL_OF_OTC);
    assert_eq!(wakes_type("m1", Value::Null), ALL_OF_OTC);
    assert_eq!(wakes_type("m1", machine_type(4, &["eu-de", "eu-nl"])), NOBODY);
    assert_eq!(
        wakes_type("m1", json!({"providerMachineType": "other", "cpu": "4000m", "memory": "1Gi", "availableRegions": ["eu-de"]})),
        NOBODY
    );
}

#[test]
fn a_true_condition_of_an_older_generation_does_not_settle_a_cluster() {
    let mut edited = cluster("eu-de", Some("otc"), true);
    assert_eq!(concerns_of(&edited), [super::hurts("eu-de", "1.34.2", "otc")]);
    edited.metadata.generation = Some(3);
    assert_eq!(concerns_of(&edited), [super::helps_of("eu-de", "1.34.2", "otc")]);
}

#[test]
fn a_provider_name_wakes_who_waits_for_it_and_its_loss_wakes_who_lives_there() {
    let woken = |name: &str, appeared: bool| {
        let raised = name_raised(name, appeared);
        [(None, false), (Some("otc"), false), (Some("otc"), true), (Some("aws"), true)].map(|(provider, scheduled)| {
            name_concerns_of(&cluster("eu-de", provider, scheduled)).iter().any(|topic| raised.contains(topic))
        })
    };
    assert_eq!(woken("otc", true), WAITING);
    assert_eq!(woken("otc", false), ALL_OF_OTC);
    assert_eq!(woken("gcp", true), [true, false, false, false]);
    assert_eq!(woken("aws", false), [true, false, false, true]);
}

#[test]
fn a_type_concerns_every_provider_and_version_whose_offering_lists_it() {
    let offerings = [("a", "aws", "1.34.2"), ("b", "otc", "1.33.6"), ("c", "otc", "1.34.2"), ("d", "stackit", "1.34.2")];
    let specs = offerings.map(|(_, provider, version)| {
        let mut spec: Value = serde_json::from_str(OFFERING).unwrap();
        spec["providerRef"]["name"] = provider.into();
        spec["availableVersions"] = json!([version]);
        serde_json::from_value(spec).unwrap()
    });
    let before = catalog().apply(offerings.iter().zip(&specs).map(|((name, ..), spec)| Change::Offering(name, Some(spec))));
    let larger = serde_json::from_value(machine_type(5, &["eu-de"])).unwrap();
    let raised = raised(&before, &before.apply([Change::Type("m1", Some(&larger))]));
    for (_, provider, version) in offerings {
        assert!(raised.contains(&super::helps_of("eu-de", version, provider)), "{provider} {version}");
    }
}
