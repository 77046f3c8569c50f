//! A platform with tenants, managers as processes, and what of the audit log is about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kcp_provider_runtime::api::manifest::export;
use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use crate::audit::{self, Told};
use crate::backend;
use crate::checker::event::{OFFERING, PROJECTION, PROVIDER, TENANT, TYPE};
use crate::checker::{Checker, Event, Key, Principal, Violation};
use crate::support::platform::{CLUSTERS, MACHINE_TYPES, OFFERINGS, PROJECTIONS, PROVIDERS, Platform, Tenant};
use crate::support::provider::SLICES;

/// What a manager may take to bring everything to rest after the last fault.
const REST: Duration = Duration::from_secs(150);

/// One platform of this kcp.
pub(crate) struct Stage {
    pub(crate) platform: Platform,
    pub(crate) tenants: Vec<Tenant>,
    /// When managers were started: nothing that an earlier one had read counts from then on.
    started: Vec<Timestamp>,
    /// What was there at a time at which lines of the log may be missing.
    looks: Vec<Look>,
    /// Whether kcp may be killed meanwhile.
    life: Life,
}

/// What is held of kcp's life.
#[allow(dead_code, reason = "a guard is for being dropped")]
enum Life {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Everything that there is of the kinds that rules are about.
struct Look {
    at: Timestamp,
    objects: BTreeMap<Key, Value>,
}

impl Stage {
    /// A platform with the small catalog and so many tenants who can pay, on a kcp that nobody kills.
    pub(crate) async fn new(tenants: usize) -> Self {
        Self::with(Life::Shared(backend::LIFE.read().await), tenants).await
    }

    /// The same for a test that kills kcp, when nobody else needs it.
    pub(crate) async fn alone(tenants: usize) -> Self {
        Self::with(Life::Alone(backend::LIFE.write().await), tenants).await
    }

    async fn with(life: Life, tenants: usize) -> Self {
        let platform = Platform::new().await;
        platform.small_catalog().await;
        let tenants = futures::future::join_all((0..tenants).map(|_| async {
            let tenant = platform.tenant().await;
            tenant.provider("otc").await;
            tenant
        }))
        .await;
        Self { platform, tenants, started: Vec::new(), looks: Vec::new(), life }
    }

    /// A manager starts now, wherever it runs.
    pub(crate) fn starts(&mut self) {
        self.started.push(Timestamp::now());
    }

    /// Starts a manager as an operator does, in a process of its own.
    pub(crate) async fn manager(&mut self) -> Process {
        let kubeconfig = self.platform.identity().await;
        self.manager_as(&kubeconfig)
    }

    /// One more beside the one that runs: what that one has read counts on.
    pub(crate) async fn beside(&self) -> Process {
        Process::start(&self.platform.identity().await, &self.platform)
    }

    /// The same with another identity.
    pub(crate) fn manager_as(&mut self, kubeconfig: &Path) -> Process {
        self.starts();
        Process::start(kubeconfig, &self.platform)
    }

    /// The provider's controller in a tenant's workspace.
    pub(crate) async fn provider(&self, tenant: &Tenant) -> AdminClient {
        let slice = self.platform.client().get(&SLICES, "", export::EXPORT).await.unwrap();
        let url = slice["status"]["endpoints"][0]["url"].as_str().expect("the export has an endpoint").to_owned();
        let client = self.platform.client().at_url(&format!("{url}/clusters/{}", tenant.workspace.logical_cluster)).unwrap();
        client.as_bearer(SecretString::from(backend::PROVIDER)).unwrap()
    }

    /// Looks at everything, since requests may have been served whose lines are lost.
    pub(crate) async fn look(&mut self) {
        let at = Timestamp::now();
        let objects = self.objects().await;
        self.looks.push(Look { at, objects });
    }

    async fn objects(&self) -> BTreeMap<Key, Value> {
        let provider = self.platform.workspace.logical_cluster.as_str();
        let mut objects = BTreeMap::new();
        for (kind, resource) in [(OFFERING, &OFFERINGS), (TYPE, &MACHINE_TYPES)] {
            put(&mut objects, provider, kind, self.platform.client().list(resource, "").await.unwrap());
        }
        for tenant in &self.tenants {
            for (kind, resource) in [(TENANT, &CLUSTERS), (PROJECTION, &PROJECTIONS), (PROVIDER, &PROVIDERS)] {
                put(&mut objects, tenant.workspace.logical_cluster.as_str(), kind, tenant.client().list(resource, "").await.unwrap());
            }
        }
        objects
    }

    /// What the log tells of this platform, in the order of the commits; marks are the starts of managers, then the looks.
    fn told(&self) -> Vec<Told> {
        let provider = self.platform.workspace.logical_cluster.as_str();
        let tenants = self.tenants.iter().map(|tenant| tenant.workspace.logical_cluster.as_str());
        let ours: BTreeSet<&str> = tenants.chain([provider]).collect();
        let alone = matches!(self.life, Life::Alone(_));
        let times: Vec<Timestamp> = self.started.iter().copied().chain(self.looks.iter().map(|look| look.at)).collect();
        let mut told = audit::events(&backend::audit_log(), &times, who).unwrap();
        told.retain(|told| match told {
            Told::Mark(_) => true,
            // A list over all workspaces is of the account's own platform; kcp's administrator is the manager of a stage that is alone.
            Told::Request(event, home) => {
                let own = home == provider || (alone && event.user == "kcp-admin");
                ours.contains(event.key.workspace.as_str()) || (own && event.key.workspace.is_empty())
            }
        });
        told
    }

