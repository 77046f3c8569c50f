//! Which server, which user, which workspace: the arguments that every verb on a workspace has.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use kube::config::{Cluster, Kubeconfig};

use super::kcp_admin::{AdminClient, Resource};
use crate::runtime::Credentials;

const LOGICAL_CLUSTERS: Resource = Resource::new("core.kcp.io", "v1alpha1", "logicalclusters");

/// Where to, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub struct ConnectArgs {
    /// Kubeconfig whose current context is used; of a list, the first file that exists. Default: ~/.kube/config
    #[arg(long, env = "KUBECONFIG", hide_env_values = true, value_name = "FILE", value_parser = file_name())]
    pub kubeconfig: Option<PathBuf>,
    /// Workspace, such as root:provider, in place of the one in the kubeconfig's server URL
    #[arg(long, value_name = "PATH")]
    pub workspace: Option<String>,
}

/// A workspace that answers, and what is needed to write a kubeconfig for another user of it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The user in the workspace.
    pub client: AdminClient,
    /// The workspace's path, as the workspace itself says it; its logical cluster's name where it says none.
    pub path: String,
    /// The kubeconfig's cluster: CA and TLS settings.
    pub cluster: Cluster,
}

impl ConnectArgs {
    /// Reads the kubeconfig and asks the workspace for its path.
    ///
    /// Fails when there is no kubeconfig, when it has no current context, and when the server is not a workspace that the user may read.
    pub async fn connect(&self) -> anyhow::Result<Connection> {
        let file = self.file()?;
        let cluster = current_cluster(&Kubeconfig::read_from(&file)?).with_context(|| format!("kubeconfig {}", file.display()))?;
        let client = self.client().await?;
        let read = client.get(&LOGICAL_CLUSTERS, "", "cluster").await;
        let logical_cluster =
            read.with_context(|| format!("{} is no kcp workspace that this user may read; see --workspace", client.url()))?;
        let annotations = &logical_cluster["metadata"]["annotations"];
        let Some(path) = ["kcp.io/path", "kcp.io/cluster"].iter().find_map(|key| annotations[key].as_str()) else {
            bail!("{} does not say which workspace it is", client.url());
        };
        Ok(Connection { path: path.to_owned(), client, cluster })
    }

    /// The user in the workspace, without asking the workspace anything: for a user who may not read its `LogicalCluster`.
    pub async fn client(&self) -> anyhow::Result<AdminClient> {
        let client = AdminClient::from_kubeconfig(&self.file()?).await?;
        let Some(workspace) = &self.workspace else { return Ok(client) };
        if workspace.is_empty() || workspace.contains('/') {
            bail!("--workspace takes a path such as root:provider or a logical cluster's name, not {workspace:?}");
        }
        Ok(client.in_workspace(workspace)?)
    }

    /// What a runtime connects with: the kubeconfig, or a pod's own service account where none is named and there is none.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        let file = self.file()?;
        Ok(if self.kubeconfig.is_some() || file.is_file() { Credentials::File(file) } else { Credentials::Inferred })
    }

    fn file(&self) -> anyhow::Result<PathBuf> {
        let Some(given) = self.kubeconfig.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
            let home = std::env::home_dir().context("there is no --kubeconfig, no KUBECONFIG and no home directory")?;
            return Ok(home.join(".kube/config"));
        };
        let files: Vec<PathBuf> = std::env::split_paths(given).collect();
        let existing = files.iter().find(|file| file.is_file());
        existing.cloned().with_context(|| format!("no kubeconfig at {}", given.display()))
    }
}

/// Takes an empty name too: an exported, empty `KUBECONFIG` counts as none, as it does for `kubectl`.
pub(super) fn file_name() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn current_cluster(kubeconfig: &Kubeconfig) -> anyhow::Result<Cluster> {
    let current = kubeconfig.current_context.as_deref().context("has no current context")?;
    let context = kubeconfig.contexts.iter().find(|named| named.name == current).and_then(|named| named.context.as_ref());
    let context = context.with_context(|| format!("has no context {current:?}"))?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster).and_then(|named| named.cluster.clone());
    cluster.with_context(|| format!("has no cluster {:?}", context.cluster))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        connect: ConnectArgs,
    }

    #[test]
    fn an_empty_kubeconfig_counts_as_none() {
        // The same parser reads the environment.
        let line = Line::try_parse_from(["kcm", "--kubeconfig", ""]).unwrap();
        assert!(line.connect.file().unwrap().ends_with(".kube/config"));
    }
}
