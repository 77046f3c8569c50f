//! Who is concerned by a change: clusters subscribe to topics, changes raise topics, and nothing walks over all clusters.
//!
//! Pure: a cluster that waits (needy) hears of everything that could help it or change its reason; a settled one hears only of losses
//! that can hurt it. Guarantee: whenever a change of the catalog makes the decision for a needy cluster succeed, or that for a settled
//! cluster fail, [`raised`] holds one of its topics. Not covered: a message that names what is nearest in other regions and versions;
//! that is refreshed by the requeue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::{Catalog, MachineType, Offering};
use super::plan::is_settled;
use crate::api::tenant::KubernetesCluster;
use crate::reconciler::Topic;

/// What a cluster waits for: settled means Scheduled=True for its current generation, on a provider that its spec names.
enum Stance<'a> {
    Settled { provider: &'a str },
    Needy { pin: Option<&'a str> },
}

impl<'a> Stance<'a> {
    fn of(cluster: &'a KubernetesCluster) -> Self {
        match cluster.provider() {
            Some(provider) if is_settled(cluster) => Self::Settled { provider },
            pin => Self::Needy { pin },
        }
    }
}

/// The topics of the catalog that concern this cluster, as its spec and conditions stand.
///
/// A cluster without spec.providerRef may be pinned by its projection, which is not looked at here: it hears of every provider. One that names
/// another provider than its projection hears of the wrong one, so that the scheduler looks at it again with the requeue.
pub fn concerns_of(cluster: &KubernetesCluster) -> Vec<Topic> {
    let (region, version) = (&cluster.spec.region, &cluster.spec.version);
    vec![match Stance::of(cluster) {
        Stance::Settled { provider } => hurts(region, version, provider),
        Stance::Needy { pin: Some(provider) } => helps_of(region, version, provider),
        Stance::Needy { pin: None } => helps(region, version),
    }]
}

/// The topics of the Provider names in the cluster's own workspace that concern it.
pub fn name_concerns_of(cluster: &KubernetesCluster) -> Vec<Topic> {
    vec![match Stance::of(cluster) {
        Stance::Settled { provider } => name_gone(provider),
        Stance::Needy { pin: Some(provider) } => named(provider),
        Stance::Needy { pin: None } => any_name(),
    }]
}

/// The topics that a Provider raises in its workspace when it appears or, with `appeared` false, when it is gone.
pub fn name_raised(name: &str, appeared: bool) -> Vec<Topic> {
    let mut topics = vec![any_name(), named(name)];
    if !appeared {
        topics.push(name_gone(name));
    }
    topics
}

/// The topics that the change from one catalog to the other raises.
///
/// Objects that both share cost one comparison of pointers each; the rest costs what the changed objects touch. Both must come from one
/// series of [`Catalog::apply`], else everything counts as changed.
pub fn raised(before: &Catalog, after: &Catalog) -> BTreeSet<Topic> {
    let mut changes = Changes { before, after, helped: Reach::default(), hurt: Reach::default() };
    if !Arc::ptr_eq(before.offerings_by_name(), after.offerings_by_name()) {
        let (old, new) = (before.offerings_by_name().values(), after.offerings_by_name().values());
        for (old, new) in differing(old, new, |offering| offering.name()) {
            changes.offering(old, new);
        }
    }
    if !before.shares_types_with(after) {
        for (old, new) in differing(before.shared_types(), after.shared_types(), |type_| type_.name()) {
            changes.type_(old, new);
        }
    }
    changes.topics()
}

/// Regions and providers, each pair with the versions that are concerned: every topic once, however many offerings lead to it.
#[derive(Default)]
struct Reach<'a>(BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>);

impl<'a> Reach<'a> {
    /// Adds what the offering serves in the region, in the versions that the filter lets pass.
    fn add(&mut self, region: &'a str, offering: &'a Offering, filter: impl Fn(&str) -> bool) {
        let mut versions = offering.versions().filter(|version| filter(version)).peekable();
        if versions.peek().is_some() {
            self.0.entry((region, offering.provider())).or_default().extend(versions);
        }
    }

    /// Adds what the offering serves and the other one does not.
    fn add_without(&mut self, offering: &'a Offering, other: Option<&Offering>) {
        for region in offering.regions() {
            let other = other.filter(|other| other.is_in(region));
            self.add(region, offering, |version| !other.is_some_and(|other| other.has_version(version)));
        }
    }

    /// Adds what the offerings of the region serve there that list the type in this slot.
    fn add_listing(&mut self, catalog: &'a Catalog, region: &'a str, slot: u32) {
        let mut last: Option<&Offering> = None;
        for offering in catalog.serving(region).iter().filter(|offering| offering.listed().contains(slot)) {
            // Offerings of one provider stand together and mostly serve the same versions: those add nothing.
            if !last.is_some_and(|last| last.serves_like(offering)) {
                self.add(region, offering, |_| true);
            }
            last = Some(offering);
        }
    }

    /// Region, version and provider.
    fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        self.0.iter().flat_map(|(&(region, provider), versions)| versions.iter().map(move |&version| (region, version, provider)))
    }
}

