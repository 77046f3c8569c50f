//! Pure: the external work of objects: where it is done, what is recorded of it, and whom a change of the pool concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::{info, warn};

use crate::api::config::DEFAULT_WORKLOAD_PURPOSE;
use crate::api::meta::KindRef;
use crate::api::names::ObjectKey;
use crate::reconciler::External;
use crate::runtime::clock::Moment;
use crate::runtime::external::{Choice, Entry, ExternalWork, Lack, Record};
use crate::runtime::queue::{Class, Work};
use crate::runtime::raw::Raw;
use crate::runtime::served::Served;
use crate::runtime::watch::Health;

use super::actors::ActorState;
use super::pool::Pool;
use super::streams::Role;
use super::{Core, Effect};

impl Core {
    /// The streams of the provider workspace that a reconciler with such work waits for.
    pub(super) fn external_roles(served: &dyn Served) -> impl Iterator<Item = Role> + use<> {
        let external = served.external();
        let pool = (external == External::Workload).then_some(Role::Pool);
        let works = (external != External::Nothing).then_some(Role::Works);
        pool.into_iter().chain(works).chain(served.secures().then_some(Role::Secured))
    }

    /// What is known of the external work of an object, and on which workload cluster it is to be begun where it was not.
    pub(super) fn external(&mut self, now: Moment, work: &Work, uid: &str) -> Option<ExternalWork> {
        let actor = &self.actors[usize::from(work.actor)];
        let external = actor.served.external();
        if external == External::Nothing {
            return None;
        }
        let export = self.setup.export.clone();
        let name = Entry::record_name(&export, actor.served.actor().name, &work.key, uid);
        let record = self.works.get(&name).cloned();
        let kept = self.secured.get(&name).cloned();
        let choice = (external == External::Workload).then(|| self.choice(now, work, &name, record.as_ref()));
        Some(ExternalWork { namespace: self.setup.namespace.clone(), name, export, record, kept, choice, orphan: None })
    }

    fn choice(&mut self, now: Moment, work: &Work, name: &str, record: Option<&Record>) -> Choice {
        let recorded = record.and_then(|record| record.entry.cluster.clone());
        let chosen = match self.external_trouble(now) {
            Some(lack) => Err(lack),
            None => recorded.map_or_else(|| self.promise(work, name), Ok),
        };
        Choice { chosen, members: self.pool.members().clone() }
    }

    /// What was promised stays so, as long as new work may be begun there.
    fn promise(&mut self, work: &Work, name: &str) -> Result<Arc<str>, Lack> {
        let actor = &self.actors[usize::from(work.actor)];
        let purpose = actor.config.as_ref().map_or_else(|_| Arc::from(DEFAULT_WORKLOAD_PURPOSE), |config| config.purpose.clone());
        let is_open = |member: &Arc<str>| self.pool.members().get(member).is_some_and(|member| !member.closed && member.purpose == purpose);
        if let Some(promised) = self.works.planned(work, name).filter(|promised| is_open(promised)) {
            return Ok(promised.clone());
        }
        let Some(chosen) = self.pool.choose(&purpose, |member| self.works.load(member)) else {
            self.works.unplan(work);
            let namespace = &self.setup.namespace;
            let what = format!(
                "no workload cluster takes new work: it waits for a Secret in {namespace} of the provider workspace that is labelled \
                 runtime.edge-connect.eu/workload-purpose={purpose} and not closed"
            );
            return Err(Lack::pending(what));
        };
        self.works.plan(work, name, chosen.clone());
        Ok(chosen)
    }

    /// Why neither pool nor index can be relied upon. What was listed once is, whatever became of its stream since: each record is written under
    /// a name that the server has once, so that no work is begun twice.
    fn external_trouble(&self, now: Moment) -> Option<Lack> {
        for (role, what) in
            [(Role::Pool, "the pool of workload clusters (Secrets"), (Role::Works, "the index of external work (ConfigMaps")]
        {
            let Some((_, stream)) = self.streams.find(role) else { continue };
            if stream.synced {
                continue;
            }
            let trouble = stream.trouble(now).map(|trouble| trouble.what).unwrap_or_default();
            let what = format!("{what} in {} of the provider workspace): {trouble}", self.setup.namespace);
            let lack = if stream.is_forbidden() { Lack::denied(what) } else { Lack::pending(what) };
            return Some(lack.passing());
        }
        None
    }

    /// Takes a change of the pool: who waits is called again, and so is whoever works where a cluster has left or come back.
    pub(super) fn change_pool(&mut self, now: Moment, change: impl FnOnce(&mut Pool) -> bool) {
        let before = self.pool.names();
        if !change(&mut self.pool) {
            return;
        }
        let after = self.pool.names();
        self.recovered = true;
        let moved: BTreeSet<_> = before.symmetric_difference(&after).cloned().collect();
        if moved.is_empty() {
            return;
        }
        info!(workload_clusters = after.len(), "the pool of workload clusters changed");
        self.effects.push(Effect::Pool { names: after });
        for member in moved {
            for work in self.works.on(&member) {
                self.enqueue(now, work.actor, &work.key, Class::Resync);
            }
        }
    }

    /// Takes all records as a list shows them.
    pub(super) fn reset_works(&mut self, now: Moment, items: &[Raw]) {
        let named: BTreeSet<&str> = items.iter().map(|raw| &*raw.name.name).collect();
        for name in self.works.names().iter().filter(|name| !named.contains(&***name)) {
            self.forget_record(now, name);
        }
        for raw in items {
            self.take_record(raw);
        }
    }

    /// Takes a record as the stream shows it.
    pub(super) fn take_record(&mut self, raw: &Raw) {
        match Record::read(&raw.body) {
            Ok(record) => self.learn_record(record),
            Err(problem) => warn!(name = %raw.name, %problem, "a record of external work cannot be read; it is left alone"),
        }
    }

    /// Takes a record, from the stream or from the call that has written it.
    pub(super) fn learn_record(&mut self, record: Record) {
        let name = record.name.clone();
        if self.works.upsert(record) {
            self.look_for(&name);
        }
    }

    /// A record is gone. An object that is still there is called, which records its work anew.
    pub(super) fn forget_record(&mut self, now: Moment, name: &str) {
        self.absences.clear(name);
        let Some(record) = self.works.remove(name) else { return };
        if let Some(work) = self.works.work(&record) {
            self.enqueue(now, work.actor, &work.key, Class::Resync);
        }
    }

    /// An object is gone: what it was promised is free.
    pub(super) fn object_went(&mut self, kind: KindRef, key: &ObjectKey) {
        let of_kind = |(at, actor): (usize, &ActorState)| (actor.kind == kind).then_some(at);
        let actors: Vec<usize> = self.actors.iter().enumerate().filter_map(of_kind).collect();
        for actor in actors.into_iter().filter_map(|actor| u8::try_from(actor).ok()) {
            self.works.unplan(&Work { actor, key: key.clone() });
        }
        self.look_for_all(kind, key);
    }
}

impl super::streams::Stream {
    /// Whether the server refuses it.
    pub(super) const fn is_forbidden(&self) -> bool {
        matches!(self.health, Health::Forbidden { .. })
    }
}
