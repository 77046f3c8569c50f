//! Pure: what is kept for the end of external work, by the metadata of its Secrets alone: so that nobody writes what is there already.

use std::collections::{BTreeMap, BTreeSet};

use crate::runtime::clock::Moment;
use crate::runtime::external::Keeping;
use crate::runtime::queue::Class;
use crate::runtime::raw::Raw;
use crate::runtime::secured::Kept;

use super::Core;

/// All such Secrets, by the name that each shares with its record.
#[derive(Debug, Default)]
pub(super) struct Secured(BTreeMap<Box<str>, Kept>);

impl Secured {
    pub(super) fn get(&self, record: &str) -> Option<&Kept> {
        self.0.get(record)
    }

    /// Takes a Secret, unless a later state of it is known.
    pub(super) fn upsert(&mut self, kept: Kept) {
        if self.0.get(&kept.name).is_none_or(|known| kept.is_after(known)) {
            self.0.insert(kept.name.clone(), kept);
        }
    }

    fn without(&self, named: &BTreeSet<&str>) -> Vec<Box<str>> {
        self.0.keys().filter(|name| !named.contains(&***name)).cloned().collect()
    }
}

impl Core {
    /// Takes all of them as a list shows them.
    pub(super) fn reset_secured(&mut self, now: Moment, items: &[Raw]) {
        let named: BTreeSet<&str> = items.iter().map(|raw| &*raw.name.name).collect();
        for name in self.secured.without(&named) {
            self.miss_secrets(now, &name);
        }
        for raw in items {
            self.secured.upsert(Kept::read(raw));
        }
    }

    /// A Secret is gone. Where its record counts upon it, the object is called, whose reconciler keeps the same once more if it can.
    pub(super) fn miss_secrets(&mut self, now: Moment, name: &str) {
        if self.secured.0.remove(name).is_none() {
            return;
        }
        let Some(record) = self.works.get(name).filter(|record| record.entry.keeping == Keeping::Kept) else { return };
        if let Some(work) = self.works.work(record) {
            self.enqueue(now, work.actor, &work.key, Class::Resync);
        }
    }
}
