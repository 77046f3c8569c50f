//! The runtime: it knows workspaces, streams, queues and writes, and no provider.
//!
//! Reading order: [`watch`] (what a server shows), `core` (what follows from it), [`queue`] (who is next), `served` and `seat` (one call), `port` (the one
//! writer), `events` (what tenants are told in passing), `shell` (the I/O around them). [`Runtime`] puts them together.

mod access;
mod admin;
mod clock;
mod core;
mod direct;
mod events;
mod external;
mod fence;
mod finalizer;
mod guard;
mod herald;
mod hex;
mod judgement;
mod port;
mod preflight;
pub mod queue;
mod raw;
mod rest;
mod seat;
mod secured;
mod served;
mod shell;
mod status;
mod telemetry;
mod transport;
pub mod watch;
mod workload;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as state;
use tokio_util::sync::CancellationToken;

use crate::api::manifest::rbac::MANAGER_NAMESPACE;
use crate::reconciler::{Actor, Inputs, Reconciler};

pub use clock::Origin;
pub(crate) use fence::words;
pub use preflight::{Preflight, Starting};
pub use telemetry::Metrics;
pub(crate) use transport::without_proxy;
pub use transport::{Body, Credentials, Wire};

use clock::Clock;
use core::{Overview, Setup};
use direct::Direct;
use seat::Seat;
use served::Served;
use shell::Outside;
use transport::Transport;
use workload::Workloads;

/// How long an object must have been absent before its external work is ended, when nobody says otherwise: longer than a server takes to start, a
/// workspace to move to another shard, or an operator to see that an export was changed by mistake.
pub const DEFAULT_ABSENCE_GRACE: Duration = Duration::from_mins(15);
/// What may be set in its place.
const ABSENCE_GRACES: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_hours(30 * 24);

/// How a runtime is set up: what it needs in [`Options::new`], the rest as fields with defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to reach kcp, and as whom.
    pub credentials: Credentials,
    /// Path or logical cluster of the provider workspace; `None` takes the server of the kubeconfig as it is.
    pub workspace: Option<String>,
    /// The export that tenants bind.
    pub export: String,
    /// The name of the configuration object. Default `kcm`.
    pub config_name: String,
    /// Calls under way at once. Default 8: kcp, not we, bounds the rate, and what more of them ask at once only waits there.
    pub workers: usize,
    /// `(from, to)`: prefixes of endpoint URLs to be replaced, where the addresses that kcp publishes cannot be reached from here.
    pub endpoint_overrides: Vec<(String, String)>,
    /// Requests that wait for their headers at once. Default 64, which no setting of `workers` up to that makes anybody wait for.
    ///
    /// 1 for kcp before v0.31: its virtual workspaces change a map that all requests of one `ServiceAccount` share, and concurrent ones can
    /// crash it (kcp#3855).
    pub requests: usize,
    /// Whether to write to workspaces themselves, where their tenants and the export's maximal permission policy let this identity, and only else
    /// through the virtual workspace: that costs kcp half as much. Default no. Not for a `ServiceAccount` on kcp before v0.31, which lets such
    /// an account in by mistake at times, and at others does not.
    pub direct_writes: bool,
    /// The namespace of the provider workspace that holds the Secrets of workload clusters and the index of external work. Default `kcm-system`.
    pub workload_namespace: String,
    /// How long an object must have been absent without doubt before the external work that is recorded for it is ended. Default
    /// [`DEFAULT_ABSENCE_GRACE`], and counted anew when the process starts.
    ///
    /// From 5 s to 30 days, else [`Runtime::run`] refuses to start. Below, an absence proves nothing: bindings and objects are told by watches of
    /// their own, of which one may be seconds behind another. Above, no process lives long enough for it.
    pub absence_grace: Duration,
    /// Servers of this process, by the URL that kubeconfigs of workload clusters have for them. Default none.
    pub wires: BTreeMap<String, Wire>,
    /// Where `/readyz`, `/livez` and `/metrics` are served; `None` for nowhere.
    pub admin: Option<SocketAddr>,
    /// Where time and randomness begin; `None`, the default, takes [`Origin::here`] when it is run.
    pub origin: Option<Origin>,
    /// A check of the provider's own before anything is served, which may refuse the start; `None`, the default, for none.
    pub preflight: Option<Preflight>,
}

