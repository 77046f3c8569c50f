//! Who is concerned by a change: clusters subscribe to topics, changes raise topics, and nothing walks over all clusters.
//!
//! Pure: a cluster that waits (needy) hears of everything that could help it or change its reason; a settled one hears only of losses
//! that can hurt it. Guarantee: whenever a change of the catalog makes the decision for a needy cluster succeed, or that for a settled
//! cluster fail, [`raised`] holds one of its topics. Not covered: a message that names what is nearest in other regions and versions;
//! that is refreshed by the requeue.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::catalog::{Catalog, MachineType, Offering};
use crate::api::condition::holds_for;
use crate::api::meta::ServiceObject;
use crate::api::tenant::KubernetesCluster;

/// A subject that clusters subscribe to. Opaque; two that read alike are one, which at worst wakes a cluster in vain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The topic as text, for logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(text: fmt::Arguments<'_>) -> Self {
        Self(text.to_string().into())
    }

    /// What can help any waiting cluster of that region and version.
    fn helps(region: &str, version: &str) -> Self {
        Self::new(format_args!("helps|{region}|{version}"))
    }

    /// The same, of one provider.
    fn helps_of(region: &str, version: &str, provider: &str) -> Self {
        Self::new(format_args!("helps|{region}|{version}|{provider}"))
    }

    /// What can hurt a settled cluster.
    fn hurts(region: &str, version: &str, provider: &str) -> Self {
        Self::new(format_args!("hurts|{region}|{version}|{provider}"))
    }

    /// Any Provider of the workspace appeared or went.
    fn any_name() -> Self {
        Self::new(format_args!("name"))
    }

    /// The Provider of that name appeared or went.
    fn name(name: &str) -> Self {
        Self::new(format_args!("name|{name}"))
    }

    /// The Provider of that name went.
    fn name_gone(name: &str) -> Self {
        Self::new(format_args!("name-gone|{name}"))
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a cluster waits for: settled means Scheduled=True for its current generation, on a provider that its spec names.
enum Stance<'a> {
    Settled { provider: &'a str },
    Needy { pin: Option<&'a str> },
}

impl<'a> Stance<'a> {
    fn of(cluster: &'a KubernetesCluster) -> Self {
        match cluster.provider() {
            Some(provider) if holds_for(cluster.conditions(), "Scheduled", cluster.metadata.generation()) => Self::Settled { provider },
            pin => Self::Needy { pin },
        }
    }
}

/// The topics of the catalog that concern this cluster, as its spec and conditions stand.
///
/// A cluster without spec.providerRef may be pinned by its projection, which is not looked at here: it hears of every provider.
pub fn concerns_of(cluster: &KubernetesCluster) -> Vec<Topic> {
    let (region, version) = (&cluster.spec.region, &cluster.spec.version);
    vec![match Stance::of(cluster) {
        Stance::Settled { provider } => Topic::hurts(region, version, provider),
        Stance::Needy { pin: Some(provider) } => Topic::helps_of(region, version, provider),
        Stance::Needy { pin: None } => Topic::helps(region, version),
    }]
}

/// The topics of the Provider names in the cluster's own workspace that concern it.
pub fn name_concerns_of(cluster: &KubernetesCluster) -> Vec<Topic> {
    vec![match Stance::of(cluster) {
        Stance::Settled { provider } => Topic::name_gone(provider),
        Stance::Needy { pin: Some(provider) } => Topic::name(provider),
        Stance::Needy { pin: None } => Topic::any_name(),
    }]
}

/// The topics that a Provider raises in its workspace when it appears or, with `appeared` false, when it is gone.
pub fn name_raised(name: &str, appeared: bool) -> Vec<Topic> {
    let mut topics = vec![Topic::any_name(), Topic::name(name)];
    if !appeared {
        topics.push(Topic::name_gone(name));
    }
    topics
}

/// The topics that the change from one catalog to the other raises.
///
/// Objects that both share cost one comparison of pointers each; the rest costs what the changed objects touch. Both must come from one
/// series of [`Catalog::apply`], else everything counts as changed.
pub fn raised(before: &Catalog, after: &Catalog) -> BTreeSet<Topic> {
    let mut changes = Changes { before, after, helped: BTreeSet::new(), hurt: BTreeSet::new() };
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

/// Region, version and provider of an offering.
type Served<'a> = (&'a str, &'a str, &'a str);

/// What changed, each once.
struct Changes<'a> {
    before: &'a Catalog,
    after: &'a Catalog,
    helped: BTreeSet<Served<'a>>,
    hurt: BTreeSet<Served<'a>>,
}

impl<'a> Changes<'a> {
    fn offering(&mut self, old: Option<&'a Offering>, new: Option<&'a Offering>) {
        let stayed = old.zip(new).filter(|(old, new)| old.provider() == new.provider());
        if let Some((old, new)) = stayed {
            self.listing(old, new);
        }
        let (still, already) = (stayed.map(|(_, new)| new), stayed.map(|(old, _)| old));
        self.hurt.extend(old.into_iter().flat_map(|old| without(old, still)));
        self.helped.extend(new.into_iter().flat_map(|new| without(new, already)));
    }

    /// Types that an offering began or ceased to list: they concern where they exist.
    fn listing(&mut self, old: &'a Offering, new: &'a Offering) {
        let (listed_before, listed_after) = (self.before.listed(old), self.after.listed(new));
        let lost = listed_before.iter().filter(|(name, _)| !listed_after.contains_key(*name));
        let lost: BTreeSet<&str> = lost.filter_map(|(_, type_)| *type_).flat_map(MachineType::regions).collect();
        let gained = listed_after.iter().filter(|(name, _)| !listed_before.contains_key(*name));
        let gained: BTreeSet<&str> = gained.filter_map(|(_, type_)| *type_).flat_map(MachineType::regions).collect();
        for served in served(new).filter(|(region, version, _)| old.is_in(region) && old.has_version(version)) {
            if lost.contains(served.0) {
                self.hurt.insert(served);
            }
            if gained.contains(served.0) {
                self.helped.insert(served);
            }
        }
    }

    fn type_(&mut self, old: Option<&'a MachineType>, new: Option<&'a MachineType>) {
        let shrunk = old.zip(new).is_some_and(|(old, new)| new.cpu() < old.cpu() || new.memory() < old.memory());
        let grown = old.zip(new).is_some_and(|(old, new)| new.cpu() > old.cpu() || new.memory() > old.memory());
        if let Some(old) = old {
            let left = old.regions().filter(|region| shrunk || !new.is_some_and(|new| new.is_in(region)));
            self.hurt.extend(left.flat_map(|region| listing(self.before, region, old.slot())));
        }
        if let Some(new) = new {
            let entered = new.regions().filter(|region| grown || !old.is_some_and(|old| old.is_in(region)));
            self.helped.extend(entered.flat_map(|region| listing(self.after, region, new.slot())));
        }
    }

    /// Whatever hurts one cluster may also change the reason of one that waits.
    fn topics(self) -> BTreeSet<Topic> {
        let for_all: BTreeSet<(&str, &str)> = self.helped.union(&self.hurt).map(|&(region, version, _)| (region, version)).collect();
        let helps = for_all.into_iter().map(|(region, version)| Topic::helps(region, version));
        let of = self.helped.union(&self.hurt).map(|&(region, version, provider)| Topic::helps_of(region, version, provider));
        let hurts = self.hurt.iter().map(|&(region, version, provider)| Topic::hurts(region, version, provider));
        helps.chain(of).chain(hurts).collect()
    }
}

/// Every region and version that the offering serves.
fn served(offering: &Offering) -> impl Iterator<Item = Served<'_>> {
    offering.regions().flat_map(move |region| offering.versions().map(move |version| (region, version, offering.provider())))
}

/// What the offering serves and the other one does not.
fn without<'a>(offering: &'a Offering, other: Option<&'a Offering>) -> impl Iterator<Item = Served<'a>> {
    served(offering).filter(move |(region, version, _)| !other.is_some_and(|other| other.is_in(region) && other.has_version(version)))
}

/// What the offerings of one region serve there that list the type in this slot.
fn listing<'a>(catalog: &'a Catalog, region: &'a str, slot: u32) -> impl Iterator<Item = Served<'a>> {
    let offerings = catalog.serving(region).iter().filter(move |offering| offering.listed().contains(slot));
    offerings.flat_map(move |offering| offering.versions().map(move |version| (region, version, offering.provider())))
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

#[cfg(test)]
mod tests;
