//! Pure: how a call begins and what follows from its end: our own writes are waited for, and the next look is planned.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::api::names::{ObjectKey, ObjectName};
use crate::mutants::{Mutant, mutated};
use crate::runtime::clock::Moment;
use crate::runtime::port::{Refused, Written};
use crate::runtime::queue::{Class, Outcome, Work};
use crate::runtime::served::Ended;

use super::actors::ActorState;
use super::rechecks::Why;
use super::streams::{Role, ShardId};
use super::{Core, Effect, Run};

/// Between two lists of one stream for what it does not show: a list is of all workspaces, and anybody can make one write be refused.
const PACE: Duration = Duration::from_secs(30);

/// When a call began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    at: Duration,
    raised: u64,
    /// How often an input had become readable.
    recoveries: u64,
    shard: ShardId,
}

impl Core {
    /// Hands out calls while there are workers and work.
    pub(super) fn start_calls(&mut self, now: Moment) {
        while let Some(turn) = self.queue.next(now.mono) {
            let work = turn.work;
            if let Some(rest) = self.rest(now, &work) {
                self.queue.done(now.mono, 0.0, &work, Outcome::After(rest));
                continue;
            }
            self.rechecks.cancel(&work);
            if let Some((run, begun)) = self.run(now, &work).or_else(|| self.run_orphan(now, &work)) {
                self.running.insert(work, begun);
                self.effects.push(Effect::Run(Box::new(run)));
            } else {
                // It vanished, is another controller's by now, or its endpoint left the slice: then it is parked.
                self.queue.done(now.mono, 0.0, &work, Outcome::Settled);
                self.enqueue(now, work.actor, &work.key, turn.class);
            }
        }
    }

    /// How long work is left alone whose child somebody takes away again and again. While it is there, there is none to be made.
    fn rest(&self, now: Moment, work: &Work) -> Option<Duration> {
        let entry = self.objects.get(self.actors.get(usize::from(work.actor))?.kind, &work.key)?;
        let (child, rest) = self.losses.rest(work, &entry.raw, now.mono)?;
        self.objects.get(child, &work.key).is_none().then_some(rest)
    }

    fn run(&mut self, now: Moment, work: &Work) -> Option<(Run, Begun)> {
        let actor = self.actors.get(usize::from(work.actor))?;
        let entry = self.objects.get(actor.kind, &work.key)?.clone();
        if !actor.index.holds(&work.key) || !self.gate_is_open(now, work.actor, entry.shard) {
            return None;
        }
        let external = self.external(now, work, &entry.raw.uid);
        let actor = &self.actors[usize::from(work.actor)];
        let run = Run {
            work: work.clone(),
            raw: entry.raw.clone(),
            endpoint: self.shards.url(entry.shard),
            seen: self.see(now, actor, entry.shard, &work.key),
            config: actor.config.clone(),
            last_config: actor.last_config.clone(),
            superseded_by: actor.singles.as_ref().and_then(|singles| singles.instead_of(&work.key).cloned()),
            others: self.others(actor, &work.key),
            claims: if actor.served.wants_access() { self.shards.claims(entry.shard, &work.key.workspace) } else { Arc::from("") },
            path: self.paths.get(&work.key.workspace).cloned(),
            external,
        };
        Some((run, self.begun(now, work.actor, entry.shard)))
    }

    pub(super) fn begun(&self, now: Moment, actor: u8, shard: ShardId) -> Begun {
        Begun { at: now.mono, raised: self.actors[usize::from(actor)].raised, recoveries: self.recoveries, shard }
    }

    /// Who else of a workspace is let into it, as far as anybody is.
    fn others(&self, actor: &ActorState, key: &ObjectKey) -> Vec<ObjectName> {
        if !actor.served.wants_access() {
            return Vec::new();
        }
        let all = self.objects.in_workspace(actor.kind, &key.workspace);
        all.filter(|other| *other != key && actor.index.holds(other)).map(|other| other.name.clone()).collect()
    }

    /// Takes note of a write while the call goes on: whoever its next write wakes must not be called over a cache that does not show this one.
    pub(super) fn take_write(&mut self, now: Moment, work: &Work, written: &Written) {
        if let Some(begun) = self.running.get(work).copied() {
            self.note(now, work, begun, written);
        }
    }

    /// Waits for what the server has instead of what a call has read: until it is seen, whatever is written would be refused again.
    fn doubt(&mut self, now: Moment, work: &Work, begun: Begun, refused: &Refused) {
        let key = ObjectKey::new(work.key.workspace.clone(), refused.name.clone());
        if self.objects.doubt(&key, begun.shard, refused, now.mono) {
            self.block(&key);
        }
    }

    /// Follows up on what the cache was to show by now: once the stream is listed anew, in the end the key goes on without.
    pub(super) fn catch_up(&mut self, now: Moment) {
        for ((kind, shard), since) in self.objects.lagging(now.mono) {
            let Some((stream, _)) = self.streams.find(Role::Objects(shard, kind)) else { continue };
            let Some(state) = self.streams.open.get_mut(&stream) else { continue };
            if let Some(next) = state.nudged.map(|at| at + PACE).filter(|next| *next > now.mono) {
                self.objects.remind(kind, shard, next);
            } else {
                state.nudged = Some(now.mono);
                self.refresh(now, stream, since);
            }
        }
        for key in self.objects.overdue(now.mono) {
            warn!(%key, "a write that the server knows of was not seen in time; going on with what the cache has");
            self.unblock(now, &key);
        }
    }

