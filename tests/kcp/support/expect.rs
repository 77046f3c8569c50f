//! What tests of the scheduler expect and do over and over.

use std::time::{Duration, Instant};

use kcp_provider_runtime::api::manifest::{export, rbac, samples};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use serde_json::{Value, json};

use super::platform::{CLUSTERS, CONFIGS, Platform, SOON, Tenant, condition, eventually};

const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");
const SLICES: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices");

/// What one cluster may take from the write that fixes it until a reader sees it scheduled.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(2);

/// Writes of ours in whose time the server must be done, beyond the bound.
const ALLOWANCE: u32 = 20;

/// Waits for a reason of `Scheduled=False` and returns its message.
pub(crate) async fn refused(tenant: &Tenant, name: &str, reason: &str) -> String {
    let cluster = tenant.wait(name, "Scheduled", "False", reason).await;
    condition(&cluster, "Scheduled").unwrap()["message"].as_str().unwrap().to_owned()
}

/// Waits until the cluster is scheduled after a fix that has just been written, which takes two seconds at most.
pub(crate) async fn cleared(tenant: &Tenant, name: &str, fix: &str) -> Value {
    let what = format!("{name} is scheduled after this: {fix}");
    within(AT_ONCE, tenant, &what, tenant.wait(name, "Scheduled", "True", "Scheduled")).await
}

/// Waits for something that follows from what has just happened, within that time.
///
/// A machine that is busy with other things is allowed for by what a write of our own takes right after: some 20 ms where nothing else runs,
/// so that the allowance is lost in the bound there. To schedule a cluster takes five requests, each with an access review behind it.
pub(crate) async fn within<T>(bound: Duration, tenant: &Tenant, what: &str, happens: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let value = happens.await;
    let took = began.elapsed();
    let asked = Instant::now();
    let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "note-"}});
    tenant.client().create(&CONFIG_MAPS, "default", &note).await.unwrap();
    let write = asked.elapsed();
    eprintln!("{what}: {} ms (a write takes {} ms)", took.as_millis(), write.as_millis());
    assert!(took < bound + ALLOWANCE * write, "{what}: that took {took:?}, where a write takes {write:?}");
    value
}

/// Waits until every cluster of the workspace has this status and reason for its current generation, and returns when the first and the last had.
///
/// It lists: a reader of each one would keep the server from its work.
pub(crate) async fn all(tenant: &Tenant, type_: &str, status: &str, reason: &str) -> [Duration; 2] {
    let began = Instant::now();
    let mut first = None;
    eventually(&format!("every cluster has {type_}={status} ({reason})"), async || {
        let clusters = tenant.client().list(&CLUSTERS, "default").await.unwrap();
        let mut held = clusters.iter().map(|cluster| holds(cluster, type_, status, reason));
        if held.clone().any(|holds| holds) {
            first.get_or_insert(began.elapsed());
        }
        held.all(|holds| holds)
    })
    .await;
    [first.unwrap(), began.elapsed()]
}

fn holds(cluster: &Value, type_: &str, status: &str, reason: &str) -> bool {
    condition(cluster, type_).is_some_and(|found| {
        found["status"] == status && found["reason"] == reason && found["observedGeneration"] == cluster["metadata"]["generation"]
    })
}

/// Waits until nothing is left to be said of a cluster whose provider does not report, and returns it: nobody writes it any more.
pub(crate) async fn at_rest(tenant: &Tenant, name: &str) -> Value {
    tenant.scheduled(name).await;
    let last = "waiting for ProviderClusterReady (ProviderNotReady)";
    let rests = |cluster: &Value| {
        condition(cluster, "Ready").is_some_and(|ready| ready["message"] == last) && holds(cluster, "Ready", "False", "Pending")
    };
    tenant.client().wait_for(&CLUSTERS, "default", name, "to wait for its provider alone", SOON, rests).await.unwrap()
}

