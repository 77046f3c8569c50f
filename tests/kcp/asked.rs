//! What is asked of the runtime about objects of a provider: one of each workspace, one more look, none at all, and an end without a configuration.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::api::meta::{Kind as _, OPERATION_ANNOTATION};
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Inputs, Reconciler, Report, ReportedCondition};
use kcp_provider_runtime::runtime::{Credentials, Options, Runtime};
use serde_json::{Value, json};

use crate::claims::{SCHEMAS, TOYS, schema};
use crate::kinds::Toy;
use crate::support::platform::{BINDINGS, EXPORTS, SOON, condition, eventually, gently};
use crate::support::{Workspace, kcp};

/// Remembers for which toys it was called.
struct Painter(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Reconciler for Painter {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "painter", finalizer: Some("toys.test/paint"), conditions: &["Painted"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        let _ = ctx.hold(toy, json!({})).await?;
        self.0.lock().unwrap().push(toy.meta().name.clone());
        Ok(Report::new(()).with(ReportedCondition::new("Painted", true, Reason::Custom("Dry"), "it is painted")))
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

async fn order(workspace: &Workspace, name: &str, annotations: Value) {
    let metadata = json!({"name": name, "namespace": "default", "annotations": annotations});
    let toy = json!({"apiVersion": TOYS.api_version(), "kind": "Toy", "metadata": metadata});
    eventually("the kind is served", async || workspace.client().create(&TOYS, "default", &toy).await.is_ok()).await;
}

async fn painted(workspace: &Workspace, name: &str, status: &str, reason: &str) -> Value {
    let holds = |toy: &Value| condition(toy, "Painted").is_some_and(|found| found["status"] == status && found["reason"] == reason);
    let what = format!("to have Painted={status} ({reason})");
    workspace.client().wait_for(&TOYS, "default", name, &what, SOON * 2, holds).await.unwrap()
}

async fn annotate(workspace: &Workspace, name: &str, operation: Value) {
    let patch = json!({"metadata": {"annotations": {OPERATION_ANNOTATION: operation}}});
    workspace.client().patch(&TOYS, "default", name, &patch).await.unwrap();
}

/// Whatever is made from now on is younger: times are whole seconds on a server.
async fn is_older(workspace: &Workspace, name: &str) {
    eventually("two seconds have passed", async || {
        let toy = workspace.client().get(&TOYS, "default", name).await.unwrap();
        let made: jiff::Timestamp = toy["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
        jiff::Timestamp::now().duration_since(made).as_secs() > 1
    })
    .await;
}

#[tokio::test]
async fn the_oldest_of_a_workspace_counts_and_people_ask_for_a_look_or_for_none() {
    let provider = kcp().await.workspace("toymaker").await;
    provider.client().create(&SCHEMAS, "", &schema()).await.unwrap();
    let export = json!({"apiVersion": EXPORTS.api_version(), "kind": "APIExport", "metadata": {"name": "toys.test"}, "spec": {
        "resources": [{"group": "toys.test", "name": "toys", "schema": "v1.toys.toys.test", "storage": {"crd": {}}}]}});
    provider.client().create(&EXPORTS, "", &export).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    provider.client().write_kubeconfig(&kubeconfig).unwrap();
    let path = ConnectArgs { kubeconfig: Some(kubeconfig.clone()), workspace: None }.connect().await.unwrap().path;
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = calls.clone();
    let options = gently(Options::new(Credentials::File(kubeconfig), "toys.test").with_workspace(path.clone()));
    let runtime = Runtime::new(options).serve(move |inputs: &mut Inputs<Toy>| {
        inputs.one_per_workspace();
        Painter(told)
    });
    let handle = runtime.handle();
    let task = tokio::spawn(runtime.run());
    let called = |name: &str| calls.lock().unwrap().iter().filter(|call| *call == name).count();

    let tenant = kcp().await.workspace("one").await;
    tenant.client().create(&BINDINGS, "", &binding::binding(&path, "toys.test", &[])).await.unwrap();
    order(&tenant, "zebra", json!({})).await;
    painted(&tenant, "zebra", "True", "Dry").await;
    is_older(&tenant, "zebra").await;
    order(&tenant, "car", json!({})).await;
    let waiting = painted(&tenant, "car", "False", "Superseded").await;
    assert!(condition(&waiting, "Painted").unwrap()["message"].as_str().unwrap().contains("default/zebra"), "{waiting}");
    assert_eq!(called("car"), 0);
    is_older(&tenant, "car").await;

    // One more look, once, and the request goes.
    let before = called("zebra");
    annotate(&tenant, "zebra", "reconcile".into()).await;
    eventually("the request is taken away", async || {
        let zebra = tenant.client().get(&TOYS, "default", "zebra").await.unwrap();
        zebra["metadata"]["annotations"][OPERATION_ANNOTATION].is_null() && called("zebra") > before
    })
    .await;

    // What is ignored stays, though it is deleted; what waits behind it waits on.
    annotate(&tenant, "zebra", "ignore".into()).await;
    tenant.client().delete(&TOYS, "default", "zebra").await.unwrap();
    order(&tenant, "later", json!({})).await;
    painted(&tenant, "later", "False", "Superseded").await;
    assert!(tenant.client().get(&TOYS, "default", "zebra").await.is_ok(), "it is left alone");
    annotate(&tenant, "zebra", Value::Null).await;
    tenant.client().wait_gone(&TOYS, "default", "zebra", SOON).await.unwrap();
    painted(&tenant, "car", "True", "Dry").await;
    handle.stop();
    task.await.unwrap().unwrap();
}
