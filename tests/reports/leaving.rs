//! Who leaves, or tidies up, looks behind every endpoint: a tenant on another shard counts as much, and a shard that is silent decides nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use kcp_provider_runtime::api::manifest::{self, binding, definition, export, samples};
use kcp_provider_runtime::cli::connect::ConnectArgs;
use kcp_provider_runtime::cli::drain;
use kcp_provider_runtime::cli::init::prune::{Fate, prune};
use kcp_provider_runtime::cli::init::{self, Options};
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::cli::virtual_workspaces::EndpointArgs;
use kcp_provider_runtime::embedded::{self, Server};
use serde_json::Value;

const SOON: Duration = Duration::from_mins(1);
const BINDINGS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");
const SLICES: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices");
const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");
const CLUSTERS: Resource = Resource::new("kubernetes.edge-connect.eu", "v1alpha1", "kubernetesclusters");
const OLD: &str = "v00000000.kubernetesclusters.kubernetes.edge-connect.eu";

#[tokio::test]
async fn what_lives_on_any_shard_counts_and_a_shard_that_is_silent_decides_nothing() {
    let options = embedded::Options { shards: 2, started: jiff::Timestamp::now(), ..embedded::Options::default() };
    let server = Server::start(options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("root.kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig(&[])).unwrap();
    let root = AdminClient::from_kubeconfig(&kubeconfig).await.unwrap();
    root.create_workspace("root", "provider").await.unwrap();
    let connection = ConnectArgs { kubeconfig: Some(kubeconfig), workspace: Some("root:provider".into()) }.connect().await.unwrap();
    let options = Options { connection: connection.clone(), provider: None, manage_exports: false, dry_run: false };
    init::init(&options).await.unwrap();
    let client = &connection.client;

    // Workspaces are spread over the shards in turn.
    let mut tenants = BTreeSet::new();
    for name in ["a", "b", "c"] {
        let workspace = root.create_workspace("root", name).await.unwrap();
        let tenant = root.in_workspace(workspace.as_str()).unwrap();
        tenant.create(&BINDINGS, "", &binding::binding("root:provider", export::EXPORT, &[])).await.unwrap();
        tenant.wait_for(&BINDINGS, "", export::EXPORT, "to be Bound", SOON, |live| live["status"]["phase"] == "Bound").await.unwrap();
        tenant.create(&CLUSTERS, "default", &samples::tenant()[1]).await.unwrap();
        tenants.insert(workspace.to_string());
    }
    let everywhere = EndpointArgs::default();
    let living = drain::look(client, &everywhere).await.unwrap();
    assert_eq!(living.counts().into_keys().map(ToOwned::to_owned).collect::<BTreeSet<_>>(), tenants);

    let mut old = manifest::api_resource_schema(&definition::tenant());
    old["metadata"]["name"] = OLD.into();
    client.create(&SCHEMAS, "", &old).await.unwrap();
    let slice = client.get(&SLICES, "", export::EXPORT).await.unwrap();
    let urls: Vec<String> = slice["status"]["endpoints"].as_array().unwrap().iter().map(url).collect();
    assert_eq!(urls.len(), 2, "{slice}");
    for silent in urls {
        let args = EndpointArgs { endpoint_override: vec![(silent.clone(), "https://127.0.0.1:1/silent".into())] };
        assert!(drain::look(client, &args).await.is_err(), "{silent}");
        assert!(prune(client, &args, false).await.is_err(), "{silent}");
        assert!(client.find(&SCHEMAS, "", OLD).await.unwrap().is_some(), "{silent}");
    }
    let pruned = prune(client, &everywhere, false).await.unwrap();
    assert!(pruned.len() == 1 && pruned[0].fate == Fate::Collected, "{pruned:?}");
}

fn url(endpoint: &Value) -> String {
    endpoint["url"].as_str().unwrap().to_owned()
}
