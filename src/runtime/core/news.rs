//! Pure: what the streams say, taken into the caches; whom it concerns is queued.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::NameChange;
use crate::runtime::clock::Moment;
use crate::runtime::queue::{Class, Work};
use crate::runtime::raw::{Operation, Raw};
use crate::runtime::secured::Kept;
use crate::runtime::watch::Health;
use crate::runtime::watch::shell::News;

use super::Core;
use super::streams::{Role, ShardId, StreamId};

impl Core {
    pub(super) fn take_news(&mut self, now: Moment, id: StreamId, news: News) {
        let Some(stream) = self.streams.open.get_mut(&id) else { return };
        let role = stream.role;
        match news {
            News::Reset { items, asked } => {
                let first = stream.take_list(asked, now);
                self.recovered |= first;
                self.reset(now, role, items, if first { Class::Resync } else { Class::Fresh });
                if let Role::Objects(shard, kind) = role {
                    for key in self.objects.relisted(kind, shard, asked) {
                        self.unblock(now, &key);
                    }
                }
            }
            News::Upsert(raw) => {
                self.shown(role, &raw);
                self.upsert(now, role, raw);
            }
            News::Delete(raw) => {
                self.shown(role, &raw);
                self.delete(now, role, &raw);
            }
            News::Health(health) => self.take_health(now, id, role, health),
        }
    }

    fn shown(&mut self, role: Role, raw: &Raw) {
        if let Role::Objects(shard, kind) = role {
            self.objects.showed(kind, shard, raw.version());
        }
    }

    fn take_health(&mut self, now: Moment, id: StreamId, role: Role, health: Health) {
        let Some(stream) = self.streams.open.get_mut(&id) else { return };
        let trouble = match &health {
            Health::Forbidden { what } | Health::Broken { what } => Some(what.clone()),
            _ => None,
        };
        self.recovered |= stream.take_health(health, now);
        let unserved = stream.is_unserved();
        if let Role::Config(kind) = role {
            if unserved && self.configs.get(&kind).is_some_and(Option::is_none) {
                self.take_config(now, kind, None);
            } else if let Some(what) = trouble {
                self.miss_config(kind, &what);
            }
        }
    }

    fn reset(&mut self, now: Moment, role: Role, items: Vec<Raw>, class: Class) {
        match role {
            Role::Slice => {
                // A slice that is gone says nothing about the endpoints: kcp v0.28 does not make it anew until it restarts.
                if let Some(raw) = items.first() {
                    self.take_slice(now, raw);
                }
            }
            Role::Config(kind) => self.take_config(now, kind, items.into_iter().next()),
            Role::Platform(kind) => self.platform.reset(kind, items),
            Role::Pool => self.change_pool(now, |pool| pool.reset(&items)),
            Role::Works => self.reset_works(now, &items),
            Role::Secured => self.reset_secured(now, &items),
            Role::Workspaces(parent) => self.take_workspaces(now, parent, &items),
            Role::Roster(shard) => self.take_roster(now, shard, &items),
            Role::Objects(shard, kind) => {
                self.objects.listed(kind, shard, items.iter().filter_map(Raw::version).max());
                let named: BTreeSet<ObjectKey> = items.iter().filter_map(|raw| key(role, raw)).collect();
                for key in self.objects.others(kind, shard, &named) {
                    if mutated(Mutant::RelistKeepsGhosts) {
                        continue;
                    }
                    self.remove_object(now, kind, shard, &key, None);
                }
                let mut changed = Vec::new();
                for raw in items {
                    let Some(key) = key(role, &raw) else { continue };
                    if self.objects.replace(kind, &key, shard, raw) {
                        self.take_change(now, kind, &key);
                        changed.push(key);
                    }
                }
                // One reconciler after the other: what a later one says is mostly of what an earlier one does, and nobody waits for it first.
                for actor in 0..self.actors.len() {
                    for key in &changed {
                        self.wake_one(now, actor, kind, key, class);
                    }
                }
            }
            Role::Names(shard, kind) => self.reset_names(now, shard, kind, &items),
        }
    }

