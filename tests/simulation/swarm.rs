//! Swarms: five workspaces of tenants of whom one is evil, a platform that changes, and a random choice of faults. Chaos for some minutes, then quiet;
//! then everything must come right by itself and stay so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::SignedDuration;
use kcp_provider_runtime::api::manifest::binding::binding;
use kcp_provider_runtime::api::manifest::export::Claim;
use kcp_provider_runtime::api::manifest::{export, rbac, samples};
use kcp_provider_runtime::embedded::{Timing, Version};
use kcp_provider_runtime::kit::faults::{Chaos, Fault};
use kcp_provider_runtime::kit::trial::{Played, Trial};
use kcp_provider_runtime::kit::{Client, Workspace, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::life::{Beginning, at_rest, serve, sound};
use crate::platform::{DEMO, PROVIDER, TENANT, manager, observe, platform};

const TENANTS: [&str; 5] = ["acme", "bolt", "corp", "dune", "evil"];
const NAMES: [&str; 4] = ["a", "b", "c", "demo"];
const PROVIDERS: [&str; 4] = ["otc", "hcloud", "aws", "nobody"];
const CLUSTERS: &str = "/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters";
const ACCOUNTS: &str = "/apis/provider.edge-connect.eu/v1alpha1/providers";
const OFFERINGS: &str = "/apis/provider.kubernetes.edge-connect.eu/v1alpha1/kubernetesclusterofferings";
const TYPES: &str = "/apis/provider.edge-connect.eu/v1alpha1/virtualmachinetypes";
const CONFIGURATION: &str = "/apis/config.edge-connect.eu/v1alpha1/providerconfigs/kcm";
const BINDING: &str = "/apis/apis.kcp.io/v1alpha2/apibindings/kubernetes.edge-connect.eu";

/// How far the clocks of machines are ahead, in seconds.
const CLOCKS: [i64; 7] = [-86_400, -3600, -30, 0, 30, 3600, 86_400];

/// A server whose controllers take their time: what lost its owner is there for a while, and so is what was unbound.
const LAZY: Timing =
    Timing { bind: Duration::from_secs(2), collect: Duration::from_secs(15), slice: Duration::from_millis(200), ..Timing::INSTANT };

/// One who clears up at once: what is made for an owner that is gone does not last.
const BUSY: Timing = Timing { collect: Duration::from_millis(100), ..LAZY };

/// Longer than what may follow from each other: three minutes until a silent watch is given up, five until what could not be had is looked at
/// again, and five until a workspace that takes no events is asked once more.
const PATIENCE: Duration = Duration::from_mins(16);

/// The trials of all swarms, over one shard and two, with a manager that writes past the virtual workspace, and with a server that clears up at once:
/// what happens follows from a seed.
pub(crate) struct Swarm {
    trials: Vec<Box<dyn Fn(u64) -> Played + Sync + Send>>,
}

impl Swarm {
    pub(crate) fn new() -> Self {
        Self { trials: vec![trial(1, false, LAZY), trial(2, false, LAZY), trial(2, true, LAZY), trial(1, false, BUSY)] }
    }

    /// One run.
    pub(crate) fn play(&self, seed: u64) -> Played {
        let which = usize::try_from(seed % self.trials.len() as u64).unwrap_or_default();
        self.trials[which](seed)
    }
}

/// Tenants who let a manager in that writes directly, at the beginning: others make it go through the virtual workspace.
const OPEN: [&str; 3] = ["acme", "corp", "evil"];

fn trial(shards: usize, direct: bool, timing: Timing) -> Box<dyn Fn(u64) -> Played + Sync + Send> {
    let beginning: Arc<Mutex<Beginning>> = Arc::default();
    let made = beginning.clone();
    let prepare = async move || {
        let version = if direct { Version::V0_31 } else { Version::V0_28 };
        let (world, book, token) = platform(shards, timing, version).await;
        for offering in [("hcloud-small", "hcloud", ["c-2-4", "m-4-16"]), ("aws-any", "aws", ["m-4-16", "x-16-64"])] {
            world.provider().apply(self::offering(offering.0, offering.1, &offering.2)).await;
        }
        for (name, cpu, memory) in [("c-2-4", "2", "4Gi"), ("x-16-64", "16000m", "64Gi")] {
            world.provider().apply(machine_type(name, cpu, memory)).await;
        }
        for tenant in TENANTS {
            let workspace = world.workspace(tenant).await;
            for role in admin_of_its_workspace() {
                workspace.apply(role).await;
            }
            for role in rbac::direct_access(&manager(&world)).into_iter().filter(|_| direct && OPEN.contains(&tenant)) {
                workspace.apply(role).await;
            }
        }
        for (tenant, account) in [("acme", "otc"), ("bolt", "otc"), ("bolt", "hcloud"), ("corp", "aws"), ("evil", "otc")] {
            world.tenant(tenant).apply(self::account(account)).await;
        }
        let checker = book.lock().checker.clone();
        *made.lock() = Beginning { checker, token };
        world
    };
    let story = async move |world: &World| {
        let beginning = beginning.lock().clone();
        told(world, &beginning, direct).await;
    };
    let trial = Trial::new(prepare, story);
    Box::new(move |seed| trial.play_seed(seed))
}

fn offering(name: &str, provider: &str, types: &[&str]) -> Value {
    json!({"apiVersion": "provider.kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesClusterOffering", "metadata": {"name": name}, "spec": {
        "providerRef": {"name": provider}, "availableRegions": ["eu-de"], "availableVersions": ["1.33.6", "1.34.2"],
        "availableVirtualMachineTypes": types}})
}

fn machine_type(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"apiVersion": "provider.edge-connect.eu/v1alpha1", "kind": "VirtualMachineType", "metadata": {"name": name},
        "spec": {"providerMachineType": name, "cpu": cpu, "memory": memory, "availableRegions": ["eu-de", "eu-nl"]}})
}

