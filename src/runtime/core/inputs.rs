//! Pure: what a call sees of its inputs, when they are complete enough to begin, and whom their changes concern.

use std::time::Duration;

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{NameChange, Seen, Sight, Trouble};
use crate::runtime::clock::Moment;
use crate::runtime::queue::{Class, Work};
use crate::runtime::served::{Concerned, Feed, ViewSpec};
use crate::runtime::watch::orders::Order;

use super::Core;
use super::actors::ActorState;
use super::platform::Folded;
use super::streams::{Role, ShardId, Stream, StreamId};

impl Core {
    /// Has everything that this work reads listed anew, as far as it was not since then.
    pub(super) fn want_fresh(&mut self, now: Moment, work: &Work, since: Duration) {
        for stream in self.stale_inputs(work, since) {
            self.refresh(now, stream, since);
        }
    }

    /// Has a stream listed anew, unless that was wanted since then already.
    pub(super) fn refresh(&mut self, now: Moment, stream: StreamId, since: Duration) {
        if let Some(state) = self.streams.open.get_mut(&stream)
            && state.refresh_wanted.is_none_or(|at| at < since)
        {
            state.refresh_wanted = Some(now.mono);
            self.orders.insert((stream, Order::Refresh));
        }
    }

    /// The streams that a reconciler reads, for an object behind this shard.
    pub(super) fn roles(actor: &ActorState, shard: ShardId) -> impl Iterator<Item = Role> {
        let objects = std::iter::once(&actor.kind).chain(&actor.children).map(move |kind| Role::Objects(shard, *kind));
        objects.chain(Self::refreshable(actor, shard)).chain(Self::external_roles(&*actor.served))
    }

    /// Those of them that a requeue lists afresh.
    fn refreshable(actor: &ActorState, shard: ShardId) -> impl Iterator<Item = Role> {
        let names = actor.names.iter().map(move |spec| Role::Names(shard, spec.kind));
        let platform = actor.views.iter().flat_map(|view| view.kinds.iter().map(|kind| Role::Platform(*kind)));
        names.chain(platform).chain(actor.config_kind.map(Role::Config))
    }

    /// Whether every input of the reconciler has synced once, or was waited for long enough. While a shard's endpoint is out of the slice nobody
    /// follows it, and what its workspaces hold is not known: it stays closed.
    pub(super) fn gate_is_open(&self, now: Moment, actor: u8, shard: ShardId) -> bool {
        if mutated(Mutant::ActBeforeSync) {
            return true;
        }
        let actor = &self.actors[usize::from(actor)];
        let paths = self.paths.followed().map(Role::Workspaces);
        Self::roles(actor, shard).chain(paths).all(|role| self.streams.find(role).is_some_and(|(_, stream)| stream.is_decided(now)))
    }

    /// Moves parked work on whose gate has opened. Its object may have moved behind another shard meanwhile, whose gate counts then.
    pub(super) fn release_parked(&mut self, now: Moment) {
        let open: Vec<_> = self.parked.keys().filter(|(actor, shard)| self.gate_is_open(now, *actor, *shard)).copied().collect();
        for (actor, shard) in open {
            for (key, class) in self.parked.remove(&(actor, shard)).unwrap_or_default() {
                self.enqueue(now, actor, &key, class);
            }
        }
    }

    /// When patience with an unsynced input ends next.
    pub(super) fn next_release(&self) -> Option<Duration> {
        let ends = |(actor, shard): &(u8, ShardId)| {
            let actor = &self.actors[usize::from(*actor)];
            let paths = self.paths.followed().map(Role::Workspaces);
            let streams = Self::roles(actor, *shard).chain(paths).map(|role| self.streams.find(role).map(|(_, stream)| stream));
            // With an endpoint that left the slice there is no such time.
            let streams: Vec<_> = streams.collect::<Option<_>>()?;
            streams.into_iter().filter(|stream| !stream.is_answered()).map(Stream::patience_ends).max()
        };
        self.parked.keys().filter_map(ends).min()
    }

    /// The streams whose last complete list was asked for before `since`.
    pub(super) fn stale_inputs(&self, work: &Work, since: Duration) -> Vec<StreamId> {
        let actor = &self.actors[usize::from(work.actor)];
        let Some(entry) = self.objects.get(actor.kind, &work.key) else { return Vec::new() };
        let streams = Self::refreshable(actor, entry.shard).filter_map(|role| self.streams.find(role));
        // A configuration that cannot be read is not waited for: the last good one is in force meanwhile.
        let can_be_fresh = |stream: &Stream| stream.is_good() || !matches!(stream.role, Role::Config(_));
        let is_stale = |stream: &Stream| stream.listed.is_none_or(|at| at < since) && can_be_fresh(stream);
        streams.filter(|(_, stream)| is_stale(stream)).map(|(id, _)| id).collect()
    }

