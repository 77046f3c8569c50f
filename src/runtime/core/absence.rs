//! Pure: recorded work whose object is not to be seen: since when, why, and when that is proof enough to ask for its end.
//!
//! Not seeing an object proves nothing by itself. Nothing is done while any stream that could show it is not as it should be, nor before the
//! absence has lasted; and the call that follows asks the server first, past every cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey};
use crate::runtime::clock::Moment;
use crate::runtime::external::{Probe, Record};
use crate::runtime::queue::{Class, Work};
use crate::runtime::raw::{Operation, Raw};
use crate::runtime::watch::Health;

use super::calls::Begun;
use super::streams::{Role, ShardId, Stream};
use super::{Core, Run};

/// Between two looks at work whose end is wanted, or would be were there no doubt: this part of the grace, five minutes of the default.
const AGAIN: u32 = 3;

/// Why an object is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Absence {
    /// Nobody has looked everywhere yet.
    NotEngaged,
    /// What could show it cannot be reached.
    Unreachable,
    /// What could show it may not be read.
    Forbidden,
    /// Its workspace has no binding any more.
    Unbound,
    /// Its workspace is bound and does not have it.
    Gone,
}

impl Absence {
    /// The word for metrics and logs.
    const fn word(self) -> &'static str {
        match self {
            Self::NotEngaged => "not-engaged",
            Self::Unreachable => "unreachable",
            Self::Forbidden => "forbidden",
            Self::Unbound => "unbound",
            Self::Gone => "gone",
        }
    }
}

/// Records whose objects are not seen.
#[derive(Debug)]
pub(super) struct Absences {
    /// How long an absence lasts before its work is ended. It is counted anew when the process starts.
    grace: Duration,
    /// Those of which it was not clear yet that they are absent, by their reconciler.
    unclear: BTreeMap<u8, BTreeSet<Box<str>>>,
    /// Since when the others are.
    since: BTreeMap<Box<str>, Duration>,
    /// When each of those is looked at.
    due: BTreeSet<(Duration, Box<str>)>,
}

impl Absences {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, unclear: BTreeMap::new(), since: BTreeMap::new(), due: BTreeSet::new() }
    }

    fn miss(&mut self, actor: u8, record: &str) {
        if !self.since.contains_key(record) {
            self.unclear.entry(actor).or_default().insert(record.into());
        }
    }

    pub(super) fn clear(&mut self, record: &str) {
        self.unclear.retain(|_, records| {
            records.remove(record);
            !records.is_empty()
        });
        if self.since.remove(record).is_some() {
            self.due.retain(|(_, due)| **due != *record);
        }
    }

    fn begin(&mut self, record: Box<str>, now: Duration) {
        self.since.insert(record.clone(), now);
        self.due.insert((now + self.grace, record));
    }

    /// Takes out what is due.
    fn due(&mut self, now: Duration) -> Vec<Box<str>> {
        let mut due = Vec::new();
        while let Some((at, record)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, record));
                break;
            }
            due.push(record);
        }
        due
    }

    fn has_lasted(&self, record: &str, now: Duration) -> bool {
        self.since.get(record).is_some_and(|since| *since + self.grace <= now)
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }
}

impl Core {
    /// Looks whether the object of a record is there.
    pub(super) fn look_for(&mut self, record: &str) {
        let Some((work, uid)) = self.works.get(record).and_then(|known| Some((self.works.work(known)?, known.entry.uid.clone()))) else {
            return;
        };
        let kind = self.actors[usize::from(work.actor)].kind;
        if self.objects.get(kind, &work.key).is_some_and(|entry| entry.raw.uid == uid) {
            self.absences.clear(record);
        } else {
            self.absences.miss(work.actor, record);
        }
    }

    /// The same for all records of an object that came, changed or went.
    pub(super) fn look_for_all(&mut self, kind: KindRef, key: &ObjectKey) {
        for actor in 0..self.actors.len() {
            if let Some(actor) = u8::try_from(actor).ok().filter(|_| self.actors[actor].kind == kind) {
                let work = Work { actor, key: key.clone() };
                let records: Vec<_> = self.works.of(&work).map(|record| record.name.clone()).collect();
                for record in records {
                    self.look_for(&record);
                }
            }
        }
    }

    /// Whether the objects of a reconciler are seen wherever they may be; or why not.
    fn sight(&self, actor: u8) -> Result<(), Absence> {
        let state = &self.actors[usize::from(actor)];
        let live = |role| match self.streams.find(role).map(|(_, stream)| stream) {
            Some(Stream { health: Health::Live, synced: true, .. }) => Ok(()),
            Some(Stream { health: Health::Forbidden { .. }, .. }) => Err(Absence::Forbidden),
            Some(Stream { health: Health::Broken { .. } | Health::NotServed, .. }) => Err(Absence::Unreachable),
            _ => Err(Absence::NotEngaged),
        };
        live(Role::Slice)?;
        live(Role::Works)?;
        if !self.shards.has_slice() || self.shards.is_any_leaving() {
            return Err(Absence::NotEngaged);
        }
        for shard in self.shards.live() {
            live(Role::Roster(shard))?;
            // A kind that nobody has bound there is not served, and that is all there is to see.
            let unbound =
                self.shards.is_empty(shard) && self.streams.find(Role::Objects(shard, state.kind)).is_some_and(|(_, s)| s.is_unserved());
            if !unbound {
                live(Role::Objects(shard, state.kind))?;
            }
            let answered = |role| self.streams.find(role).is_some_and(|(_, stream)| stream.is_answered());
            if !Self::roles(state, shard).all(answered) {
                return Err(Absence::NotEngaged);
            }
        }
        Ok(())
    }