/// What changed from one catalog to the other.
struct Changes<'a> {
    before: &'a Catalog,
    after: &'a Catalog,
    helped: Reach<'a>,
    hurt: Reach<'a>,
}

impl<'a> Changes<'a> {
    fn offering(&mut self, old: Option<&'a Offering>, new: Option<&'a Offering>) {
        let stayed = old.zip(new).filter(|(old, new)| old.provider() == new.provider());
        if let Some((old, new)) = stayed {
            self.listing(old, new);
        }
        if let Some(old) = old {
            self.hurt.add_without(old, stayed.map(|(_, new)| new));
        }
        if let Some(new) = new {
            self.helped.add_without(new, stayed.map(|(old, _)| old));
        }
    }

    /// Types that an offering began or ceased to list: they concern where they exist.
    fn listing(&mut self, old: &'a Offering, new: &'a Offering) {
        let (listed_before, listed_after) = (self.before.listed(old), self.after.listed(new));
        let lost = listed_before.iter().filter(|(name, _)| !listed_after.contains_key(*name));
        let lost: BTreeSet<&str> = lost.filter_map(|(_, type_)| *type_).flat_map(MachineType::regions).collect();
        let gained = listed_after.iter().filter(|(name, _)| !listed_before.contains_key(*name));
        let gained: BTreeSet<&str> = gained.filter_map(|(_, type_)| *type_).flat_map(MachineType::regions).collect();
        for region in new.regions().filter(|region| old.is_in(region)) {
            if lost.contains(region) {
                self.hurt.add(region, new, |version| old.has_version(version));
            }
            if gained.contains(region) {
                self.helped.add(region, new, |version| old.has_version(version));
            }
        }
    }

    fn type_(&mut self, old: Option<&'a MachineType>, new: Option<&'a MachineType>) {
        let shrunk = old.zip(new).is_some_and(|(old, new)| new.cpu() < old.cpu() || new.memory() < old.memory());
        let grown = old.zip(new).is_some_and(|(old, new)| new.cpu() > old.cpu() || new.memory() > old.memory());
        if let Some(old) = old {
            for region in old.regions().filter(|region| shrunk || !new.is_some_and(|new| new.is_in(region))) {
                self.hurt.add_listing(self.before, region, old.slot());
            }
        }
        if let Some(new) = new {
            for region in new.regions().filter(|region| grown || !old.is_some_and(|old| old.is_in(region))) {
                self.helped.add_listing(self.after, region, new.slot());
            }
        }
    }

    /// Whatever hurts one cluster may also change the reason of one that waits.
    fn topics(self) -> BTreeSet<Topic> {
        let mut topics: BTreeSet<Topic> = self.hurt.iter().map(|(region, version, provider)| hurts(region, version, provider)).collect();
        for (region, version, provider) in self.helped.iter().chain(self.hurt.iter()) {
            topics.insert(helps(region, version));
            topics.insert(helps_of(region, version, provider));
        }
        topics
    }
}

/// The pairs of two lists, both sorted by that name, that are not the same shared value.
fn differing<'a, T>(
    old: impl Iterator<Item = &'a Arc<T>>,
    new: impl Iterator<Item = &'a Arc<T>>,
    name: impl Fn(&T) -> &str,
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    let mut pairs = Vec::new();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => name(old).cmp(name(new)),
        };
        let old = if order.is_le() { old.next() } else { None };
        let new = if order.is_ge() { new.next() } else { None };
        if !old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new)) {
            pairs.push((old.map(AsRef::as_ref), new.map(AsRef::as_ref)));
        }
    }
}

/// What can help any waiting cluster of that region and version. Two that read alike at worst wake a cluster in vain.
fn helps(region: &str, version: &str) -> Topic {
    Topic::new(format!("helps|{region}|{version}"))
}

/// The same, of one provider.
fn helps_of(region: &str, version: &str, provider: &str) -> Topic {
    Topic::new(format!("helps|{region}|{version}|{provider}"))
}

/// What can hurt a settled cluster.
fn hurts(region: &str, version: &str, provider: &str) -> Topic {
    Topic::new(format!("hurts|{region}|{version}|{provider}"))
}

/// Any Provider of the workspace appeared or went.
fn any_name() -> Topic {
    Topic::new("name")
}

/// The Provider of that name appeared or went.
fn named(name: &str) -> Topic {
    Topic::new(format!("name|{name}"))
}

/// The Provider of that name went.
fn name_gone(name: &str) -> Topic {
    Topic::new(format!("name-gone|{name}"))
}

#[cfg(test)]
mod tests;
