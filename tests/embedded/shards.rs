//! Several shards, and a server that takes its time.

use std::time::Duration;

use kcp_provider_runtime::embedded::{Options, Timing};
use serde_json::{Value, json};

use crate::lives::{BINDINGS, bound, toy};
use crate::support::Client;

const TOYS: &str = "apis/play.example.org/v1";

#[tokio::test]
async fn each_shard_with_a_binding_has_an_endpoint_a_version_and_its_own_tenants() {
    let client = Client::with(Options { shards: 2, ..Options::default() });
    // Workspaces are spread in turn: root and the tenant on the first shard, the provider and the other tenant on the second.
    let (provider, tenant, _) = bound(&client).await;
    let other = client.workspace("other").await;
    let binding = client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await.body;
    let copy = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "toys"}, "spec": binding["spec"]});
    assert_eq!(client.post(&format!("/clusters/{other}/{BINDINGS}"), &copy).await.code, 201);
    let slice = client.get(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/toys")).await.body;
    let urls: Vec<&str> = slice["status"]["endpoints"].as_array().unwrap().iter().map(|end| end["url"].as_str().unwrap()).collect();
    assert_eq!(urls.len(), 2, "{slice}");
    for (workspace, name) in [(&tenant, "car"), (&other, "kite"), (&other, "ball")] {
        client.post(&format!("/clusters/{workspace}/{TOYS}/namespaces/default/toys"), &toy(name)).await;
    }
    let mut seen = Vec::new();
    let mut versions = Vec::new();
    for url in urls {
        let list = client.get(&format!("{}/clusters/*/{TOYS}/toys", url.strip_prefix("https://embedded.invalid:6443").unwrap())).await;
        let items = list.body["items"].as_array().unwrap().clone();
        seen.push(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
        versions.push(list.body["metadata"]["resourceVersion"].clone());
    }
    seen.sort();
    assert_eq!(seen, [vec!["ball".to_owned(), "kite".to_owned()], vec!["car".to_owned()]]);
    assert_ne!(versions[0], versions[1]);
}

async fn phase(client: &Client, tenant: &str) -> Value {
    client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await.body["status"]["phase"].clone()
}

#[tokio::test(start_paused = true)]
async fn with_the_timing_of_kcp_a_bound_kind_is_served_only_after_a_while() {
    let client = Client::with(Options { timing: Timing { bind: Duration::from_secs(8), ..Timing::INSTANT }, ..Options::default() });
    let (_, tenant, through) = bound(&client).await;
    let wildcard = format!("{through}/clusters/*/{TOYS}/toys");
    assert_eq!((phase(&client, &tenant).await, client.get(&wildcard).await.code), (json!("Binding"), 404));
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!(client.get(&wildcard).await.code, 404);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!((phase(&client, &tenant).await, client.get(&wildcard).await.code), (json!("Bound"), 200));
}

#[tokio::test(start_paused = true)]
async fn what_is_due_later_happens_though_nobody_asks() {
    let client = Client::with(Options { timing: Timing::KCP, ..Options::default() });
    let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let made =
        client.post(path, &json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "late"}})).await;
    assert_eq!(made.body["status"]["phase"], "Scheduling");
    let mut watch = crate::watches::Watch::open(&client, &format!("{path}?watch=true")).await;
    let ready = async {
        loop {
            let event = watch.next().await.unwrap();
            if event["object"]["status"]["phase"] == "Ready" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), ready).await.expect("it becomes ready by itself");
}

#[test]
fn what_is_due_later_happens_though_the_runtime_of_its_request_ended() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let workspace = |name: &str| json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}});
    let client = runtime().block_on(async {
        let client = Client::with(Options { timing: Timing::KCP, ..Options::default() });
        client.post(path, &workspace("first")).await;
        client
    });
    runtime().block_on(async {
        client.post(path, &workspace("second")).await;
        let mut watch = crate::watches::Watch::open(&client, &format!("{path}?watch=true&resourceVersion=1")).await;
        let ready = async { while watch.next().await.unwrap()["object"]["status"]["phase"] != "Ready" {} };
        tokio::time::timeout(Duration::from_secs(5), ready).await.expect("somebody drives again");
    });
}

#[tokio::test]
async fn a_seed_gives_the_same_names_again() {
    let name = |seed| async move { Client::with(Options { seed, ..Options::default() }).workspace("any").await };
    assert_eq!(name(7).await, name(7).await);
    assert_ne!(name(7).await, name(8).await);
}
