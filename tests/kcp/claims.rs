//! Claims that a tenant rejects or narrows, with a provider whose reconciler needs one.

use async_trait::async_trait;
use kcp_provider_runtime::api::manifest::binding;
use kcp_provider_runtime::api::names::ObjectName;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::kcp_admin::Resource;
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, Failure, Inputs, Recheck, Reconciler, Report, ReportedCondition,
};
use kcp_provider_runtime::runtime::{Credentials, Options, Runtime};
use serde_json::{Value, json};

use crate::kinds::{ConfigMap, Toy};
use crate::support::platform::{BINDINGS, EXPORTS, SOON, condition, eventually, gently};
use crate::support::{Workspace, kcp};

pub(crate) const TOYS: Resource = Resource::new("toys.test", "v1", "toys");
pub(crate) const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");
pub(crate) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");
const VERBS: [&str; 3] = ["get", "list", "watch"];

/// Paints toys in colours of the tenant's `ConfigMap`.
struct Painter;

#[async_trait]
impl Reconciler for Painter {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "painter", finalizer: None, conditions: &["Painted"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, _: &Toy) -> Result<Report, CallError> {
        let colours = ctx.clusters.control_plane.get::<ConfigMap>(&ObjectName::namespaced("default", "colours")).await;
        let told = |ready, reason, message: String| Report::new(()).with(ReportedCondition::new("Painted", ready, reason, message));
        match colours {
            Ok(Some(_)) => Ok(told(true, Reason::Custom("Dry"), "it is painted".into())),
            Ok(None) => {
                Ok(told(false, Reason::Custom("NoColours"), "no ConfigMap default/colours is seen".into()).recheck(Recheck::Backoff))
            }
            Err(error) if matches!(error.failure(), Failure::Forbidden(_)) => {
                Ok(told(false, Reason::AccessDenied, error.to_string()).recheck(Recheck::Backoff))
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

pub(crate) fn schema() -> Value {
    let condition = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["type"],
        "properties": {"type": {"type": "string"}}});
    let conditions = json!({"type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
    json!({"apiVersion": SCHEMAS.api_version(), "kind": "APIResourceSchema", "metadata": {"name": "v1.toys.toys.test"},
        "spec": {"group": "toys.test", "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"type": "object", "properties": {"status": {"type": "object", "properties": {"conditions": conditions}}}}}]}})
}

/// The binding's word on the one claim.
fn claim(verbs: &[&str], state: &str) -> Value {
    json!({"group": "", "resource": "configmaps", "verbs": verbs, "state": state, "selector": {"matchAll": true}})
}

/// A tenant with colours, a toy, and this opinion of the claim.
async fn tenant(path: &str, verbs: &[&str], state: &str) -> Workspace {
    let workspace = kcp().await.workspace("painted").await;
    let mut bound = binding::binding(path, "toys.test", &[]);
    bound["spec"]["permissionClaims"] = json!([claim(verbs, state)]);
    workspace.client().create(&BINDINGS, "", &bound).await.unwrap();
    let colours = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colours", "namespace": "default"}});
    let toy = json!({"apiVersion": TOYS.api_version(), "kind": "Toy", "metadata": {"name": "car", "namespace": "default"}});
    eventually("the tenant has colours", async || workspace.client().create(&CONFIG_MAPS, "default", &colours).await.is_ok()).await;
    eventually("the kind is served", async || workspace.client().create(&TOYS, "default", &toy).await.is_ok()).await;
    workspace
}

async fn painted(workspace: &Workspace, status: &str, reason: &str) -> String {
    let holds = |toy: &Value| condition(toy, "Painted").is_some_and(|found| found["status"] == status && found["reason"] == reason);
    let what = format!("to have Painted={status} ({reason})");
    let toy = workspace.client().wait_for(&TOYS, "default", "car", &what, SOON * 2, holds).await.unwrap();
    condition(&toy, "Painted").unwrap()["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_claim_that_is_rejected_or_narrowed_is_named_and_once_it_is_accepted_the_object_goes_on_by_itself() {
    let provider = kcp().await.workspace("toymaker").await;
    provider.client().create(&SCHEMAS, "", &schema()).await.unwrap();
    let export = json!({"apiVersion": EXPORTS.api_version(), "kind": "APIExport", "metadata": {"name": "toys.test"}, "spec": {
        "resources": [{"group": "toys.test", "name": "toys", "schema": "v1.toys.toys.test", "storage": {"crd": {}}}],
        "permissionClaims": [{"group": "", "resource": "configmaps", "verbs": VERBS}]}});
    provider.client().create(&EXPORTS, "", &export).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    provider.client().write_kubeconfig(&kubeconfig).unwrap();
    let path = ConnectArgs { kubeconfig: Some(kubeconfig.clone()), workspace: None }.connect().await.unwrap().path;
    let options = gently(Options::new(Credentials::File(kubeconfig), "toys.test").with_workspace(path.clone()));
    let runtime = Runtime::new(options).serve(|_: &mut Inputs<Toy>| Painter);
    let handle = runtime.handle();
    let task = tokio::spawn(runtime.run());
    let (rejecting, narrow, generous) =
        tokio::join!(tenant(&path, &VERBS, "Rejected"), tenant(&path, &["list", "watch"], "Accepted"), tenant(&path, &VERBS, "Accepted"));

    painted(&generous, "True", "Dry").await;
    for workspace in [&rejecting, &narrow] {
        let message = painted(workspace, "False", "AccessDenied").await;
        assert!(message.contains("configmaps") && message.contains("get"), "the claim and its verb are named: {message}");
    }

    for workspace in [&rejecting, &narrow] {
        let accepted = json!({"spec": {"permissionClaims": [claim(&VERBS, "Accepted")]}});
        workspace.client().patch(&BINDINGS, "", "toys.test", &accepted).await.unwrap();
    }
    for workspace in [&rejecting, &narrow] {
        painted(workspace, "True", "Dry").await;
    }
    handle.stop();
    task.await.unwrap().unwrap();
}
