//! The I/O around the heart: streams and calls as tasks, time from the clock, and an orderly end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::api::config::FieldError;
use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::api::reason::Reason;

use super::RunError;
use super::access::Minter;
use super::clock::Clock;
use super::core::{Core, Effect, Event, Overview, Run, Setup, StreamId};
use super::direct::Direct;
use super::events::{self, Recorder};
use super::guard::{self, policy::Places};
use super::herald::Herald;
use super::judgement;
use super::port::LivePort;
use super::queue::{Outcome, Work};
use super::raw::Raw;
use super::rest::{self, Source};
use super::served::{Ended, Job, Served};
use super::telemetry::Metrics;
use super::transport::Transport;
use super::watch::orders::{Orders, orders};
use super::watch::shell::{Way, follow};
use super::workload::Workloads;

/// Events that wait for the heart at most: a stream that is faster waits, so that memory stays bounded.
const EVENTS: usize = 1024;
/// Events taken before what follows from them is worked out: one fold and one round of starts for all of them.
const BATCH: usize = 256;
/// From the first byte of a request to the last of its answer.
const REQUEST: Duration = Duration::from_secs(30);
/// How long calls under way may take to end after the order to stop.
const DRAIN: Duration = Duration::from_secs(20);
/// How long events that are due then may take besides.
const FAREWELL: Duration = Duration::from_secs(5);
/// Between two readings of sizes for metrics and readiness.
const OVERVIEW: Duration = Duration::from_secs(1);

/// What is shared by everything that does I/O.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) transport: Arc<Transport>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) provider_base: Arc<str>,
    pub(super) workloads: Arc<Workloads>,
    /// Writing past the virtual workspace, where that is wanted.
    pub(super) direct: Option<Arc<Direct>>,
}

struct Shell {
    core: Core,
    outside: Outside,
    actors: Vec<Arc<dyn Served>>,
    minter: Arc<Minter>,
    events: mpsc::Sender<Event>,
    orders: BTreeMap<StreamId, Orders>,
    streams: JoinSet<StreamId>,
    calls: JoinSet<(Work, Ended)>,
    running: BTreeMap<tokio::task::Id, Work>,
    judgements: JoinSet<()>,
    /// The latest of them for each kind of configuration.
    verdicts: BTreeMap<KindRef, AbortHandle>,
    recorder: Recorder,
    /// The one task that sends what was recorded.
    recording: JoinSet<()>,
    /// Tells the keeper of the disconnect guards, which begins with the first workspace that accepts one.
    guards: Option<watch::Sender<Places>>,
    /// Tells reconcilers who binds and unbinds.
    herald: Herald,
    export: Arc<str>,
}

/// Runs until `stop`; then starts nothing new, lets calls under way end, and returns.
pub(super) async fn run(setup: Setup, outside: Outside, state: watch::Sender<Overview>, stop: CancellationToken) -> Result<(), RunError> {
    let (events, mut inbox) = mpsc::channel(EVENTS);
    let (actors, export) = (setup.actors.clone(), setup.export.clone());
    let core = Core::new(setup, outside.clock.moment());
    let minter = Arc::new(Minter::new(outside.transport.clone(), outside.metrics.clone(), export.clone()));
    let (recorder, record) = events::start(&outside);
    let (herald, heralds) = Herald::new(&actors);
    let mut shell = Shell {
        core,
        outside,
        actors,
        minter,
        events,
        orders: BTreeMap::new(),
        streams: JoinSet::new(),
        calls: JoinSet::new(),
        running: BTreeMap::new(),
        judgements: heralds.into_iter().collect(),
        verdicts: BTreeMap::new(),
        recorder,
        recording: JoinSet::from_iter([record]),
        guards: None,
        herald,
        export,
    };
    let mut batch = Vec::with_capacity(BATCH);
    let mut tick = tokio::time::interval(OVERVIEW);
    shell.settle();
    loop {
        let wake = shell.wake();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = shell.calls.join_next_with_id() => {
                let event = shell.ended(ended);
                shell.core.handle(shell.outside.clock.moment(), event);
            }
            _ = inbox.recv_many(&mut batch, BATCH) => {
                let now = shell.outside.clock.moment();
                for event in batch.drain(..) {
                    shell.core.handle(now, event);
                }
            }
            Some(ended) = shell.streams.join_next() => shell.stream_ended(ended)?,
            Some(_) = shell.judgements.join_next() => {}
            () = tokio::time::sleep_until(wake) => {}
            _ = tick.tick() => {
                shell.report(&state);
                shell.guard();
            }
        }
        shell.settle();
    }
    // Whoever still tells something must not wait for a reader.
    drop(inbox);
    shell.drain().await;
    Ok(())
}

impl Shell {
    fn wake(&self) -> tokio::time::Instant {
        let far = Duration::from_hours(1);
        let now = self.outside.clock.now();
        self.outside.clock.start() + self.core.wake_at().unwrap_or(now + far).min(now + far)
    }

    fn report(&self, state: &watch::Sender<Overview>) {
        let overview = self.core.overview(self.outside.clock.moment());
        self.outside.metrics.sizes(overview.queued, overview.in_flight, overview.objects, overview.workspaces);
        self.outside.metrics.works(&overview.works);
        state.send_if_modified(|shown| {
            let changed = *shown != overview;
            *shown = overview;
            changed
        });
    }

    /// Tells the keeper of the guards where they belong; nobody is told where nobody accepts them.
    fn guard(&mut self) {
        let places = self.core.places();
        match &self.guards {
            Some(guards) => drop(guards.send_if_modified(|shown| {
                let changed = *shown != places;
                *shown = places;
                changed
            })),
            None if places.is_empty() => {}
            None => {
                let (sender, receiver) = watch::channel(places);
                self.judgements.spawn(guard::keep(receiver, self.outside.clone(), self.export.to_string()));
                self.guards = Some(sender);
            }
        }
    }

