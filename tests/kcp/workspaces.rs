//! Workspaces as kcp makes them.

use kcp_provider_runtime::cli::kcp_admin::{Resource, WORKSPACES};

use crate::support;

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
