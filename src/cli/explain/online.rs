//! From a server to a world: one cluster, and everything that its decision depends on.

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::world::World;
use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::condition;
use crate::api::meta::{Kind, KindRef, ServiceObject};
use crate::api::projection::Projection;
use crate::api::provider::Provider;
use crate::api::tenant::KubernetesCluster;
use crate::cli::connect::ConnectArgs;
use crate::cli::kcp_admin::{AdminClient, AdminError, Resource};
use crate::kcm::explain::Explanation;
use crate::kcm::plan::SCHEDULED;

/// Which cluster, and where everything is.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The tenant's workspace.
    pub(super) workspace: String,
    /// Whose catalog counts.
    pub(super) provider: ConnectArgs,
}

/// Reads the cluster, its projection, the Providers of its workspace, and the catalog; each once, in this order.
///
/// Objects of the catalog that cannot be decoded are left out, as the manager leaves them out; the warnings name them.
pub(super) async fn gather(target: &Target) -> anyhow::Result<(World, Vec<String>)> {
    let Target { name, namespace, workspace, provider } = target;
    for (what, word) in [("NAME", name), ("--namespace", namespace), ("--workspace", workspace)] {
        if word.is_empty() || word.contains(['/', '?', '#', '%']) || word.contains(char::is_whitespace) {
            bail!("{what} cannot be {word:?}");
        }
    }
    let connection = provider.connect().await?;
    let tenant = connection.client.in_workspace(workspace)?;
    let mut warnings = Vec::new();

    let cluster = match tenant.get(&resource(KubernetesCluster::REF), namespace, name).await {
        Ok(cluster) => decoded::<KubernetesCluster>(cluster)?,
        Err(error) if error.is_not_found() => return Err(not_found(target, &tenant, &connection.path).await),
        Err(error) => return Err(refused(error, "the cluster", workspace)),
    };
    let projection = tenant.find(&resource(Projection::REF), namespace, name).await;
    let projection = projection.map_err(|error| refused(error, "the cluster's projection", workspace))?;
    let projection = projection.map(decoded::<Projection>).transpose()?;
    let providers = tenant.list(&resource(Provider::REF), "").await;
    let providers = providers.map_err(|error| refused(error, "the Providers", workspace))?;
    let providers = providers.iter().filter_map(|provider| provider["metadata"]["name"].as_str().map(str::to_owned));

    let world = World {
        offerings: catalog::<KubernetesClusterOffering>(&connection.client, &connection.path, &mut warnings).await?,
        types: catalog::<VirtualMachineType>(&connection.client, &connection.path, &mut warnings).await?,
        providers: providers.collect(),
        projections: projection.into_iter().map(|projection| (projection.object_name(), projection)).collect(),
        clusters: vec![cluster],
    };
    Ok((world, warnings))
}

/// What the manager's condition says, where it is not what is explained: it may know more (whether the workspace is served), or less
/// (it has not come to it yet).
pub(super) fn differs(cluster: &KubernetesCluster, explanation: &Explanation) -> Option<String> {
    let conditions = cluster.conditions();
    let Some(written) = condition::find(conditions, SCHEDULED) else {
        return Some("the cluster has no condition Scheduled yet: is the manager running, and does it serve this workspace?".to_owned());
    };
    if written.reason == explanation.reason && written.message == explanation.message {
        return None;
    }
    let since = if written.observed_generation == cluster.metadata.generation { "" } else { ", for an older generation" };
    Some(format!("the cluster's condition Scheduled says otherwise: {}: {}{since}", written.reason, written.message))
}

fn resource(kind: KindRef) -> Resource {
    Resource::new(kind.group, kind.version, kind.plural)
}

fn decoded<K: DeserializeOwned + Kind>(object: Value) -> anyhow::Result<K> {
    let what = format!("{}/{}", object["metadata"]["namespace"].as_str().unwrap_or_default(), object["metadata"]["name"]);
    let decoded = serde_path_to_error::deserialize(object);
    decoded.with_context(|| format!("the {} {what} cannot be decoded by this version", K::REF))
}

async fn catalog<K: Kind>(client: &AdminClient, workspace: &str, warnings: &mut Vec<String>) -> anyhow::Result<Vec<K>> {
    let objects = client.list(&resource(K::REF), "").await.map_err(|error| {
        let advice = if error.is_not_found() {
            format!(
                "workspace {workspace} serves no {}: it is no provider workspace, or kcm init has not run; see --provider-workspace",
                K::REF
            )
        } else {
            format!("cannot read the catalog in workspace {workspace}; the user needs list on {}", K::REF)
        };
        anyhow::Error::new(error).context(advice)
    })?;
    let mut found = Vec::new();
    for object in objects {
        match decoded(object) {
            Ok(object) => found.push(object),
            Err(problem) => warnings.push(format!("{problem:#}; it is left out")),
        }
    }
    Ok(found)
}

/// Why the cluster is not there: its kind is not served, or there are others.
async fn not_found(target: &Target, tenant: &AdminClient, provider: &str) -> anyhow::Error {
    let Target { name, namespace, workspace, .. } = target;
    let clusters = match tenant.list(&resource(KubernetesCluster::REF), "").await {
        Ok(clusters) => clusters,
        Err(error) if error.is_not_found() => {
            return anyhow::anyhow!(
                "workspace {workspace} serves no {}: bind the export there with `kcm bind --workspace {provider} | kubectl apply -f -`",
                KubernetesCluster::REF
            );
        }
        Err(error) => return refused(error, "the clusters", workspace),
    };
    let metadata = |cluster: &Value, field: &str| cluster["metadata"][field].as_str().unwrap_or_default().to_owned();
    let names = clusters.iter().map(|cluster| format!("{}/{}", metadata(cluster, "namespace"), metadata(cluster, "name")));
    let names: Vec<String> = names.take(NAMED).collect();
    let has = match clusters.len() {
        0 => "it has no cluster".to_owned(),
        count if count > NAMED => format!("it has {} and {} more", names.join(", "), count - NAMED),
        _ => format!("it has {}", names.join(", ")),
    };
    anyhow::anyhow!("there is no cluster {namespace}/{name} in workspace {workspace}; {has}")
}

/// How many clusters an error names: enough to see a slip of the keyboard.
const NAMED: usize = 10;

fn refused(error: AdminError, what: &str, workspace: &str) -> anyhow::Error {
    let advice = if error.is_forbidden() {
        format!(
            "cannot read {what} in workspace {workspace}: there is no such workspace, or the user may not read it; \
             it needs get on both kubernetesclusters and list on providers there"
        )
    } else if error.is_not_found() {
        format!("cannot read {what} in workspace {workspace}, which does not serve the kind: its binding is older than the export")
    } else {
        format!("cannot read {what} in workspace {workspace}")
    };
    anyhow::Error::new(error).context(advice)
}
