//! The platform's catalog as one immutable value: who serves what, where, with which machine types.
//!
//! Pure: a change makes a new catalog that shares with the old one whatever did not change, so that a decision under way keeps the
//! catalog it began with. A change costs what it touches and one pass over pointers: it never resolves another offering anew.
//! Every order is one of bytes, so that the same objects make the same catalog whatever order they arrive in.

pub(crate) mod bits;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::bits::Bits;
pub use self::types::MachineType;
use self::types::{Types, holds, sorted};
use crate::api::catalog::{KubernetesClusterOfferingSpec, VirtualMachineTypeSpec};

/// What happened to one object of the catalog; `None` where it is gone.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A `KubernetesClusterOffering`, by its metadata.name.
    Offering(&'a str, Option<&'a KubernetesClusterOfferingSpec>),
    /// A `VirtualMachineType`, by its metadata.name.
    Type(&'a str, Option<&'a VirtualMachineTypeSpec>),
}

/// What the platform offers at one moment. The default is the empty catalog.
///
/// Cloning is cheap, and so is keeping an old one: see the module.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// By object name.
    offerings: Arc<BTreeMap<Arc<str>, Arc<Offering>>>,
    regions: Arc<BTreeMap<Arc<str>, Region>>,
    types: Arc<Types>,
}

/// What one provider serves, where, and in which versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offering {
    name: Arc<str>,
    provider: Arc<str>,
    /// Sorted by bytes, each once, as are the versions.
    regions: Vec<Arc<str>>,
    versions: Vec<Arc<str>>,
    listed: Bits,
}

/// What there is in one region.
#[derive(Clone, Debug, Default)]
struct Region {
    /// The offerings that serve it, by provider name, then offering name (rule 3).
    offerings: Arc<Vec<Arc<Offering>>>,
    /// The types that exist in it, smallest first (rule 2).
    types: Arc<Vec<Arc<MachineType>>>,
}

impl Offering {
    /// The object's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the provider whose offering it is.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The regions in which the provider serves Kubernetes, sorted by bytes.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.regions.iter().map(AsRef::as_ref)
    }

    /// The versions that it serves, sorted by bytes.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(AsRef::as_ref)
    }

    pub(crate) fn is_in(&self, region: &str) -> bool {
        holds(&self.regions, region)
    }

    pub(crate) fn has_version(&self, version: &str) -> bool {
        holds(&self.versions, version)
    }

    /// Whether both are of one provider and serve the same versions.
    pub(crate) fn serves_like(&self, other: &Self) -> bool {
        self.provider == other.provider && self.versions == other.versions
    }

    /// The slots of the type names it lists, known or not.
    pub(crate) const fn listed(&self) -> &Bits {
        &self.listed
    }

    /// Rule 3: lowest provider name first, then lowest offering name.
    fn order(&self) -> (&str, &str) {
        (&self.provider, &self.name)
    }
}

