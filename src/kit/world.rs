//! A world: a kcp in memory, a provider in it, and the runtimes that serve it.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::subscriber::DefaultGuard;

use crate::api::manifest::export::Claim;
use crate::api::names::LogicalCluster;
use crate::embedded::{ADMIN, ControlPlane, Options as Profile};
use crate::reconciler::{Inputs, Reconciler};
use crate::runtime::{Credentials, Handle, Options, Origin, Runtime};

use super::client::Client;
use super::faults::Faults;
use super::journal::{Journal, Sent};
use super::lines::Lines;
use super::resource::Resource;
use super::runs::{Runs, Wall};
use super::trouble::Trouble;
use super::workspace::Workspace;

/// Where the provider is.
pub(super) const PROVIDER: &str = "provider";
/// What is waited for is waited for as long as the longest pause of the runtime, twice.
const WITHIN: Duration = Duration::from_mins(10);
/// Between the first two looks at what is waited for; the pauses grow with the time that was waited.
const LOOK: Duration = Duration::from_millis(50);
/// The longest pause between two looks.
const LONGEST_LOOK: Duration = Duration::from_secs(3);
/// How long a settled world must have been quiet: more than the ten seconds for which a runtime waits for its own writes.
const QUIET: Duration = Duration::from_secs(30);

const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";

/// A kcp in memory with one provider, its tenants, and its reconcilers. Begin with [`World::new`].
pub struct World {
    pub(super) shared: Arc<Shared>,
    pub(super) provider: Workspace,
    pub(super) _listening: DefaultGuard,
}

/// What a world and its workspaces share.
pub(super) struct Shared {
    pub(super) control_plane: ControlPlane,
    pub(super) journal: Journal,
    pub(super) lines: Lines,
    pub(super) runs: Runs,
    pub(super) faults: Faults,
    pub(super) within: Mutex<Duration>,
    /// When it was last waited for that nothing is left to do, and how much had been asked, and changed, by then.
    pub(super) settled: Mutex<Option<(Instant, u64, u64)>>,
    pub(super) export: Mutex<Export>,
    /// Workspaces that were made, by name.
    pub(super) workspaces: Mutex<BTreeMap<String, LogicalCluster>>,
    /// Workload clusters that are control planes of their own.
    pub(super) others: Mutex<Vec<ControlPlane>>,
    pub(super) seed: AtomicU64,
    pub(super) wall: Wall,
}

/// What is exported.
#[derive(Clone, Default)]
pub(super) struct Export {
    name: String,
    /// `spec.resources`.
    resources: Vec<Value>,
    /// `spec.permissionClaims`.
    claims: Vec<Value>,
    /// Schemas so far.
    serial: usize,
}

impl World {
    /// A world with the workspace `root:provider` and nothing in it. Its wall clock begins on the first of January 2026, and what looks random is
    /// the same each time.
    pub async fn new() -> Self {
        let started = "2026-01-01T00:00:00Z".parse().unwrap_or(Timestamp::UNIX_EPOCH);
        Self::with(Profile { started, ..Profile::default() }).await
    }

    /// The same on a control plane like this: slower, of another version, with several shards, with other users.
    pub async fn with(profile: Profile) -> Self {
        let (seed, started) = (profile.seed, profile.started);
        let control_plane = ControlPlane::new(profile);
        let (shared, listening) = Shared::new(control_plane, seed, started, Export::default(), BTreeMap::new());
        let provider = shared.make(Location::caller(), PROVIDER).await;
        Self { shared, provider, _listening: listening }
    }

    /// Waits for things no longer than this; ten minutes unless told otherwise, which in paused time cost next to nothing.
    pub fn within(&self, patience: Duration) {
        *self.shared.within.lock() = patience;
    }

    /// The provider workspace: for a catalog, for a configuration.
    pub fn provider(&self) -> &Workspace {
        &self.provider
    }

