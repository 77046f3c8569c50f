//! Pure: the keyed cache of service objects and children, and what our own writes still owe it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::mutants::{Mutant, mutated};
use crate::runtime::port::{Refused, Written};
use crate::runtime::raw::Raw;

use super::streams::ShardId;

/// How long a key waits for its stream to show our own write. After it, the key goes on with what the cache has.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where the server has said that the cache is out of date: until then whatever is written would be refused again. As long as the
/// longest backoff, so that a server that is wrong is asked no less often than one that fails.
const DOUBT: Duration = Duration::from_mins(5);
/// How long a stream may take to show what the server has said, before it is listed anew.
const LAG: Duration = Duration::from_secs(2);

/// An object and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) shard: ShardId,
    pub(super) raw: Arc<Raw>,
}

/// One kind of it.
pub(super) type KindCache = BTreeMap<ObjectKey, Entry>;

/// A write that the cache has not shown yet: one of ours, or somebody's for which ours was refused.
#[derive(Clone, Debug)]
struct Debt {
    uid: String,
    version: Option<u64>,
    /// Where it was written; versions are compared there only.
    shard: ShardId,
    /// When the call that wrote it had ended.
    since: Duration,
    /// When it is waited for no longer.
    until: Duration,
    /// When its stream is to be listed anew; `None` for what we wrote ourselves, and once that was said.
    nudge: Option<Duration>,
    ours: bool,
}

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Objects {
    kinds: BTreeMap<KindRef, KindCache>,
    debts: BTreeMap<(ObjectKey, KindRef), Debt>,
    /// The latest version that the stream of a kind behind a shard has shown since it was last listed.
    shown: BTreeMap<(KindRef, ShardId), u64>,
}

impl Objects {
    /// Begins to keep a kind.
    pub(super) fn keep(&mut self, kind: KindRef) {
        self.kinds.entry(kind).or_default();
    }

    pub(super) fn get(&self, kind: KindRef, key: &ObjectKey) -> Option<&Entry> {
        self.kinds.get(&kind)?.get(key)
    }

    /// How many objects of a kind there are.
    pub(super) fn len(&self, kind: KindRef) -> usize {
        self.kinds.get(&kind).map_or(0, BTreeMap::len)
    }

    /// All keys of a kind, in order.
    pub(super) fn keys(&self, kind: KindRef) -> impl Iterator<Item = &ObjectKey> {
        self.kinds.get(&kind).into_iter().flat_map(BTreeMap::keys)
    }

    /// The keys of a kind in one workspace, in order.
    pub(super) fn in_workspace(&self, kind: KindRef, workspace: &LogicalCluster) -> impl Iterator<Item = &ObjectKey> {
        let first = ObjectKey::new(workspace.clone(), ObjectName::cluster_scoped(""));
        let from = self.kinds.get(&kind).into_iter().flat_map(move |cache| cache.range(first.clone()..));
        let workspace = workspace.clone();
        from.map(|(key, _)| key).take_while(move |key| key.workspace == workspace)
    }

    /// Takes an object as a watch showed it; false when the cache has it already, or a newer state of it. Versions are compared within one
    /// shard only; from another shard the object has moved.
    pub(super) fn upsert(&mut self, kind: KindRef, key: &ObjectKey, shard: ShardId, raw: Raw) -> bool {
        let have = self.get(kind, key).filter(|entry| entry.shard == shard);
        let older = have.is_some_and(|entry| entry.raw.version().zip(raw.version()).is_some_and(|(have, new)| new < have));
        !older && self.replace(kind, key, shard, raw)
    }

    /// Takes an object as a complete list showed it, whatever its version: after a server was restored from a backup, versions begin anew.
    pub(super) fn replace(&mut self, kind: KindRef, key: &ObjectKey, shard: ShardId, raw: Raw) -> bool {
        let Some(cache) = self.kinds.get_mut(&kind) else { return false };
        let same = |entry: &Entry| entry.shard == shard && entry.raw.resource_version == raw.resource_version && entry.raw.uid == raw.uid;
        if cache.get(key).is_some_and(same) {
            return false;
        }
        cache.insert(key.clone(), Entry { shard, raw: Arc::new(raw) });
        true
    }

    /// Takes an object away, unless another shard or another incarnation has taken its place; returns its uid.
    pub(super) fn remove(&mut self, kind: KindRef, key: &ObjectKey, shard: ShardId, uid: Option<&str>) -> Option<Box<str>> {
        let cache = self.kinds.get_mut(&kind)?;
        cache.get(key).filter(|entry| entry.shard == shard && uid.is_none_or(|uid| *entry.raw.uid == *uid))?;
        cache.remove(key).map(|entry| entry.raw.uid.clone())
    }

    /// Whether anything of a workspace is kept.
    pub(super) fn any_in(&self, workspace: &LogicalCluster) -> bool {
        self.kinds.keys().any(|kind| self.in_workspace(*kind, workspace).next().is_some())
    }