    fn reset_names(&mut self, now: Moment, shard: ShardId, kind: KindRef, items: &[Raw]) {
        let named: BTreeSet<_> = items.iter().filter_map(|raw| Some((raw.workspace.clone()?, raw.name.name.to_string()))).collect();
        let before = self.names.get(&kind).map(|names| names.of_shard(shard, None)).unwrap_or_default();
        for (workspace, name) in before.into_iter().filter(|at| !named.contains(at)) {
            self.change_name(now, shard, kind, &workspace, &name, false);
        }
        for (workspace, name) in &named {
            self.change_name(now, shard, kind, workspace, name, true);
        }
    }

    pub(super) fn change_name(
        &mut self,
        now: Moment,
        shard: ShardId,
        kind: KindRef,
        workspace: &LogicalCluster,
        name: &str,
        present: bool,
    ) {
        let names = self.names.entry(kind).or_default();
        let changed = if present { names.insert(workspace, name, shard) } else { names.remove(workspace, name, shard) };
        if changed {
            self.raise_name(now, kind, workspace, &NameChange { name: Arc::from(name), present });
        }
    }

    fn upsert(&mut self, now: Moment, role: Role, raw: Raw) {
        match role {
            Role::Slice => self.take_slice(now, &raw),
            Role::Config(kind) => self.take_config(now, kind, Some(raw)),
            Role::Platform(kind) => self.platform.upsert(kind, raw),
            Role::Pool => self.change_pool(now, |pool| pool.upsert(&raw)),
            Role::Works => self.take_record(&raw),
            Role::Secured => self.secured.upsert(Kept::read(&raw)),
            Role::Workspaces(parent) => self.take_workspace(now, parent, &raw, true),
            Role::Roster(shard) => self.take_binding(now, shard, &raw),
            Role::Objects(shard, kind) => {
                let Some(key) = key(role, &raw) else { return };
                // What we have written ourselves is no news from outside: whoever waits for us goes first. A stream often shows a write before its
                // answer is here, so that what changes while we are at work on it counts as ours.
                let ours = self.objects.is_our_write(kind, &key, &raw) || self.is_at_work_on(&key);
                let class = if ours { Class::Resync } else { Class::Fresh };
                if self.objects.upsert(kind, &key, shard, raw) {
                    self.object_changed(now, kind, &key, class);
                }
            }
            Role::Names(shard, kind) => {
                let Some(key) = key(role, &raw) else { return };
                self.change_name(now, shard, kind, &key.workspace, &key.name.name, true);
            }
        }
    }

    fn delete(&mut self, now: Moment, role: Role, raw: &Raw) {
        match role {
            Role::Slice => {}
            Role::Config(kind) => self.take_config(now, kind, None),
            Role::Platform(kind) => self.platform.remove(kind, &raw.name),
            Role::Pool => self.change_pool(now, |pool| pool.remove(&raw.name.name)),
            Role::Works => self.forget_record(now, &raw.name.name),
            Role::Secured => self.miss_secrets(now, &raw.name.name),
            Role::Workspaces(parent) => self.take_workspace(now, parent, raw, false),
            Role::Roster(shard) => {
                if let Some(workspace) = &raw.workspace {
                    self.drop_binding(now, shard, workspace, &raw.name.name);
                }
            }
            Role::Objects(shard, kind) => {
                if let Some(key) = key(role, raw) {
                    self.remove_object(now, kind, shard, &key, Some(&raw.uid));
                }
            }
            Role::Names(shard, kind) => {
                if let Some(key) = key(role, raw) {
                    self.change_name(now, shard, kind, &key.workspace, &key.name.name, false);
                }
            }
        }
    }

    fn object_changed(&mut self, now: Moment, kind: KindRef, key: &ObjectKey, class: Class) {
        self.take_change(now, kind, key);
        self.wake(now, kind, key, class);
    }

    /// Everything that follows from a change, but for whom it wakes.
    fn take_change(&mut self, now: Moment, kind: KindRef, key: &ObjectKey) {
        if let Some(entry) = self.objects.get(kind, key) {
            for actor in self.actors.iter_mut().filter(|actor| actor.kind == kind) {
                actor.index.subscribe(key, actor.served.topics(&entry.raw));
            }
        }
        self.count_anew(now, kind, key);
        self.look_for_all(kind, key);
        if self.objects.settle(kind, key, None) {
            self.unblock(now, key);
        }
    }