    /// The control plane itself: to end its watches, to forget its history, to look at its size.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.shared.control_plane
    }

    /// The administrator of the server, below no workspace.
    pub fn client(&self) -> Client {
        Client::new(self.shared.control_plane.clone(), "")
    }

    /// Adds a kind to what tenants can bind, or gives it another schema. The export is called as the group of the first kind.
    #[track_caller]
    pub fn export(&mut self, resource: impl Into<Resource>) -> impl Future<Output = ()> {
        let (place, resource) = (Location::caller(), resource.into());
        let (schema, export) = {
            let mut export = self.shared.export.lock();
            if export.name.is_empty() {
                resource.kind.group.clone_into(&mut export.name);
            }
            export.serial += 1;
            let schema = resource.api_resource_schema(export.serial);
            let (group, plural) = (resource.kind.group, resource.kind.plural);
            export.resources.retain(|known| known["group"] != group || known["name"] != plural);
            export.resources.push(json!({
                "group": group, "name": plural, "schema": schema["metadata"]["name"], "storage": { "crd": {} },
            }));
            (schema, export.manifest())
        };
        async move {
            self.provider.apply_at(place, schema).await;
            self.provider.apply_at(place, export).await;
        }
    }

    /// Adds a claim to the export. A binding that is there already does not accept it: call this before [`World::workspace`], or
    /// [`Workspace::bind`] again.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "the argument is a literal")]
    pub fn claim(&mut self, claim: Claim) -> impl Future<Output = ()> {
        let place = Location::caller();
        let export = {
            let mut export = self.shared.export.lock();
            export.claims.push(claim.to_value());
            export.manifest()
        };
        async move {
            self.provider.apply_at(place, export).await;
        }
    }

    /// A tenant's workspace `root:<name>`, which has bound the export and accepted its claims.
    #[track_caller]
    pub fn workspace(&self, name: &str) -> impl Future<Output = Workspace> {
        let place = Location::caller();
        async move {
            let workspace = self.shared.make(place, name).await;
            workspace.bind().await;
            workspace
        }
    }

    /// A way to the control plane as whoever has this bearer token: a user of [`Profile::users`], or a `ServiceAccount` whose token was asked for,
    /// to see whether the rights that you deploy with are enough. What is sent there counts among [`World::requests`].
    pub fn credentials(&self, token: impl Into<String>) -> Credentials {
        let control_plane = &self.shared.control_plane;
        Credentials::Service { wire: self.wire(control_plane), server: control_plane.url(), token: token.into().into() }
    }

    /// What runtimes of this world are set up with: a way to the control plane as its administrator, the export, the provider workspace, and the
    /// world's time and chance.
    pub fn options(&self) -> Options {
        let export = self.shared.export.lock().name.clone();
        let options = Options::new(self.credentials(ADMIN), export).with_workspace(self.shared.provider_path());
        Options { origin: Some(Origin { wall: self.shared.now(), seed: self.seed() }), wires: self.wires(), ..options }
    }

    /// Runs one reconciler, as [`Runtime::serve`] takes it; it may be built again by [`World::restart`].
    pub fn serve<R: Reconciler>(&self, build: impl Fn(&mut Inputs<R::Object>) -> R + Send + Sync + 'static) {
        let seam = self.seam();
        self.run(move |runtime| runtime.serve(|inputs| seam.brittle(build(inputs))));
    }

    /// Runs several reconcilers in one runtime, as one process would: `world.run(|runtime| runtime.serve(Scheduler::new).serve(Readiness::new))`.
    pub fn run(&self, build: impl Fn(Runtime) -> Runtime + Send + Sync + 'static) {
        self.run_with(self.options(), build);
    }

    /// The same with options of your own, such as another `config_name`: begin with [`World::options`].
    pub fn run_with(&self, options: Options, build: impl Fn(Runtime) -> Runtime + Send + Sync + 'static) {
        self.shared.stirred();
        self.shared.runs.start(options, Arc::new(build));
    }

    /// Stops every runtime in order, as a supervisor does with a process; what calls were under way end.
    pub async fn stop(&self) {
        self.shared.runs.stop().await;
    }

    /// Stops every runtime and starts each anew: nothing that was in memory is left.
    pub async fn restart(&self) {
        self.shared.stirred();
        for (options, build) in self.shared.runs.stop().await {
            self.shared.runs.start_again(options, build);
        }
    }

    /// The handles of the runtimes, in the order in which they were started: readiness, metrics.
    pub fn handles(&self) -> Vec<Handle> {
        self.shared.runs.handles()
    }

    /// Lets time pass; whatever is due meanwhile happens. It is the world's time, which costs nothing where it is paused.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The wall clock of the world, as reconcilers see it in `Context::now`.
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// Waits until every runtime has seen everything there is.
    ///
    /// # Panics
    /// When one is not ready in time: with what it misses.
    #[track_caller]
    pub fn ready(&self) -> impl Future<Output = ()> {
        let place = Location::caller();
        async move {
            let mut asked = Statement::new(&self.shared, "every runtime is ready".into(), place);
            while !self.shared.runs.are_ready() {
                asked.wait().await;
            }
        }
    }

    /// Waits until nothing is left to do: the runtimes are ready, no call is under way or waits for its turn, and for half a minute nobody has
    /// asked the server for anything but what streams follow. Looks that are due later than that, a poll or a long backoff, do not count.
    ///
    /// # Panics
    /// When it does not come to rest in time: with the last requests.
    #[track_caller]
    pub fn settled(&self) -> impl Future<Output = ()> {
        let place = Location::caller();
        async move {
            let mut asked = Statement::new(&self.shared, "nothing is left to do".into(), place);
            let (mut since, mut said) = (Instant::now(), self.shared.journal.said());
            // Who has waited for it just now need not do so again.
            if *self.shared.settled.lock() == Some((since, said, self.control_plane().changes())) {
                return;
            }
            while since.elapsed() < QUIET {
                asked.wait().await;
                let now = self.shared.journal.said();
                if now != said || !self.shared.runs.is_idle() {
                    (since, said) = (Instant::now(), now);
                }
            }
            *self.shared.settled.lock() = Some((Instant::now(), said, self.control_plane().changes()));
        }
    }

    /// What runtimes have written, by verb: `create`, `update`, `patch`, `apply`, `delete`; a verb that was not used is left out.
    pub fn writes(&self) -> BTreeMap<&'static str, usize> {
        self.shared.journal.writes()
    }

    /// All that runtimes have asked the server, in its order.
    pub fn requests(&self) -> Vec<Sent> {
        self.shared.journal.all()
    }

    /// Tells of every request of a runtime, without its body, once it is answered as the runtime sees it, a fault included; code 0 is no answer.
    /// Must not ask the world anything.
    pub fn on_answer(&self, listener: impl FnMut(&Sent) + Send + 'static) {
        self.shared.journal.listen(listener);
    }

    /// Forgets the requests so far, so that [`World::writes`] and [`World::requests`] tell of what comes.
    pub fn forget_requests(&self) {
        self.shared.journal.forget();
    }
}