    /// The keys of a kind that came from this shard and are not among those named.
    pub(super) fn others(&self, kind: KindRef, shard: ShardId, named: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let of_shard = self.kinds.get(&kind).into_iter().flatten().filter(|(_, entry)| entry.shard == shard);
        of_shard.filter(|(key, _)| !named.contains(*key)).map(|(key, _)| key.clone()).collect()
    }

    /// The keys that came from this shard, of one workspace or of all, in every kind.
    pub(super) fn of_shard(&self, shard: ShardId, workspace: Option<&LogicalCluster>) -> Vec<(KindRef, ObjectKey)> {
        let mut found = Vec::new();
        for (kind, cache) in &self.kinds {
            let mut keys: Vec<&ObjectKey> = match workspace {
                Some(workspace) => self.in_workspace(*kind, workspace).collect(),
                None => cache.keys().collect(),
            };
            keys.retain(|key| cache.get(*key).is_some_and(|entry| entry.shard == shard));
            found.extend(keys.into_iter().map(|key| (*kind, key.clone())));
        }
        found
    }

    /// Remembers a write to a key until the cache shows it; false when it does already.
    pub(super) fn owe(&mut self, key: &ObjectKey, shard: ShardId, written: &Written, now: Duration) -> bool {
        if !self.kinds.contains_key(&written.kind) || mutated(Mutant::ForgetOwnWrites) {
            return false;
        }
        let (uid, version, until) = (written.uid.clone(), written.version, now + PATIENCE);
        let mut debt = Debt { uid, version, shard, since: now, until, nudge: None, ours: true };
        if self.is_paid(written.kind, key, &debt) {
            return false;
        }
        // Calls of two reconcilers may end in another order than they wrote: the latest write is the one to wait for.
        let at = (key.clone(), written.kind);
        // A stream that was found to lag still does.
        if let Some(known) = self.debts.get(&at).filter(|known| !known.ours) {
            (debt.until, debt.nudge) = (known.until.max(until), known.nudge);
        }
        let is_later = |known: &Debt| known.uid == debt.uid && known.version.zip(debt.version).is_some_and(|(known, new)| known > new);
        if !self.debts.get(&at).is_some_and(is_later) {
            self.debts.insert(at, debt);
        }
        true
    }

    /// Remembers that the server has a later state of an object than the cache, until that shows it; false when it does already, or has none.
    pub(super) fn doubt(&mut self, key: &ObjectKey, shard: ShardId, refused: &Refused, now: Duration) -> bool {
        let at = (key.clone(), refused.kind);
        let Some(entry) = self.get(refused.kind, key).filter(|entry| entry.shard == shard && *entry.raw.uid == *refused.uid) else {
            return false;
        };
        let Some(have) = entry.raw.version().filter(|have| refused.version.is_none_or(|meant| *have <= meant)) else { return false };
        let wanted = refused.version.map_or(have, |meant| meant.max(have)).saturating_add(1);
        // What we have deleted is waited for already; and what we wrote before we were refused is not enough to see.
        let known = self.debts.get(&at);
        let enough = known.is_some_and(|debt| *debt.uid != *refused.uid || debt.version.is_none_or(|version| version >= wanted));
        if enough || mutated(Mutant::TrustWhatWasRefuted) {
            return false;
        }
        let (uid, until, nudge) = (refused.uid.clone(), now + DOUBT, Some(now + LAG));
        self.debts.insert(at, Debt { uid, version: Some(wanted), shard, since: now, until, nudge, ours: false });
        true
    }

    /// Lists of such a stream come too soon after each other: those who wait for it ask again then.
    pub(super) fn remind(&mut self, kind: KindRef, shard: ShardId, at: Duration) {
        let late = self.debts.iter_mut().filter(|((_, of), debt)| *of == kind && debt.shard == shard && !debt.ours && debt.nudge.is_none());
        late.for_each(|(_, debt)| debt.nudge = Some(at));
    }

    /// The kinds whose streams behind a shard do not show what the server has said, each with when it said so last.
    pub(super) fn lagging(&mut self, now: Duration) -> BTreeMap<(KindRef, ShardId), Duration> {
        let mut lagging = BTreeMap::new();
        for ((_, kind), debt) in self.debts.iter_mut().filter(|(_, debt)| debt.nudge.is_some_and(|at| at <= now)) {
            debt.nudge = None;
            let since = lagging.entry((*kind, debt.shard)).or_insert(debt.since);
            *since = debt.since.max(*since);
        }
        lagging
    }

    /// Takes note of how far a stream is: what was written before that version was shown, though it may be gone again.
    pub(super) fn showed(&mut self, kind: KindRef, shard: ShardId, version: Option<u64>) {
        let shown = self.shown.entry((kind, shard)).or_default();
        *shown = version.map_or(*shown, |version| version.max(*shown));
    }

    /// Nobody follows this shard any more.
    pub(super) fn forget_streams(&mut self, shard: ShardId) {
        self.shown.retain(|(_, of), _| *of != shard);
    }

