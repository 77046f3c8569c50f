//! Pure: the heart of the runtime. Everything that was seen and that ended comes in as an event; everything to be done goes out as an effect.
//!
//! One value owns caches, index, queue and timers, so that every decision is made over one state and a sequence of events always gives the
//! same effects. The shell around it ([`super::shell`]) opens streams, runs calls and hands in time.

mod absence;
mod actors;
mod calls;
mod config;
mod external;
mod guards;
mod index;
mod inputs;
mod losses;
mod news;
mod objects;
mod paths;
mod platform;
mod pool;
mod rechecks;
mod secured;
mod shards;
mod singles;
mod streams;
mod works;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::error;

use crate::api::config::FieldError;
use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::reconciler::{External, Seen, Workspace};

use super::clock::Moment;
use super::external::{CONFIG_MAP, CONTROLLER, ExternalWork, PURPOSE, Record, SECRET};
use super::port::Written;
use super::queue::{Class, Queue, Settings, Work};
use super::raw::{Keep, Raw};
use super::rest::Source;
use super::secured::Kept;
use super::served::{AnyConfig, Ended, Served};
use super::watch::orders::Order;
use super::watch::shell::News;

use absence::Absences;
use actors::ActorState;
use calls::Begun;
use guards::Guards;
use losses::Losses;
use objects::Objects;
use paths::Paths;
use platform::{NamesOfKind, Platform};
use pool::Pool;
use rechecks::{Rechecks, Why};
use secured::Secured;
use shards::Shards;
pub(crate) use streams::StreamId;
use streams::{Role, ShardId, Streams};
use works::Works;

/// What a runtime is set up with.
pub(crate) struct Setup {
    /// The reconcilers, in the order of their index.
    pub(crate) actors: Vec<Arc<dyn Served>>,
    /// The name of the export and of its endpoint slice.
    pub(crate) export: Arc<str>,
    /// The name of the configuration object.
    pub(crate) config_name: String,
    /// The base URL of the provider workspace.
    pub(crate) provider_base: String,
    /// The namespace of the provider workspace that holds the pool of workload clusters and the index of external work.
    pub(crate) namespace: Arc<str>,
    /// Prefixes of endpoint URLs to be replaced, where the addresses that kcp publishes cannot be reached from here.
    pub(crate) overrides: Vec<(String, String)>,
    /// Calls under way at once.
    pub(crate) workers: usize,
    /// How long an object must have been absent before its external work is ended.
    pub(crate) absence_grace: Duration,
}

/// What happened.
pub(crate) enum Event {
    /// A stream said something.
    News { stream: StreamId, news: News },
    /// A call under way has written something, and writes nothing else before this is sent.
    Wrote { work: Work, written: Written },
    /// A call under way has recorded external work, and tells so before anything that follows from it.
    Recorded(Record),
    /// A call under way has taken this record away.
    Forgotten(Box<str>),
    /// A call under way has kept secrets beside a record.
    Secured(Kept),
    /// A call ended.
    Ended { work: Work, ended: Ended, jitter: f64 },
}

/// What is to be done.
pub(crate) enum Effect {
    /// Follow this source.
    Open { stream: StreamId, source: Source },
    /// Stop following it.
    Close { stream: StreamId },
    /// Tell a stream something.
    Order { stream: StreamId, order: Order },
    /// Run a call.
    Run(Box<Run>),
    /// Forget what is kept for a workspace that has unbound.
    Forget { workspace: LogicalCluster },
    /// These are the workload clusters now: connections to others are of no use any more.
    Pool { names: BTreeSet<Arc<str>> },
    /// Tell reconcilers that a workspace has bound, or has unbound.
    Announce { workspace: Workspace, bound: bool },
    /// Say in the configuration's status whether it is accepted.
    Judge { kind: KindRef, raw: Arc<Raw>, problems: Vec<FieldError> },
}

