//! What holds for any catalog and any cluster.

use std::collections::{BTreeMap, BTreeSet};

use kcp_provider_runtime::kcm::catalog::Catalog;
use kcp_provider_runtime::kcm::explain::{Verdict, explain, render};
use kcp_provider_runtime::kcm::project::{desired, differs};
use kcp_provider_runtime::kcm::schedule::{Decision, PoolType, schedule};
use kcp_provider_runtime::kcm::topics::{concerns_of, name_concerns_of, name_raised, raised};
use proptest::prelude::*;

use crate::world::{Edit, Tenant, apply, edits, objects, tenant};

/// Everything that can be told of a catalog from outside, without its internal numbers.
fn dump(catalog: &Catalog) -> impl PartialEq + std::fmt::Debug {
    let offerings: Vec<_> = catalog.offerings().into_iter().map(|offering| of_offering(catalog, offering)).collect();
    let types: Vec<_> = catalog.types().map(of_type).collect();
    let regions: Vec<_> = ["eu-de", "eu-nl"]
        .into_iter()
        .map(|region| {
            let serving: Vec<String> = catalog.serving(region).iter().map(|offering| offering.name().to_owned()).collect();
            let types: Vec<String> = catalog.types_in(region).iter().map(|type_| type_.name().to_owned()).collect();
            (serving, types)
        })
        .collect();
    (offerings, types, regions)
}

fn of_offering(catalog: &Catalog, offering: &kcp_provider_runtime::kcm::catalog::Offering) -> String {
    let listed: BTreeMap<&str, Option<String>> =
        catalog.listed(offering).into_iter().map(|(name, type_)| (name, type_.map(of_type))).collect();
    let (regions, versions): (Vec<_>, Vec<_>) = (offering.regions().collect(), offering.versions().collect());
    format!("{} of {} in {regions:?} {versions:?}: {listed:?}", offering.name(), offering.provider())
}

fn of_type(type_: &kcp_provider_runtime::kcm::catalog::MachineType) -> String {
    format!("{} {} {} in {:?}", type_.name(), type_.cpu(), type_.memory(), type_.regions().collect::<Vec<_>>())
}

fn types(decision: &Decision) -> Option<&[PoolType]> {
    match decision {
        Decision::Scheduled { pools, .. } => Some(pools),
        Decision::Unschedulable { .. } => None,
    }
}