    fn settle(&mut self) {
        let now = self.outside.clock.moment();
        for effect in self.core.settle(now) {
            match effect {
                Effect::Open { stream, source } => self.open(stream, source),
                Effect::Close { stream } => {
                    // Without its sender the stream's task ends by itself.
                    self.orders.remove(&stream);
                }
                Effect::Order { stream, order } => {
                    if let Some(orders) = self.orders.get(&stream) {
                        orders.give(order);
                    }
                }
                Effect::Run(run) => self.start(*run),
                Effect::Forget { workspace } => {
                    self.minter.forget(&workspace);
                    if let Some(direct) = &self.outside.direct {
                        direct.forget(&workspace);
                    }
                    self.recorder.forget(workspace);
                }
                Effect::Announce { workspace, bound } => self.herald.tell(&workspace, bound),
                Effect::Pool { names } => self.outside.workloads.keep(names),
                Effect::Judge { kind, raw, problems } => self.judge(kind, &raw, &problems),
            }
        }
    }

    fn open(&mut self, id: StreamId, source: Source) {
        let (sender, inbox) = orders();
        self.orders.insert(id, sender);
        let way = Way { transport: self.outside.transport.clone(), metrics: self.outside.metrics.clone() };
        let (events, clock) = (self.events.clone(), self.outside.clock.clone());
        self.streams.spawn(async move {
            let tell = move |news| {
                let events = events.clone();
                async move { events.send(Event::News { stream: id, news }).await.is_ok() }
            };
            follow(source, way, clock, inbox, tell).await;
            id
        });
    }

    /// A stream ends because it was closed; any other end of its task is a defect, and a process that lives on without it would be blind.
    fn stream_ended(&self, ended: Result<StreamId, tokio::task::JoinError>) -> Result<(), RunError> {
        match ended {
            Ok(stream) if !self.orders.contains_key(&stream) => Ok(()),
            Ok(stream) => Err(RunError::TaskEnded(format!("stream {} ended unasked", stream.0))),
            Err(error) => Err(RunError::TaskEnded(error.to_string())),
        }
    }

    fn start(&mut self, run: Run) {
        let Run { work, raw, endpoint, seen, config, last_config, superseded_by, others, claims, path, external } = run;
        let Some(actor) = self.actors.get(usize::from(work.actor)).cloned() else { return };
        let clock = self.outside.clock.clone();
        let port = LivePort::new(self.outside.clone(), &endpoint, work.clone(), self.events.clone());
        let (minter, recorder) = (Some(self.minter.clone()), self.recorder.behind(endpoint.clone()));
        let (key, moment, base) = (work.key.clone(), clock.moment(), rest::scoped(&endpoint, Some(&work.key.workspace)));
        let job = Job {
            key,
            raw,
            seen,
            config,
            last_config,
            superseded_by,
            others,
            claims,
            port,
            base,
            minter,
            recorder,
            path,
            external,
            moment,
        };
        let at = work.clone();
        let task = self.calls.spawn(async move {
            let ended = actor.run(job).await;
            (at, ended)
        });
        self.running.insert(task.id(), work);
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, (Work, Ended)), tokio::task::JoinError>) -> Event {
        let jitter = self.outside.clock.jitter();
        let (id, work, ended) = match ended {
            Ok((id, (work, ended))) => (id, Some(work), ended),
            Err(error) => {
                error!(%error, "a call ended outside its guard");
                let ended = Ended {
                    outcome: Outcome::Backoff,
                    recheck: None,
                    refresh: None,
                    starved: false,
                    written: Vec::new(),
                    refused: Vec::new(),
                    failed: Some(Reason::ReconcileFailed),
                };
                (error.id(), None, ended)
            }
        };
        let known = self.running.remove(&id);
        let work = work.or(known).unwrap_or_else(|| unreachable!("every call is remembered when it is started"));
        if let Some(actor) = self.actors.get(usize::from(work.actor)) {
            self.outside.metrics.reconcile(actor.actor().name, ended.failed.map(Reason::as_str));
        }
        Event::Ended { work, ended, jitter }
    }

    /// Writes into a configuration's status whether it is in force; what was to be written of its last state is given up.
    fn judge(&mut self, kind: KindRef, raw: &Raw, problems: &[FieldError]) {
        if let Some(superseded) = self.verdicts.remove(&kind) {
            superseded.abort();
        }
        let now = self.outside.clock.moment().stamp();
        let Some(ask) = judgement::ask(&self.outside.provider_base, kind, raw, problems, &now) else { return };
        let name = ObjectName::cluster_scoped(raw.name.name.clone());
        let Outside { transport, metrics, .. } = self.outside.clone();
        let verdict = self.judgements.spawn(async move {
            let send = || async { metrics.request("apply the status of the configuration", transport.send(&ask, REQUEST).await) };
            judgement::write(&name, send).await;
        });
        self.verdicts.insert(kind, verdict);
    }

    async fn drain(mut self) {
        let under_way = self.calls.len();
        info!(under_way, "stopping: nothing new begins");
        self.orders.clear();
        let all = async { while self.calls.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, all).await.is_err() {
            warn!("calls under way did not end in time and are dropped");
        }
        self.streams.abort_all();
        // Whatever calls have left is told; what was held back for its interval is not.
        drop(self.recorder);
        let told = async { while self.recording.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, told).await.is_err() {
            info!("events that were due are dropped: no server took them in time");
        }
    }
}