/// One call to be run.
pub(crate) struct Run {
    pub(crate) work: Work,
    pub(crate) raw: Arc<Raw>,
    pub(crate) endpoint: Arc<str>,
    pub(crate) seen: Seen,
    pub(crate) config: Result<AnyConfig, String>,
    /// The last one that was in force.
    pub(crate) last_config: Option<AnyConfig>,
    /// Which object counts in place of this one.
    pub(crate) superseded_by: Option<ObjectName>,
    /// The other objects of the kind in the workspace; only where access to it is asked for.
    pub(crate) others: Vec<ObjectName>,
    /// The claims that its bindings grant, as JSON; likewise.
    pub(crate) claims: Arc<str>,
    /// The workspace's path, where a rule needed it.
    pub(crate) path: Option<String>,
    /// `None` for a reconciler without external work.
    pub(crate) external: Option<ExternalWork>,
}

/// Sizes and readiness, for the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overview {
    /// Whether anybody has looked yet.
    pub(crate) looked: bool,
    /// What is missing for being ready; empty when nothing is.
    pub(crate) missing: Vec<String>,
    pub(crate) queued: usize,
    pub(crate) in_flight: usize,
    pub(crate) objects: usize,
    pub(crate) workspaces: usize,
    /// Recorded external work by how its object is seen.
    pub(crate) works: BTreeMap<&'static str, usize>,
}

/// The heart.
pub(crate) struct Core {
    setup: Setup,
    actors: Vec<ActorState>,
    streams: Streams,
    shards: Shards,
    guards: Guards,
    objects: Objects,
    names: BTreeMap<KindRef, NamesOfKind>,
    platform: Platform,
    paths: Paths,
    pool: Pool,
    works: Works,
    secured: Secured,
    absences: Absences,
    configs: BTreeMap<KindRef, Option<Arc<Raw>>>,
    queue: Queue,
    rechecks: Rechecks,
    losses: Losses,
    /// Work whose inputs were not synced yet when it came up.
    parked: BTreeMap<(u8, ShardId), BTreeMap<ObjectKey, Class>>,
    /// Work that found an input unreadable.
    starved: BTreeSet<Work>,
    /// Work under way, with what had been raised for its reconciler when it began.
    running: BTreeMap<Work, Begun>,
    /// Work that wrote and whose write is unseen, with the same: its subscriptions may be out of date.
    unseen: BTreeMap<Work, u64>,
    /// Whether an input became readable since the last settlement.
    recovered: bool,
    /// In how many settlements one had.
    recoveries: u64,
    effects: Vec<Effect>,
    /// What streams are to be told, each thing once however often it was wanted since the last settlement.
    orders: BTreeSet<(StreamId, Order)>,
}

impl Core {
    /// A heart that has opened the streams of the provider workspace; its first [`Self::settle`] says so.
    pub(crate) fn new(setup: Setup, now: Moment) -> Self {
        let actors: Vec<ActorState> = setup.actors.iter().map(|served| ActorState::new(served.clone())).collect();
        let mut core = Self {
            queue: Queue::new(Settings::new(setup.workers)),
            works: Works::new(setup.export.clone()),
            absences: Absences::new(setup.absence_grace),
            setup,
            actors,
            streams: Streams::default(),
            shards: Shards::default(),
            guards: Guards::default(),
            objects: Objects::default(),
            names: BTreeMap::new(),
            platform: Platform::default(),
            paths: Paths::default(),
            pool: Pool::default(),
            secured: Secured::default(),
            configs: BTreeMap::new(),
            rechecks: Rechecks::default(),
            losses: Losses::default(),
            parked: BTreeMap::new(),
            starved: BTreeSet::new(),
            running: BTreeMap::new(),
            unseen: BTreeMap::new(),
            recovered: false,
            recoveries: 0,
            effects: Vec::new(),
            orders: BTreeSet::new(),
        };
        core.declare(now);
        core
    }