    /// The same of a complete list: versions may begin anew.
    pub(super) fn listed(&mut self, kind: KindRef, shard: ShardId, version: Option<u64>) {
        self.shown.insert((kind, shard), version.unwrap_or_default());
    }

    fn is_paid(&self, kind: KindRef, key: &ObjectKey, debt: &Debt) -> bool {
        match (self.get(kind, key), debt.version) {
            (None, version) if mutated(Mutant::OwesWhatIsGone) => version.is_none(),
            (None, version) => version.is_none_or(|wanted| self.shown.get(&(kind, debt.shard)).is_some_and(|shown| *shown >= wanted)),
            (Some(entry), _) if entry.shard != debt.shard => true,
            (Some(entry), None) => *entry.raw.uid != *debt.uid,
            // Not the uid: another one may be that of the incarnation before ours as well as of one after it.
            (Some(entry), Some(wanted)) => entry.raw.version().is_none_or(|have| have >= wanted),
        }
    }

    /// Whether this is the very state that we have written last and not seen yet.
    pub(super) fn is_our_write(&self, kind: KindRef, key: &ObjectKey, raw: &Raw) -> bool {
        let debt = self.debts.get(&(key.clone(), kind));
        debt.is_some_and(|debt| debt.ours && *debt.uid == *raw.uid && debt.version.is_some() && debt.version == raw.version())
    }

    /// Whether something written to this object is still unseen.
    pub(super) fn owes(&self, kind: KindRef, key: &ObjectKey) -> bool {
        self.debts.contains_key(&(key.clone(), kind))
    }

    /// Strikes out what the cache shows by now; `deleted` is the uid of an incarnation whose deletion was seen, which ends what it owes.
    pub(super) fn settle(&mut self, kind: KindRef, key: &ObjectKey, deleted: Option<&str>) -> bool {
        let at = (key.clone(), kind);
        let Some(debt) = self.debts.get(&at) else { return false };
        (deleted == Some(&debt.uid) || self.is_paid(kind, key, debt)) && self.debts.remove(&at).is_some()
    }

    /// Strikes out what was written before a complete list was asked for: the list has shown it, or what became of it.
    pub(super) fn relisted(&mut self, kind: KindRef, shard: ShardId, asked: Duration) -> Vec<ObjectKey> {
        self.strike(|(_, of), debt| *of == kind && debt.shard == shard && debt.since <= asked)
    }

    /// Strikes out what has waited too long.
    pub(super) fn overdue(&mut self, now: Duration) -> Vec<ObjectKey> {
        self.strike(|_, debt| debt.until <= now)
    }

    /// Strikes out everything of a workspace that is gone.
    pub(super) fn forgive(&mut self, workspace: &LogicalCluster) {
        self.strike(|(key, _), _| key.workspace == *workspace);
    }

    fn strike(&mut self, which: impl Fn(&(ObjectKey, KindRef), &Debt) -> bool) -> Vec<ObjectKey> {
        let struck: Vec<_> = self.debts.iter().filter(|(at, debt)| which(at, debt)).map(|(at, _)| at.clone()).collect();
        for at in &struck {
            self.debts.remove(at);
        }
        struck.into_iter().map(|(key, _)| key).collect()
    }

    /// When the next debt is overdue, or its stream is.
    pub(super) fn next_overdue(&self) -> Option<Duration> {
        self.debts.values().map(|debt| debt.nudge.map_or(debt.until, |nudge| nudge.min(debt.until))).min()
    }

    /// How much is owed: bounded, for each debt ends by itself after [`PATIENCE`] or [`DOUBT`].
    #[cfg(test)]
    pub(super) fn debts(&self) -> usize {
        self.debts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::meta::Kind;
    use crate::api::names::ObjectName;
    use crate::api::tenant::KubernetesCluster;

    #[test]
    fn the_latest_write_is_waited_for_in_whatever_order_calls_end() {
        const KIND: KindRef = KubernetesCluster::REF;
        let (key, shard) = (ObjectKey::new(LogicalCluster::new("1abc"), ObjectName::namespaced("default", "demo")), ShardId(1));
        let written = |version| Written { kind: KIND, name: key.name.clone(), uid: "u".into(), version: Some(version), deleted: false };
        let mut objects = Objects::default();
        objects.keep(KIND);
        for version in [7, 6] {
            assert!(objects.owe(&key, shard, &written(version), Duration::ZERO));
        }
        let mut paid = Vec::new();
        for version in [6, 7] {
            let json = format!(
                r#"{{"metadata":{{"name":"demo","namespace":"default","uid":"u","resourceVersion":"{version}","annotations":{{"kcp.io/cluster":"1abc"}}}}}}"#
            );
            let raw = Raw::read(&json, crate::runtime::raw::Keep::Body).unwrap();
            objects.upsert(KIND, &key, shard, raw);
            paid.push(objects.settle(KIND, &key, None));
        }
        assert_eq!(paid, [false, true]);
    }
}
