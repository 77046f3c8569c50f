//! The two forms of an explanation: JSON for scripts, text for people.

use kcp_provider_runtime::api::catalog::KubernetesClusterOfferingSpec;
use kcp_provider_runtime::api::tenant::ProviderRef;
use kcp_provider_runtime::kcm::catalog::{Catalog, Change};
use kcp_provider_runtime::kcm::explain::{Explanation, Verdict, explain, render};
use kcp_provider_runtime::kcm::schedule::Request;
use serde_json::json;

use crate::format::File;

const WORLD: &str = r#"
why: A cluster that one of three offerings serves, and one that none serves.
types:
  m-4-16: {cpu: "4", memory: 16Gi, regions: [eu-de]}
offerings:
  aws-eu: {provider: aws, regions: [eu-de], versions: ["1.34.2"], types: [m-4-16]}
  otc-eu: {provider: otc, regions: [eu-de], versions: ["1.34.2"], types: [m-4-16, later]}
  otc-nl: {provider: otc, regions: [eu-nl], versions: ["1.34.2"], types: [m-4-16]}
providers: [otc]
cases:
- name: served
  why: Fits.
  cluster: {region: eu-de, version: "1.34.2", pools: [{name: workers, cpu: "4", memory: 16Gi}]}
  expect: {}
- name: too_large
  why: Does not fit.
  cluster: {region: eu-de, version: "1.34.2", pools: [{name: workers, cpu: "4", memory: 16Gi}, {name: big, cpu: "8", memory: 16Gi}]}
  expect: {}
"#;

fn explanation(case: usize) -> Explanation {
    let file: File = serde_saphyr::from_str(WORLD).unwrap();
    let catalog = file.catalog(&file.cases[case]);
    let cluster = file.cases[case].cluster.object();
    explain(Request { cluster: &cluster, catalog: &catalog, providers: &file.providers, projection: None })
}

#[test]
fn the_json_has_the_documented_shape_and_null_where_there_is_none() {
    assert_eq!(
        serde_json::to_value([explanation(0), explanation(1)].map(|explanation| Explanation { candidates: vec![], ..explanation }))
            .unwrap(),
        json!([
            {
                "namespace": "default", "name": "demo", "scheduled": true, "reason": "Scheduled",
                "message": "provider otc; workers: m-4-16", "provider": "otc", "offering": "otc-eu",
                "nodePools": [{"name": "workers", "type": "m-4-16"}], "candidates": [],
            },
            {
                "namespace": "default", "name": "demo", "scheduled": false, "reason": "CapabilityMismatch",
                "message": "no machine type on offer in region eu-de fits pool big, which needs 8 cpu and 16Gi memory; \
                            the largest machine type on offer is m-4-16 (4 cpu, 16Gi memory)",
                "provider": null, "offering": null,
                "nodePools": [{"name": "workers", "type": null}, {"name": "big", "type": null}], "candidates": [],
            },
        ])
    );
    assert_eq!(
        serde_json::to_value(&explanation(1).candidates[1]).unwrap(),
        json!({
            "offering": "otc-eu", "provider": "otc", "verdict": "PoolUnsatisfied", "pool": "big",
            "detail": "workers: m-4-16, big: none, needs 8 cpu and 16Gi memory; the largest machine type on offer is m-4-16 \
                       (4 cpu, 16Gi memory); skipped, as the catalog does not know them: later",
        })
    );
}

#[test]
fn the_text_for_people_of_a_served_cluster() {
    let expected = "\
default/demo: Scheduled on provider otc, offering otc-eu

POOL     TYPE
workers  m-4-16

PROVIDER  OFFERING  VERDICT                REGION  VERSION  PIN  CONFIGURED  POOLS  DETAIL
aws       aws-eu    ProviderNotConfigured  met     met      -    failed      met    the workspace holds no Provider aws; workers: m-4-16
otc       otc-eu    Chosen                 met     met      -    met         met    workers: m-4-16; skipped, as the catalog does not know them: later
otc       otc-nl    RegionNotServed        failed  met      -    met         met    serves eu-nl
";
    assert_eq!(render(&explanation(0)), expected);
}

#[test]
fn a_rule_is_shown_as_failed_by_itself_and_the_json_does_not_change_for_it() {
    let too_large = explanation(1);
    let [aws, otc, elsewhere] = too_large.candidates.as_slice() else { panic!("{too_large:?}") };
    assert_eq!(
        (aws.rules.configured, aws.rules.unserved_pool.as_deref(), aws.verdict),
        (false, Some("big"), Verdict::ProviderNotConfigured)
    );
    assert_eq!((otc.rules.configured, otc.rules.unserved_pool.as_deref()), (true, Some("big")));
    assert_eq!((elsewhere.rules.region, elsewhere.rules.version, elsewhere.rules.pinned), (false, true, None));
    assert!(serde_json::to_value(otc).unwrap().get("rules").is_none());
}

#[test]
fn the_text_for_people_ends_in_what_would_help() {
    let text = render(&explanation(1));
    let (_, advice) = text.split_once("It would be schedulable after any of:\n").unwrap();
    assert_eq!(
        advice,
        "  - tenant: let pool big ask for at most 4 cpu and 16Gi memory (type m-4-16)
  - platform: offer a machine type with at least 8 cpu and 16Gi memory in region eu-de (offering otc-eu)
"
    );
}

#[test]
fn a_long_list_ends_in_how_many_there_are_besides_and_leaves_room_for_the_rest() {
    let many = |what: &str| (0..250).map(|n| format!("{what}-{n:03}")).collect::<Vec<_>>();
    let offering = |regions: Vec<String>, versions: Vec<String>| KubernetesClusterOfferingSpec {
        provider_ref: ProviderRef { name: "otc".to_owned() },
        available_regions: regions,
        available_versions: versions,
        available_virtual_machine_types: Vec::new(),
    };
    let here = offering(vec!["eu-de".to_owned()], many("1.2"));
    let there = offering(many("region"), vec!["1.34.2".to_owned()]);
    let catalog = Catalog::default().apply([Change::Offering("here", Some(&here)), Change::Offering("there", Some(&there))]);
    let file: File = serde_saphyr::from_str(WORLD).unwrap();
    let cluster = file.cases[0].cluster.object();
    let request = Request { cluster: &cluster, catalog: &catalog, providers: &file.providers, projection: None };
    let message = explain(request).message;
    let parts: Vec<&str> = message.split("; ").collect();
    assert_eq!(parts.len(), 3, "{message}");
    assert!(parts[1].starts_with("versions in that region, nearest first: 1.2-") && parts[1].ends_with(" more"), "{message}");
    assert!(parts[2].starts_with("regions with that version: region-000, ") && parts[2].ends_with(" more"), "{message}");
    assert!(message.len() <= 1024);
}
