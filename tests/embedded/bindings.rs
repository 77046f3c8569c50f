//! Bindings whose export changes, goes, comes back, or is in somebody's way.

use kcp_provider_runtime::embedded::{Options, Timing};
use serde_json::{Value, json};

use crate::lives::{BINDINGS, bound, export, schema, toy};
use crate::support::Client;

const SCHEMAS: &str = "apis/apis.kcp.io/v1alpha1/apiresourceschemas";
const EXPORTS: &str = "apis/apis.kcp.io/v1alpha2/apiexports";

fn binding(name: &str, provider: &str) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": provider, "name": "toys"}}}})
}

async fn condition(client: &Client, path: &str, type_: &str) -> (String, String) {
    let object = client.get(path).await.body;
    let found = object["status"]["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == type_).cloned();
    let text = |field: &str| found.as_ref().and_then(|found| found[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test]
async fn the_second_binding_of_a_kind_waits_until_the_first_is_gone() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let bindings = format!("/clusters/{tenant}/{BINDINGS}");
    assert_eq!(client.post(&bindings, &binding("second", "root:provider")).await.code, 201);
    let second = format!("{bindings}/second");
    assert_eq!(condition(&client, &second, "BindingUpToDate").await, is("False", "NamingConflicts"));
    assert_eq!(client.delete(&format!("{bindings}/toys")).await.code, 200);
    assert_eq!(client.get(&second).await.body["status"]["phase"], "Bound");
}

#[tokio::test]
async fn a_binding_waits_for_a_schema_that_is_made_later() {
    let client = Client::new();
    let (provider, tenant) = (client.workspace("provider").await, client.workspace("tenant").await);
    client.post(&format!("/clusters/{provider}/{EXPORTS}"), &export("v1")).await;
    client.post(&format!("/clusters/{tenant}/{BINDINGS}"), &binding("toys", "root:provider")).await;
    let path = format!("/clusters/{tenant}/{BINDINGS}/toys");
    assert_eq!(condition(&client, &path, "APIExportValid").await, is("False", "InternalError"));
    client.post(&format!("/clusters/{provider}/{SCHEMAS}"), &schema("v1", "red")).await;
    assert_eq!(condition(&client, &path, "APIExportValid").await, is("True", ""));
    assert_eq!(client.get(&path).await.body["status"]["phase"], "Bound");
}

#[tokio::test]
async fn a_binding_is_valid_again_when_its_export_comes_back() {
    let client = Client::new();
    let (provider, tenant, _) = bound(&client).await;
    let path = format!("/clusters/{tenant}/{BINDINGS}/toys");
    assert_eq!(client.delete(&format!("/clusters/{provider}/{EXPORTS}/toys")).await.code, 200);
    assert_eq!(condition(&client, &path, "APIExportValid").await, is("False", "APIExportNotFound"));
    assert_eq!(client.get(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/toys")).await.code, 404);
    assert_eq!(client.post(&format!("/clusters/{provider}/{EXPORTS}"), &export("v1")).await.code, 201);
    assert_eq!(condition(&client, &path, "APIExportValid").await, is("True", ""));
}

#[tokio::test]
async fn a_schema_that_was_made_anew_under_its_name_reaches_the_tenant() {
    let client = Client::new();
    let (provider, tenant, _) = bound(&client).await;
    client.delete(&format!("/clusters/{provider}/{SCHEMAS}/v1.toys.play.example.org")).await;
    client.post(&format!("/clusters/{provider}/{SCHEMAS}"), &schema("v1", "blue")).await;
    let made = client.post(&format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys"), &toy("car")).await;
    assert_eq!(made.body["spec"]["colour"], "blue", "{made:?}");
}

#[tokio::test]
async fn a_binding_follows_its_path_to_a_provider_that_was_made_anew() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    assert_eq!(client.delete("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/provider").await.code, 200);
    let provider = client.workspace("provider").await;
    client.post(&format!("/clusters/{provider}/{SCHEMAS}"), &schema("v1", "green")).await;
    client.post(&format!("/clusters/{provider}/{EXPORTS}"), &export("v1")).await;
    let made = client.post(&format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys"), &toy("car")).await;
    assert_eq!(made.body["spec"]["colour"], "green", "{made:?}");
    let slice = client.get(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/toys")).await;
    assert_eq!(slice.body["status"]["endpoints"].as_array().map(Vec::len), Some(1), "{slice:?}");
}

#[tokio::test]
async fn an_identity_is_that_of_the_secret_that_was_given_and_does_not_change() {
    let client = Client::new();
    let provider = client.workspace("provider").await;
    let exports = format!("/clusters/{provider}/{EXPORTS}");
    let mut given = export("v1");
    given["spec"]["identity"] = json!({"secretRef": {"namespace": "default", "name": "mine"}});
    assert_eq!(client.post(&exports, &given).await.code, 201);
    let path = format!("{exports}/toys");
    assert_eq!(condition(&client, &path, "IdentityValid").await, is("False", "IdentityVerificationFailed"));
    let secrets = format!("/clusters/{provider}/api/v1/namespaces/default/secrets");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": {"key": "abc"}});
    assert_eq!(client.post(&secrets, &secret).await.code, 201);
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(client.get(&path).await.body["status"]["identityHash"], hash, "SHA-256 of the key");
    client.merge(&format!("{secrets}/mine"), &json!({"stringData": {"key": "other"}})).await;
    assert_eq!(client.get(&path).await.body["status"]["identityHash"], hash);
    assert_eq!(condition(&client, &path, "IdentityValid").await, is("False", "IdentityVerificationFailed"));
}

#[tokio::test]
async fn a_slice_of_any_name_shows_the_endpoints() {
    let client = Client::new();
    let (provider, tenant, _) = bound(&client).await;
    let slices = format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices");
    let slice = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": {"name": "other"},
        "spec": {"export": {"name": "toys", "path": "root:provider"}}});
    assert_eq!(client.post(&slices, &slice).await.code, 201);
    let count = async || client.get(&format!("{slices}/other")).await.body["status"]["endpoints"].as_array().map_or(0, Vec::len);
    assert_eq!(count().await, 1);
    client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    assert_eq!(count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn with_the_timing_of_kcp_a_workspace_is_ready_only_after_a_while() {
    let client = Client::with(Options { timing: Timing::KCP, ..Options::default() });
    let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    client.post(path, &json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "late"}})).await;
    let phase = async || client.get(&format!("{path}/late")).await.body["status"]["phase"].clone();
    tokio::time::advance(Timing::KCP.workspace / 2).await;
    assert_eq!(phase().await, "Scheduling");
    tokio::time::advance(Timing::KCP.workspace).await;
    assert_eq!(phase().await, "Ready");
}
