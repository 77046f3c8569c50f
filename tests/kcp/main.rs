//! What only a real kcp can answer. One kcp serves all tests of the process; each test makes workspaces of its own.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod bindings;
mod deletion;
mod door;
mod explain;
mod init;
mod isolation;
mod manage;
mod paths;
mod permissions;
mod pins;
mod pools;
mod readiness;
mod reasons;
mod requeue;
mod schedule;
mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kcp_provider_runtime::cli::kcp_admin::{Resource, WORKSPACES};
use kcp_provider_runtime::cli::leash;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn a_fresh_workspace_is_ready_and_empty() {
    let kcp = support::kcp().await;
    let workspace = kcp.workspace("fresh").await;
    let inside = workspace.client();
    let config_maps = inside.list(&Resource::new("", "v1", "configmaps"), "default").await.unwrap();
    assert!(config_maps.iter().all(|map| map["metadata"]["name"] == "kube-root-ca.crt"), "{config_maps:?}");
    assert_eq!(inside.list(&WORKSPACES, "").await.unwrap(), Vec::<serde_json::Value>::new());
    // Every object names the logical cluster that the workspace's creation returned: the key of everything here.
    let namespace = inside.get(&Resource::new("", "v1", "namespaces"), "", "default").await.unwrap();
    assert_eq!(namespace["metadata"]["annotations"]["kcp.io/cluster"], workspace.logical_cluster.as_str());
}

#[tokio::test]
async fn the_server_ends_when_its_owner_is_gone() {
    // The owner is whoever holds the write end of the pipe: here a process of its own, which is killed without warning.
    let mut owner = Command::new("tail").args(["-f", "/dev/null"]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let pipe: Stdio = owner.stdout.take().unwrap().try_into().unwrap();
    let data = tempfile::tempdir().unwrap().keep();
    let grace = Duration::from_secs(10);
    let mut server = leash::command(Path::new("sh"), ["-c", "echo $$; exec sleep 1000"], Some(&data), grace);
    let mut server = server.stdin(pipe).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let id = output.next_line().await.unwrap().unwrap();
    assert!(Path::new(&format!("/proc/{id}")).exists());

    owner.kill().await.unwrap();

    tokio::time::timeout(grace, server.wait()).await.expect("the leash outlived the owner").unwrap();
    assert!(!Path::new(&format!("/proc/{id}")).exists(), "the server outlived its owner");
    assert!(!data.exists(), "the server's data outlived it");
}
