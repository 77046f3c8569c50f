//! The table of machine types: a small number, its slot, for every name that is defined or listed by an offering.
//!
//! Pure: an offering keeps slots, so that a type which changes, appears or goes touches no offering. A slot is free again once no
//! offering lists the name and no type defines it: the table is as large as the catalog of today, not that of all days.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bits::Bits;
use crate::api::catalog::VirtualMachineTypeSpec;
use crate::api::quantity::Quantity;

/// A machine type of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineType {
    pub(super) name: Arc<str>,
    pub(super) slot: u32,
    pub(super) cpu: Quantity,
    pub(super) memory: Quantity,
    /// Sorted by bytes, each once.
    pub(super) regions: Vec<Arc<str>>,
}

impl MachineType {
    /// The platform's name of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cores.
    pub fn cpu(&self) -> &Quantity {
        &self.cpu
    }

    /// Bytes.
    pub fn memory(&self) -> &Quantity {
        &self.memory
    }

    /// The regions in which it exists, sorted by bytes.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.regions.iter().map(AsRef::as_ref)
    }

    pub(crate) fn is_in(&self, region: &str) -> bool {
        holds(&self.regions, region)
    }

    pub(crate) const fn slot(&self) -> u32 {
        self.slot
    }

    /// Whether it is equal and written alike: `4` and `4000m` are equal, but a message shows one of them.
    fn reads_like(&self, other: &Self) -> bool {
        self == other && self.cpu.to_string() == other.cpu.to_string() && self.memory.to_string() == other.memory.to_string()
    }

    /// Rule 2: smallest first by cpu, then memory, then name.
    pub(super) fn order(&self) -> (&Quantity, &Quantity, &str) {
        (&self.cpu, &self.memory, &self.name)
    }
}

/// What is known under a name.
#[derive(Clone, Debug)]
struct Slot {
    name: Arc<str>,
    /// How many offerings list it.
    listed: u32,
    type_: Option<Arc<MachineType>>,
}

/// Every name that is defined or listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    slots: Vec<Slot>,
    by_name: BTreeMap<Arc<str>, u32>,
    free: Vec<u32>,
}

impl Types {
    /// The types that are defined, by name in bytes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<MachineType>> {
        self.by_name.values().filter_map(|&slot| self.in_slot(slot))
    }

    /// How many slots there are, free ones too.
    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<MachineType>> {
        self.in_slot(self.slot(name)?)
    }

    pub(super) fn slot(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(super) fn in_slot(&self, slot: u32) -> Option<&Arc<MachineType>> {
        self.slots.get(slot as usize)?.type_.as_ref()
    }

    pub(super) fn name(&self, slot: u32) -> &Arc<str> {
        &self.slots[slot as usize].name
    }

    /// Takes the names that an offering lists; each counts once.
    pub(super) fn list<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) -> Bits {
        let mut listed = Bits::default();
        for name in names {
            let slot = self.claim(name);
            if listed.insert(slot) {
                self.slots[slot as usize].listed += 1;
            }
        }
        listed
    }

    /// Gives back what [`Self::list`] took.
    pub(super) fn unlist(&mut self, listed: &Bits) {
        for slot in listed.iter() {
            self.slots[slot as usize].listed -= 1;
            self.release(slot);
        }
    }

    /// Defines, changes or removes a type; answers with what stood there before and what stands there now.
    pub(super) fn define(
        &mut self,
        name: &str,
        spec: Option<&VirtualMachineTypeSpec>,
    ) -> (Option<Arc<MachineType>>, Option<Arc<MachineType>>) {
        let slot = self.claim(name);
        let known = self.slots[slot as usize].type_.clone();
        let type_ = spec.map(|spec| {
            let name = self.name(slot).clone();
            let new =
                MachineType { name, slot, cpu: spec.cpu.clone(), memory: spec.memory.clone(), regions: sorted(&spec.available_regions) };
            known.filter(|known| known.reads_like(&new)).unwrap_or_else(|| Arc::new(new))
        });
        let before = std::mem::replace(&mut self.slots[slot as usize].type_, type_.clone());
        self.release(slot);
        (before, type_)
    }

    /// The slot of a name, a new one if need be.
    fn claim(&mut self, name: &str) -> u32 {
        if let Some(slot) = self.slot(name) {
            return slot;
        }
        let name: Arc<str> = Arc::from(name);
        let entry = Slot { name: name.clone(), listed: 0, type_: None };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = entry;
            slot
        } else {
            self.slots.push(entry);
            u32::try_from(self.slots.len() - 1).expect("a catalog in memory has less than 2^32 names")
        };
        self.by_name.insert(name, slot);
        slot
    }

    /// Frees the slot if nothing speaks of its name any more.
    fn release(&mut self, slot: u32) {
        let entry = &self.slots[slot as usize];
        if entry.listed == 0 && entry.type_.is_none() {
            self.by_name.remove(&entry.name);
            self.free.push(slot);
        }
    }
}

/// The names sorted by bytes, each once.
pub(super) fn sorted(names: &[String]) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = names.iter().map(|name| Arc::from(name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether a list that [`sorted`] made holds the name.
pub(super) fn holds(names: &[Arc<str>], name: &str) -> bool {
    names.binary_search_by(|held| (**held).cmp(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> VirtualMachineTypeSpec {
        let amount = Quantity::try_from(1).unwrap();
        VirtualMachineTypeSpec {
            provider_machine_type: String::new(),
            cpu: amount.clone(),
            memory: amount,
            available_regions: vec!["eu-de".to_owned()],
        }
    }

    #[test]
    fn a_name_listed_twice_counts_once() {
        let mut types = Types::default();
        let names = ["m".to_owned(), "m".to_owned()];
        let listed = types.list(&names);
        types.unlist(&listed);
        assert!(types.by_name.is_empty());
    }

    #[test]
    fn a_type_keeps_its_slot_while_it_is_listed_or_defined() {
        let mut types = Types::default();
        let listed = types.list(&["m".to_owned()]);
        let (_, defined) = types.define("m", Some(&spec()));
        let slot = defined.unwrap().slot();
        assert!(listed.contains(slot));
        types.define("m", None);
        types.unlist(&types.clone().list(&[]));
        assert_eq!(types.slot("m"), Some(slot));
        types.define("m", Some(&spec()));
        types.unlist(&listed);
        assert_eq!(types.slot("m"), Some(slot));
    }
}
