//! Everything that was seen: the objects as they are, and what of the past the rules need.
//!
//! Pure: values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::event::{Event, Key, OFFERING, PROJECTION, PROVIDER, Principal, TENANT, TYPE};

/// What carries the scheduler's finalizer.
pub(crate) const FINALIZER: &str = "kubernetes.edge-connect.eu/cluster-projection";

/// For how long a reconcile may act on a state that is no longer the latest: a stream lags, and a call takes its time.
const WINDOW: SignedDuration = SignedDuration::from_secs(30);
/// The same where streams fall silent and requests hang: the watchdog of a stream, its backoff, and the deadlines of a call.
const TROUBLED: SignedDuration = SignedDuration::from_secs(600);
/// Within which time the same must not be refused twice and tried once more. Once it may: what stands between may have said it twice.
const JUST_NOW: SignedDuration = SignedDuration::from_secs(2);
/// Over which time it is counted how often a projection is made anew.
const FIGHT: SignedDuration = SignedDuration::from_secs(60);

/// The objects of the kinds that rules look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct State(BTreeMap<Key, Arc<Value>>);

impl State {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.0.get(key)
    }

    pub(crate) fn put(&mut self, key: Key, object: Option<Value>) {
        match object {
            Some(object) => drop(self.0.insert(key, Arc::new(object))),
            None => drop(self.0.remove(&key)),
        }
    }

    /// All objects of a kind.
    pub(crate) fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        self.0.iter().filter(move |(key, _)| key.kind == kind)
    }
}

/// A state that is no longer: `before` was there until `until`.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) until: Timestamp,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
}

/// A write that was refused as being to an earlier state.
#[derive(Clone, Debug)]
struct Refusal {
    at: Timestamp,
    principal: Principal,
    key: Key,
    /// Which state it was to.
    version: String,
    path: String,
}

/// What of the past rules need.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// For how long the past counts.
    pub(crate) window: SignedDuration,
    /// How far the clocks of processes may be ahead.
    pub(crate) clocks: Vec<SignedDuration>,
    /// The time of the latest event.
    latest: Timestamp,
    /// The pin of tenant objects, by uid, that carried the finalizer and still do as far as we are concerned.
    pub(crate) held: BTreeMap<String, String>,
    /// The same of those that somebody else let end behind the scheduler's back, which may be acting on what it has read.
    ended: Vec<(Timestamp, String, String)>,
    /// Projections of which the server has said to the manager that they are gone, and which were not made again since.
    pub(crate) told_gone: BTreeSet<Key>,
    /// The workspace of every object, by uid.
    pub(crate) home: BTreeMap<String, String>,
    /// Kinds that the manager has listed since it started.
    pub(crate) listed: BTreeSet<String>,
    /// When projections were made lately, and for which incarnation of their cluster, since the manager started.
    made: Vec<(Timestamp, Key, String)>,
    /// Writes that were refused lately as being to an earlier state.
    refused: Vec<Refusal>,
    /// Past states of inputs of a decision, oldest first.
    pub(crate) past: Vec<Past>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            window: WINDOW,
            clocks: vec![SignedDuration::ZERO],
            latest: Timestamp::MIN,
            held: BTreeMap::new(),
            ended: Vec::new(),
            told_gone: BTreeSet::new(),
            home: BTreeMap::new(),
            listed: BTreeSet::new(),
            made: Vec::new(),
            refused: Vec::new(),
            past: Vec::new(),
        }
    }
}

impl Memory {
    /// Faults make everything later.
    pub(crate) fn in_trouble(&mut self) {
        self.past.clear();
        self.window = TROUBLED;
    }

    /// Whoever believes that the kind is not served has seen none of its objects.
    pub(crate) fn not_served(&mut self, kind: &str, state: &State) {
        self.listed.insert(kind.to_owned());
        let until = self.latest;
        // Going back: first nothing is there, then everything is again as it was.
        self.past.extend(state.all(kind).map(|(key, object)| Past { until, key: key.clone(), before: Some(object.clone()) }));
        self.past.extend(state.all(kind).map(|(key, _)| Past { until, key: key.clone(), before: None }));
    }

    pub(crate) fn learn(&mut self, event: &Event, before: Option<&Value>, change: Option<&Option<Value>>, state: &State) {
        self.latest = self.latest.max(event.at);
        if event.principal.is_ours() && event.verb == "list" && event.code == 200 {
            self.listed.insert(event.key.kind.clone());
        }
        self.hear_of_projections(event);
        if event.code == 409 && event.principal.is_ours() && event.verb != "create" {
            let version = text(&event.body, "/metadata/resourceVersion").to_owned();
            self.refused.retain(|refused| event.at.duration_since(refused.at) <= JUST_NOW);
            let Event { at, principal, key, path, .. } = event.clone();
            self.refused.push(Refusal { at, principal, key, version, path });
        }
        if event.key.kind == PROJECTION
            && event.verb == "create"
            && event.principal.is_ours()
            && let Some(made) = event.after.as_ref()
        {
            self.made.retain(|(at, ..)| event.at.duration_since(*at) <= FIGHT);
            self.made.push((event.at, event.key.clone(), owner(made).to_owned()));
        }
        self.believe(event);
        let Some(after) = change else { return };
        let same = before.is_some_and(|before| after.as_ref().is_some_and(|after| before["spec"] == after["spec"]));
        if !same && [TENANT, PROVIDER, OFFERING, TYPE, PROJECTION].contains(&event.key.kind.as_str()) {
            self.past.retain(|past| event.at.duration_since(past.until) <= self.window);
            self.past.push(Past { until: event.at, key: event.key.clone(), before: state.get(&event.key).cloned() });
        }
        if let Some(after) = after {
            self.home.insert(text(after, "/metadata/uid").to_owned(), event.key.workspace.clone());
        }
        if event.key.kind == TENANT {
            self.hold(event, before, after.as_ref());
        }
    }