    /// Waits for a write that the cache does not show yet; whether that is to the work's own key.
    fn note(&mut self, now: Moment, work: &Work, begun: Begun, written: &Written) -> bool {
        let key = ObjectKey::new(work.key.workspace.clone(), written.name.clone());
        let owes = self.objects.owe(&key, begun.shard, written, now.mono);
        let there = self.objects.get(written.kind, &key).is_some_and(|entry| *entry.raw.uid == *written.uid);
        self.losses.note(work.actor, &key, written, there);
        if owes {
            self.block(&key);
        }
        owes && key == work.key
    }

    /// Takes back a call, with what it wrote and when it wants to be looked at again.
    pub(super) fn take_end(&mut self, now: Moment, work: &Work, ended: Ended, jitter: f64) {
        let Some(begun) = self.running.remove(work) else { return };
        let Ended { outcome, recheck, refresh, starved, written, refused, failed: _ } = ended;
        let outcome = if mutated(Mutant::NoRetry) { Outcome::Settled } else { outcome };
        let mut owes = false;
        for write in &written {
            owes |= self.note(now, work, begun, write);
        }
        for refused in &refused {
            self.doubt(now, work, begun, refused);
        }
        self.queue.done(now.mono, jitter, work, outcome);
        let actor = &self.actors[usize::from(work.actor)];
        let raised = actor.raised;
        // What has vanished, or is another controller's by now, is not looked at again.
        if !actor.index.holds(&work.key) {
            // What it came to know of a workspace that has unbound meanwhile is forgotten once more.
            if !self.shards.holds(&work.key.workspace) {
                self.effects.push(Effect::Forget { workspace: work.key.workspace.clone() });
            }
            return;
        }
        // What it missed may have become readable while it ran, and does so no second time.
        let recovered = starved && begun.recoveries != self.recoveries;
        if starved && !recovered {
            self.starved.insert(work.clone());
        } else {
            self.starved.remove(work);
        }
        if recovered {
            self.enqueue(now, work.actor, &work.key, Class::Fresh);
        }
        if owes {
            self.unseen.insert(work.clone(), begun.raised);
        } else if !written.is_empty() && begun.raised != raised {
            self.enqueue(now, work.actor, &work.key, Class::Fresh);
        }
        let poll = self.actors[usize::from(work.actor)].config.as_ref().ok().and_then(|config| config.poll);
        match (recheck, outcome, poll) {
            // What was planned while it ran, for another configuration, stays.
            (Some(wait), _, _) => self.rechecks.set_sooner(work.clone(), now.mono.saturating_add(wait), Why::Afresh(begun.at)),
            (None, Outcome::Settled, Some(poll)) => {
                let spread = poll / 10;
                let wait = poll.saturating_sub(spread).saturating_add(spread.mul_f64(2.0 * jitter.clamp(0.0, 1.0)));
                self.rechecks.set_sooner(work.clone(), now.mono.saturating_add(wait), Why::Poll);
            }
            (None, _, _) => {}
        }
        if let Some(at) = refresh.filter(|_| outcome == Outcome::Settled) {
            self.rechecks.set_sooner(work.clone(), at.max(now.mono), Why::Poll);
        }
    }

    /// Keeps every reconciler that reads an object from being called until our own write to it was seen.
    fn block(&mut self, key: &ObjectKey) {
        for work in self.works(key) {
            if self.owes(&work) {
                self.queue.block(&work);
            }
        }
    }

    /// Whether something this work reads was written by us and is still unseen.
    fn owes(&self, work: &Work) -> bool {
        let actor = &self.actors[usize::from(work.actor)];
        std::iter::once(&actor.kind).chain(&actor.children).any(|kind| self.objects.owes(*kind, &work.key))
    }

    /// After something was seen: goes on with the reconcilers whose writes are all visible.
    pub(super) fn unblock(&mut self, now: Moment, key: &ObjectKey) {
        for work in self.works(key) {
            if self.owes(&work) {
                continue;
            }
            self.queue.unblock(&work);
            let now_raised = self.actors[usize::from(work.actor)].raised;
            // What was raised while the subscriptions were out of date may have missed this object.
            if self.unseen.remove(&work).is_some_and(|raised| raised != now_raised) {
                self.enqueue(now, work.actor, key, Class::Fresh);
            }
        }
    }

    /// Whether a call about this object is under way.
    pub(super) fn is_at_work_on(&self, key: &ObjectKey) -> bool {
        self.works(key).iter().any(|work| self.running.contains_key(work))
    }

    fn works(&self, key: &ObjectKey) -> Vec<Work> {
        (0..self.actors.len()).filter_map(|actor| u8::try_from(actor).ok()).map(|actor| Work { actor, key: key.clone() }).collect()
    }
}