    fn declare(&mut self, now: Moment) {
        for actor in &self.actors {
            self.objects.keep(actor.kind);
            for child in &actor.children {
                self.objects.keep(*child);
            }
            for spec in &actor.names {
                self.names.entry(spec.kind).or_default();
            }
            for spec in &actor.views {
                self.platform.declare(spec);
            }
        }
        self.open(Role::Slice, now);
        for kind in self.platform.kinds() {
            self.open(Role::Platform(kind), now);
        }
        let kinds: BTreeSet<KindRef> = self.actors.iter().filter_map(|actor| actor.config_kind).collect();
        for kind in kinds {
            self.configs.insert(kind, None);
            self.open(Role::Config(kind), now);
        }
        let mut roles = BTreeSet::new();
        for (at, actor) in self.actors.iter().enumerate() {
            let external = actor.served.external();
            roles.extend(Self::external_roles(&*actor.served));
            if external != External::Nothing
                && let Ok(at) = u8::try_from(at)
            {
                self.works.declare(actor.served.actor().name, at);
            }
        }
        for role in roles {
            self.open(role, now);
        }
    }

    fn open(&mut self, role: Role, now: Moment) {
        let source = self.source(role);
        let stream = self.streams.add(role, now);
        self.effects.push(Effect::Open { stream, source });
    }

    fn source(&self, role: Role) -> Source {
        let here = |kind| super::rest::collection(&self.setup.provider_base, kind);
        let all = |shard, kind| super::rest::collection(&super::rest::scoped(&self.shards.url(shard), None), kind);
        let near = |kind| super::rest::within_namespace(&self.setup.provider_base, kind, &self.setup.namespace);
        let (url, only, keep) = match role {
            Role::Slice => (here(crate::api::kcp::ENDPOINT_SLICE), Some(self.setup.export.to_string()), Keep::Body),
            Role::Config(kind) => (here(kind), Some(self.setup.config_name.clone()), Keep::Body),
            Role::Platform(kind) => (here(kind), None, Keep::Body),
            Role::Pool | Role::Secured => (near(SECRET), None, Keep::Tags),
            Role::Works => (near(CONFIG_MAP), None, Keep::Body),
            Role::Workspaces(parent) => (self.paths.url(super::rest::host(&self.setup.provider_base), parent), None, Keep::Body),
            Role::Roster(shard) => (all(shard, crate::api::kcp::BINDING), None, Keep::Body),
            Role::Objects(shard, kind) => (all(shard, kind), None, Keep::Body),
            Role::Names(shard, kind) => (all(shard, kind), None, Keep::Name),
        };
        let labelled = match role {
            Role::Pool => Some(PURPOSE),
            Role::Works | Role::Secured => Some(CONTROLLER),
            _ => None,
        };
        Source { url, only, labelled, keep, eager: matches!(role, Role::Platform(_) | Role::Pool | Role::Works | Role::Secured) }
    }

    /// Takes an event; what follows from it comes out of the next [`Self::settle`].
    pub(crate) fn handle(&mut self, now: Moment, event: Event) {
        match event {
            Event::News { stream, news } => self.take_news(now, stream, news),
            Event::Wrote { work, written } => self.take_write(now, &work, &written),
            Event::Recorded(record) => self.learn_record(record),
            Event::Forgotten(name) => {
                self.absences.clear(&name);
                self.works.remove(&name);
            }
            Event::Secured(kept) => self.secured.upsert(kept),
            Event::Ended { work, ended, jitter } => self.take_end(now, &work, ended, jitter),
        }
    }

    /// Makes work ready, unless the object is another controller's or its inputs are not synced yet.
    fn enqueue(&mut self, now: Moment, actor: u8, key: &ObjectKey, class: Class) {
        let state = &self.actors[usize::from(actor)];
        let Some(entry) = self.objects.get(state.kind, key) else { return };
        if !state.index.holds(key) {
            return;
        }
        let shard = entry.shard;
        if self.gate_is_open(now, actor, shard) {
            self.queue.add(now.mono, &Work { actor, key: key.clone() }, class);
        } else {
            let parked = self.parked.entry((actor, shard)).or_default();
            let waiting = parked.entry(key.clone()).or_insert(class);
            *waiting = class.min(*waiting);
        }
    }