impl Options {
    /// Reaches kcp with these credentials and serves the tenants of this export.
    pub fn new(credentials: Credentials, export: impl Into<String>) -> Self {
        Self {
            credentials,
            workspace: None,
            export: export.into(),
            config_name: "kcm".into(),
            workers: 8,
            endpoint_overrides: Vec::new(),
            requests: 64,
            direct_writes: false,
            workload_namespace: MANAGER_NAMESPACE.into(),
            absence_grace: DEFAULT_ABSENCE_GRACE,
            wires: BTreeMap::new(),
            admin: None,
            origin: None,
            preflight: None,
        }
    }

    /// What keeps them from being used at all.
    fn problem(&self) -> Option<String> {
        let (grace, [least, most]) = (self.absence_grace, [ABSENCE_GRACES.start(), ABSENCE_GRACES.end()].map(Duration::as_secs));
        let fits = ABSENCE_GRACES.contains(&grace);
        (!fits).then(|| format!("absence_grace is {grace:?}, and must be from {least} s to {most} s"))
    }

    /// Names the provider workspace.
    #[must_use]
    pub fn with_workspace(mut self, workspace: impl Into<String>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }
}

/// Why a runtime ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options cannot be used.
    #[error("cannot start: {0}")]
    Start(String),
    /// The provider's own check refused the start.
    #[error("the preflight check refused the start: {0}")]
    Preflight(String),
    /// A part that must live as long as the process ended; going on would be blind.
    #[error("a part of the runtime ended unexpectedly: {0}")]
    TaskEnded(String),
}

/// Serves reconcilers until it is told to stop.
///
/// ```no_run
/// # use kcp_provider_runtime::kcm::{Readiness, Scheduler};
/// # use kcp_provider_runtime::runtime::{Credentials, Options, Runtime};
/// # async fn serve() -> Result<(), kcp_provider_runtime::runtime::RunError> {
/// Runtime::new(Options::new(Credentials::Inferred, "kubernetes.edge-connect.eu"))
///     .serve(Scheduler::new)
///     .serve(Readiness::new)
///     .run()
///     .await
/// # }
/// ```
pub struct Runtime {
    options: Options,
    actors: Vec<Arc<dyn Served>>,
    stop: CancellationToken,
    overview: state::Sender<Overview>,
    metrics: Arc<Metrics>,
}

/// Watches and ends a running runtime from outside; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    stop: CancellationToken,
    overview: state::Receiver<Overview>,
    metrics: Arc<Metrics>,
}

impl Handle {
    /// Asks the runtime to stop: nothing new begins, calls under way end, `run` returns.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// What is missing for being ready; empty when nothing is. `None` before the first look.
    pub fn missing(&self) -> Option<Vec<String>> {
        let overview = self.overview.borrow();
        overview.looked.then(|| overview.missing.clone())
    }

    /// Whether no call is under way and none waits for a worker, as of a second ago; what is to be looked at again later counts as idle.
    pub fn is_idle(&self) -> bool {
        let overview = self.overview.borrow();
        overview.looked && overview.queued == 0 && overview.in_flight == 0
    }