impl Catalog {
    /// The catalog after these changes, in their order: of two changes to one object, the later one counts.
    ///
    /// What a change does not alter stays the same value: a LIST that repeats what is known makes no difference between the two.
    #[must_use]
    pub fn apply<'a>(&self, changes: impl IntoIterator<Item = Change<'a>>) -> Self {
        let mut after = self.clone();
        for change in changes {
            match change {
                Change::Offering(name, spec) => after.change_offering(name, spec),
                Change::Type(name, spec) => after.change_type(name, spec),
            }
        }
        after
    }

    /// Whether no offering is in it; types alone serve nobody.
    pub fn is_empty(&self) -> bool {
        self.offerings.is_empty()
    }

    /// Every offering, by provider name, then offering name.
    pub fn offerings(&self) -> Vec<&Offering> {
        let mut all: Vec<&Offering> = self.offerings.values().map(AsRef::as_ref).collect();
        all.sort_unstable_by_key(|offering| offering.order());
        all
    }

    /// Every machine type, by name.
    pub fn types(&self) -> impl Iterator<Item = &MachineType> {
        self.types.iter().map(AsRef::as_ref)
    }

    /// The machine type of that name, if the catalog has it.
    pub fn machine_type(&self, name: &str) -> Option<&MachineType> {
        self.types.get(name).map(AsRef::as_ref)
    }

    /// The type names that the offering lists, by bytes, and for each the type if the catalog has it.
    ///
    /// The offering must be of this catalog.
    pub fn listed(&self, offering: &Offering) -> BTreeMap<&str, Option<&MachineType>> {
        offering.listed.iter().map(|slot| (&**self.types.name(slot), self.types.in_slot(slot).map(AsRef::as_ref))).collect()
    }

    /// The offerings that serve the region, by provider name, then offering name.
    pub fn serving(&self, region: &str) -> &[Arc<Offering>] {
        self.regions.get(region).map_or(&[], |region| &region.offerings)
    }

    /// The same of one provider.
    pub fn serving_of(&self, region: &str, provider: &str) -> &[Arc<Offering>] {
        let all = self.serving(region);
        let start = all.partition_point(|offering| *offering.provider < *provider);
        let len = all[start..].partition_point(|offering| *offering.provider == *provider);
        &all[start..start + len]
    }

    /// The types that exist in the region, smallest first by cpu, then memory, then name.
    pub fn types_in(&self, region: &str) -> &[Arc<MachineType>] {
        self.regions.get(region).map_or(&[], |region| &region.types)
    }

    /// The regions that some offering serves, by bytes.
    pub(crate) fn served_regions(&self) -> impl Iterator<Item = (&str, &[Arc<Offering>])> {
        let served = self.regions.iter().filter(|(_, region)| !region.offerings.is_empty());
        served.map(|(name, region)| (&**name, region.offerings.as_slice()))
    }

    /// The offerings by object name; the same pointer in two catalogs means the very same offerings.
    pub(super) fn offerings_by_name(&self) -> &Arc<BTreeMap<Arc<str>, Arc<Offering>>> {
        &self.offerings
    }

    /// Whether both were made without a change to any type in between.
    pub(super) fn shares_types_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.types, &other.types)
    }

    /// The types by name, as the shared values they are.
    pub(super) fn shared_types(&self) -> impl Iterator<Item = &Arc<MachineType>> {
        self.types.iter()
    }

    fn change_offering(&mut self, name: &str, spec: Option<&KubernetesClusterOfferingSpec>) {
        let before = self.offerings.get(name).cloned();
        if spec.is_none() && before.is_none() {
            return;
        }
        let types = Arc::make_mut(&mut self.types);
        let after = spec.map(|spec| Offering {
            name: before.as_ref().map_or_else(|| Arc::from(name), |offering| offering.name.clone()),
            provider: Arc::from(spec.provider_ref.name.as_str()),
            regions: sorted(&spec.available_regions),
            versions: sorted(&spec.available_versions),
            listed: types.list(&spec.available_virtual_machine_types),
        });
        // The new names were taken first, so that a name in both keeps its slot and equal offerings compare equal.
        if let Some(before) = &before {
            types.unlist(&before.listed);
        }
        if before.as_deref() == after.as_ref() {
            return;
        }
        if let Some(before) = &before {
            self.in_regions(&before.regions, |region| {
                remove(Arc::make_mut(&mut region.offerings), |offering| offering.order().cmp(&before.order()));
            });
            Arc::make_mut(&mut self.offerings).remove(name);
        }
        if let Some(after) = after.map(Arc::new) {
            self.in_regions(&after.regions, |region| {
                insert(Arc::make_mut(&mut region.offerings), &after, |offering| offering.order().cmp(&after.order()));
            });
            Arc::make_mut(&mut self.offerings).insert(after.name.clone(), after);
        }
    }

    fn change_type(&mut self, name: &str, spec: Option<&VirtualMachineTypeSpec>) {
        if self.types.get(name).is_none() && spec.is_none() {
            return;
        }
        let (before, after) = Arc::make_mut(&mut self.types).define(name, spec);
        if let Some(before) = before {
            self.in_regions(&before.regions, |region| {
                remove(Arc::make_mut(&mut region.types), |type_| type_.order().cmp(&before.order()));
            });
        }
        if let Some(after) = after {
            self.in_regions(&after.regions, |region| {
                insert(Arc::make_mut(&mut region.types), &after, |type_| type_.order().cmp(&after.order()));
            });
        }
    }

    /// Changes each of these regions; one that holds nothing afterwards is gone.
    fn in_regions(&mut self, names: &[Arc<str>], mut change: impl FnMut(&mut Region)) {
        let regions = Arc::make_mut(&mut self.regions);
        for name in names {
            let region = regions.entry(name.clone()).or_default();
            change(region);
            if region.offerings.is_empty() && region.types.is_empty() {
                regions.remove(name);
            }
        }
    }
}

/// Puts the item where the order says.
fn insert<T>(sorted: &mut Vec<Arc<T>>, item: &Arc<T>, order: impl Fn(&T) -> std::cmp::Ordering) {
    let at = sorted.partition_point(|other| order(other).is_lt());
    sorted.insert(at, item.clone());
}

/// Takes the item away that the order finds equal.
fn remove<T>(sorted: &mut Vec<Arc<T>>, order: impl Fn(&T) -> std::cmp::Ordering) {
    if let Ok(at) = sorted.binary_search_by(|other| order(other)) {
        sorted.remove(at);
    }
}

#[cfg(test)]
mod tests;
