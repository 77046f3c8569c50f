//! Whole lives: of a workspace, an export, a binding and an object.

use serde_json::{Value, json};

use crate::support::Client;

pub(crate) fn schema(name: &str, default: &str) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": format!("{name}.toys.play.example.org")},
        "spec": {"group": "play.example.org", "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"colour": {"type": "string", "default": default}, "size": {"type": "integer", "minimum": 1}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}]}})
}

pub(crate) fn export(schema: &str) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "toys"}, "spec": {
        "resources": [{"group": "play.example.org", "name": "toys", "schema": format!("{schema}.toys.play.example.org"), "storage": {"crd": {}}}],
        "permissionClaims": [{"group": "", "resource": "configmaps", "verbs": ["get", "list"]}]}})
}

pub(crate) const BINDINGS: &str = "apis/apis.kcp.io/v1alpha2/apibindings";

pub(crate) async fn bound(client: &Client) -> (String, String, String) {
    let (provider, tenant) = (client.workspace("provider").await, client.workspace("tenant").await);
    let made = client.post(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiresourceschemas"), &schema("v1", "red")).await;
    assert_eq!(made.code, 201, "{made:?}");
    let made = client.post(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports"), &export("v1")).await;
    assert_eq!(made.code, 201, "{made:?}");
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "toys"}, "spec": {
        "reference": {"export": {"path": "root:provider", "name": "toys"}},
        "permissionClaims": [{"group": "", "resource": "configmaps", "verbs": ["get", "list"], "selector": {"matchAll": true}, "state": "Accepted"}]}});
    let made = client.post(&format!("/clusters/{tenant}/{BINDINGS}"), &binding).await;
    assert_eq!(made.code, 201, "{made:?}");
    let slice = client.get(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/toys")).await;
    let url = slice.body["status"]["endpoints"][0]["url"].as_str().unwrap().to_owned();
    let through = url.strip_prefix("https://embedded.invalid:6443").unwrap().to_owned();
    (provider, tenant, through)
}

pub(crate) fn toy(name: &str) -> Value {
    json!({"apiVersion": "play.example.org/v1", "kind": "Toy", "metadata": {"name": name}, "spec": {"size": 2}})
}

#[tokio::test]
async fn a_bound_kind_is_served_to_its_tenant_and_through_the_export() {
    let client = Client::new();
    let (provider, tenant, through) = bound(&client).await;
    let binding = client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    assert_eq!(binding.body["status"]["phase"], "Bound", "{binding:?}");
    let toys = format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    let made = client.post(&toys, &toy("car")).await;
    assert_eq!((made.code, &made.body["spec"]), (201, &json!({"colour": "red", "size": 2})), "{made:?}");
    let all = client.get(&format!("{through}/clusters/*/apis/play.example.org/v1/toys")).await;
    assert_eq!(all.body["items"][0]["metadata"]["annotations"]["kcp.io/cluster"], tenant.as_str(), "{all:?}");
    let status = format!("{through}/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys/car/status");
    let written = client.merge(&status, &json!({"status": {"phase": "Ready"}})).await;
    assert_eq!((written.code, &written.body["status"]["phase"]), (200, &json!("Ready")), "{written:?}");
    assert_eq!(written.body["metadata"]["generation"], 1);
    let refused = client.merge(&format!("{toys}/car"), &json!({"spec": {"size": 0}})).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    assert!(refused.body["message"].as_str().unwrap().contains("spec.size in body should be greater than or equal to 1"), "{refused:?}");
    assert_eq!(client.get(&format!("/clusters/{provider}/apis/play.example.org/v1/toys")).await.code, 404);
    assert_eq!(client.get(&format!("{through}/clusters/{provider}/apis/play.example.org/v1/toys")).await.code, 403);
}

#[tokio::test]
async fn a_schema_roll_reaches_the_tenant() {
    let client = Client::new();
    let (provider, tenant, _) = bound(&client).await;
    client.post(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiresourceschemas"), &schema("v2", "blue")).await;
    let resources = export("v2")["spec"]["resources"].clone();
    let exports = format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports/toys");
    assert_eq!(client.merge(&exports, &json!({"spec": {"resources": resources}})).await.code, 200);
    let made = client.post(&format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys"), &toy("car")).await;
    assert_eq!(made.body["spec"]["colour"], "blue", "{made:?}");
}

#[tokio::test]
async fn an_unbinding_waits_for_finalizers_and_allows_no_new_object() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    let mut kept = toy("car");
    kept["metadata"]["finalizers"] = json!(["play.example.org/hold"]);
    client.post(&toys, &kept).await;
    client.post(&toys, &toy("kite")).await;
    let going = client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    assert_eq!(going.code, 200, "{going:?}");
    assert_eq!(client.post(&toys, &toy("late")).await.code, 405);
    let left = client.get(&format!("{through}/clusters/*/apis/play.example.org/v1/toys")).await;
    assert_eq!(left.body["items"].as_array().unwrap().len(), 1, "{left:?}");
    let released = client
        .merge(
            &format!("{through}/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys/car"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await;
    assert_eq!(released.code, 200, "{released:?}");
    assert_eq!(client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await.code, 404);
    assert_eq!(client.get(&toys).await.code, 404);
    assert_eq!(client.get(&format!("{through}/clusters/*/apis/play.example.org/v1/toys")).await.code, 404);
}

#[tokio::test]
async fn a_deleted_workspace_is_emptied_and_refused() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    assert_eq!(client.delete("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/tenant").await.code, 200);
    assert_eq!(client.get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/tenant").await.code, 404);
    assert_eq!(client.get(&format!("/clusters/{tenant}/api/v1/configmaps")).await.code, 403);
    let again = client.workspace("tenant").await;
    assert_ne!(again, tenant);
}

#[tokio::test]
async fn what_lost_its_owner_goes() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    let maps = format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps");
    let map = |name: &str, owner: Option<&Value>| {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        if let Some(owner) = owner {
            map["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
        }
        map
    };
    let owner = client.post(&maps, &map("owner", None)).await;
    assert_eq!(owner.code, 201, "{owner:?}");
    assert_eq!(client.post(&maps, &map("owned", Some(&owner.body))).await.code, 201);
    assert_eq!(client.get(&format!("{maps}/owned")).await.code, 200);
    assert_eq!(client.delete(&format!("{maps}/owner")).await.code, 200);
    assert_eq!(client.get(&format!("{maps}/owned")).await.code, 404);
    let put = client.put(&format!("{maps}/absent"), &map("absent", None)).await;
    assert_eq!(put.code, 404, "{put:?}");
}
