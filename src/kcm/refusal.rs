//! Says why nothing serves a cluster, and what is nearest to what would.
//!
//! Pure: one reason, the first that holds in the order of `api.md`, and a message that is the same for the same inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::bits::Bits;
use super::catalog::{MachineType, Offering};
use super::judge::{Demand, Judge, Judgement, Lost};
use super::message::{self, list, shown};
use super::nearest;
use crate::api::reason::Reason;

/// What a list inside a message may take, so that two of them and their sentences stay within the bound.
const LIST: usize = message::MAX * 3 / 10;

/// Reason and message; `refused` are the offerings that serve region and version, pinned: of that provider, none of which fits.
pub(super) fn of(judge: &Judge<'_>, refused: &[(&Offering, Judgement)]) -> (Reason, String) {
    if let Some(lives_in) = judge.lives_in {
        return (Reason::OfferingNotFound, moved(judge, lives_in));
    }
    if refused.is_empty() {
        return (Reason::OfferingNotFound, offering_not_found(judge));
    }
    let candidates: Vec<(&Offering, usize)> = refused
        .iter()
        .filter_map(|&(offering, judgement)| match judgement {
            Judgement::PoolUnsatisfied(pool) => Some((offering, pool)),
            _ => None,
        })
        .collect();
    if candidates.is_empty() {
        (Reason::ProviderNotConfigured, provider_not_configured(judge, refused))
    } else {
        (Reason::CapabilityMismatch, capability_mismatch(judge, &candidates))
    }
}

/// What keeps the offering from serving this pool.
pub(super) fn unsatisfied(judge: &Judge<'_>, pool: usize, offering: &Offering) -> String {
    let demand = &judge.demands[pool];
    match demand.kept {
        Some(kept) => format!("keeps {}, which {}", shown(kept), lost(judge, demand, kept, offering.listed(), "it does not list")),
        None => format!("needs {}", needs(demand)),
    }
}

/// The largest type that is on offer in the region, and the one with most memory where that is another.
pub(super) fn largest(judge: &Judge<'_>, listed: &Bits) -> String {
    let on_offer = || judge.catalog().types_in(judge.region()).iter().filter(|type_| listed.contains(type_.slot()));
    let Some(largest) = on_offer().next_back() else {
        return format!("no machine type on offer exists in region {}", shown(judge.region()));
    };
    let most_memory = on_offer().max_by_key(|type_| type_.memory()).filter(|most| most.memory() > largest.memory());
    let besides = most_memory.map(|most| format!(", the one with most memory {}", sized(most))).unwrap_or_default();
    format!("the largest machine type on offer is {}{besides}", sized(largest))
}

/// For a cluster that was told to move: what its tenant can still do depends on whether the server lets the region be changed.
fn moved(judge: &Judge<'_>, lives_in: &str) -> String {
    let (region, lives_in, provider) = (shown(judge.region()), shown(lives_in), shown(judge.pin.unwrap_or_default()));
    let back = if judge.request.cluster.provider().is_none() { format!("set spec.region back to {lives_in}, or ") } else { String::new() };
    format!(
        "region {region} cannot be served: the cluster lives in region {lives_in} of provider {provider} and never moves; what runs stays as \
         it is; {back}delete the cluster and create it anew"
    )
}

fn offering_not_found(judge: &Judge<'_>) -> String {
    let (region, version) = (shown(judge.region()), shown(judge.version()));
    if judge.catalog().is_empty() {
        return format!("no offering serves region {region} and version {version}: the catalog holds none");
    }
    let head = match judge.pin {
        Some(provider) => format!("provider {} has no offering for region {region} and version {version}", shown(provider)),
        None => format!("no offering serves region {region} and version {version}"),
    };
    let Near { regions, versions, with_version } = near(judge);
    if regions.is_empty() {
        return format!("{head}{}", served_by_others(judge));
    }
    let mut parts = vec![head];
    if !versions.is_empty() {
        parts.push(format!("versions in that region, nearest first: {}", list(versions.into_iter().map(shown), LIST)));
    } else if with_version.is_empty() {
        parts.push(format!("regions on offer, nearest first: {}", list(regions.into_iter().map(shown), LIST)));
    }
    if !with_version.is_empty() {
        parts.push(format!("regions with that version: {}", list(with_version.into_iter().map(shown), LIST)));
    }
    parts.join("; ")
}

/// What the offerings that count serve, nearest first.
struct Near<'a> {
    /// All their regions.
    regions: Vec<&'a str>,
    /// Their versions in the region asked for.
    versions: Vec<&'a str>,
    /// Their regions with the version asked for.
    with_version: Vec<&'a str>,
}

