//! The heart, driven by hand: a world of scripted streams and calls in which every effect is looked at.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper that fails fails the test, and is handed what was just made"
)]

mod config;
mod external;
mod gate;
mod panics;
mod property;
mod requeue;
mod roster;
mod shards;
mod stale;
mod wake;
mod writes;

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Core, Effect, Event, Run, Setup, StreamId};
use crate::api::config::FieldError;
use crate::api::kcp::{BINDING, ENDPOINT_SLICE};
use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::reconciler::{Actor, AnyView, External, NameChange, Objects, Topic};
use crate::runtime::DEFAULT_ABSENCE_GRACE;
use crate::runtime::clock::Moment;
use crate::runtime::port::{Refused, Written};
use crate::runtime::queue::{Outcome, Work};
use crate::runtime::raw::{Keep, Raw};
use crate::runtime::rest;
use crate::runtime::served::{AnyConfig, Concerned, Ended, Feed, Job, NamesSpec, Served, Subscription, ViewSpec};
use crate::runtime::watch::Health;
use crate::runtime::watch::orders::Order;
use crate::runtime::watch::shell::News;

const fn kind(plural: &'static str, namespaced: bool) -> KindRef {
    KindRef { group: "test", version: "v1", kind: "Test", plural, namespaced }
}

const THING: KindRef = kind("things", true);
const CHILD: KindRef = kind("children", true);
const NAME: KindRef = kind("names", false);
const PART: KindRef = kind("parts", false);
const CONFIG: KindRef = kind("configs", false);
const BASE: &str = "https://kcp/clusters/root:provider";
const S1: &str = "https://s1/services";
const S2: &str = "https://s2/services";

/// A reconciler over things that does nothing: its calls are ended by hand.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing it reads or does not")]
struct Fake {
    name: &'static str,
    children: Vec<KindRef>,
    names: bool,
    parts: bool,
    config: bool,
    /// Hears of configuration changes by topic, where it is not everything.
    config_topics: bool,
    external: External,
    secures: bool,
}

impl Fake {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            children: Vec::new(),
            names: false,
            parts: false,
            config: false,
            config_topics: false,
            external: External::Nothing,
            secures: false,
        }
    }

    /// One that reads everything there is to read.
    fn full() -> Self {
        Self { children: vec![CHILD], names: true, parts: true, ..Self::new("full") }
    }
}

/// The parts by name, as a view.
type Parts = BTreeMap<String, String>;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a fold is handed a reference")]
fn fold(before: Option<&AnyView>, all: &Objects<'_>, changed: &[(KindRef, ObjectName)]) -> AnyView {
    let parts = all.0.get(&PART).into_iter().flatten();
    let named: Vec<_> = changed.iter().map(|(_, name)| &*name.name).collect();
    panics::note(before.is_some(), &named, parts.clone().any(|(_, body)| body.contains("panics")));
    Arc::new(parts.map(|(name, body)| (name.name.to_string(), body.to_string())).collect::<Parts>())
}

fn raised(before: &(dyn Any + Send + Sync), after: &(dyn Any + Send + Sync)) -> Vec<Topic> {
    let (before, after): (&Parts, &Parts) = (before.downcast_ref().unwrap(), after.downcast_ref().unwrap());
    assert!(!after.contains_key("unsaid"), "nobody knows whom it concerns");
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).map(|name| Topic::new(name.as_str())).collect()
}

fn name_raised(NameChange { name, .. }: &NameChange) -> Vec<Topic> {
    assert_ne!(&**name, "unsaid", "nobody knows whom it concerns");
    vec![Topic::new(name.clone())]
}

#[async_trait]
impl Served for Fake {
    fn actor(&self) -> Actor {
        Actor { name: self.name, finalizer: None, conditions: &["Ready"] }
    }

    fn kind(&self) -> KindRef {
        THING
    }

    fn children(&self) -> &[KindRef] {
        &self.children
    }

    fn names(&self) -> Vec<NamesSpec> {
        let spec = NamesSpec { kind: NAME, raised: name_raised };
        if self.names { vec![spec] } else { Vec::new() }
    }

    fn views(&self) -> Vec<ViewSpec> {
        let spec = ViewSpec { id: TypeId::of::<Parts>(), kinds: vec![PART], fold: Arc::new(fold), raised: Arc::new(raised) };
        if self.parts { vec![spec] } else { Vec::new() }
    }

    fn wants_access(&self) -> bool {
        false
    }

    fn is_single(&self) -> bool {
        false
    }

    fn external(&self) -> External {
        self.external
    }

    fn secures(&self) -> bool {
        self.secures
    }

    fn config_kind(&self) -> Option<KindRef> {
        self.config.then_some(CONFIG)
    }

