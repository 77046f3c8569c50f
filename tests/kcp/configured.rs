//! A provider's configuration: when a change is in force, what becomes of one that is wrong, and what is done without any.

#[path = "../seam/keeper.rs"]
mod keeper;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::runtime::{Credentials, Handle, Options, RunError, Runtime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::claims::{SCHEMAS, TOYS, schema};
use crate::kinds::Toy;
use crate::support::platform::{BINDINGS, EXPORTS, SOON, condition, eventually, gently};
use crate::support::{Workspace, kcp};
use keeper::{Called, Keeper, Ledger, PAINTS, deleted_with};

const KIND: Resource = Resource::of(PAINTS);
const DEFINITIONS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
/// More than are looked at in a second.
const MANY: usize = 150;
/// Between two objects that are looked at for a changed configuration: fifty a second.
const SPREAD: Duration = Duration::from_millis(20);
/// When a change is in force after it was written.
const IN_FORCE: Duration = Duration::from_secs(1);
/// Writes of ours in whose time the server must be done, beyond that.
const ALLOWANCE: u32 = 20;

/// The configuration's kind, of which the server checks nothing.
fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"apiVersion": DEFINITIONS.api_version(), "kind": "CustomResourceDefinition", "metadata": {"name": "paints.toys.test"}, "spec": {
        "group": PAINTS.group, "scope": "Cluster",
        "names": {"kind": PAINTS.kind, "listKind": "PaintsList", "plural": PAINTS.plural, "singular": "paint"},
        "versions": [{"name": PAINTS.version, "served": true, "storage": true, "subresources": {"status": {}}, "schema": schema}]}})
}

