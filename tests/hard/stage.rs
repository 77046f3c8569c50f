//! A platform with tenants, managers as processes, and what of the audit log is about it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::cli::leash::Leash;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use crate::audit::{self, Mark, Shown, Told};
use crate::backend;
use crate::checker::event::{OFFERING, PROJECTION, PROVIDER, TENANT, TYPE};
use crate::checker::{Checker, Event, Key, Principal, Violation};
use crate::support::platform::{CLUSTERS, MACHINE_TYPES, OFFERINGS, PROJECTIONS, PROVIDERS, Platform, SOON, Tenant, eventually};

/// What a manager may take to bring everything to rest after the last fault.
const REST: Duration = Duration::from_secs(150);

/// One platform of this kcp.
pub(crate) struct Stage {
    pub(crate) platform: Platform,
    pub(crate) tenants: Vec<Tenant>,
    /// When managers were started: nothing that an earlier one had read counts from then on.
    started: Vec<Timestamp>,
    /// When kcp was killed. From then on until everything was looked at nothing is judged: lines may be lost, so that nobody knows what a manager saw.
    kills: Vec<Timestamp>,
    /// What was there after each of them, a look for each kind and workspace.
    looks: Vec<Look>,
    /// What any look has shown.
    shown: Mutex<Shown>,
    /// Whether kcp may be killed meanwhile.
    life: Life,
}

/// What is held of kcp's life.
#[allow(dead_code, reason = "a guard is for being dropped")]
enum Life {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Everything that there was of a kind in a workspace: the answer of one list.
struct Look {
    at: Timestamp,
    workspace: String,
    kind: &'static str,
    /// The version of the list: all writes until then are in it, and no later one.
    version: u64,
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
        Self { platform, tenants, started: Vec::new(), kills: Vec::new(), looks: Vec::new(), shown: Mutex::default(), life }
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
    pub(crate) fn beside(&self, kubeconfig: &Path) -> Process {
        Process::start(kubeconfig, &self.platform)
    }

    /// The same with another identity.
    pub(crate) fn manager_as(&mut self, kubeconfig: &Path) -> Process {
        self.starts();
        Process::start(kubeconfig, &self.platform)
    }

    /// The provider's controller in a tenant's workspace.
    pub(crate) async fn provider(&self, tenant: &Tenant) -> AdminClient {
        self.platform.inside(tenant).await.as_bearer(SecretString::from(backend::PROVIDER)).unwrap()
    }

    /// Kills kcp and starts it again on its data; then looks at everything, since requests may have been served whose lines are lost. `back` is
    /// done as soon as kcp is there.
    pub(crate) async fn kill_kcp(&mut self, back: impl AsyncFnOnce()) {
        self.kills.push(Timestamp::now());
        backend::kill_and_restart().await;
        back().await;
        // A kcp that says that it is ready may need a moment until it serves every kind.
        let platform = &self.platform;
        eventually("kcp serves the catalog", async || platform.client().list(&OFFERINGS, "").await.is_ok()).await;
        for tenant in &self.tenants {
            tenant.served().await;
        }
        let looks = self.looks_now().await;
        self.looks.extend(looks);
    }

    async fn looks_now(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        let provider = self.platform.workspace.logical_cluster.as_str();
        for (kind, resource) in [(OFFERING, &OFFERINGS), (TYPE, &MACHINE_TYPES)] {
            looks.push(look(provider, kind, self.platform.client(), resource).await);
        }
        for tenant in &self.tenants {
            for (kind, resource) in [(TENANT, &CLUSTERS), (PROJECTION, &PROJECTIONS), (PROVIDER, &PROVIDERS)] {
                looks.push(look(tenant.workspace.logical_cluster.as_str(), kind, tenant.client(), resource).await);
            }
        }
        let objects = looks.iter().flat_map(|look| &look.objects);
        self.shown
            .lock()
            .extend(objects.filter_map(|(key, object)| Some(((uid(object), version(object)?), (key.clone(), object.clone())))));
        looks
    }