    /// A write whose end nobody has heard of, since who asked was killed and the server gave it up, may have been done all the same: what the next
    /// process finds held is held.
    fn believe(&mut self, event: &Event) {
        let unheard = event.verb == "update" && (event.code == 0 || event.code == 499 || event.code >= 500);
        let (uid, pin) = (text(&event.body, "/metadata/uid"), text(&event.body, "/spec/providerRef/name"));
        if unheard && event.key.kind == TENANT && event.principal.is_ours() && carries(&event.body, FINALIZER) && !pin.is_empty() {
            self.held.insert(uid.to_owned(), pin.to_owned());
        }
    }

    /// A new process knows nothing of what an earlier one did.
    pub(crate) fn restarted(&mut self) {
        self.listed.clear();
        self.made.clear();
        self.refused.clear();
    }

    /// How often a projection was made for an incarnation of its cluster within the last minute.
    pub(crate) fn made_lately(&self, key: &Key, owner: &str, at: Timestamp) -> usize {
        let counts = |(made, of, by): &&(Timestamp, Key, String)| at.duration_since(*made) <= FIGHT && of == key && by == owner;
        self.made.iter().filter(counts).count()
    }

    /// Whoever asked this has not heard that it was refused.
    pub(crate) fn was_not_heard(&mut self, path: &str) {
        self.refused.retain(|refused| refused.path != path);
    }

    /// Whether such a write was refused twice just now as being to a state that is no more.
    pub(crate) fn was_just_refused(&self, event: &Event) -> bool {
        let version = text(&event.body, "/metadata/resourceVersion");
        let same = |refused: &&Refusal| {
            let Refusal { at, principal, key, version: of, .. } = refused;
            event.at.duration_since(*at) <= JUST_NOW && *principal == event.principal && *key == event.key && of == version
        };
        !version.is_empty() && self.refused.iter().filter(same).count() > 1
    }

    /// The pin of an object that the scheduler holds, or may believe to hold at this time.
    pub(crate) fn pin_of(&self, uid: &str, at: Timestamp) -> Option<&String> {
        let lately = |(ended, gone, pin)| (gone == uid && at.duration_since(ended) <= self.window).then_some(pin);
        self.held.get(uid).or_else(|| self.ended.iter().map(|(ended, gone, pin)| (*ended, gone, pin)).find_map(lately))
    }

    /// States that a reconcile which writes at this time may have acted on, oldest first.
    pub(crate) fn lately(&self, at: Timestamp) -> Vec<&Past> {
        self.past.iter().filter(|past| at.duration_since(past.until) <= self.window).collect()
    }

    fn hear_of_projections(&mut self, event: &Event) {
        let kind = event.key.kind.as_str();
        let made = event.verb == "create" && event.code < 300 && event.code > 0;
        if made && (kind == PROJECTION || kind == TENANT) {
            self.told_gone.remove(&event.key.of(PROJECTION));
        }
        if kind != PROJECTION || !event.principal.is_ours() {
            return;
        }
        let gone = match event.verb.as_str() {
            "get" | "delete" if event.code == 404 => true,
            "delete" => event.code == 200 && event.gone,
            _ => false,
        };
        if gone {
            self.told_gone.insert(event.key.clone());
        }
    }

    fn hold(&mut self, event: &Event, before: Option<&Value>, after: Option<&Value>) {
        let Some(object) = after.or(before) else { return };
        let uid = text(object, "/metadata/uid").to_owned();
        let pin = text(object, "/spec/providerRef/name");
        if after.is_some() && carries(object, FINALIZER) && !pin.is_empty() {
            self.held.insert(uid, pin.to_owned());
        } else if event.principal == Principal::Scheduler {
            // Somebody else may take the finalizer away behind the scheduler's back; only what it does itself counts against it.
            self.held.remove(&uid);
        } else if after.is_none()
            && let Some(pin) = self.held.remove(&uid)
        {
            self.ended.retain(|(at, ..)| event.at.duration_since(*at) <= self.window);
            self.ended.push((event.at, uid, pin));
        }
    }
}

/// The text at a pointer, or `""`.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn carries(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|there| there == finalizer))
}

pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The uid of the tenant object that controls a projection, or `""`.
pub(crate) fn owner(projection: &Value) -> &str {
    let owners = projection["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().find(|owner| owner["controller"] == true).map_or("", |owner| text(owner, "/uid"))
}