    /// The requests of this platform.
    pub(crate) fn events(&self) -> Vec<Event> {
        let requests = self.told().into_iter().filter_map(|told| if let Told::Request(event, _) = told { Some(*event) } else { None });
        requests.collect()
    }

    /// Checks everything so far.
    pub(crate) fn check(&self) -> (Checker, Vec<Violation>) {
        let mut checker = Checker::default();
        let mut found = Vec::new();
        for told in self.told() {
            match told {
                Told::Mark(number) if number < self.started.len() => checker.restarted(),
                Told::Mark(number) => seen(&mut checker, &self.looks[number - self.started.len()]),
                Told::Request(event, _) => found.extend(checker.observe(&event)),
            }
        }
        (checker, found)
    }

    /// Waits until nothing is left to do, and checks every commit and every request until then.
    pub(crate) async fn at_rest(&self, what: &str) -> Checker {
        self.at_rest_within(what, REST).await
    }

    /// The same, where that may take another time.
    pub(crate) async fn at_rest_within(&self, what: &str, bound: Duration) -> Checker {
        let began = Instant::now();
        let mut pause = tokio::time::interval(Duration::from_secs(2));
        loop {
            pause.tick().await;
            let (mut checker, found) = self.check();
            assert!(found.is_empty(), "{what}: {} violations; the first:\n{}", found.len(), found[0]);
            seen(&mut checker, &Look { at: Timestamp::now(), objects: self.objects().await });
            let left = checker.at_rest();
            if left.is_empty() {
                return checker;
            }
            assert!(began.elapsed() < bound, "{what}: {} problems after {} s; the first:\n{}", left.len(), bound.as_secs(), left[0]);
        }
    }

    /// What is in the log is what is there: a checker that was told less would see less.
    pub(crate) async fn is_told_in_full(&self) {
        let (checker, _) = self.check();
        let there = self.objects().await;
        let versions = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let real: BTreeMap<&Key, String> = there.iter().map(|(key, object)| (key, versions(object))).collect();
        let kinds = [TENANT, PROJECTION, PROVIDER, OFFERING, TYPE];
        let told = kinds.into_iter().flat_map(|kind| checker.state().all(kind).map(|(key, object)| (key, versions(object))));
        assert_eq!(told.collect::<BTreeMap<_, _>>(), real);
    }
}

/// What is there is told as far as it is news: somebody wrote it, and who is not known.
fn seen(checker: &mut Checker, look: &Look) {
    let kinds = [TENANT, PROJECTION, PROVIDER, OFFERING, TYPE];
    let gone: Vec<Key> = kinds
        .into_iter()
        .flat_map(|kind| checker.state().all(kind).map(|(key, _)| key.clone()))
        .filter(|key| !look.objects.contains_key(key))
        .collect();
    for key in gone {
        drop(checker.observe(&Event { at: look.at, key, gone: true, ..Event::default() }));
    }
    for (key, object) in &look.objects {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        if checker.state().get(key).is_none_or(|known| version(known) != version(object)) {
            drop(checker.observe(&Event { at: look.at, key: key.clone(), after: Some(object.clone()), ..Event::default() }));
        }
    }
}

fn put(objects: &mut BTreeMap<Key, Value>, workspace: &str, kind: &str, all: Vec<Value>) {
    for object in all {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = Key::new(workspace, kind, &text("/metadata/namespace"), &text("/metadata/name"));
        objects.insert(key, object);
    }
}

fn who(user: &str, manager: &str) -> Principal {
    match user {
        "system:serviceaccount:kcm-system:kcm" | "kcp-admin" if manager == "cluster-status" => Principal::Status,
        "system:serviceaccount:kcm-system:kcm" | "kcp-admin" => Principal::Scheduler,
        backend::PROVIDER => Principal::Provider,
        backend::TENANT => Principal::Tenant,
        _ => Principal::Other,
    }
}

/// A manager in a process of its own.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(kubeconfig: &Path, platform: &Platform) -> Self {
        let log = platform.folder().join("kcm.log");
        let output = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kcm"));
        // kcp v0.28 can crash on concurrent requests of one ServiceAccount through a virtual workspace (kcp#3855): one at a time.
        command.arg("run").arg("--kubeconfig").arg(kubeconfig).args(["--workspace", &platform.connection.path, "--requests", "1"]);
        let child = command.stdout(Stdio::null()).stderr(output).kill_on_drop(true).spawn().unwrap();
        Self { child, log }
    }

    /// Kills it without warning.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Lives on for so long.
    pub(crate) async fn lives_on(&mut self, time: Duration) {
        let ended = tokio::time::timeout(time, self.child.wait()).await;
        assert!(ended.is_err(), "the manager ended: {ended:?}");
    }

    /// What it wrote to its log, with what those before it wrote.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// What a provider's controller says of a projection.
pub(crate) fn report(projection: &Value, ready: bool) -> Value {
    let generation = projection["metadata"]["generation"].clone();
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "Says", "message": "",
        "lastTransitionTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "observedGeneration": generation});
    json!({"status": {"ready": ready, "observedGeneration": generation, "conditions": [condition]}})
}