/// Whether the change from one catalog to the other wakes the tenant.
fn wakes(tenant: &Tenant, before: &Catalog, after: &Catalog) -> bool {
    let raised = raised(before, after);
    concerns_of(&tenant.cluster).iter().any(|topic| raised.contains(topic))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_order_in_which_objects_arrive_changes_nothing(
        (listed, shuffled) in objects().prop_flat_map(|objects| (Just(objects.edits()), Just(objects.edits()).prop_shuffle())),
        tenant in tenant(),
    ) {
        let (listed, shuffled) = (apply(&Catalog::default(), &listed), apply(&Catalog::default(), &shuffled));
        prop_assert_eq!(dump(&listed), dump(&shuffled));
        prop_assert_eq!(explain(tenant.request(&listed)), explain(tenant.request(&shuffled)));
    }

    #[test]
    fn a_catalog_folded_step_by_step_is_the_one_made_at_once(
        objects in objects(),
        batches in proptest::collection::vec(edits(4), 1..6),
        tenant in tenant(),
    ) {
        let mut objects = objects;
        let mut folded = objects.catalog();
        for batch in &batches {
            for edit in batch {
                objects.edit(edit);
            }
            folded = apply(&folded, batch);
        }
        let at_once = objects.catalog();
        prop_assert_eq!(dump(&folded), dump(&at_once));
        prop_assert_eq!(explain(tenant.request(&folded)), explain(tenant.request(&at_once)));
    }

    #[test]
    fn an_older_catalog_is_not_touched_by_a_change(objects in objects(), edits in edits(6)) {
        let catalog = objects.catalog();
        let before = dump(&catalog);
        let _ = apply(&catalog, &edits);
        prop_assert_eq!(before, dump(&catalog));
    }

    #[test]
    fn repeating_what_is_known_raises_nothing(objects in objects()) {
        let catalog = objects.catalog();
        prop_assert!(raised(&catalog, &apply(&catalog, &objects.edits())).is_empty());
    }

    #[test]
    fn deciding_again_after_a_restart_gives_the_same_types_and_writes_nothing(objects in objects(), tenant in tenant()) {
        let catalog = objects.catalog();
        let decision = schedule(tenant.request(&catalog));
        if let Some(settled) = tenant.settled(&decision) {
            let again = schedule(settled.request(&catalog));
            prop_assert_eq!(&decision, &again);
            let current = settled.projection.as_ref().unwrap();
            prop_assert_eq!(differs(current, &projected(&settled, &again)), None);
        }
    }

    #[test]
    fn what_is_added_to_the_catalog_never_moves_a_live_pool(objects in objects(), edits in edits(6), tenant in tenant()) {
        let mut catalog = objects.catalog();
        let decision = schedule(tenant.request(&catalog));
        let additions: Vec<Edit> = edits.into_iter().filter(|edit| match edit {
            Edit::Offering(name, spec) => spec.is_some() && !objects.offerings.contains_key(name),
            Edit::Type(name, spec) => spec.is_some() && !objects.types.contains_key(name),
        }).collect();
        if let Some(settled) = tenant.settled(&decision) {
            for addition in &additions {
                catalog = apply(&catalog, std::slice::from_ref(addition));
            }
            let again = schedule(settled.request(&catalog));
            prop_assert_eq!(types(&decision), types(&again));
        }
    }

    #[test]
    fn no_change_of_the_catalog_moves_a_live_pool_nor_a_cluster(objects in objects(), edits in edits(6), tenant in tenant()) {
        let before = objects.catalog();
        let decision = schedule(tenant.request(&before));
        if let Some(settled) = tenant.settled(&decision) {
            let after = apply(&before, &edits);
            if let Decision::Scheduled { provider, pools, .. } = schedule(settled.request(&after)) {
                prop_assert_eq!(types(&decision), Some(&pools[..]));
                prop_assert_eq!(Some(provider.as_str()), settled.cluster.provider());
            }
        }
    }

    #[test]
    fn scaling_changes_only_replicas(objects in objects(), edits in edits(6), tenant in tenant(), replicas in 5..100_i32) {
        let catalog = objects.catalog();
        if let Some(mut settled) = tenant.settled(&schedule(tenant.request(&catalog))) {
            let catalog = apply(&catalog, &edits);
            settled.cluster.spec.node_pools[0].replicas = replicas;
            let decision = schedule(settled.request(&catalog));
            if types(&decision).is_some() {
                let current = settled.projection.clone().unwrap();
                let mut put = differs(&current, &projected(&settled, &decision)).expect("the replicas differ");
                prop_assert_eq!(put.spec.node_pools[0].replicas, replicas);
                put.spec.node_pools[0].replicas = current.spec.node_pools[0].replicas;
                prop_assert_eq!(put, current);
            }
        }
    }

    #[test]
    fn no_spec_moves_what_lives_somewhere(objects in objects(), edits in edits(6), tenant in tenant(), other in tenant()) {
        let catalog = objects.catalog();
        if let Some(mut live) = tenant.settled(&schedule(tenant.request(&catalog))) {
            live.cluster.spec = other.cluster.spec;
            live.providers.extend(other.providers);
            let decision = schedule(live.request(&apply(&catalog, &edits)));
            if types(&decision).is_some() {
                let (lives, moved) = (&live.projection.as_ref().unwrap().spec, projected(&live, &decision).spec);
                prop_assert_eq!((&lives.provider_ref, &lives.region), (&moved.provider_ref, &moved.region));
            }
        }
    }

    #[test]
    fn what_explain_says_is_what_schedule_does(
        objects in objects(), edits in edits(6), tenant in tenant(), other in tenant(), moved in any::<bool>(),
    ) {
        let catalog = objects.catalog();
        let mut tenant = tenant.settled(&schedule(tenant.request(&catalog))).unwrap_or(tenant);
        if moved {
            tenant.cluster.spec = other.cluster.spec;
        }
        let catalog = apply(&catalog, &edits);
        let (decision, explanation) = (schedule(tenant.request(&catalog)), explain(tenant.request(&catalog)));
        let verdicts = |wanted| explanation.candidates.iter().filter(move |candidate| candidate.verdict == wanted);
        let chosen: Vec<&str> = verdicts(Verdict::Chosen).map(|candidate| candidate.offering.as_str()).collect();
        match &decision {
            Decision::Scheduled { provider, offering, pools, .. } => {
                prop_assert_eq!(chosen, vec![offering.as_str()]);
                prop_assert_eq!((&explanation.provider, &explanation.offering), (&Some(provider.clone()), &Some(offering.clone())));
                let types: Vec<Option<String>> = pools.iter().map(|pool| Some(pool.type_.clone())).collect();
                prop_assert_eq!(explanation.node_pools.iter().map(|pool| pool.type_.clone()).collect::<Vec<_>>(), types);
            }
            Decision::Unschedulable { .. } => {
                prop_assert!(chosen.is_empty() && verdicts(Verdict::Eligible).next().is_none());
                prop_assert!(explanation.provider.is_none() && explanation.node_pools.iter().all(|pool| pool.type_.is_none()));
            }
        }
        prop_assert_eq!(explanation.scheduled, types(&decision).is_some());
        prop_assert_eq!((&explanation.reason, &explanation.message), (&decision.reason().to_string(), &decision.message()));
        prop_assert!(render(&explanation).contains(&explanation.reason));
    }

    #[test]
    fn a_cluster_hears_of_the_provider_names_that_matter_to_it(
        objects in objects(), tenant in tenant(), name in proptest::sample::select(vec!["aws", "gcp", "otc"]),
    ) {
        let catalog = objects.catalog();
        let then = schedule(tenant.request(&catalog));
        let tenant = tenant.settled(&then).unwrap_or(tenant);
        let mut other = tenant.clone();
        let appeared = !other.providers.remove(name) && other.providers.insert(name.to_owned());
        let raised: BTreeSet<_> = name_raised(name, appeared).into_iter().collect();
        let wakes = name_concerns_of(&tenant.cluster).iter().any(|topic| raised.contains(topic));
        let now = schedule(other.request(&catalog));
        prop_assert!(then.reason() == now.reason() || wakes, "{then:?} became {now:?}");
    }

    #[test]
    fn messages_stay_within_their_bound_whatever_the_names(
        objects in objects(), tenant in tenant(), long in "\\PC{1,250}", wide in "[äß€😀]{50,63}",
    ) {
        let mut objects = objects;
        let rename = |name: &str| format!("{name}{long}");
        for offering in objects.offerings.values_mut() {
            offering.provider_ref.name = rename(&offering.provider_ref.name);
            offering.available_regions.push(wide.clone());
            offering.available_versions.extend((0..40).map(|n| format!("{n}{wide}")));
            offering.available_virtual_machine_types = offering.available_virtual_machine_types.iter().map(|name| rename(name)).collect();
        }
        objects.types = objects.types.into_iter().map(|(name, spec)| (rename(&name), spec)).collect();
        let mut tenant = tenant;
        tenant.providers = tenant.providers.iter().map(|name| rename(name)).collect();
        tenant.cluster.spec.node_pools.iter_mut().for_each(|pool| pool.name = wide.clone());
        for (region, version) in [("eu-de", "1.34.2"), (&*wide, "1.34.2"), ("eu-de", &*wide), (&*wide, &*wide)] {
            tenant.cluster.spec.region = region.to_owned();
            tenant.cluster.spec.version = version.to_owned();
            let explanation = explain(tenant.request(&objects.catalog()));
            prop_assert!(explanation.message.len() <= 1024, "{} bytes: {}", explanation.message.len(), explanation.message);
            prop_assert!(explanation.candidates.iter().all(|candidate| candidate.detail.len() <= 1024));
        }
    }
}