/// A provider workspace with the export of toys and the kind of their paints, and a tenant's workspace that has bound it.
struct Stage {
    provider: Workspace,
    tenant: Workspace,
    options: Options,
    ledger: Ledger,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let provider = kcp().await.workspace("toymaker").await;
        provider.client().create(&SCHEMAS, "", &schema()).await.unwrap();
        provider.client().create(&DEFINITIONS, "", &definition()).await.unwrap();
        let export = json!({"apiVersion": EXPORTS.api_version(), "kind": "APIExport", "metadata": {"name": "toys.test"}, "spec": {
            "resources": [{"group": "toys.test", "name": "toys", "schema": "v1.toys.toys.test", "storage": {"crd": {}}}]}});
        provider.client().create(&EXPORTS, "", &export).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig: PathBuf = folder.path().join("kubeconfig");
        provider.client().write_kubeconfig(&kubeconfig).unwrap();
        let path = ConnectArgs { kubeconfig: Some(kubeconfig.clone()), workspace: None }.connect().await.unwrap().path;
        let tenant = kcp().await.workspace("playroom").await;
        tenant.client().create(&BINDINGS, "", &binding::binding(&path, "toys.test", &[])).await.unwrap();
        eventually("toys are served", async || tenant.client().list(&TOYS, "").await.is_ok()).await;
        eventually("paints are served", async || provider.client().list(&KIND, "").await.is_ok()).await;
        let options = gently(Options::new(Credentials::File(kubeconfig), "toys.test").with_workspace(path));
        Self { provider, tenant, options, ledger: Ledger::default(), _folder: folder }
    }

    /// A process of the provider.
    fn start(&self) -> (Handle, JoinHandle<Result<(), RunError>>) {
        let ledger = self.ledger.clone();
        let runtime = Runtime::new(self.options.clone()).serve(|_| Keeper::<Toy>::new(ledger));
        (runtime.handle(), tokio::spawn(runtime.run()))
    }

    async fn order(&self, name: &str) {
        let toy = json!({"apiVersion": TOYS.api_version(), "kind": "Toy", "metadata": {"name": name, "namespace": "default"}});
        self.tenant.client().create(&TOYS, "default", &toy).await.unwrap();
    }

    async fn paint(&self, spec: Value) {
        let paints = json!({"apiVersion": KIND.api_version(), "kind": "Paints", "metadata": {"name": "kcm"}, "spec": spec});
        self.provider.client().create(&KIND, "", &paints).await.unwrap();
    }

    /// Merges this into the configuration; from when it was written to when that was answered.
    async fn repaint(&self, spec: Value) -> [Instant; 2] {
        let before = Instant::now();
        self.provider.client().patch(&KIND, "", "kcm", &json!({"spec": spec})).await.unwrap();
        [before, Instant::now()]
    }

    /// Waits for what the configuration's own status says of its spec as it is now; returns the message.
    async fn judged(&self, status: &str, reason: &str) -> String {
        let generation = self.provider.client().get(&KIND, "", "kcm").await.unwrap()["metadata"]["generation"].clone();
        let holds = |paints: &Value| {
            let accepted = condition(paints, "Accepted").is_some_and(|found| found["status"] == status && found["reason"] == reason);
            accepted && paints["status"]["observedGeneration"] == generation
        };
        let what = format!("to have Accepted={status} ({reason})");
        let paints = self.provider.client().wait_for(&KIND, "", "kcm", &what, SOON, holds).await.unwrap();
        condition(&paints, "Accepted").unwrap()["message"].as_str().unwrap().to_owned()
    }

    async fn told(&self, name: &str, status: &str, reason: &str, words: &str) {
        let holds = |toy: &Value| {
            let kept = condition(toy, "Kept");
            kept.is_some_and(|kept| {
                kept["status"] == status && kept["reason"] == reason && kept["message"].as_str().unwrap_or_default().contains(words)
            })
        };
        let what = format!("to have Kept={status} ({reason}): {words}");
        self.tenant.client().wait_for(&TOYS, "default", name, &what, SOON, holds).await.unwrap();
    }

    async fn kept_with(&self, name: &str, brand: &str) {
        self.told(name, "True", "Ready", &format!("with {brand}")).await;
    }

    async fn go(&self, name: &str) {
        self.tenant.client().delete(&TOYS, "default", name).await.unwrap();
        self.tenant.client().wait_gone(&TOYS, "default", name, SOON).await.unwrap();
    }

    fn calls_since(&self, since: Instant) -> Vec<Called> {
        self.ledger.lock().unwrap().iter().filter(|call| call.at >= since).cloned().collect()
    }

    /// Waits until all toys are kept with this brand and nothing is left to be done.
    async fn rests(&self, handle: &Handle, brand: &str) {
        let message = json!(format!("with {brand}"));
        eventually(&format!("all toys are kept with {brand}"), async || {
            let toys = self.tenant.client().list(&TOYS, "default").await.unwrap();
            let all = toys.iter().all(|toy| condition(toy, "Kept").is_some_and(|kept| kept["message"] == message));
            let last = self.ledger.lock().unwrap().last().map(|call| call.at);
            // What was written last comes back, and is looked at once more.
            all && handle.is_idle() && last.is_some_and(|last| last.elapsed() > Duration::from_secs(2))
        })
        .await;
    }
}

