//! Finds single changes after which a cluster would be schedulable.
//!
//! Pure: what a tenant may do was tried by the production function on changed inputs, what the platform may do follows from the judging
//! functions that it uses. How many are given is bounded ([`TRIES`] of each sort), nearest first.

use std::collections::BTreeSet;

use super::catalog::Offering;
use super::judge::{Judge, Judgement};
use super::message::shown;
use super::nearest;
use super::schedule::{Decision, Request, decide};
use crate::api::tenant::KubernetesCluster;

/// How many changes of one sort are given: enough to choose from, few enough to read.
const TRIES: usize = 5;

/// The changes, those of the tenant first, as sentences; empty if no single one would do.
pub(super) fn advice(judge: &Judge<'_>) -> Vec<String> {
    let mut found = add_provider(judge);
    found.extend(other_version(judge));
    found.extend(other_region(judge));
    found.extend(leave_provider(judge));
    found.extend(change_pool(judge));
    found.extend(extend_offering(judge));
    found.extend(add_type(judge));
    found
}

/// Whether the request is served, and by whom.
fn served(request: Request<'_>) -> Option<String> {
    match decide(&Judge::new(request)) {
        Decision::Scheduled { provider, .. } => Some(shown(&provider)),
        Decision::Unschedulable { .. } => None,
    }
}

/// The same for a cluster that asks for something else.
fn served_if(judge: &Judge<'_>, change: impl FnOnce(&mut KubernetesCluster)) -> Option<String> {
    let mut cluster = judge.request.cluster.clone();
    change(&mut cluster);
    served(Request { cluster: &cluster, ..judge.request })
}

fn add_provider(judge: &Judge<'_>) -> Vec<String> {
    let missing = judge.serving().map(Offering::provider).filter(|name| !judge.request.providers.contains(*name));
    let missing: BTreeSet<&str> = missing.collect();
    let helps = missing.into_iter().filter(|name| {
        let mut providers = judge.request.providers.clone();
        providers.insert((*name).to_owned());
        served(Request { providers: &providers, ..judge.request }).is_some()
    });
    helps.take(TRIES).map(|name| format!("tenant: create Provider {} in the workspace", shown(name))).collect()
}

fn other_version(judge: &Judge<'_>) -> Vec<String> {
    let in_region = judge.catalog().serving(judge.region()).iter();
    let versions: BTreeSet<&str> = in_region.flat_map(|offering| offering.versions()).collect();
    let nearest = nearest::versions(judge.version(), versions.into_iter().collect());
    let helps = nearest.into_iter().filter_map(|version| {
        let provider = served_if(judge, |cluster| version.clone_into(&mut cluster.spec.version))?;
        Some(format!("tenant: set spec.version to {} (provider {provider})", shown(version)))
    });
    helps.take(TRIES).collect()
}

/// Only before spec.providerRef is set: it fixes the region. A cluster that lives somewhere can only be told to stay there.
fn other_region(judge: &Judge<'_>) -> Vec<String> {
    let regions = match (judge.request.cluster.provider(), judge.request.projection) {
        (None, None) => nearest::regions(judge.region(), judge.catalog().served_regions().map(|(name, _)| name).collect()),
        (None, Some(_)) => judge.lives_in.into_iter().collect(),
        (Some(_), _) => Vec::new(),
    };
    let helps = regions.into_iter().filter_map(|region| {
        let provider = served_if(judge, |cluster| region.clone_into(&mut cluster.spec.region))?;
        Some(format!("tenant: set spec.region to {} (provider {provider})", shown(region)))
    });
    helps.take(TRIES).collect()
}

/// A pinned cluster never migrates, but its tenant may make it anew.
fn leave_provider(judge: &Judge<'_>) -> Option<String> {
    judge.pin?;
    let mut cluster = judge.request.cluster.clone();
    cluster.spec.provider_ref = None;
    let provider = served(Request { cluster: &cluster, projection: None, ..judge.request })?;
    Some(format!("tenant: delete the cluster and create it without spec.providerRef (provider {provider}; what runs in it is lost)"))
}

/// For the first pool that fails at a candidate: ask for what the candidate has.
fn change_pool(judge: &Judge<'_>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (offering, pool) in unsatisfied(judge).take(TRIES) {
        let demand = &judge.demands[pool];
        let name = shown(&demand.pool.name);
        let types = judge.catalog().types_in(judge.region()).iter().rev();
        for type_ in types.filter(|type_| offering.listed().contains(type_.slot())).take(TRIES) {
            let (cpu, memory) = (type_.cpu(), type_.memory());
            let smaller = served_if(judge, |cluster| {
                cluster.spec.node_pools[pool].capabilities.cpu = cpu.clone();
                cluster.spec.node_pools[pool].capabilities.memory = memory.clone();
            });
            if smaller.is_some() {
                let moves = if demand.kept.is_some() { "; its nodes are then replaced" } else { "" };
                found.insert(format!(
                    "tenant: let pool {name} ask for at most {cpu} cpu and {memory} memory (type {}{moves})",
                    shown(type_.name())
                ));
                break;
            }
        }
    }
    found.into_iter().collect()
}

/// For offerings that lack the region or the version and nothing else.
fn extend_offering(judge: &Judge<'_>) -> Vec<String> {
    let counts = |offering: &&Offering| {
        judge.lives_in.is_none()
            && judge.pin.is_none_or(|pin| pin == offering.provider())
            && judge.request.providers.contains(offering.provider())
            && judge.unsatisfied(offering).is_none()
    };
    let lacking = judge.catalog().offerings().into_iter().filter(counts).filter_map(|offering| {
        let what = match (offering.is_in(judge.region()), offering.has_version(judge.version())) {
            (false, true) => format!("region {}", shown(judge.region())),
            (true, false) => format!("version {}", shown(judge.version())),
            _ => return None,
        };
        Some(format!("platform: let offering {} of provider {} serve {what}", shown(offering.name()), shown(offering.provider())))
    });
    lacking.take(TRIES).collect()
}

/// For candidates that fail for one pool alone.
fn add_type(judge: &Judge<'_>) -> Vec<String> {
    let alone = unsatisfied(judge)
        .filter(|(offering, pool)| judge.demands.iter().enumerate().all(|(at, demand)| at == *pool || demand.is_served_by(offering)));
    let helps = alone.map(|(offering, pool)| {
        let demand = &judge.demands[pool];
        let (cpu, memory) = (&demand.pool.capabilities.cpu, &demand.pool.capabilities.memory);
        let what = demand.kept.map_or_else(|| "a machine type".to_owned(), |kept| format!("machine type {} again", shown(kept)));
        let (offering, region) = (shown(offering.name()), shown(judge.region()));
        format!("platform: offer {what} with at least {cpu} cpu and {memory} memory in region {region} (offering {offering})")
    });
    helps.take(TRIES).collect()
}

/// The candidates, each with the first pool that it does not serve.
fn unsatisfied<'a>(judge: &Judge<'a>) -> impl Iterator<Item = (&'a Offering, usize)> {
    judge.serving().filter_map(|offering| match judge.judge(offering) {
        Judgement::PoolUnsatisfied(pool) => Some((offering, pool)),
        _ => None,
    })
}
