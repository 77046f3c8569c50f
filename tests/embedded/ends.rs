//! What cannot be deleted, what waits before it goes, and what cannot be made meanwhile.

use serde_json::{Value, json};

use crate::lives::{BINDINGS, bound};
use crate::support::Client;
use crate::watches::Watch;

const WORKSPACES: &str = "apis/tenancy.kcp.io/v1alpha1/workspaces";
const DEFINITIONS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, plural: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name, "finalizers": ["example.org/hold"]}})
}

#[tokio::test]
async fn a_logical_cluster_goes_with_its_workspace_only_and_root_never() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    for workspace in ["root", &tenant] {
        let logical = format!("/clusters/{workspace}/apis/core.kcp.io/v1alpha1/logicalclusters");
        assert_eq!(client.delete(&format!("{logical}/cluster")).await.code, 403, "{workspace}");
        assert_eq!(client.delete(&logical).await.code, 403, "{workspace}");
        assert_eq!(client.get(&format!("{logical}/cluster")).await.code, 200, "{workspace}");
    }
}

#[tokio::test]
async fn the_default_namespace_stays_until_its_workspace_goes() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    assert_eq!(client.delete(&format!("/clusters/{tenant}/api/v1/namespaces/default")).await.code, 403);
    assert_eq!(client.delete(&format!("/clusters/root/{WORKSPACES}/tenant")).await.code, 200);
    assert_eq!(client.get(&format!("/clusters/root/{WORKSPACES}/tenant")).await.code, 404);
}

#[tokio::test]
async fn a_workspace_waits_for_what_is_kept_in_one_inside_of_it() {
    let client = Client::new();
    let outer = client.workspace("outer").await;
    let inner = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "inner"}});
    assert_eq!(client.post(&format!("/clusters/{outer}/{WORKSPACES}"), &inner).await.code, 201);
    let maps = "/clusters/root:outer:inner/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "finalizers": ["example.org/hold"]}});
    assert_eq!(client.post(maps, &map).await.code, 201);
    client.delete(&format!("/clusters/root/{WORKSPACES}/outer")).await;
    assert_eq!(client.get(&format!("/clusters/root/{WORKSPACES}/outer")).await.code, 200);
    client.merge(&format!("{maps}/kept"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(client.get(&format!("/clusters/root/{WORKSPACES}/outer")).await.code, 404);
    assert_eq!(client.get(&format!("/clusters/{outer}/api/v1/namespaces")).await.code, 403);
}

#[tokio::test]
async fn a_terminating_namespace_gets_no_account_back() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    let namespaces = format!("/clusters/{tenant}/api/v1/namespaces");
    client.post(&namespaces, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}})).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "finalizers": ["example.org/hold"]}});
    client.post(&format!("{namespaces}/extra/configmaps"), &map).await;
    client.delete(&format!("{namespaces}/extra")).await;
    let accounts = client.get(&format!("{namespaces}/extra/serviceaccounts")).await;
    assert_eq!(accounts.body["items"], json!([]));
    client.merge(&format!("{namespaces}/extra/configmaps/kept"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(client.get(&format!("{namespaces}/extra")).await.code, 404);
    client.post(&namespaces, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}})).await;
    assert_eq!(client.get(&format!("{namespaces}/extra/serviceaccounts/default")).await.code, 200);
}

#[tokio::test]
async fn a_definition_waits_for_its_objects_and_takes_no_new_ones() {
    let client = Client::new();
    let tenant = client.workspace("tenant").await;
    let definitions = format!("/clusters/{tenant}/{DEFINITIONS}");
    client.post(&definitions, &definition("example.org", "things")).await;
    let things = format!("/clusters/{tenant}/apis/example.org/v1/things");
    assert_eq!(client.post(&things, &thing("kept")).await.code, 201);
    client.delete(&format!("{definitions}/things.example.org")).await;
    let going = client.get(&format!("{definitions}/things.example.org")).await.body;
    assert_eq!(going["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(client.post(&things, &thing("late")).await.code, 405);
    client.merge(&format!("{things}/kept"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(client.get(&format!("{definitions}/things.example.org")).await.code, 404);
    assert_eq!(client.get(&things).await.code, 404);
}

#[tokio::test]
async fn no_definition_is_made_of_a_kind_that_is_bound() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let definitions = format!("/clusters/{tenant}/{DEFINITIONS}");
    let refused = client.post(&definitions, &definition("play.example.org", "toys")).await;
    assert_eq!(refused.code, 403, "{refused:?}");
    client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    assert_eq!(client.post(&definitions, &definition("play.example.org", "toys")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_definition_ends_watches_in_its_workspace_only() {
    let client = Client::new();
    let (one, two) = (client.workspace("one").await, client.workspace("two").await);
    let mut watches = Vec::new();
    for workspace in [&one, &two] {
        client.post(&format!("/clusters/{workspace}/{DEFINITIONS}"), &definition("example.org", "things")).await;
        watches.push(Watch::open(&client, &format!("/clusters/{workspace}/apis/example.org/v1/things?watch=true")).await);
    }
    client.delete(&format!("/clusters/{one}/{DEFINITIONS}/things.example.org")).await;
    assert_eq!(watches[0].next().await, None);
    let silence = tokio::time::timeout(std::time::Duration::from_secs(1), watches[1].next()).await;
    assert!(silence.is_err(), "{silence:?}");
    client.post(&format!("/clusters/{two}/apis/example.org/v1/things"), &thing("new")).await;
    assert_eq!(watches[1].next().await.unwrap()["object"]["metadata"]["name"], "new");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_of_a_busy_kind_does_not_fall_behind() {
    let client = Client::new();
    let (quiet, busy) = (client.workspace("quiet").await, client.workspace("busy").await);
    let maps = |workspace: &str| format!("/clusters/{workspace}/api/v1/namespaces/default/configmaps");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}});
    client.post(&maps(&busy), &map).await;
    let listed = client.get(&maps(&quiet)).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = Watch::open(&client, &format!("{}?watch=true&resourceVersion={listed}", maps(&quiet))).await;
    let mut busily = async |from: usize| {
        for at in from..from + 2_500 {
            client.merge(&format!("{}/map", maps(&busy)), &json!({"data": {"at": at.to_string()}})).await;
        }
        let silence = tokio::time::timeout(std::time::Duration::from_secs(1), watch.next()).await;
        assert!(silence.is_err(), "{silence:?}");
    };
    busily(0).await;
    busily(2_500).await;
    client.post(&maps(&quiet), &map).await;
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
}