    /// Follows up on everything handled since the last time: folds views, releases what waited, and starts calls.
    pub(crate) fn settle(&mut self, now: Moment) -> Vec<Effect> {
        self.fold_views(now);
        self.release_parked(now);
        if std::mem::take(&mut self.recovered) {
            self.recoveries += 1;
            for work in std::mem::take(&mut self.starved) {
                self.enqueue(now, work.actor, &work.key, Class::Fresh);
            }
        }
        self.look_again(now);
        self.catch_up(now);
        self.expire_shards(now);
        self.sweep(now);
        self.start_calls(now);
        let orders = std::mem::take(&mut self.orders);
        self.effects.extend(orders.into_iter().map(|(stream, order)| Effect::Order { stream, order }));
        std::mem::take(&mut self.effects)
    }

    fn look_again(&mut self, now: Moment) {
        for (work, why) in self.rechecks.due(now.mono) {
            match why {
                Why::Poll => self.enqueue(now, work.actor, &work.key, Class::Resync),
                Why::Afresh(since) => {
                    self.want_fresh(now, &work, since);
                    self.rechecks.wait(work, since, now.mono);
                }
            }
        }
        let mut rechecks = std::mem::take(&mut self.rechecks);
        let ready = rechecks.refreshed(now.mono, |work, since| self.stale_inputs(work, since).is_empty());
        self.rechecks = rechecks;
        for work in ready {
            self.enqueue(now, work.actor, &work.key, Class::Resync);
        }
    }

    /// When [`Self::settle`] has to be called again even if nothing happens.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let work = [self.queue.next_due(), self.rechecks.next(), self.next_release(), self.absences.next()];
        let sight = [self.objects.next_overdue(), self.shards.next_expiry()];
        work.into_iter().chain(sight).flatten().min()
    }

    /// How things are.
    pub(crate) fn overview(&self, now: Moment) -> Overview {
        let stats = self.queue.stats(now.mono);
        let kinds: BTreeSet<KindRef> = self.actors.iter().map(|actor| actor.kind).collect();
        Overview {
            looked: true,
            missing: self.missing(),
            queued: stats.fresh + stats.resync,
            in_flight: stats.in_flight,
            objects: kinds.iter().map(|kind| self.objects.len(*kind)).sum(),
            workspaces: self.shards.workspaces(),
            works: self.count_works(),
        }
    }

    /// What is missing for being ready.
    fn missing(&self) -> Vec<String> {
        let streams = self.streams.open.values().filter_map(streams::Stream::missing);
        streams.chain(self.missing_slice()).chain(self.platform.views.iter().filter_map(platform::ViewState::missing)).collect()
    }

    /// A line for readiness while the slice's stream works and has never shown the slice. One that is deleted later leaves its endpoints.
    fn missing_slice(&self) -> Option<String> {
        let listed = self.streams.find(Role::Slice).is_some_and(|(_, stream)| stream.synced);
        (listed && !self.shards.has_slice())
            .then(|| format!("{} {}: there is none; is the export set up?", crate::api::kcp::ENDPOINT_SLICE, self.setup.export))
    }

    /// Drops everything of a workspace behind a shard, or of all of them: its binding is gone. Nothing is deleted anywhere, and nothing is called
    /// unless a part of the workspace is behind another shard by now.
    fn forget(&mut self, now: Moment, shard: ShardId, workspace: Option<&LogicalCluster>) {
        let mut places = BTreeSet::new();
        for (kind, key) in self.objects.of_shard(shard, workspace) {
            self.remove_object(now, kind, shard, &key, None);
            places.insert(key.workspace);
        }
        let kinds: Vec<KindRef> = self.names.keys().copied().collect();
        for kind in kinds {
            let names = self.names.get(&kind).map(|names| names.of_shard(shard, workspace)).unwrap_or_default();
            for (place, name) in names {
                self.change_name(now, shard, kind, &place, &name, false);
                places.insert(place);
            }
        }
        places.retain(|place| !self.objects.any_in(place));
        for place in &places {
            self.queue.forget(place);
            self.objects.forgive(place);
        }
        self.unseen.retain(|work, _| !places.contains(&work.key.workspace));
        self.parked.retain(|_, parked| {
            parked.retain(|key, _| !places.contains(&key.workspace));
            !parked.is_empty()
        });
    }

    fn unplaced(role: Role, raw: &Raw) {
        error!(?role, name = %raw.name, "an object without kcp.io/cluster came through a wildcard; it is ignored");
    }
}