    fn absence(&self, workspace: &LogicalCluster) -> Absence {
        if self.shards.bound_at(workspace).is_some() { Absence::Gone } else { Absence::Unbound }
    }

    /// Begins to count absences that are clear by now, and lets the work of those that have lasted be ended.
    pub(super) fn sweep(&mut self, now: Moment) {
        let actors: Vec<u8> = self.absences.unclear.keys().copied().collect();
        for actor in actors.into_iter().filter(|actor| self.sight(*actor).is_ok()).collect::<Vec<_>>() {
            for record in self.absences.unclear.remove(&actor).unwrap_or_default() {
                let Some(key) = self.works.get(&record).map(|known| known.entry.key.clone()) else { continue };
                let state = self.absence(&key.workspace).word();
                info!(%key, state, "the object of external work is not there; its work is ended if this lasts");
                self.absences.begin(record, now.mono);
            }
        }
        let again = now.mono + self.absences.grace / AGAIN;
        for record in self.absences.due(now.mono) {
            self.absences.due.insert((again, record.clone()));
            let Some(work) = self.works.get(&record).and_then(|known| self.works.work(known)) else { continue };
            // Its name may be that of a later object by now, whose work may have the same names: that one goes first.
            if self.objects.get(self.actors[usize::from(work.actor)].kind, &work.key).is_some() {
                continue;
            }
            match self.sight(work.actor) {
                Ok(()) => self.queue.add(now.mono, &work, Class::Resync),
                Err(doubt) => {
                    warn!(key = %work.key, state = doubt.word(), "the end of external work is put off, for its object may be there");
                }
            }
        }
    }

    /// A call that ends the work of an object that is gone.
    pub(super) fn run_orphan(&mut self, now: Moment, work: &Work) -> Option<(Run, Begun)> {
        let actor = self.actors.get(usize::from(work.actor))?;
        if self.objects.get(actor.kind, &work.key).is_some() || self.sight(work.actor).is_err() {
            return None;
        }
        let Record { entry, .. } = self.works.of(work).find(|record| self.absences.has_lasted(&record.name, now.mono))?.clone();
        let bound = self.shards.bound_at(&work.key.workspace);
        let endpoints: Vec<_> =
            self.shards.live().filter(|shard| bound.is_none_or(|at| at == *shard)).map(|shard| self.shards.url(shard)).collect();
        let mut external = self.external(now, work, &entry.uid)?;
        external.orphan = Some(Probe { is_bound: bound.is_some(), endpoints: endpoints.clone() });
        let actor = &self.actors[usize::from(work.actor)];
        let shard = bound.unwrap_or(ShardId::NONE);
        let raw = Raw {
            name: work.key.name.clone(),
            workspace: Some(work.key.workspace.clone()),
            uid: entry.uid,
            resource_version: "".into(),
            operation: Operation::None,
            body: entry.object,
        };
        let run = Run {
            work: work.clone(),
            raw: Arc::new(raw),
            endpoint: endpoints.first().cloned().unwrap_or_else(|| Arc::from("")),
            seen: self.see(now, actor, shard, &work.key),
            config: actor.config.clone(),
            last_config: actor.last_config.clone(),
            superseded_by: None,
            others: Vec::new(),
            claims: Arc::from(""),
            path: entry.path.map(Into::into),
            external: Some(external),
        };
        Some((run, self.begun(now, work.actor, shard)))
    }

    /// How much recorded work there is, by whether its object is there, and if not, why.
    pub(super) fn count_works(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from([("engaged", self.works.ours())]);
        let mut count = |actor: u8, records: &mut dyn Iterator<Item = &Record>| {
            let doubt = self.sight(actor).err();
            for record in records {
                let state = doubt.unwrap_or_else(|| self.absence(&record.entry.key.workspace));
                *counts.entry(state.word()).or_default() += 1;
                counts.entry("engaged").and_modify(|engaged| *engaged = engaged.saturating_sub(1));
            }
        };
        for (actor, records) in &self.absences.unclear {
            count(*actor, &mut records.iter().filter_map(|record| self.works.get(record)));
        }
        for record in self.absences.since.keys().filter_map(|record| self.works.get(record)) {
            if let Some(work) = self.works.work(record) {
                count(work.actor, &mut std::iter::once(record));
            }
        }
        counts
    }
}