impl Export {
    fn manifest(&self) -> Value {
        json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIExport",
            "metadata": { "name": self.name },
            "spec": { "resources": self.resources, "permissionClaims": self.claims },
        })
    }
}

impl Shared {
    pub(super) fn new(
        control_plane: ControlPlane,
        seed: u64,
        started: Timestamp,
        export: Export,
        workspaces: BTreeMap<String, LogicalCluster>,
    ) -> (Arc<Self>, DefaultGuard) {
        let wall = Wall { started, began: Instant::now() };
        let (lines, listening) = Lines::listen(wall.began);
        let shared = Self {
            control_plane,
            journal: Journal::new(wall.began),
            lines,
            runs: Runs::new(wall),
            faults: Faults::default(),
            within: Mutex::new(WITHIN),
            settled: Mutex::default(),
            export: Mutex::new(export),
            workspaces: Mutex::new(workspaces),
            others: Mutex::default(),
            seed: AtomicU64::new(seed),
            wall,
        };
        (Arc::new(shared), listening)
    }

    /// Nothing that was waited for before counts any more.
    pub(super) fn stirred(&self) {
        *self.settled.lock() = None;
    }

    pub(super) fn now(&self) -> Timestamp {
        self.wall.now()
    }

    pub(super) fn tenant(self: &Arc<Self>, name: &str) -> Option<Workspace> {
        let logical_cluster = self.workspaces.lock().get(name)?.clone();
        let client = Client::new(self.control_plane.clone(), format!("/clusters/{logical_cluster}"));
        Some(Workspace { shared: self.clone(), name: name.to_owned(), logical_cluster, client })
    }