/// Orders clusters in eu-de with 1.34.2 until one is placed so, by itself and its projection: by then the manager knows a catalog that has just
/// been written. Each watch brings its news by itself, so that an order can be seen before what was written earlier, and what is placed stays.
pub(crate) async fn newly_placed(tenant: &Tenant, what: &str, [cpu, memory]: [&str; 2], placed: impl Fn(&Value, &Value) -> bool) {
    let mut orders = 0;
    eventually(what, async || {
        orders += 1;
        let name = format!("witness-{orders}");
        tenant.order(&name, "eu-de", "1.34.2", cpu, memory).await;
        let cluster = tenant.scheduled(&name).await;
        placed(&cluster, &tenant.projection(&name).await.unwrap())
    })
    .await;
}

/// Waits until the projection shows exactly these pools, and returns it.
pub(crate) async fn projected_as(tenant: &Tenant, name: &str, pools: &Value) -> Value {
    let what = format!("the projection of {name} shows {pools}");
    let mut last = Value::Null;
    eventually(&what, async || {
        last = tenant.projection(name).await.unwrap_or_default();
        last["spec"]["nodePools"] == *pools
    })
    .await;
    last
}

/// Merges this into the configuration's spec.
pub(crate) async fn configure(platform: &Platform, spec: Value) -> Value {
    platform.client().patch(&CONFIGS, "", samples::PROVIDER_CONFIG, &json!({"spec": spec})).await.unwrap()
}

/// Merges this into the configuration's spec, and waits until the manager says that it is in force.
pub(crate) async fn configured(platform: &Platform, spec: Value) {
    let generation = configure(platform, spec).await["metadata"]["generation"].clone();
    let accepted = |config: &Value| condition(config, "Accepted").is_some_and(|accepted| accepted["status"] == "True");
    let seen = |config: &Value| config["status"]["observedGeneration"] == generation && accepted(config);
    platform.client().wait_for(&CONFIGS, "", samples::PROVIDER_CONFIG, "to be in force", SOON, seen).await.unwrap();
}

/// Rules that were taken from the manager's role.
pub(crate) struct Taken<'a> {
    platform: &'a Platform,
    manager: AdminClient,
    kinds: Vec<Resource>,
    rules: Value,
}

/// Takes the rules for these kinds out of the manager's role, and waits until the server refuses them.
pub(crate) async fn take_rules<'a>(platform: &'a Platform, kinds: &[Resource]) -> Taken<'a> {
    let rules = platform.client().get(&ROLES, "", rbac::MANAGER_ROLE).await.unwrap()["rules"].clone();
    let mut left = rules.as_array().unwrap().clone();
    let all = left.len();
    left.retain(|rule| !kinds.iter().any(|kind| rule["resources"][0] == *kind.plural));
    assert_eq!(left.len(), all - kinds.len(), "one rule each: {rules}");
    platform.client().patch(&ROLES, "", rbac::MANAGER_ROLE, &json!({"rules": left})).await.unwrap();
    let manager = AdminClient::from_kubeconfig(&platform.identity().await).await.unwrap();
    for kind in kinds {
        eventually("the rule is gone", async || manager.list(kind, "").await.is_err_and(|error| error.is_forbidden())).await;
    }
    Taken { platform, manager, kinds: kinds.to_vec(), rules }
}

impl Taken<'_> {
    /// Gives the rules back, and waits until the server heeds them: kcp takes a moment.
    pub(crate) async fn give_back(self) {
        self.platform.client().patch(&ROLES, "", rbac::MANAGER_ROLE, &json!({"rules": self.rules})).await.unwrap();
        for kind in &self.kinds {
            eventually("the rule is back", async || self.manager.list(kind, "").await.is_ok()).await;
        }
    }
}

/// The manager's identity in the tenant's workspace, through the export's virtual workspace.
pub(crate) async fn as_manager(platform: &Platform, tenant: &Tenant) -> AdminClient {
    let user = AdminClient::from_kubeconfig(&platform.identity().await).await.unwrap();
    let url = |slice: &Value| slice.pointer("/status/endpoints/0/url").and_then(Value::as_str).map(ToOwned::to_owned);
    let slice = user.wait_for(&SLICES, "", export::EXPORT, "to have a URL", SOON, |slice| url(slice).is_some()).await.unwrap();
    user.at_url(&format!("{}/clusters/{}", url(&slice).unwrap(), tenant.workspace.logical_cluster)).unwrap()
}
