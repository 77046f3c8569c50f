//! `kcm drain`: who still lives behind the export, and waiting until nobody does.

pub mod living;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

pub use living::{Binding, Live, Living};

use super::connect::ConnectArgs;
use super::explain::Output;
use super::kcp_admin::{AdminClient, Resource};
use super::print_out;
use super::run::positive_span;
use super::virtual_workspaces::{Endpoint, EndpointArgs, endpoints};
use crate::api::config::Span;
use crate::api::manifest::export::EXPORT;
use crate::api::meta::Kind as _;
use crate::api::projection::Projection;
use crate::api::tenant::KubernetesCluster;

/// Between two looks of a wait: a LIST for each kind and endpoint, whose objects take seconds to minutes to go.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Nobody lives there any more.
pub const DRAINED: u8 = 0;
/// Somebody does.
pub const LIVING: u8 = 1;
/// It cannot be told.
pub const UNKNOWN: u8 = 2;

/// List what still lives in the workspaces that bind the export, and wait until nothing does
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm drain --workspace root:provider                          every cluster and projection of every tenant
  kcm drain --workspace root:provider -o json
  kcm drain --workspace root:provider --wait 30m               wait until tenants have deleted theirs
  kcm drain --workspace root:provider --delete --yes --wait 30m

The manager and the providers' controllers must go on running: what is deleted is kept by their finalizers until they have cleaned up.
Nothing of a tenant's is deleted without --delete and --yes.

Exit code: 0 nothing lives there, 1 something does, 2 it cannot be told: an endpoint does not answer, or may not be read.")]
pub struct DrainArgs {
    /// The provider workspace, and as whom its export's virtual workspaces are read.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where they are.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Wait at most this long until nothing is left, such as 30m; progress goes to standard error
    #[arg(long, value_name = "TIMEOUT", value_parser = positive_span)]
    pub wait: Option<Span>,
    /// Delete every tenant's clusters first, in every workspace
    #[arg(long, requires = "yes")]
    pub delete: bool,
    /// Yes, delete what tenants made
    #[arg(long, requires = "delete")]
    pub yes: bool,
    /// A table for people, or JSON for programs
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

impl DrainArgs {
    /// Prints what lives, and after a wait what is left.
    pub async fn run(self) -> ExitCode {
        match self.print().await {
            Ok(living) if living.is_empty() => DRAINED.into(),
            Ok(_) => LIVING.into(),
            Err(error) => {
                eprintln!("Error: {error:#}");
                UNKNOWN.into()
            }
        }
    }

    async fn print(&self) -> anyhow::Result<Living> {
        let mut first = true;
        let living = self
            .drain(|living| {
                // A program wants one answer: the last.
                if std::mem::take(&mut first) && self.output == Output::Text && !living.is_empty() {
                    eprint!("{}", living.table());
                }
                eprintln!("{}", living.summary());
            })
            .await?;
        let text = match self.output {
            Output::Text => living.table(),
            Output::Json => format!("{}\n", serde_json::to_string_pretty(&living.to_value())?),
        };
        print_out(&text).context("cannot print what lives")?;
        Ok(living)
    }

    /// Looks, deletes where that was asked for, and waits; `progress` hears of each change while it waits. Returns the last look, with what is
    /// left when the time is up. May be cancelled and repeated.
    pub async fn drain(&self, mut progress: impl FnMut(&Living)) -> anyhow::Result<Living> {
        let client = self.connect.client().await?;
        let mut living = look(&client, &self.endpoints).await?;
        if self.delete {
            anyhow::ensure!(self.yes, "deleting what tenants made needs --yes");
            delete(&client, &self.endpoints, &living).await?;
        }
        let Some(wait) = &self.wait else { return Ok(living) };
        progress(&living);
        let began = Instant::now();
        while !living.is_empty() && began.elapsed() < wait.get() {
            tokio::time::sleep(LOOK_EVERY.min(wait.get())).await;
            let now = look(&client, &self.endpoints).await?;
            if now.summary() != living.summary() {
                progress(&now);
            }
            living = now;
        }
        Ok(living)
    }
}

/// The kinds whose objects are a tenant's clusters, and what messages call them.
fn kinds() -> [(&'static str, Resource); 2] {
    [("kc", Resource::of(KubernetesCluster::REF)), ("pkc", Resource::of(Projection::REF))]
}

/// Everything that lives behind the export, behind every endpoint. An export that is gone has nobody.
///
/// # Errors
/// When it cannot be told: the export has no slice, or an endpoint cannot be read.
pub async fn look(client: &AdminClient, args: &EndpointArgs) -> anyhow::Result<Living> {
    let Some(endpoints) = behind(client, args).await? else { return Ok(Living::default()) };
    let mut living = Living::default();
    for endpoint in endpoints {
        let bindings = endpoint.bindings().await?;
        for (title, kind) in kinds() {
            living.objects.extend(endpoint.objects(&kind, &bindings).await?.iter().map(|object| Live::of(title, object)));
        }
        living.bindings.extend(bindings.iter().map(Binding::of));
    }
    living.objects.sort();
    living.bindings.sort();
    Ok(living)
}

/// `None` where there is no export. The manager may read the slice and not the export, which is asked only where there is no slice.
async fn behind(client: &AdminClient, args: &EndpointArgs) -> anyhow::Result<Option<Vec<Endpoint>>> {
    if let Some(endpoints) = endpoints(client, EXPORT, args).await? {
        return Ok(Some(endpoints));
    }
    let exports = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
    let export = client.find(&exports, "", EXPORT).await.context("cannot read the export")?;
    anyhow::ensure!(export.is_none(), "export {EXPORT} has no endpoint slice, so it cannot be told who lives behind it");
    Ok(None)
}

/// Deletes the tenants' clusters, each only as long as it is the one that was seen; the projections follow them.
async fn delete(client: &AdminClient, args: &EndpointArgs, living: &Living) -> anyhow::Result<()> {
    let [(title, kind), _] = kinds();
    for endpoint in behind(client, args).await?.into_iter().flatten() {
        let here = endpoint.bindings().await?;
        let is_here = |live: &&Live| here.iter().any(|binding: &Value| super::virtual_workspaces::workspace_of(binding) == live.workspace);
        for live in living.objects.iter().filter(|live| live.kind == title && live.deleted_at.is_none()).filter(is_here) {
            let workspace = endpoint.workspace(&live.workspace)?;
            let deleted = workspace.delete_exactly(&kind, &live.namespace, &live.name, &live.uid).await;
            deleted
                .with_context(|| format!("cannot delete {title}/{} in namespace {} of {}", live.name, live.namespace, live.workspace))?;
        }
    }
    Ok(())
}
