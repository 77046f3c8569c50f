//! Pure: the index of external work: what is recorded in the provider workspace, and what is about to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::runtime::external::Record;
use crate::runtime::queue::Work;

/// Work that was promised a workload cluster and whose record was not seen yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    /// The name that its record has, or will have.
    record: Box<str>,
    cluster: Arc<str>,
}

/// All records, by their name, and by the work that each is about.
#[derive(Debug, Default)]
pub(super) struct Works {
    /// The reconcilers that have external work, by the name of their actor.
    controllers: BTreeMap<&'static str, u8>,
    /// The export through which they see their objects.
    export: Arc<str>,
    records: BTreeMap<Box<str>, Record>,
    by_work: BTreeMap<Work, BTreeSet<Box<str>>>,
    plans: BTreeMap<Work, Plan>,
    /// How many records and plans each workload cluster has, those of other controllers too.
    load: BTreeMap<Arc<str>, usize>,
}

impl Works {
    /// Nothing yet, for whoever sees objects through this export.
    pub(super) fn new(export: Arc<str>) -> Self {
        Self { export, ..Self::default() }
    }

    /// Takes note of a reconciler that has external work.
    pub(super) fn declare(&mut self, controller: &'static str, actor: u8) {
        self.controllers.insert(controller, actor);
    }

    pub(super) fn get(&self, record: &str) -> Option<&Record> {
        self.records.get(record)
    }

    /// The work that a record is about; `None` for one of another process, or of another export.
    pub(super) fn work(&self, record: &Record) -> Option<Work> {
        if *record.entry.export != *self.export {
            return None;
        }
        let actor = *self.controllers.get(&*record.entry.controller)?;
        Some(Work { actor, key: record.entry.key.clone() })
    }

    /// The names of all records.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        self.records.keys().cloned().collect()
    }

    /// How many records are about work of this process.
    pub(super) fn ours(&self) -> usize {
        self.by_work.values().map(BTreeSet::len).sum()
    }

    /// The records about one piece of work: of one incarnation of its object, or of several.
    pub(super) fn of<'a>(&'a self, work: &Work) -> impl Iterator<Item = &'a Record> {
        self.by_work.get(work).into_iter().flatten().filter_map(|name| self.records.get(name))
    }

    /// The work that is recorded on a workload cluster.
    pub(super) fn on(&self, cluster: &str) -> Vec<Work> {
        let here = self.records.values().filter(|record| record.entry.cluster.as_deref() == Some(cluster));
        here.filter_map(|record| self.work(record)).collect()
    }

    /// How much a workload cluster has to do.
    pub(super) fn load(&self, cluster: &str) -> usize {
        self.load.get(cluster).copied().unwrap_or_default()
    }

    /// Takes a record, unless a later state of it is known; whether it did.
    pub(super) fn upsert(&mut self, record: Record) -> bool {
        if self.records.get(&record.name).is_some_and(|known| !record.is_after(known)) {
            return false;
        }
        self.remove(&record.name);
        if let Some(work) = self.work(&record) {
            if self.plans.get(&work).is_some_and(|plan| plan.record == record.name) {
                self.unplan(&work);
            }
            self.by_work.entry(work).or_default().insert(record.name.clone());
        }
        self.count(record.entry.cluster.clone(), true);
        self.records.insert(record.name.clone(), record);
        true
    }

    /// Takes a record away.
    pub(super) fn remove(&mut self, name: &str) -> Option<Record> {
        let record = self.records.remove(name)?;
        self.count(record.entry.cluster.clone(), false);
        if let Some(work) = self.work(&record)
            && let Some(names) = self.by_work.get_mut(&work)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_work.remove(&work);
            }
        }
        Some(record)
    }

    /// The workload cluster that a piece of work without a record was promised.
    pub(super) fn planned(&self, work: &Work, record: &str) -> Option<&Arc<str>> {
        self.plans.get(work).filter(|plan| *plan.record == *record).map(|plan| &plan.cluster)
    }

    /// Promises a workload cluster, which counts from now on.
    pub(super) fn plan(&mut self, work: &Work, record: &str, cluster: Arc<str>) {
        self.unplan(work);
        self.count(Some(cluster.clone()), true);
        self.plans.insert(work.clone(), Plan { record: record.into(), cluster });
    }

    /// Forgets what was promised.
    pub(super) fn unplan(&mut self, work: &Work) {
        if let Some(plan) = self.plans.remove(work) {
            self.count(Some(plan.cluster), false);
        }
    }

    fn count(&mut self, cluster: Option<Arc<str>>, more: bool) {
        let Some(cluster) = cluster else { return };
        let load = self.load.entry(cluster.clone()).or_default();
        *load = if more { *load + 1 } else { load.saturating_sub(1) };
        if *load == 0 {
            self.load.remove(&cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
    use crate::runtime::external::{Entry, Keeping};

    fn work() -> Work {
        Work { actor: 0, key: ObjectKey::new(LogicalCluster::new("a"), ObjectName::namespaced("default", "car")) }
    }

    fn record(name: &str, version: &str, cluster: &str) -> Record {
        let entry = Entry {
            controller: "painter".into(),
            export: "toys.test".into(),
            key: work().key,
            uid: name.into(),
            kind: "toys".into(),
            path: None,
            cluster: Some(cluster.into()),
            object: "{}".into(),
            keeping: Keeping::Nothing,
        };
        Record { name: name.into(), uid: "c".into(), version: version.into(), entry }
    }

    fn works() -> Works {
        let mut works = Works::new("toys.test".into());
        works.declare("painter", 0);
        works
    }

    #[test]
    fn what_was_promised_counts_until_it_is_recorded_and_then_once() {
        let mut works = works();
        works.plan(&work(), "w1", "one".into());
        works.plan(&work(), "w1", "one".into());
        assert_eq!((works.load("one"), works.planned(&work(), "w1").is_some(), works.planned(&work(), "w2").is_some()), (1, true, false));
        assert!(works.upsert(record("w1", "7", "one")));
        assert_eq!((works.load("one"), works.planned(&work(), "w1")), (1, None));
        assert!(!works.upsert(record("w1", "6", "two")), "an earlier state");
        assert!(works.upsert(record("w1", "8", "two")));
        assert_eq!((works.load("one"), works.load("two"), works.of(&work()).count()), (0, 1, 1));
        works.remove("w1");
        assert_eq!((works.load("two"), works.of(&work()).count(), works.names().len()), (0, 0, 0));
    }

    #[test]
    fn the_records_of_others_count_and_are_nobodys_work_here() {
        let mut works = works();
        let mut others = [record("w1", "7", "one"), record("w2", "7", "one")];
        others[0].entry.controller = "polisher".into();
        others[1].entry.export = "other.test".into();
        for other in others {
            works.upsert(other);
        }
        assert_eq!((works.load("one"), works.on("one"), works.of(&work()).count()), (2, vec![], 0));
    }
}