fn near<'a>(judge: &Judge<'a>) -> Near<'a> {
    let counts = |offering: &&Arc<Offering>| judge.pin.is_none_or(|pin| pin == offering.provider());
    let (mut regions, mut with_version) = (Vec::new(), Vec::new());
    for (name, offerings) in judge.catalog().served_regions() {
        let mut counting = offerings.iter().filter(counts).peekable();
        if counting.peek().is_some() {
            regions.push(name);
        }
        if counting.any(|offering| offering.has_version(judge.version())) {
            with_version.push(name);
        }
    }
    let in_region = judge.catalog().serving(judge.region()).iter().filter(counts);
    let versions: BTreeSet<&str> = in_region.flat_map(|offering| offering.versions()).collect();
    Near {
        regions: nearest::regions(judge.region(), regions),
        versions: nearest::versions(judge.version(), versions.into_iter().collect()),
        with_version: nearest::regions(judge.region(), with_version),
    }
}

/// For a pinned provider without any offering, most likely a wrong choice: who would do.
fn served_by_others(judge: &Judge<'_>) -> String {
    let serving = judge.catalog().serving(judge.region()).iter().filter(|offering| offering.has_version(judge.version()));
    let providers: BTreeSet<&str> = serving.map(|offering| offering.provider()).collect();
    if providers.is_empty() {
        return ", nor any other, and no other provider serves them".to_owned();
    }
    format!(", nor any other; they are served by: {}", list(providers.into_iter().map(shown), LIST))
}

fn provider_not_configured(judge: &Judge<'_>, refused: &[(&Offering, Judgement)]) -> String {
    let mut fitting: BTreeMap<&str, bool> = BTreeMap::new();
    for (offering, _) in refused {
        *fitting.entry(offering.provider()).or_default() |= judge.unsatisfied(offering).is_none();
    }
    let providers = fitting.into_iter().map(|(provider, fits)| {
        let mark = if fits { "" } else { " (no fitting machine type)" };
        format!("{}{mark}", shown(provider))
    });
    let (region, version) = (shown(judge.region()), shown(judge.version()));
    let missing = match judge.pin {
        Some(_) => "no Provider of that name",
        None => "a Provider for none of them",
    };
    format!("region {region} and version {version} are served by: {}; this workspace holds {missing}", list(providers, 2 * LIST))
}

fn capability_mismatch(judge: &Judge<'_>, candidates: &[(&Offering, usize)]) -> String {
    let mut listed = Bits::default();
    for (offering, _) in candidates {
        listed.extend(offering.listed());
    }
    let served_by_none = |demand: &&Demand<'_>| !candidates.iter().any(|(offering, _)| demand.is_served_by(offering));
    let head = if let Some(demand) = judge.demands.iter().find(served_by_none) {
        no_candidate(judge, demand, &listed)
    } else {
        let each = candidates.iter().map(|&(offering, pool)| {
            let name = shown(&judge.demands[pool].pool.name);
            let why = unsatisfied(judge, pool, offering);
            format!("{}/{} not pool {name} ({why})", shown(offering.provider()), shown(offering.name()))
        });
        format!("no single offering serves every pool: {}", list(each, message::MAX / 2))
    };
    format!("{head}; {}", largest(judge, &listed))
}

/// The sentence on a pool that no candidate serves.
fn no_candidate(judge: &Judge<'_>, demand: &Demand<'_>, listed: &Bits) -> String {
    let (pool, region) = (shown(&demand.pool.name), shown(judge.region()));
    match demand.kept {
        Some(kept) => {
            let why = lost(judge, demand, kept, listed, "is no longer offered");
            format!("pool {pool} keeps machine type {}, which {why}; what runs stays as it is", shown(kept))
        }
        None => format!("no machine type on offer in region {region} fits pool {pool}, which needs {}", needs(demand)),
    }
}

/// Why a kept type is no longer possible, as the end of a sentence about it.
fn lost(judge: &Judge<'_>, demand: &Demand<'_>, kept: &str, listed: &Bits, not_listed: &str) -> String {
    match judge.lost(kept, listed) {
        Lost::Unknown => "the catalog does not hold".to_owned(),
        Lost::NotOffered => not_listed.to_owned(),
        Lost::NotInRegion => format!("does not exist in region {} any more", shown(judge.region())),
        Lost::TooSmall(type_) => {
            format!("is too small now: it has {} cpu and {} memory, the pool needs {}", type_.cpu(), type_.memory(), needs(demand))
        }
    }
}

fn needs(demand: &Demand<'_>) -> String {
    format!("{} cpu and {} memory", demand.pool.capabilities.cpu, demand.pool.capabilities.memory)
}

fn sized(type_: &MachineType) -> String {
    format!("{} ({} cpu, {} memory)", shown(type_.name()), type_.cpu(), type_.memory())
}
