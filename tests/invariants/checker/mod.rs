//! What must hold at every committed write, for every request, and at rest: invariants of the scheduler and of the runtime, checked over a sequence
//! of events from wherever: the embedded control plane, or the audit log of a real kcp.
//!
//! Pure: a value that is told of events. Reading order: `event`, `state`, `rules` (the list of all invariants), then one file for each family.

mod choice;
mod conditions;
pub(crate) mod event;
mod lives;
mod requests;
mod rest;
mod rules;
mod state;

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use serde_json::Value;

pub(crate) use event::{Event, Key, Principal};
pub(crate) use rules::{RULES, Rule};
pub(crate) use state::State;

use state::Memory;

/// An invariant that did not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// `K1`.
    pub(crate) rule: &'static str,
    text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One event as a rule sees it: with everything that was known before it.
pub(crate) struct Step<'a> {
    pub(crate) event: &'a Event,
    /// The object before the event, as the source says or else as it was last seen.
    pub(crate) before: Option<&'a Value>,
    /// All objects before the event.
    pub(crate) state: &'a State,
    pub(crate) memory: &'a Memory,
}

impl<'a> Step<'a> {
    pub(crate) fn after(&self) -> Option<&'a Value> {
        self.event.after.as_ref()
    }

    /// A change by the scheduler or the status reconciler.
    pub(crate) fn is_ours(&self) -> bool {
        self.event.principal.is_ours()
    }

    pub(crate) fn is_of(&self, kind: &str) -> bool {
        self.event.key.kind == kind
    }
}

/// What was asked about one name by our principals, and answered with success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) writes: usize,
    pub(crate) reads: usize,
}

/// The checker: tell it of every event, in the order of the commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    state: State,
    memory: Memory,
    spent: BTreeMap<(String, String, String), Spent>,
    counts: BTreeMap<(Principal, String), usize>,
}

impl Checker {
    /// Checks one event against every rule of commits and requests, and remembers it.
    pub(crate) fn observe(&mut self, event: &Event) -> Vec<Violation> {
        let known = self.state.get(&event.key).cloned();
        let before = event.before.as_ref().or(known.as_deref());
        let step = Step { event, before, state: &self.state, memory: &self.memory };
        let found = RULES.iter().filter_map(|rule| {
            let problem = (rule.check)(&step)?;
            Some(violation(rule, &step, &problem))
        });
        let found = found.collect();
        let change = event.change(before);
        self.memory.learn(event, before, change.as_ref(), &self.state);
        if let Some(after) = change {
            self.state.put(event.key.clone(), after);
        }
        self.count(event);
        found
    }

    /// Checks what must hold once nothing is left to do.
    pub(crate) fn at_rest(&self) -> Vec<Violation> {
        rest::at_rest(&self.state)
    }

    /// The same from here on, where faults make everything later: an older past counts, but for what was before now.
    pub(crate) fn in_trouble(mut self) -> Self {
        self.memory.in_trouble();
        self
    }

    /// Processes may have clocks that are so far ahead of the server's, or behind it.
    pub(crate) fn with_clocks(mut self, ahead: impl IntoIterator<Item = SignedDuration>) -> Self {
        self.memory.clocks.extend(ahead);
        self
    }

    /// The manager was told that this kind is not served, which is the same to it as an empty list.
    pub(crate) fn not_served(&mut self, kind: &str) {
        self.memory.not_served(kind, &self.state);
    }

    /// The manager was not told that this write of its was refused.
    pub(crate) fn was_not_heard(&mut self, path: &str) {
        self.memory.was_not_heard(path);
    }

    /// The manager was started anew: nothing it had read counts any more.
    pub(crate) fn restarted(&mut self) {
        self.memory.restarted();
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// What the cluster of this name has cost so far.
    pub(crate) fn spent(&self, workspace: &str, namespace: &str, name: &str) -> Spent {
        self.spent.get(&(workspace.to_owned(), namespace.to_owned(), name.to_owned())).copied().unwrap_or_default()
    }

    /// Events by principal, verb and kind.
    pub(crate) fn counts(&self) -> &BTreeMap<(Principal, String), usize> {
        &self.counts
    }

    fn count(&mut self, event: &Event) {
        let subresource = if event.subresource.is_empty() { String::new() } else { format!("/{}", event.subresource) };
        let what = format!("{:<16} {}{subresource}", if event.verb.is_empty() { "(follows)" } else { &event.verb }, event.key.kind);
        *self.counts.entry((event.principal, what)).or_default() += 1;
        let own = [event::TENANT, event::PROJECTION].contains(&event.key.kind.as_str()) && !event.key.name.is_empty();
        if !own || !event.principal.is_ours() || event.code >= 300 {
            return;
        }
        let Key { workspace, namespace, name, .. } = event.key.clone();
        let spent = self.spent.entry((workspace, namespace, name)).or_default();
        if event.is_write() { spent.writes += 1 } else { spent.reads += 1 }
    }
}

fn violation(rule: &Rule, step: &Step<'_>, problem: &str) -> Violation {
    let shown = |object: Option<&Value>| object.map_or_else(|| "nothing".to_owned(), |object| format!("{:#}", plain(object)));
    let Event { at, principal, user, manager, verb, key, subresource, code, path, body, .. } = step.event;
    let text = format!(
        "{} ({}; {}) does not hold: {problem}\n{key}\nasked by {principal:?} ({user}, {manager}) at {at}: {verb} {subresource} {path} → {code}\n\
         {body:#}\nbefore: {}\nafter: {}\n",
        rule.name,
        rule.says,
        rule.source,
        shown(step.before),
        shown(step.after()),
    );
    Violation { rule: rule.name, text }
}

fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}