fn ordered(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn account(name: &str) -> Value {
    let mut account = samples::tenant()[0].clone();
    account["metadata"]["name"] = name.into();
    account
}

/// Tenants are administrators of their workspaces, and no more.
fn admin_of_its_workspace() -> [Value; 1] {
    [json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}]})]
}

/// Everybody who does something in the days of chaos.
struct Days<'a> {
    world: &'a World,
    dice: Dice,
}

async fn told(world: &World, beginning: &Beginning, direct: bool) {
    let mut dice = Dice::new(world.seed(), 0);
    let book = observe(world, beginning.checker.clone().in_trouble().with_clocks(CLOCKS.map(SignedDuration::from_secs)));
    serve(world, &beginning.token, direct);
    let minutes = 1 + dice.below(5);
    let lasts = Duration::from_mins(minutes);
    let faults: BTreeSet<Fault> = Fault::all().into_iter().filter(|_| dice.percent(40)).collect();
    let rate = *dice.one(&[0.0, 0.02, 0.05, 0.1, 0.2, 0.4]);
    world.let_loose(Chaos { faults, rate, seed: world.seed(), lasts });
    let moves = 5 + dice.below(40);
    let mut days = Days { world, dice };
    for _ in 0..moves {
        days.one_move().await;
        let pause = 60_000 * minutes / moves;
        // Half of the moves come in a rush.
        let pause = if days.dice.percent(50) { days.dice.below(200) } else { days.dice.below(2 * pause) };
        world.advance(Duration::from_millis(pause)).await;
        sound(&book);
    }
    world.cease();
    world.skew(SignedDuration::ZERO);
    world.provider().client().apply(CONFIGURATION, &samples::provider_config()).await;
    world.advance(PATIENCE).await;
    world.settled().await;
    at_rest(&book);
    let written = world.writes();
    world.advance(PATIENCE).await;
    assert_eq!(world.writes(), written, "K12: something is written though nothing happens");
    sound(&book);
}