    pub(super) fn remove_object(&mut self, now: Moment, kind: KindRef, shard: ShardId, key: &ObjectKey, uid: Option<&str>) {
        let removed = self.objects.remove(kind, key, shard, uid);
        if let Some(went) = &removed {
            self.object_went(kind, key);
            self.take_loss(now, kind, key, went);
            for (index, actor) in self.actors.iter_mut().enumerate().filter(|(_, actor)| actor.kind == kind) {
                actor.index.unsubscribe(key);
                if let Ok(actor) = u8::try_from(index) {
                    let work = Work { actor, key: key.clone() };
                    self.rechecks.cancel(&work);
                    self.starved.remove(&work);
                    self.losses.forget(&work);
                }
            }
            self.count_anew(now, kind, key);
            self.wake(now, kind, key, Class::Fresh);
        }
        if self.objects.settle(kind, key, uid.or(removed.as_deref())) {
            self.unblock(now, key);
        }
    }

    /// Counts a child that went while its object stays, unless we have deleted it.
    fn take_loss(&mut self, now: Moment, kind: KindRef, key: &ObjectKey, child: &str) {
        if self.losses.is_ours(kind, key, child) {
            return;
        }
        for (index, actor) in self.actors.iter().enumerate().filter(|(_, actor)| actor.kind != kind && actor.children.contains(&kind)) {
            if let (Some(entry), Ok(index)) = (self.objects.get(actor.kind, key), u8::try_from(index)) {
                self.losses.lost(kind, &entry.raw, &Work { actor: index, key: key.clone() }, child, now.mono);
            }
        }
    }

    /// Works out which object counts in a workspace after this one came, changed or went; all of them are looked at when it is another one.
    fn count_anew(&mut self, now: Moment, kind: KindRef, key: &ObjectKey) {
        let entry = self.objects.get(kind, key).map(|entry| entry.raw.clone());
        let mut stirred = Vec::new();
        for (index, actor) in self.actors.iter_mut().enumerate().filter(|(_, actor)| actor.kind == kind) {
            let Some(singles) = &mut actor.singles else { continue };
            let changed = match &entry {
                Some(raw) if actor.index.holds(key) => singles.insert(key, raw),
                _ => singles.remove(key),
            };
            if let Ok(index) = u8::try_from(index)
                && changed
            {
                stirred.extend(singles.of(&key.workspace).into_iter().map(|key| (index, key)));
            }
        }
        for (actor, key) in stirred {
            self.enqueue(now, actor, &key, Class::Fresh);
        }
    }

    /// Queues whoever reads this object: its own reconcilers, and those of the object it is a child of.
    fn wake(&mut self, now: Moment, kind: KindRef, key: &ObjectKey, class: Class) {
        for actor in 0..self.actors.len() {
            self.wake_one(now, actor, kind, key, class);
        }
    }

    fn wake_one(&mut self, now: Moment, actor: usize, kind: KindRef, key: &ObjectKey, class: Class) {
        let state = &self.actors[actor];
        if state.kind != kind && !state.children.contains(&kind) {
            return;
        }
        let (is_own, holds) = (state.kind == kind, state.index.holds(key));
        let Ok(actor) = u8::try_from(actor) else { return };
        let asked = self.objects.get(kind, key).is_some_and(|entry| entry.raw.operation == Operation::Reconcile);
        if asked && is_own && holds {
            // Whoever asks for it doubts what was read so far.
            let work = Work { actor, key: key.clone() };
            self.want_fresh(now, &work, now.mono);
            self.rechecks.wait(work, now.mono, now.mono);
        } else {
            self.enqueue(now, actor, key, class);
        }
    }
}

fn key(role: Role, raw: &Raw) -> Option<ObjectKey> {
    let Some(workspace) = raw.workspace.clone() else {
        Core::unplaced(role, raw);
        return None;
    };
    Some(ObjectKey::new(workspace, raw.name.clone()))
}
