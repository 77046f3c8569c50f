//! What a fold keeps and what it forgets.

use serde_json::json;

use super::*;

fn offering(types: &[String]) -> KubernetesClusterOfferingSpec {
    serde_json::from_value(json!({
        "providerRef": {"name": "otc"}, "availableRegions": ["eu-de", "eu-de"], "availableVersions": ["1.34.2", "1.34.2"],
        "availableVirtualMachineTypes": types,
    }))
    .unwrap()
}

fn machine_type(cpu: &str) -> VirtualMachineTypeSpec {
    serde_json::from_value(json!({"providerMachineType": "any", "cpu": cpu, "memory": "1Gi", "availableRegions": ["eu-de"]})).unwrap()
}

#[test]
fn what_is_repeated_stays_the_same_value() {
    let (offering, type_) = (offering(&["m".to_owned()]), machine_type("4"));
    let changes = [Change::Offering("otc-eu", Some(&offering)), Change::Type("m", Some(&type_))];
    let before = Catalog::default().apply(changes);
    let after = before.apply(changes);
    assert!(Arc::ptr_eq(&before.serving("eu-de")[0], &after.serving("eu-de")[0]));
    assert!(Arc::ptr_eq(&before.types_in("eu-de")[0], &after.types_in("eu-de")[0]));
}

#[test]
fn a_change_shares_every_other_object() {
    let offering = offering(&[]);
    let before = Catalog::default().apply([Change::Offering("a", Some(&offering)), Change::Offering("b", Some(&offering))]);
    let after = before.apply([Change::Offering("b", None)]);
    assert!(Arc::ptr_eq(&before.serving("eu-de")[0], &after.serving("eu-de")[0]));
    assert_eq!((before.serving("eu-de").len(), after.serving("eu-de").len()), (2, 1));
}

#[test]
fn an_equal_amount_is_shown_as_it_is_written_now() {
    let before = Catalog::default().apply([Change::Type("m", Some(&machine_type("4")))]);
    let after = before.apply([Change::Type("m", Some(&machine_type("4000m")))]);
    assert_eq!(after.machine_type("m").map(|type_| type_.cpu().to_string()).as_deref(), Some("4000m"));
}

#[test]
fn names_listed_twice_count_once() {
    let names = ["m".to_owned(), "m".to_owned()];
    let catalog = Catalog::default().apply([Change::Offering("otc-eu", Some(&offering(&names)))]);
    assert_eq!(catalog.serving("eu-de").len(), 1);
    assert_eq!(catalog.offerings()[0].versions().count(), 1);
}

#[test]
fn a_catalog_whose_objects_come_and_go_does_not_grow() {
    let mut catalog = Catalog::default();
    for day in 0..500 {
        let names = [format!("m-{day}"), format!("n-{day}")];
        catalog = catalog.apply([Change::Offering("otc-eu", Some(&offering(&names))), Change::Type(&names[0], Some(&machine_type("4")))]);
        catalog = catalog.apply([Change::Type(&names[0], None)]);
    }
    assert!(catalog.types.len() <= 4, "{} names for two", catalog.types.len());
    catalog = catalog.apply([Change::Offering("otc-eu", None)]);
    assert!(catalog.is_empty() && catalog.regions.is_empty() && catalog.types().next().is_none());
}

#[test]
fn removing_what_is_not_there_is_no_change() {
    let catalog = Catalog::default().apply([Change::Offering("a", None), Change::Type("m", None)]);
    assert!(catalog.is_empty() && catalog.types.len() == 0);
}