    fn read_config(&self, raw: Option<&Raw>) -> Result<Option<AnyConfig>, Vec<FieldError>> {
        let Some(raw) = raw else {
            return Ok(Some(AnyConfig {
                value: Arc::new("default".to_owned()),
                poll: None,
                allowed: Arc::from([]),
                external_url: None,
                purpose: Arc::from("workload"),
            }));
        };
        let body: Value = serde_json::from_str(&raw.body).unwrap();
        let text = body["spec"]["text"].as_str().ok_or_else(|| vec![FieldError::new("spec.text", "is missing")])?;
        let poll = body["spec"]["poll"].as_u64().map(Duration::from_secs);
        let allowed = body["spec"]["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let purpose = body["spec"]["purpose"].as_str().unwrap_or("workload").into();
        Ok(Some(AnyConfig { value: Arc::new(text.to_owned()), poll, allowed, external_url: None, purpose }))
    }

    fn config_change(&self, _: &AnyConfig, _: &AnyConfig) -> Concerned {
        if self.config_topics { Concerned::Topics(vec![Topic::new("config")]) } else { Concerned::Everybody }
    }

    fn topics(&self, raw: &Raw) -> Option<BTreeSet<Subscription>> {
        let body: Value = serde_json::from_str(&raw.body).unwrap();
        if body["notFor"] == self.name {
            return None;
        }
        let words = |feed: Feed, field: &str| {
            let list = body[field].as_array().cloned().unwrap_or_default();
            list.into_iter().map(move |word| (feed, Some(Topic::new(word.as_str().unwrap())))).collect::<Vec<_>>()
        };
        let feeds = [(Feed::Names(0), "names"), (Feed::Platform(0), "parts"), (Feed::Config, "config")];
        Some(feeds.into_iter().flat_map(|(feed, field)| words(feed, field)).collect())
    }

    async fn run(&self, _: Job) -> Ended {
        unreachable!("the calls of a scripted world are ended by hand")
    }
}

/// An object as a stream shows it.
fn raw(workspace: &str, name: &str, version: u64, fields: Value) -> Raw {
    incarnation(workspace, name, "u1", version, fields)
}

fn incarnation(workspace: &str, name: &str, uid: &str, version: u64, fields: Value) -> Raw {
    Raw {
        name: ObjectName::namespaced("default", name),
        workspace: (!workspace.is_empty()).then(|| LogicalCluster::new(workspace)),
        uid: uid.into(),
        resource_version: version.to_string().into(),
        operation: crate::runtime::raw::Operation::None,
        body: fields.to_string().into(),
    }
}

fn work(actor: u8, workspace: &str, name: &str) -> Work {
    Work { actor, key: ObjectKey::new(LogicalCluster::new(workspace), ObjectName::namespaced("default", name)) }
}

fn settled() -> Ended {
    Ended {
        outcome: Outcome::Settled,
        recheck: None,
        refresh: None,
        starved: false,
        written: Vec::new(),
        refused: Vec::new(),
        failed: None,
    }
}

fn wrote(kind: KindRef, name: &str, uid: &str, version: Option<u64>) -> Ended {
    let written = Written { kind, name: ObjectName::namespaced("default", name), uid: uid.into(), version, deleted: version.is_none() };
    Ended { written: vec![written], ..settled() }
}

/// Which stream.
fn of(place: &str, kind: KindRef) -> String {
    if place == BASE { rest::collection(BASE, kind) } else { rest::collection(&rest::scoped(place, None), kind) }
}

/// A heart, what it has asked for, and the time.
struct World {
    core: Core,
    now: Duration,
    streams: BTreeMap<String, StreamId>,
    closed: BTreeSet<StreamId>,
    /// Calls that began and have not ended.
    running: BTreeMap<Work, Run>,
    /// Everything else since it was last taken.
    orders: Vec<(String, Order)>,
    judged: Vec<Vec<FieldError>>,
    forgotten: Vec<LogicalCluster>,
    announced: Vec<(String, bool)>,
}

impl World {
    fn new(actors: &[Fake]) -> Self {
        let setup = Setup {
            actors: actors.iter().cloned().map(|fake| Arc::new(fake) as Arc<dyn Served>).collect(),
            export: "export".into(),
            config_name: "config".into(),
            provider_base: BASE.into(),
            namespace: Arc::from("kcm-system"),
            overrides: Vec::new(),
            workers: 64,
            absence_grace: DEFAULT_ABSENCE_GRACE,
        };
        let mut world = Self {
            core: Core::new(setup, moment(Duration::ZERO)),
            now: Duration::ZERO,
            streams: BTreeMap::new(),
            closed: BTreeSet::new(),
            running: BTreeMap::new(),
            orders: Vec::new(),
            judged: Vec::new(),
            forgotten: Vec::new(),
            announced: Vec::new(),
        };
        world.settle();
        world
    }

    /// A world in which the first endpoint is there and every stream has listed nothing.
    fn ready(actors: &[Fake]) -> Self {
        let mut world = Self::new(actors);
        world.slice(&[S1]);
        let streams: Vec<_> = world.streams.keys().filter(|url| **url != of(BASE, ENDPOINT_SLICE)).cloned().collect();
        for url in streams {
            world.reset(&url, Vec::new());
        }
        world.settle();
        world
    }