    #[allow(clippy::unused_self, reason = "a world could have another")]
    pub(super) fn provider_path(&self) -> String {
        format!("root:{PROVIDER}")
    }

    /// The export's name and claims; `None` before the first kind.
    pub(super) fn exported(&self) -> Option<(String, Vec<Value>)> {
        let export = self.export.lock();
        (!export.name.is_empty()).then(|| (export.name.clone(), export.claims.clone()))
    }

    /// A workspace below `root`, Ready.
    async fn make(self: &Arc<Self>, place: &Location<'static>, name: &str) -> Workspace {
        let root = Client::new(self.control_plane.clone(), "/clusters/root");
        let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
        if let Err(problem) = root.create(WORKSPACES, &workspace).await.ok() {
            panic!("{place}: the workspace {name} cannot be made: {problem}");
        }
        let mut asked = Statement::new(self, format!("the workspace {name} is ready"), place);
        loop {
            let seen = root.get(&format!("{WORKSPACES}/{name}")).await.ok();
            if let Ok(found) = &seen
                && found["status"]["phase"] == "Ready"
            {
                let logical_cluster = LogicalCluster::new(found["spec"]["cluster"].as_str().unwrap_or_default());
                let client = root.at(format!("/clusters/{logical_cluster}"));
                self.workspaces.lock().insert(name.to_owned(), logical_cluster.clone());
                return Workspace { shared: self.clone(), name: name.to_owned(), logical_cluster, client };
            }
            asked.seen = Some(seen);
            asked.wait().await;
        }
    }
}

/// Something that is waited for, and what was seen of it.
pub(super) struct Statement<'a> {
    shared: &'a Shared,
    text: String,
    place: String,
    since: Instant,
    pub(super) seen: Option<Result<Value, String>>,
    pub(super) unreadable: Option<String>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(shared: &'a Shared, text: String, place: &Location<'_>) -> Self {
        let place = format!("{}:{}", place.file(), place.line());
        Self { shared, text, place, since: Instant::now(), seen: None, unreadable: None }
    }

    /// Lets a moment pass; fails when there were enough of them, or when nothing is left to wait for.
    pub(super) async fn wait(&mut self) {
        let waited = self.since.elapsed();
        let in_vain = waited >= *self.shared.within.lock() || self.shared.runs.have_ended();
        assert!(!in_vain, "{}", self.trouble(waited).text());
        let left = self.shared.within.lock().saturating_sub(waited);
        tokio::time::sleep((waited / 6).clamp(LOOK, LONGEST_LOOK).min(left)).await;
    }

    fn trouble(&mut self, waited: Duration) -> Trouble {
        let Shared { journal, lines, runs, .. } = self.shared;
        Trouble {
            statement: std::mem::take(&mut self.text),
            place: std::mem::take(&mut self.place),
            waited,
            seen: self.seen.take(),
            unreadable: self.unreadable.take(),
            runtimes: runs.describe(),
            sent: journal.all(),
            lines: lines.last(),
        }
    }
}