#[tokio::test]
async fn a_changed_configuration_is_in_force_after_a_second_and_what_has_not_changed_is_looked_at_fifty_a_second() {
    let stage = Stage::new().await;
    stage.paint(json!({"brand": "Gloss"})).await;
    let name = |at: usize| format!("toy-{at:03}");
    stream::iter(0..MANY).for_each_concurrent(8, async |at| stage.order(&name(at)).await).await;
    let (handle, task) = stage.start();
    stage.rests(&handle, "Gloss").await;
    assert_eq!(stage.judged("True", "Accepted").await, "in force");

    let [before, written] = stage.repaint(json!({"brand": "Matt"})).await;
    let in_force = written + IN_FORCE + ALLOWANCE * (written - before);
    eventually("the change is in force", async || Instant::now() >= in_force).await;
    // The last in the row does not wait for its turn.
    let touched = Instant::now();
    let note = json!({"metadata": {"annotations": {"note": "look"}}});
    stage.tenant.client().patch(&TOYS, "default", &name(MANY - 1), &note).await.unwrap();
    let of_the_last = |call: &Called| call.toy == name(MANY - 1) && call.at >= touched;
    eventually("it is looked at", async || stage.calls_since(touched).iter().any(of_the_last)).await;
    stage.rests(&handle, "Matt").await;
    let late: Vec<String> = stage.calls_since(in_force).iter().filter(|call| call.brand != "Matt").map(|call| call.toy.clone()).collect();
    assert!(late.is_empty(), "looked at with Gloss once Matt was in force: {late:?}");
    assert_eq!(stage.judged("True", "Accepted").await, "in force");

    // A change that nobody has to be told of: no write slows it down, and nobody is called twice.
    let [before, _] = stage.repaint(json!({"shelf": "upper"})).await;
    eventually("each was looked at", async || stage.calls_since(before).len() >= MANY).await;
    let calls = stage.calls_since(before);
    let early = calls.iter().zip(0_u32..).find(|(call, nth)| call.at - before < SPREAD * *nth);
    assert!(early.is_none(), "toy {} was looked at {:?} after the change", early.unwrap().1, early.unwrap().0.at - before);
    assert_eq!(calls.iter().map(|call| &call.toy).collect::<BTreeSet<_>>().len(), MANY);
    assert_eq!(calls.len(), MANY);
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_refused_in_its_status_and_the_last_good_one_stays_in_force() {
    let stage = Stage::new().await;
    stage.paint(json!({"brand": "Gloss"})).await;
    let (handle, task) = stage.start();
    stage.order("car").await;
    stage.kept_with("car", "Gloss").await;
    for (wrong, words) in [(json!({"brand": "Mud"}), "spec.brand: mud is no paint"), (json!({"brand": 7}), "spec.brand: invalid type")] {
        stage.repaint(wrong).await;
        let message = stage.judged("False", "Invalid").await;
        assert!(message.contains(words) && message.contains("the last good one stays in force"), "{message}");
        let name = format!("toy-{}", words.len());
        stage.order(&name).await;
        stage.kept_with(&name, "Gloss").await;
    }
    handle.stop();
    task.await.unwrap().unwrap();

    // Another process knows no good one: what is decided stays, and what is new waits.
    let (handle, task) = stage.start();
    stage.order("kite").await;
    stage.told("kite", "False", "ConfigUnavailable", "the configuration is not valid: spec.brand").await;
    stage.kept_with("car", "Gloss").await;
    stage.repaint(json!({"brand": "Matt"})).await;
    stage.judged("True", "Accepted").await;
    for name in ["car", "kite"] {
        stage.kept_with(name, "Matt").await;
    }
    handle.stop();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn without_a_configuration_that_has_to_be_there_objects_are_told_so_and_can_be_deleted() {
    let stage = Stage::new().await;
    let (handle, task) = stage.start();
    for name in ["car", "kite", "ship"] {
        stage.order(name).await;
    }
    for name in ["car", "kite", "ship"] {
        stage.told(name, "False", "ConfigUnavailable", "there is no configuration object").await;
    }
    stage.go("ship").await;
    stage.paint(json!({"brand": "Gloss"})).await;
    for name in ["car", "kite"] {
        stage.kept_with(name, "Gloss").await;
    }

    stage.provider.client().delete(&KIND, "", "kcm").await.unwrap();
    stage.provider.client().wait_gone(&KIND, "", "kcm", SOON).await.unwrap();
    stage.order("late").await;
    stage.told("late", "False", "ConfigUnavailable", "there is no configuration object").await;
    stage.go("car").await;
    handle.stop();
    task.await.unwrap().unwrap();
    // Another process has never seen one.
    let (handle, task) = stage.start();
    stage.go("kite").await;
    assert_eq!(deleted_with(&stage.ledger), ["Gloss", ""], "with the last that was in force, else with the type's default");
    handle.stop();
    task.await.unwrap().unwrap();
}