    fn slice(&mut self, endpoints: &[&str]) -> Vec<Work> {
        let urls: Vec<_> = endpoints.iter().map(|url| json!({"url": url})).collect();
        let slice = raw("", "export", 1, json!({"status": {"endpoints": urls}}));
        self.upsert(&of(BASE, ENDPOINT_SLICE), slice)
    }

    fn bind(&mut self, place: &str, workspace: &str) {
        self.upsert(&of(place, BINDING), raw(workspace, "binding", 1, json!({"status": {"phase": "Bound"}})));
    }

    fn tell(&mut self, url: &str, news: News) -> Vec<Work> {
        let stream = *self.streams.get(url).unwrap_or_else(|| panic!("no stream of {url} is open"));
        self.tell_as(stream, news)
    }

    fn tell_as(&mut self, stream: StreamId, news: News) -> Vec<Work> {
        self.core.handle(moment(self.now), Event::News { stream, news });
        self.settle()
    }

    fn upsert(&mut self, url: &str, raw: Raw) -> Vec<Work> {
        self.tell(url, News::Upsert(raw))
    }

    fn delete(&mut self, url: &str, raw: Raw) -> Vec<Work> {
        self.tell(url, News::Delete(raw))
    }

    fn reset(&mut self, url: &str, items: Vec<Raw>) -> Vec<Work> {
        let asked = self.now;
        self.tell(url, News::Reset { items, asked })
    }

    fn health(&mut self, url: &str, health: Health) -> Vec<Work> {
        self.tell(url, News::Health(health))
    }

    fn end(&mut self, work: &Work, ended: Ended) -> Vec<Work> {
        self.running.remove(work).unwrap_or_else(|| panic!("{work:?} is not running"));
        self.core.handle(moment(self.now), Event::Ended { work: work.clone(), ended, jitter: 0.5 });
        self.settle()
    }

    /// Lets a call under way tell of a write.
    fn wrote(&mut self, work: &Work, written: Written) {
        self.core.handle(moment(self.now), Event::Wrote { work: work.clone(), written });
        assert_eq!(self.settle(), [], "a write wakes nobody");
    }

    /// Ends every call, and those that begin thereupon, as settled; says which ran.
    fn drain(&mut self) -> Vec<Work> {
        let mut ran = Vec::new();
        while let Some(work) = self.running.keys().next().cloned() {
            self.end(&work, settled());
            ran.push(work);
        }
        ran
    }

    /// Lets time pass, one wake-up after the other.
    fn pass(&mut self, time: Duration) -> Vec<Work> {
        let until = self.now + time;
        let mut begun = Vec::new();
        while let Some(at) = self.core.wake_at().filter(|at| *at <= until) {
            assert!(at > self.now, "asked to be woken at {at:?}, which is not after {:?}: a busy loop", self.now);
            self.now = at;
            begun.extend(self.settle());
        }
        self.now = until;
        begun.extend(self.settle());
        begun
    }

    /// Takes the effects, and says which calls began.
    fn settle(&mut self) -> Vec<Work> {
        let mut begun = Vec::new();
        for effect in self.core.settle(moment(self.now)) {
            match effect {
                Effect::Open { stream, source } => {
                    assert_eq!(source.keep == Keep::Name, source.url.ends_with("/names"), "only names are kept of names");
                    assert!(self.streams.insert(source.url, stream).is_none(), "one stream for one purpose");
                }
                Effect::Close { stream } => {
                    self.streams.retain(|_, open| *open != stream);
                    self.closed.insert(stream);
                }
                Effect::Order { stream, order } => {
                    let url = self.streams.iter().find(|(_, open)| **open == stream).map(|(url, _)| url.clone());
                    self.orders.extend(url.map(|url| (url, order)));
                }
                Effect::Forget { workspace } => self.forgotten.push(workspace),
                Effect::Announce { workspace, bound } => self.announced.push((workspace.to_string(), bound)),
                Effect::Run(run) => {
                    begun.push(run.work.clone());
                    assert!(self.running.insert(run.work.clone(), *run).is_none(), "one work ran twice at once");
                }
                Effect::Pool { .. } => {}
                Effect::Judge { problems, .. } => self.judged.push(problems),
            }
        }
        begun
    }

    fn refreshes(&mut self) -> Vec<String> {
        let orders = std::mem::take(&mut self.orders);
        orders.into_iter().filter(|(_, order)| *order == Order::Refresh).map(|(url, _)| url).collect()
    }
}

fn moment(mono: Duration) -> Moment {
    let wall = jiff::Timestamp::UNIX_EPOCH.checked_add(jiff::SignedDuration::try_from(mono).unwrap()).unwrap();
    Moment { mono, wall }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