    /// What the log tells of this platform, in the order of the commits; marks are the starts of managers, the kills, then the looks.
    fn told(&self) -> Vec<Told> {
        let provider = self.platform.workspace.logical_cluster.as_str();
        let tenants = self.tenants.iter().map(|tenant| tenant.workspace.logical_cluster.as_str());
        let ours: BTreeSet<&str> = tenants.chain([provider]).collect();
        let alone = matches!(self.life, Life::Alone(_));
        let times = self.started.iter().chain(&self.kills).map(|at| Mark::At(*at));
        let marks: Vec<Mark> = times.chain(self.looks.iter().map(|look| Mark::Version(look.version))).collect();
        let mut told = audit::events(&backend::audit_log(), &marks, &self.shown.lock(), who).unwrap();
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
        // An end has no version of its own, so that it may be told before a look that came earlier.
        let mut ended = BTreeSet::new();
        // The looks that are due until something can be judged again.
        let (mut due, each) = (0, self.looks.len().checked_div(self.kills.len()).unwrap_or_default());
        for told in self.told() {
            match told {
                Told::Mark(number) if number < self.started.len() => checker.restarted(),
                Told::Mark(number) if number < self.started.len() + self.kills.len() => due = each,
                Told::Mark(number) => {
                    seen(&mut checker, &self.looks[number - self.started.len() - self.kills.len()], &ended);
                    due = due.saturating_sub(1);
                }
                // What a look has shown already is not told again.
                Told::Request(event, _) if is_known(&checker, &event) => {}
                Told::Request(event, _) => {
                    ended.extend(checker.state().get(&event.key).filter(|_| event.gone).map(|known| uid(known)));
                    let wrong = checker.observe(&event);
                    found.extend(wrong.into_iter().filter(|_| due == 0));
                }
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
            self.sound(what, &found);
            self.looks_now().await.iter().for_each(|look| seen(&mut checker, look, &BTreeSet::new()));
            let mut left: Vec<String> = checker.at_rest().iter().map(ToString::to_string).collect();
            // Nobody holds anything up any more, so that what is to go has to go.
            let going = [TENANT, PROJECTION].into_iter().flat_map(|kind| checker.state().all(kind));
            let going = going.filter(|(_, object)| object["metadata"]["deletionTimestamp"].is_string());
            left.extend(going.map(|(key, object)| format!("{key} is still being deleted: {}", object["metadata"])));
            if left.is_empty() {
                // The log was read before the look that showed that it is over.
                let (checker, found) = self.check();
                self.sound(what, &found);
                return checker;
            }
            assert!(began.elapsed() < bound, "{what}: {} problems after {} s; the first:\n{}", left.len(), bound.as_secs(), left[0]);
        }
    }

    /// Nothing was wrong; else with everything that is known of the object of the first violation.
    #[track_caller]
    fn sound(&self, what: &str, found: &[Violation]) {
        let Some(first) = found.first().map(ToString::to_string) else { return };
        let kept = keep_log();
        let is_about = |key: &Key| !key.name.is_empty() && first.contains(&*key.name);
        let story: Vec<String> = self.told().into_iter().filter_map(|told| self.line(told, is_about)).collect();
        panic!("{what}: {} violations; the log is kept as {}; the first:\n{first}\n{}", found.len(), kept.display(), story.join("\n"));
    }

    /// What was told, where it is about this, in a line.
    fn line(&self, told: Told, is_about: impl Fn(&Key) -> bool) -> Option<String> {
        let version = |object: &Value| version(object).map_or_else(String::new, |version| version.to_string());
        let (starts, kills) = (self.started.len(), self.kills.len());
        match told {
            Told::Mark(number) if number < starts => Some(format!("-- a manager starts at {}", self.started[number])),
            Told::Mark(number) if number < starts + kills => Some(format!("-- kcp is killed at {}", self.kills[number - starts])),
            Told::Mark(number) => {
                let Look { at, workspace, kind, version: whole, objects } = &self.looks[number - starts - kills];
                let there = objects.iter().filter(|(key, _)| is_about(key));
                let there: Vec<String> = there.map(|(key, object)| format!("{} at {}", key.name, version(object))).collect();
                Some(format!("-- {kind} of {workspace} were looked at, at {whole} by {at}: {}", there.join(", ")))
            }
            Told::Request(event, _) if is_about(&event.key) => {
                let made = event.after.as_ref().map(version).unwrap_or_default();
                let Event { at, verb, subresource, user, code, gone, key, .. } = *event;
                Some(format!("{at} {verb} {key}/{subresource} by {user}: {code}, made {made}, gone {gone}"))
            }
            Told::Request(..) => None,
        }
    }

    /// What is in the log is what is there: a checker that was told less would see less.
    pub(crate) async fn is_told_in_full(&self) {
        let kinds = [TENANT, PROJECTION, PROVIDER, OFFERING, TYPE];
        let began = Instant::now();
        loop {
            let (checker, _) = self.check();
            let there = self.looks_now().await.into_iter().flat_map(|look| look.objects);
            let there: BTreeMap<Key, Option<u64>> = there.map(|(key, object)| (key, version(&object))).collect();
            let all = kinds.into_iter().flat_map(|kind| checker.state().all(kind));
            let told: BTreeMap<Key, Option<u64>> = all.map(|(key, object)| (key.clone(), version(object))).collect();
            if told == there {
                return;
            }
            // Somebody may have written between the two looks, but not for ever.
            if began.elapsed() >= SOON {
                let differ: BTreeSet<&Key> = told.keys().chain(there.keys()).filter(|key| told.get(key) != there.get(key)).collect();
                let differ: Vec<_> = differ.into_iter().map(|key| (key, told.get(key), there.get(key))).collect();
                panic!("the log, kept as {}, and what is there differ (what, told, there): {differ:?}", keep_log().display());
            }
        }
    }
}

/// Keeps the log for whoever looks into a failure.
fn keep_log() -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit.log");
    // What cannot be kept is printed, for the most part.
    drop(std::fs::write(&kept, backend::audit_log()));
    kept
}

/// Whether this or something later was seen of the object.
fn is_known(checker: &Checker, event: &Event) -> bool {
    let known = checker.state().get(&event.key).and_then(|known| version(known));
    event.after.as_ref().and_then(version).zip(known).is_some_and(|(now, known)| now < known)
}

/// What is there is told as far as it is news: somebody wrote it, and who is not known. What has ended does not come back.
fn seen(checker: &mut Checker, look: &Look, ended: &BTreeSet<String>) {
    let known = checker.state().all(look.kind).map(|(key, _)| key);
    let gone = known.filter(|key| key.workspace == look.workspace && !look.objects.contains_key(key));
    for key in gone.cloned().collect::<Vec<Key>>() {
        drop(checker.observe(&Event { at: look.at, key, gone: true, ..Event::default() }));
    }
    for (key, object) in look.objects.iter().filter(|(_, object)| !ended.contains(&uid(object))) {
        // What the log has shown already is not turned back.
        if checker.state().get(key).is_none_or(|known| version(known) < version(object)) {
            drop(checker.observe(&Event { at: look.at, key: key.clone(), after: Some(object.clone()), ..Event::default() }));
        }
    }
}

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

async fn look(workspace: &str, kind: &'static str, client: &AdminClient, resource: &Resource) -> Look {
    let list = RefCell::default();
    // A server that is very busy may lose a connection, which says nothing of what is there.
    eventually("the objects are listed", async || {
        let listed = client.get_text(&resource.collection_path("")).await;
        listed.map(|text| *list.borrow_mut() = text).is_ok()
    })
    .await;
    let list: String = list.into_inner();
    let mut list: Value = serde_json::from_str(&list).unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
    let mut objects = BTreeMap::new();
    for mut object in list["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
        // The log has none.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = Key::new(workspace, kind, &text("/metadata/namespace"), &text("/metadata/name"));
        objects.insert(key, object);
    }
    let version = version.expect("a list has a version");
    Look { at: Timestamp::now(), workspace: workspace.to_owned(), kind, version, objects }
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

/// A manager in a process of its own, on a leash: it ends with this process, however that ends.
pub(crate) struct Process {
    leash: Option<Leash>,
    log: PathBuf,
}

impl Process {
    fn start(kubeconfig: &Path, platform: &Platform) -> Self {
        let log = platform.folder().join("kcm.log");
        let output = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let kubeconfig = kubeconfig.to_str().unwrap();
        // kcp v0.28 can crash on concurrent requests of one ServiceAccount through a virtual workspace (kcp#3855): one at a time.
        let arguments = ["run", "--kubeconfig", kubeconfig, "--workspace", &platform.connection.path, "--requests", "1"];
        let leash = Leash::start(Path::new(env!("CARGO_BIN_EXE_kcm")), arguments, None, Duration::from_secs(10), output).unwrap();
        Self { leash: Some(leash), log }
    }

    /// Kills it without warning.
    pub(crate) async fn kill(&mut self) {
        self.leash.take().expect("it was not killed before").kill().await.unwrap();
    }

    /// Lives on for so long.
    pub(crate) async fn lives_on(&mut self, time: Duration) {
        let leash = self.leash.as_mut().expect("it was not killed");
        let ended = tokio::time::timeout(time, leash.ended()).await;
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
