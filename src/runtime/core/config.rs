//! Pure: the configuration in force: a valid change replaces it, an invalid one is refused and the last good one stays.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use crate::api::config::FieldError;
use crate::api::meta::KindRef;
use crate::runtime::clock::Moment;
use crate::runtime::queue::Work;
use crate::runtime::raw::Raw;
use crate::runtime::served::{Concerned, Feed};

use super::rechecks::Why;
use super::{Core, Effect};

/// Between two objects that are looked at for a changed configuration: fifty a second, about twice what one kcp can write.
const SPREAD: Duration = Duration::from_millis(20);

impl Core {
    /// Takes the configuration object as the stream shows it; `None` when there is none.
    pub(super) fn take_config(&mut self, now: Moment, kind: KindRef, raw: Option<Raw>) {
        let known = self.configs.get(&kind).and_then(Option::as_deref);
        if raw.is_some() && raw.as_ref() == known {
            // A requeue lists it anew, and most times it is the same.
            return;
        }
        let raw = raw.map(Arc::new);
        let before = self.configs.insert(kind, raw.clone()).flatten();
        let same = same_spec(before.as_deref(), raw.as_deref());
        let mut problems = Vec::new();
        for actor in 0..self.actors.len() {
            if self.actors[actor].config_kind == Some(kind) {
                problems.extend(self.configure(now, actor, raw.as_deref(), same));
            }
        }
        self.follow_rules(now);
        problems.dedup();
        if let Some(raw) = raw {
            self.effects.push(Effect::Judge { kind, raw, problems });
        }
    }

    /// `same`: only metadata or status changed since the last time, our own verdict for one, or the stream listed anew.
    fn configure(&mut self, now: Moment, actor: usize, raw: Option<&Raw>, same: bool) -> Vec<FieldError> {
        let state = &mut self.actors[actor];
        let name = state.served.actor().name;
        let next = match state.served.read_config(raw) {
            Ok(_) if same && state.config.is_ok() => return Vec::new(),
            Ok(Some(next)) => next,
            Ok(None) => {
                state.config = Err("there is no configuration object".into());
                self.recovered = true;
                return Vec::new();
            }
            Err(problems) => {
                let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                if !same {
                    warn!(controller = name, problems = text, "the configuration is refused; the last good one stays in force");
                }
                if state.config.is_err() {
                    state.config = Err(format!("the configuration is not valid: {text}"));
                }
                return problems;
            }
        };
        info!(controller = name, from_object = raw.is_some(), "a configuration is in force");
        state.last_config = Some(next.clone());
        match std::mem::replace(&mut state.config, Ok(next.clone())) {
            Err(_) => self.recovered = true,
            // Who waits for a workload cluster may find one of the other purpose.
            Ok(before) if before.purpose != next.purpose => {
                self.recovered = true;
                self.resync(now, actor);
            }
            Ok(before) => match state.served.config_change(&before, &next) {
                Concerned::Everybody => self.resync(now, actor),
                topics @ Concerned::Topics(_) => self.raise(now, actor, Feed::Config, topics, None),
            },
        }
        Vec::new()
    }

    /// Has every object looked at under what is in force now, one after the other: a change of the configuration is no reason to ask kcp for
    /// everything at once. What is looked at anyhow meanwhile is so under it already.
    fn resync(&mut self, now: Moment, actor: usize) {
        let Ok(index) = u8::try_from(actor) else { return };
        let keys: Vec<_> = self.objects.keys(self.actors[actor].kind).cloned().collect();
        for (at, key) in keys.into_iter().enumerate() {
            let wait = SPREAD.saturating_mul(u32::try_from(at).unwrap_or(u32::MAX));
            self.rechecks.set_sooner(Work { actor: index, key }, now.mono.saturating_add(wait), Why::Poll);
        }
    }

    /// The stream of the configuration cannot be read: only a reconciler that has none yet has to know.
    pub(super) fn miss_config(&mut self, kind: KindRef, what: &str) {
        for actor in self.actors.iter_mut().filter(|actor| actor.config_kind == Some(kind)) {
            if actor.config.is_err() {
                actor.config = Err(format!("the configuration cannot be read: {what}"));
            }
        }
    }
}

/// Whether two states of the configuration object have the same spec, by their generation, or by their version where they have none.
fn same_spec(before: Option<&Raw>, after: Option<&Raw>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(before), Some(after)) if before.uid == after.uid => match (generation(before), generation(after)) {
            (Some(before), Some(after)) => before == after,
            _ => before.resource_version == after.resource_version,
        },
        _ => false,
    }
}

fn generation(raw: &Raw) -> Option<i64> {
    serde_json::from_str::<serde_json::Value>(&raw.body).ok()?.pointer("/metadata/generation")?.as_i64()
}