impl Days<'_> {
    fn tenant(&mut self) -> Workspace {
        let name = *self.dice.one(&TENANTS);
        self.world.tenant(name)
    }

    /// A cluster of somebody's, as its tenant sees it.
    fn cluster(&mut self) -> (Client, String) {
        let tenant = self.tenant();
        let name = *self.dice.one(&NAMES);
        (tenant.client().as_bearer(TENANT), format!("{CLUSTERS}/{name}"))
    }

    fn projection(&mut self) -> (Client, String) {
        let tenant = self.tenant();
        let name = *self.dice.one(&NAMES);
        (tenant.client().as_bearer(PROVIDER), format!("{DEMO}/{name}"))
    }

    /// What is refused, or comes too late, changes nothing; that is for the server to say.
    async fn one_move(&mut self) {
        let what = self.dice.weighted(&[
            (30, 0),
            (12, 1),
            (10, 2),
            (20, 3),
            (4, 4),
            (4, 5),
            (6, 6),
            (8, 7),
            (4, 8),
            (6, 9),
            (3, 10),
            (3, 11),
            (2, 12),
            (2, 13),
            (1, 14),
            (2, 15),
            (2, 16),
            (2, 17),
            (2, 18),
            (2, 19),
        ]);
        match what {
            0 => self.order().await,
            1 => self.change().await,
            2 => {
                let (client, path) = self.cluster();
                client.delete(&path).await;
            }
            3 => self.report().await,
            4 => {
                let (client, path) = self.projection();
                let finalizers = if self.dice.percent(50) { json!(["otc.example.org/machines"]) } else { Value::Null };
                client.merge(&path, &json!({"metadata": {"finalizers": finalizers}})).await;
            }
            5 => {
                let (client, path) = self.projection();
                client.delete(&path).await;
            }
            6 => self.evil().await,
            7 => self.account().await,
            8 => self.offering().await,
            9 => self.machine_type().await,
            10 => self.binding().await,
            11 => self.world.crash(),
            12 => self.world.control_plane().close_watches(),
            13 => self.world.control_plane().compact(),
            14 => self.end_of_a_workspace().await,
            15 => self.claims().await,
            16 => self.configuration().await,
            17 => self.shard(),
            18 => self.fight().await,
            _ => self.clock(),
        }
    }

    fn spec(&mut self) -> Value {
        let pools = 1 + self.dice.below(3);
        let pool = |at: u64, dice: &mut Dice| {
            json!({"name": format!("pool-{at}"), "replicas": dice.below(5), "capabilities": {
                "cpu": dice.one(&["1", "2", "4", "4000m", "7", "16", "64", "0.5"]), "memory": dice.one(&["1Gi", "4Gi", "4096Mi", "16Gi", "60Gi"])}})
        };
        let pools: Vec<Value> = (0..pools).map(|at| pool(at, &mut self.dice)).collect();
        let mut spec = json!({"region": self.dice.one(&["eu-de", "eu-de", "eu-de", "eu-nl", "us-east"]),
            "version": self.dice.one(&["1.34.2", "1.34.2", "1.33.6", "1.0.0"]), "nodePools": pools});
        if self.dice.percent(20) {
            spec["providerRef"] = json!({"name": self.dice.one(&PROVIDERS)});
        }
        spec
    }

    async fn order(&mut self) {
        let (client, path) = self.cluster();
        let (collection, name) = path.rsplit_once('/').unwrap();
        client.create(collection, &ordered(name, &self.spec())).await;
    }

    async fn change(&mut self) {
        let (client, path) = self.cluster();
        let mut spec = self.spec();
        if self.dice.percent(70) {
            // Most changes are of pools alone: the rest may not be changed.
            spec = json!({"nodePools": spec["nodePools"]});
        }
        client.merge(&path, &json!({"spec": spec})).await;
    }

    async fn report(&mut self) {
        let (client, path) = self.projection();
        let Ok(projection) = client.get(&path).await.ok() else { return };
        let (ready, behind) = (self.dice.percent(70), self.dice.percent(20));
        let generation = projection["metadata"]["generation"].as_i64().unwrap_or_default() - i64::from(behind);
        let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "Says", "message": "m",
            "observedGeneration": generation, "lastTransitionTime": self.world.now().to_string()});
        let status = json!({"status": {"ready": ready, "observedGeneration": generation, "conditions": [condition]}});
        client.merge(&format!("{path}/status"), &status).await;
    }

    /// What a tenant should not do, some of which nobody can prevent.
    async fn evil(&mut self) {
        let (client, path) = self.cluster();
        let name = path.rsplit('/').next().unwrap().to_owned();
        match self.dice.below(10) {
            0 | 1 => self.end_and_begin_again(&client, &path, &name).await,
            2 => {
                let status = json!({"status": {"ready": true, "conditions": []}});
                client.merge(&format!("{path}/status"), &status).await;
            }
            3 => {
                client.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
            }
            4 => {
                client.merge(&format!("{DEMO}/{name}"), &json!({"spec": {"region": "eu-nl"}})).await;
            }
            5 => {
                client.delete(&format!("{DEMO}/{name}")).await;
            }
            6 => {
                let labels = json!({"metadata": {"labels": {"claimed.internal.apis.kcp.io/x": "y", "a": "b"},
                    "annotations": {"kcp.io/cluster": "root", "kubernetes.edge-connect.eu/requests": "{}"}}});
                client.merge(&path, &labels).await;
            }
            7 => {
                let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-4000-8000-000000000000"});
                client.merge(&path, &json!({"metadata": {"ownerReferences": [owner]}})).await;
            }
            8 => {
                let pools: Vec<Value> = (0..60)
                    .map(|at| json!({"name": format!("p{at}"), "replicas": 1, "capabilities": {"cpu": "1", "memory": "1Gi"}}))
                    .collect();
                let take = if self.dice.percent(50) { 50 } else { 60 };
                client.merge(&path, &json!({"spec": {"nodePools": pools[..take]}})).await;
            }
            _ => {
                client.merge(&path, &json!({"spec": {"providerRef": {"name": self.dice.one(&PROVIDERS)}}})).await;
            }
        }
    }

    /// A tenant takes the finalizer away, deletes, and orders under the same name at once: the projection of the earlier cluster is still there.
    async fn end_and_begin_again(&mut self, client: &Client, path: &str, name: &str) {
        client.merge(path, &json!({"metadata": {"finalizers": null}})).await;
        client.delete(path).await;
        client.create(CLUSTERS, &ordered(name, &self.spec())).await;
    }

    /// Something in a tenant's workspace takes a projection away whenever it is there, for a while.
    async fn fight(&mut self) {
        let (tenant, name) = (self.tenant(), *self.dice.one(&NAMES));
        let client = tenant.client().as_bearer(TENANT);
        for _ in 0..50 + self.dice.below(150) {
            client.delete(&format!("{DEMO}/{name}")).await;
            self.world.advance(Duration::from_millis(100)).await;
        }
    }

    async fn account(&mut self) {
        let tenant = self.tenant();
        let (client, name) = (tenant.client().as_bearer(TENANT), *self.dice.one(&PROVIDERS));
        if self.dice.percent(60) {
            client.create(ACCOUNTS, &account(name)).await;
        } else {
            client.delete(&format!("{ACCOUNTS}/{name}")).await;
        }
    }

    async fn offering(&mut self) {
        let provider = self.world.provider().client().clone();
        let name = *self.dice.one(&["otc-standard", "hcloud-small", "aws-any", "aaa-new"]);
        if self.dice.percent(40) {
            provider.delete(&format!("{OFFERINGS}/{name}")).await;
            return;
        }
        let types: Vec<&str> = ["m-4-16", "m-8-32", "c-2-4", "x-16-64", "zero"].into_iter().filter(|_| self.dice.percent(60)).collect();
        let of = *self.dice.one(&PROVIDERS);
        provider.apply(&format!("{OFFERINGS}/{name}"), &offering(name, of, &types)).await;
    }

    async fn machine_type(&mut self) {
        let provider = self.world.provider().client().clone();
        let name = *self.dice.one(&["m-4-16", "m-8-32", "c-2-4", "x-16-64", "zero"]);
        if self.dice.percent(40) {
            provider.delete(&format!("{TYPES}/{name}")).await;
            return;
        }
        let (cpu, memory) = (*self.dice.one(&["2", "4000m", "4", "8", "16"]), *self.dice.one(&["4Gi", "16384Mi", "64Gi"]));
        provider.apply(&format!("{TYPES}/{name}"), &machine_type(name, cpu, memory)).await;
    }

    async fn binding(&mut self) {
        let tenant = self.tenant();
        if tenant.client().get(BINDING).await.ok().is_ok() {
            tenant.client().delete(BINDING).await;
        } else if tenant.client().get("/apis/apis.kcp.io/v1alpha2/apibindings").await.ok().is_ok() {
            let claims: Vec<Value> = export::claims().iter().map(Claim::to_value).collect();
            tenant.client().apply(BINDING, &binding("root:provider", "kubernetes.edge-connect.eu", &claims)).await;
        }
    }

    /// A tenant takes some permission away, or gives all.
    async fn claims(&mut self) {
        let tenant = self.tenant();
        if tenant.client().get(BINDING).await.ok().is_err() {
            return;
        }
        let gives_all = self.dice.percent(50);
        let mut claims: Vec<Value> = export::claims().iter().map(Claim::to_value).collect();
        let which = usize::try_from(self.dice.below(claims.len() as u64)).unwrap_or_default();
        let mut binding = binding("root:provider", "kubernetes.edge-connect.eu", &std::mem::take(&mut claims));
        if !gives_all {
            binding["spec"]["permissionClaims"][which]["state"] = "Rejected".into();
        }
        tenant.client().apply(BINDING, &binding).await;
    }

    /// The platform's configuration goes, is wrong, or says something else.
    async fn configuration(&mut self) {
        let provider = self.world.provider().client().clone();
        let mut config = samples::provider_config();
        match self.dice.below(4) {
            0 => {
                provider.delete(CONFIGURATION).await;
                return;
            }
            1 => config["spec"]["kcp"] = json!({"allowedWorkspaces": ["root:*:nowhere:**"]}),
            2 => config["spec"]["scheduling"]["unschedulableRequeue"] = "0s".into(),
            _ => config["spec"]["scheduling"]["unschedulableRequeue"] = "2m".into(),
        }
        provider.apply(CONFIGURATION, &config).await;
    }

    /// A shard cannot be reached for a while, or is somewhere else.
    fn shard(&mut self) {
        let shard = usize::from(self.dice.percent(50));
        if self.dice.percent(50) {
            self.world.cut_off(shard, Duration::from_secs(5 + self.dice.below(120)));
        } else {
            self.world.control_plane().move_shard(shard);
        }
    }

    /// The machine of the next process has a wrong clock.
    fn clock(&mut self) {
        let by = *self.dice.one(&CLOCKS);
        self.world.skew(SignedDuration::from_secs(by));
        self.world.crash();
    }

    async fn end_of_a_workspace(&mut self) {
        let name = *self.dice.one(&TENANTS);
        let path = format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}");
        self.world.client().send(Method::DELETE, &path, "", "").await;
    }
}