    /// Waits until every stream has synced once and the export's endpoint slice was seen. Never returns for a runtime that cannot be ready.
    pub async fn ready(&mut self) {
        // The sender lives as long as the runtime; after its end nothing becomes ready any more.
        if self.overview.wait_for(|overview| overview.looked && overview.missing.is_empty()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What the runtime counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

impl Runtime {
    /// A runtime that serves nobody yet.
    pub fn new(options: Options) -> Self {
        Self { options, actors: Vec::new(), stop: CancellationToken::new(), overview: state::Sender::default(), metrics: Arc::default() }
    }

    /// Adds a reconciler, built over the inputs it declares.
    ///
    /// # Panics
    /// With more than 255 reconcilers, or one whose actor owns no condition: the runtime would have no place for what it has to say. With one that asks for access to workspaces
    /// and has no finalizer.
    #[must_use]
    pub fn serve<R: Reconciler>(mut self, build: impl FnOnce(&mut Inputs<R::Object>) -> R) -> Self {
        assert!(self.actors.len() < usize::from(u8::MAX), "one runtime serves 255 reconcilers at most");
        let seat = Seat::new(build);
        let Actor { name, finalizer, conditions } = seat.actor();
        assert!(!conditions.is_empty(), "the actor {name} owns no condition");
        let can_clean_up = finalizer.is_some() || !seat.wants_access();
        assert!(can_clean_up, "the actor {name} asks for access to workspaces and has no finalizer with which to give it back");
        self.actors.push(Arc::new(seat));
        self
    }

    /// A handle to be kept while [`Self::run`] runs.
    pub fn handle(&self) -> Handle {
        Handle { stop: self.stop.clone(), overview: self.overview.subscribe(), metrics: self.metrics.clone() }
    }

    /// Runs until [`Handle::stop`]; the caller turns signals into that.
    ///
    /// # Errors
    /// When it cannot start, or when a part ends that must not; a lost server is no error, it is waited for.
    pub async fn run(self) -> Result<(), RunError> {
        let Self { options, actors, stop, overview, metrics } = self;
        if let Some(problem) = options.problem() {
            return Err(RunError::Start(problem));
        }
        let transport = Arc::new(Transport::new(options.credentials, options.requests).await.map_err(RunError::Start)?);
        let provider_base = provider_base(transport.server(), options.workspace.as_deref()).map_err(RunError::Start)?;
        if let Some(preflight) = &options.preflight {
            let (provider_workspace, export, config_name) = (provider_base.clone(), options.export.clone(), options.config_name.clone());
            tokio::select! {
                checked = preflight.check(Starting { provider_workspace, export, config_name }) => checked.map_err(RunError::Preflight)?,
                () = stop.cancelled() => return Ok(()),
            }
        }
        let setup = Setup {
            actors,
            export: options.export.into(),
            config_name: options.config_name,
            provider_base: provider_base.clone(),
            namespace: options.workload_namespace.into(),
            overrides: options.endpoint_overrides,
            workers: options.workers,
            absence_grace: options.absence_grace,
        };
        let clock = Clock::new(options.origin.unwrap_or_else(Origin::here));
        let workloads = Arc::new(Workloads::new(options.wires, options.requests));
        let direct = options.direct_writes.then(|| Arc::new(Direct::new(transport.server())));
        let outside = Outside { transport, metrics: metrics.clone(), clock, provider_base: provider_base.into(), workloads, direct };
        let Some(address) = options.admin else { return shell::run(setup, outside, overview, stop).await };
        let admin = admin::serve(address, overview.subscribe(), metrics).await.map_err(RunError::Start)?;
        tokio::select! {
            ended = shell::run(setup, outside, overview, stop) => ended,
            ended = admin => Err(RunError::TaskEnded(format!("the admin server ended: {ended:?}"))),
        }
    }
}

/// `https://host/clusters/root:provider`, from the kubeconfig's server and the workspace that was asked for.
fn provider_base(server: &str, workspace: Option<&str>) -> Result<String, String> {
    match workspace {
        Some(workspace) => Ok(format!("{}/clusters/{workspace}", rest::host(server))),
        None if server.contains("/clusters/") => Ok(server.to_owned()),
        None => Err(format!("the kubeconfig's server {server} names no workspace; say which with --workspace root:…")),
    }
}
