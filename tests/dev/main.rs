//! `kcm dev` as a newcomer runs it, who has nothing but Rust: the scenario within seconds, a control plane for one's own provider, and nothing
//! left behind.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod newcomer;
mod support;

use std::path::Path;

use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use serde_json::{Value, json};
use support::{Dev, ends_while_tenants_play, plays_the_scenario, until};

const LOGICAL_CLUSTERS: Resource = Resource::new("core.kcp.io", "v1alpha1", "logicalclusters");
const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");

#[tokio::test]
async fn the_scenario_comes_out_as_expected_and_the_first_cluster_is_scheduled_within_seconds() {
    let seconds = plays_the_scenario(&[]).await;
    // It takes 1 to 2 s on 2 cores; what this refuses is a wait by mistake, not a busy machine.
    assert!(seconds("firstScheduled") < 20.0, "the first cluster was scheduled after {} s", seconds("firstScheduled"));
}

#[tokio::test]
async fn nothing_is_left_behind_after_ctrl_c() {
    ends_while_tenants_play(&[], "INT").await;
}

#[tokio::test]
async fn nothing_is_left_behind_after_a_sigterm() {
    ends_while_tenants_play(&[], "TERM").await;
}

/// Serves alone, and returns what it says of itself.
pub(crate) async fn served(arguments: &[&str]) -> (Dev, Value) {
    let mut dev = Dev::start(&[&["--serve-only", "-o", "json"], arguments].concat()).await;
    let mut stdout = dev.child.stdout.take().unwrap();
    let line = until(&mut stdout, "url").await;
    (dev, serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn serve_only_prints_a_kubeconfig_that_works() {
    let (dev, served) = served(&["--workspace", "provider", "--workspace", "root:org:team-a"]).await;
    let file = Path::new(served["kubeconfig"].as_str().unwrap());
    assert!(file.starts_with(dev.folder.path()), "{served}");
    let root = AdminClient::from_kubeconfig(file).await.unwrap();
    assert_eq!(root.url(), format!("{}/clusters/root", served["url"].as_str().unwrap()), "root is current");
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let contexts: Vec<&str> = kubeconfig["contexts"].as_array().unwrap().iter().map(|named| named["name"].as_str().unwrap()).collect();
    assert_eq!(contexts, ["root", "provider", "org:team-a"]);
    let made = served["workspaces"].as_array().unwrap();
    for (made, path) in made.iter().zip(["root:provider", "root:org:team-a"]) {
        assert_eq!(made["path"], path);
        let client = root.in_workspace(path).unwrap();
        let found = client.get(&LOGICAL_CLUSTERS, "", "cluster").await.unwrap();
        assert_eq!(found["metadata"]["annotations"]["kcp.io/cluster"], made["logicalCluster"], "{path}");
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}, "data": {"a": "b"}});
        client.create(&CONFIG_MAPS, "default", &object).await.unwrap();
    }
    dev.signal("INT").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}

#[tokio::test]
async fn serve_only_lets_nobody_in_without_its_token() {
    let (dev, served) = served(&[]).await;
    let root = AdminClient::from_kubeconfig(Path::new(served["kubeconfig"].as_str().unwrap())).await.unwrap();
    for guess in ["kcp-admin", "admin", "0"] {
        let refused = root.as_bearer(guess.to_owned().into()).unwrap().get(&LOGICAL_CLUSTERS, "", "cluster").await.unwrap_err();
        assert_eq!(refused.code(), Some(401), "{guess}");
    }
    dev.signal("TERM").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}

#[tokio::test]
async fn the_kubeconfig_is_written_where_it_is_wanted_and_goes_with_the_server() {
    let (dev, served) = served(&["--write-kubeconfig", "dev.kubeconfig"]).await;
    let file = dev.folder.path().join("dev.kubeconfig");
    assert_eq!(served["kubeconfig"], file.to_str().unwrap(), "a relative path is told as an absolute one");
    AdminClient::from_kubeconfig(&file).await.unwrap().get(&LOGICAL_CLUSTERS, "", "cluster").await.unwrap();
    // As `kubectl config` changes it.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"preferences\": {}", "")).unwrap();
    dev.signal("INT").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_kubeconfig_that_leads_elsewhere_is_not_replaced() {
    let mine = tempfile::NamedTempFile::new().unwrap();
    let text =
        "{clusters: [{name: c, cluster: {server: 'https://production.example:6443'}}], users: [{name: kcp-admin, user: {token: t}}]}";
    std::fs::write(mine.path(), text).unwrap();
    let mut dev = Dev::start(&["--serve-only", "--write-kubeconfig", mine.path().to_str().unwrap()]).await;
    let mut stderr = dev.child.stderr.take().unwrap();
    until(&mut stderr, "leads elsewhere").await;
    assert_eq!(dev.ended().await.code(), Some(1));
    assert_eq!(std::fs::read_to_string(mine.path()).unwrap(), text);
}

#[tokio::test]
async fn a_wrong_workspace_or_a_port_that_is_taken_ends_it_with_a_sentence() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, sentence) in [
        (["--workspace", "root"], "takes a path below root"),
        (["--workspace", "a::b"], "takes a path below root"),
        (["--workspace", "Team"], "Team"),
        (["--port", &port], "cannot listen on 127.0.0.1:"),
    ] {
        let mut dev = Dev::start(&[&["--serve-only"], &arguments[..]].concat()).await;
        let mut stderr = dev.child.stderr.take().unwrap();
        until(&mut stderr, sentence).await;
        assert_eq!(dev.ended().await.code(), Some(1), "{arguments:?}");
    }
}

#[tokio::test]
async fn people_are_told_what_to_try() {
    let mut dev = Dev::start(&["--serve-only", "--workspace", "team-a"]).await;
    let mut stdout = dev.child.stdout.take().unwrap();
    let said = until(&mut stdout, "Ctrl-C ends and removes everything").await;
    for words in ["export KUBECONFIG=", "kubectl --context team-a api-resources", "kcm init --workspace root:team-a"] {
        assert!(said.contains(words), "{said}");
    }
    dev.signal("INT").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}