proptest! {
    // More cases than above, since few random changes alter a decision.
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_waiting_cluster_hears_of_whatever_helps_it_or_changes_its_reason(
        objects in objects(), earlier in edits(4), edits in edits(4), tenant in tenant(), live in any::<bool>(),
    ) {
        let mut tenant = tenant;
        let mut before = objects.catalog();
        if let Some(settled) = tenant.settled(&schedule(tenant.request(&before))).filter(|_| live) {
            tenant = settled;
            tenant.cluster.status = None;
            before = apply(&before, &earlier);
        }
        let after = apply(&before, &edits);
        let (then, now) = (schedule(tenant.request(&before)), schedule(tenant.request(&after)));
        if types(&then).is_none() && then.reason() != now.reason() {
            prop_assert!(wakes(&tenant, &before, &after), "{then:?} became {now:?}");
        }
    }

    #[test]
    fn a_settled_cluster_hears_of_whatever_hurts_it(
        objects in objects(), edits in edits(4), tenant in tenant(), stored_without_reference in any::<bool>(),
    ) {
        let before = objects.catalog();
        if let Some(mut settled) = tenant.settled(&schedule(tenant.request(&before))) {
            if stored_without_reference {
                settled.cluster.spec.provider_ref = None;
            }
            let after = apply(&before, &edits);
            let now = schedule(settled.request(&after));
            prop_assert!(types(&now).is_some() || wakes(&settled, &before, &after), "it became {now:?}");
        }
    }
}

/// The projection that should be there after the decision.
fn projected(tenant: &Tenant, decision: &Decision) -> kcp_provider_runtime::api::projection::Projection {
    let Decision::Scheduled { provider, pools, .. } = decision else { panic!("nothing is scheduled: {decision:?}") };
    desired(&tenant.cluster, provider, pools)
}