    fn trouble(&self, role: Role, now: Moment) -> Option<Trouble> {
        match self.streams.find(role) {
            Some((_, stream)) => stream.trouble(now),
            None => None,
        }
    }

    /// Everything a call may read, as it is now.
    pub(super) fn see(&self, now: Moment, actor: &ActorState, shard: ShardId, key: &ObjectKey) -> Seen {
        let mut seen = Seen::default();
        for kind in &actor.children {
            let mut entry = self.objects.get(*kind, key);
            if mutated(Mutant::KeyWithoutWorkspace) {
                entry = self.objects.keys(*kind).find(|other| other.name == key.name).and_then(|other| self.objects.get(*kind, other));
            }
            let value = entry.map(|entry| entry.raw.body.clone());
            seen.children.insert(*kind, Sight { value, trouble: self.trouble(Role::Objects(shard, *kind), now) });
        }
        for spec in &actor.names {
            let value = self.names.get(&spec.kind).map(|names| names.get(&key.workspace)).unwrap_or_default();
            seen.names.insert(spec.kind, Sight { value, trouble: self.trouble(Role::Names(shard, spec.kind), now) });
        }
        for spec in &actor.views {
            let view = self.platform.views.iter().find(|view| view.spec.id == spec.id);
            let troubles = spec.kinds.iter().filter_map(|kind| self.trouble(Role::Platform(*kind), now));
            let troubles = troubles.chain(view.and_then(|view| view.trouble(now)));
            let trouble = troubles.max_by_key(|trouble| (trouble.hard, trouble.lasted));
            let value = view.and_then(|view| view.value.clone());
            seen.views.insert(spec.id, Sight { value, trouble });
        }
        seen
    }

    /// Folds the views that changed, and wakes whom the changes concern.
    pub(super) fn fold_views(&mut self, now: Moment) {
        let streams = &self.streams;
        let folded = self.platform.fold(now, |kind| streams.find(Role::Platform(kind)).is_some_and(|(_, stream)| stream.synced));
        for Folded { view, before, mended } in folded {
            self.recovered |= mended;
            let (Some(before), Some(view)) = (before, self.platform.views.get(view)) else { continue };
            let (id, Some(after)) = (view.spec.id, view.value.clone()) else { continue };
            for actor in 0..self.actors.len() {
                // Two inputs may read the same view in different words: each declares its own.
                let inputs: Vec<_> = self.actors[actor].views.iter().enumerate().filter(|(_, spec)| spec.id == id).collect();
                let name = self.actors[actor].served.actor().name;
                let ask = |spec: &ViewSpec| Concerned::of(name, "a view", || (spec.raised)(&*before, &*after));
                let raised: Vec<_> = inputs.into_iter().map(|(input, spec)| (input, ask(spec))).collect();
                for (input, concerned) in raised {
                    self.raise(now, actor, Feed::Platform(input), concerned, None);
                }
            }
        }
    }

    /// A name came or went in a workspace.
    pub(super) fn raise_name(&mut self, now: Moment, kind: KindRef, workspace: &LogicalCluster, change: &NameChange) {
        for actor in 0..self.actors.len() {
            let specs: Vec<_> = self.actors[actor].names.iter().copied().enumerate().filter(|(_, spec)| spec.kind == kind).collect();
            for (input, spec) in specs {
                let name = self.actors[actor].served.actor().name;
                let concerned = Concerned::of(name, spec.kind.plural, || (spec.raised)(change));
                self.raise(now, actor, Feed::Names(input), concerned, Some(workspace));
            }
        }
    }

    /// Wakes whom a change concerns. Where that is everybody for want of an answer, whoever waits for something goes first.
    pub(super) fn raise(&mut self, now: Moment, actor: usize, feed: Feed, concerned: Concerned, workspace: Option<&LogicalCluster>) {
        let class = match &concerned {
            Concerned::Topics(topics) if topics.is_empty() => return,
            Concerned::Topics(_) => Class::Fresh,
            Concerned::Everybody => Class::Resync,
        };
        let Ok(index) = u8::try_from(actor) else { return };
        self.actors[actor].raised += 1;
        for key in self.actors[actor].index.listeners(feed, concerned, workspace) {
            self.enqueue(now, index, &key, class);
        }
    }
}
