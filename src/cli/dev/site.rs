//! The requests of `kcm dev` to its control plane: as its administrator, in the provider workspace and in the tenants'.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::kubeconfig::contexts;
use super::plane::Plane;
use super::rows::{Row, rows};
use super::{expectations, scenario};
use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::manifest::{export, files};
use crate::api::meta::{Kind, KindRef};
use crate::api::names::LogicalCluster;
use crate::api::projection::Projection;
use crate::api::provider::Provider;
use crate::api::tenant::KubernetesCluster;
use crate::cli::connect::{ConnectArgs, Connection};
use crate::cli::init::{self, Identity, identity};
use crate::cli::kcp_admin::{AdminClient, AdminError, Resource, write_private};

/// What was just bound, or allowed, is served seconds later, on a busy machine after tens of them.
const SERVED_WITHIN: Duration = Duration::from_mins(2);
/// How often something that is not served yet is tried again.
const TRY_EVERY: Duration = Duration::from_millis(100);

const BINDINGS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apibindings");
const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");

/// One control plane, its administrator, and the folder that goes with it.
pub(super) struct Site {
    root: AdminClient,
    base: String,
    /// Readable by its owner only; removed with the control plane.
    folder: PathBuf,
    admin_kubeconfig: PathBuf,
    /// How many requests of one account may wait for an answer at once.
    pub(super) requests: Option<usize>,
    /// The workspaces made here, for people.
    paths: Mutex<BTreeMap<LogicalCluster, String>>,
}

/// Where a kind of ours is served.
pub(super) const fn resource(kind: KindRef) -> Resource {
    Resource::new(kind.group, kind.version, kind.plural)
}

impl Site {
    pub(super) async fn of(plane: &Plane) -> anyhow::Result<Self> {
        Ok(Self {
            root: plane.admin().await?,
            base: plane.url(),
            folder: plane.folder().to_owned(),
            admin_kubeconfig: plane.admin_kubeconfig(),
            requests: plane.requests(),
            paths: Mutex::default(),
        })
    }

    /// A file in its folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes a workspace below `root` and waits until it is there.
    pub(super) async fn workspace(&self, name: &str) -> anyhow::Result<LogicalCluster> {
        let logical_cluster = self.root.create_workspace("root", name).await?;
        self.paths.lock().insert(logical_cluster.clone(), format!("root:{name}"));
        Ok(logical_cluster)
    }

    /// The administrator in a workspace.
    pub(super) fn inside(&self, workspace: &LogicalCluster) -> anyhow::Result<AdminClient> {
        Ok(self.root.in_workspace(workspace.as_str())?)
    }

    /// The provider workspace, as `kcm init` wants it.
    pub(super) async fn connection(&self) -> anyhow::Result<Connection> {
        let workspace = format!("root:{}", scenario::PROVIDER_WORKSPACE);
        ConnectArgs { kubeconfig: Some(self.admin_kubeconfig.clone()), workspace: Some(workspace) }.connect().await
    }

    /// What `kcm init` does, for the manager or for a provider's door.
    pub(super) async fn init(&self, connection: &Connection, provider: Option<&str>) -> anyhow::Result<Identity> {
        let options =
            init::Options { connection: connection.clone(), provider: provider.map(Into::into), manage_exports: false, dry_run: false };
        Ok(init::init(&options).await?.identity)
    }

    /// The kubeconfig of an identity that is no administrator.
    pub(super) async fn issue(&self, connection: &Connection, issued: &Identity) -> anyhow::Result<PathBuf> {
        let file = self.file(&format!("{}.kubeconfig", issued.namespace));
        identity::write_kubeconfig(connection, issued, &file).await?;
        Ok(file)
    }

    /// What an export claims, as it stands there.
    pub(super) async fn claims(&self, connection: &Connection, export: &str) -> anyhow::Result<Vec<Value>> {
        let live = connection.client.get(&EXPORTS, "", export).await?;
        Ok(live["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default())
    }

    /// Applies a tenant's binding.
    pub(super) async fn bind(&self, tenant: &AdminClient, binding: &Value) -> anyhow::Result<()> {
        create(tenant, &BINDINGS, "", binding).await
    }

    /// The clusters of every tenant, read the way the manager reads them; `None` while nobody has bound the export.
    pub(super) async fn look(&self, provider: &LogicalCluster) -> anyhow::Result<Option<Vec<Row>>> {
        let every = self.root.at_path(&format!("/services/apiexport/{provider}/{}/clusters/*", export::EXPORT))?;
        let listed = async |kind: KindRef| match every.list(&resource(kind), "").await {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        };
        let (clusters, projections) = tokio::try_join!(listed(KubernetesCluster::REF), listed(Projection::REF))?;
        let paths = self.paths.lock();
        Ok(clusters.map(|clusters| rows(&clusters, &projections.unwrap_or_default(), &paths)))
    }

    /// Writes the kubeconfig with a context for each workspace, and the manifest that mends the unschedulable cluster.
    pub(super) fn write_files(&self) -> anyhow::Result<[PathBuf; 2]> {
        let tenants = scenario::TENANTS.iter().map(|tenant| (tenant.name.to_owned(), expectations::workspace(tenant)));
        let provider = (scenario::PROVIDER_WORKSPACE.to_owned(), format!("root:{}", scenario::PROVIDER_WORKSPACE));
        let workspaces: Vec<_> = tenants.chain([provider]).collect();
        let admin = Kubeconfig::read_from(&self.admin_kubeconfig)?;
        let kubeconfig = contexts(&admin, &self.base, &workspaces).context("the administrator's kubeconfig has no current context")?;
        let files = [self.file("dev.kubeconfig"), self.file("provider-otc.yaml")];
        write_private(&files[0], &serde_json::to_string_pretty(&kubeconfig)?)?;
        std::fs::write(&files[1], files::yaml(&scenario::fix()))?;
        Ok(files)
    }
}

/// Creates an object as soon as the server lets it: 403, 404 and 5xx are kcp's words for "not yet".
async fn create(client: &AdminClient, resource: &Resource, namespace: &str, object: &Value) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        match client.create(resource, namespace, object).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => return Ok(()),
            Err(error) if is_final(&error) || began.elapsed() > SERVED_WITHIN => return Err(error.into()),
            Err(_) => tokio::time::sleep(TRY_EVERY).await,
        }
    }
}

fn is_final(error: &AdminError) -> bool {
    matches!(error.code(), Some(400 | 401 | 422))
}

/// Creates one of our kinds, in whichever workspace the client is.
pub(super) async fn put(client: &AdminClient, object: &Value) -> anyhow::Result<()> {
    const KINDS: [KindRef; 4] = [KubernetesCluster::REF, Provider::REF, KubernetesClusterOffering::REF, VirtualMachineType::REF];
    let is = |kind: &&KindRef| object["kind"] == kind.kind && object["apiVersion"] == kind.api_version();
    let kind = KINDS.iter().find(is).with_context(|| format!("no kind of the scenario: {}", object["kind"]))?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    create(client, &resource(*kind), namespace, object).await
}
