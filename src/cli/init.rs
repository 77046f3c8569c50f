//! `kcm init`: a provider workspace with everything that tenants, providers and the manager need, and nothing changed the second time.

pub mod desired;
pub mod extras;
pub mod identity;
pub mod narrow;
pub mod plan;
pub mod prune;
pub mod upsert;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

pub use extras::Extras;
pub use identity::Identity;
use plan::Desired;
pub use upsert::{Outcome, Step};

use super::connect::{ConnectArgs, Connection};
use super::kcp_admin::{AdminClient, Resource};
use super::virtual_workspaces::EndpointArgs;
use crate::api::manifest::door::{CONTROLLER, Door};
use crate::api::manifest::{catalog, export, rbac};

/// kcp takes a second or two for either; a busy machine gets longer.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

const EXPORTS: Resource = Resource::new("apis.kcp.io", "v1alpha2", "apiexports");
const SCHEMAS: Resource = Resource::new("apis.kcp.io", "v1alpha1", "apiresourceschemas");
const CRDS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Set up a provider workspace, or a provider's door in it; repeating it changes nothing
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm init --workspace root:provider                        kinds, export, roles, workspace type
  kcm init --workspace root:provider --dry-run              what that would change
  kcm init --workspace root:provider --write-kubeconfig kcm.kubeconfig
                                                            also the manager's own identity
  kcm init --workspace root:provider --provider otc --write-kubeconfig otc.kubeconfig
                                                            a door for the controller of provider otc
  kcm init --workspace root:provider --export-label ui.platform-mesh.io/content-for=kubernetes.edge-connect.eu
                                                            a mark on the export; it stays in later runs
  kcm init --workspace root:provider --disconnect-guard     tenants may not unbind while their clusters live
  kcm init --workspace root:provider --direct-writes kcm-prod
                                                            the manager is that user, and may write past the virtual workspace

A schema that no export names and no binding uses any more is deleted; each that stays is named with its reason. Before you leave:
kcm drain, kcm uninstall.")]
pub struct InitArgs {
    #[command(flatten)]
    /// Where to, and as whom.
    pub connect: ConnectArgs,
    /// Set up this provider's door instead: an export of claims, an identity, and its grants
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Also let the manager's identity write the exports, for a configuration with `exports: Manage`, which upserts them at its start
    #[arg(long, conflicts_with = "provider")]
    pub manage_exports: bool,
    /// Write nothing; say what would be created and show what would change
    #[arg(long, conflicts_with = "write_kubeconfig")]
    pub dry_run: bool,
    /// Write a kubeconfig with the manager's (or the provider's) own identity to this file, mode 0600
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
    /// Marks, claims and old schemas.
    #[command(flatten)]
    pub extras: Extras,
    /// How bindings are looked at, for old schemas.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
}

/// What [`init`] is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The provider workspace, as somebody who may write all of it.
    pub connection: Connection,
    /// A provider whose door is set up, in place of the workspace's own things.
    pub provider: Option<String>,
    /// Whether the manager's identity may write the exports.
    pub manage_exports: bool,
    /// Whether only to say what would be done.
    pub dry_run: bool,
}

/// What [`init`] did.
#[derive(Clone, Debug)]
pub struct Report {
    /// One step for each object, in the order they were written.
    pub steps: Vec<Step>,
    /// What became of the schemas of earlier versions.
    pub old_schemas: Vec<prune::Old>,
    /// Who the set-up is for: the manager, or the provider's controller.
    pub identity: Identity,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl Report {
    /// How many objects were not as they should be.
    pub fn changes(&self) -> usize {
        self.steps.iter().filter(|step| step.outcome != Outcome::Unchanged).count()
    }
}

impl fmt::Display for Report {
    /// A line for each change with its diff, then a summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.steps.iter().filter(|step| step.outcome != Outcome::Unchanged) {
            step.fmt(f)?;
        }
        for old in &self.old_schemas {
            old.fmt(f)?;
        }
        let (changes, unchanged) = (self.changes(), self.steps.len() - self.changes());
        let verb = if self.dry_run { "would change" } else { "changed" };
        writeln!(f, "{changes} {verb}, {unchanged} unchanged")
    }
}

impl InitArgs {
    /// Sets the workspace up, prints what was done, and writes the kubeconfig that was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let connection = self.connect.connect().await?;
        let options = Options { connection, provider: self.provider, manage_exports: self.manage_exports, dry_run: self.dry_run };
        let report = init_with(&options, &self.extras, &self.endpoints).await?;
        print!("workspace {}\n{report}", options.connection.path);
        if let Some(file) = self.write_kubeconfig {
            identity::write_kubeconfig(&options.connection, &report.identity, &file).await?;
            println!("wrote {}: {}/{}", file.display(), report.identity.namespace, report.identity.account);
        }
        Ok(())
    }
}

/// Brings the provider workspace to what it should be and waits until the server has taken it in: kinds established, identity known.
///
/// Changes nothing that is right already and nothing that others added. May be cancelled and repeated. A door needs the export: fails
/// when the workspace was not set up before.
pub async fn init(options: &Options) -> anyhow::Result<Report> {
    // On the heap: what a whole set-up holds is large for a caller's stack.
    Box::pin(init_with(options, &Extras::default(), &EndpointArgs::default())).await
}

/// The same with what may be asked for besides; schemas of earlier versions that are proven unused are collected at the end.
pub async fn init_with(options: &Options, extras: &Extras, endpoints: &EndpointArgs) -> anyhow::Result<Report> {
    let Options { connection: Connection { client, path, .. }, provider, manage_exports, dry_run } = options;
    let (steps, identity) = match provider {
        Some(provider) => door(client, path, provider, extras, *dry_run).await?,
        None => (workspace(client, path, *manage_exports, extras, *dry_run).await?, manager()),
    };
    let old_schemas = match provider {
        Some(_) => Vec::new(),
        None => old_schemas(client, extras, endpoints, *dry_run).await?,
    };
    Ok(Report { steps, old_schemas, identity, dry_run: *dry_run })
}

/// Collects them where it was asked for, or says why it could not; without being asked, that is no reason to fail.
async fn old_schemas(client: &AdminClient, extras: &Extras, endpoints: &EndpointArgs, dry_run: bool) -> anyhow::Result<Vec<prune::Old>> {
    match prune::prune(client, endpoints, dry_run).await {
        Err(error) if extras.prune_schemas => Err(error.context("no schema was deleted: it cannot be told which ones are unused")),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "old schemas stay: it cannot be told which ones are unused");
            Ok(Vec::new())
        }
        Ok(old) => Ok(old),
    }
}

/// Upserts the schemas and the export, and waits for the export's identity, which it returns with the steps.
///
/// Schemas are only ever added; claims of opt-in sets stay. Every existing binding follows a new schema by itself, in about ten seconds: one
/// that would take something away from tenants is refused, with the fields, before anything is written.
pub async fn upsert_exports(client: &AdminClient) -> anyhow::Result<(Vec<Step>, String)> {
    takes_nothing_away(client, &desired::exports()).await?;
    write_exports(client, &Extras::default()).await
}

async fn write_exports(client: &AdminClient, extras: &Extras) -> anyhow::Result<(Vec<Step>, String)> {
    let steps = upsert::upsert(client, &extras.on(desired::exports()), false).await?;
    Ok((steps, identity_hash(client, export::EXPORT).await?))
}

fn manager() -> Identity {
    Identity { namespace: rbac::MANAGER_NAMESPACE.into(), account: rbac::MANAGER.into(), export: export::EXPORT.into() }
}

async fn workspace(client: &AdminClient, path: &str, manage_exports: bool, extras: &Extras, dry_run: bool) -> anyhow::Result<Vec<Step>> {
    takes_nothing_away(client, &[desired::crds(), desired::exports()].concat()).await?;
    let mut steps = upsert::upsert(client, &desired::crds(), dry_run).await?;
    if dry_run {
        steps.extend(upsert::upsert(client, &extras.on(desired::exports()), dry_run).await?);
    } else {
        for definition in catalog() {
            let name = definition.kind.resource();
            client.wait_for(&CRDS, "", &name, "to be Established", SETTLED_WITHIN, |crd| is_true(crd, "Established")).await?;
        }
        steps.extend(write_exports(client, extras).await?.0);
    }
    steps.extend(upsert::upsert(client, &desired::workspace(path, manage_exports, extras.direct_writes.as_deref()), dry_run).await?);
    Ok(steps)
}

/// Compares every kind with the one that is in force. Reads only.
async fn takes_nothing_away(client: &AdminClient, desired: &[Desired]) -> anyhow::Result<()> {
    let find = async |resource: &Resource, name: &str| {
        client.find(resource, "", name).await.with_context(|| format!("cannot compare {name} with the one in force"))
    };
    let export = find(&EXPORTS, export::EXPORT).await?.unwrap_or_default();
    let in_force = |spec: &Value| {
        let same = |resource: &&Value| resource["group"] == spec["group"] && resource["name"] == spec["names"]["plural"];
        let all = export["spec"]["resources"].as_array().into_iter().flatten();
        all.clone().find(same).and_then(|resource| resource["schema"].as_str()).map(ToOwned::to_owned)
    };
    let mut found = Vec::new();
    for wanted in desired {
        let object = &wanted.object;
        let (spec, kind) = (&object["spec"], object["kind"].as_str());
        let live = match kind {
            Some("CustomResourceDefinition") => find(&CRDS, object["metadata"]["name"].as_str().unwrap_or_default()).await?,
            Some("APIResourceSchema") => match in_force(spec) {
                Some(name) => find(&SCHEMAS, &name).await?,
                None => None,
            },
            _ => None,
        };
        let Some(live) = live else { continue };
        // What others added, such as one more version, stays: what counts is what would be written.
        let written = match plan::plan(wanted, Some(&live)) {
            plan::Action::Update(body) => body,
            _ => object.clone(),
        };
        let spec = &written["spec"];
        let title = format!("{}.{}", spec["names"]["plural"].as_str().unwrap_or_default(), spec["group"].as_str().unwrap_or_default());
        found.extend(narrow::narrowed(&live["spec"], spec).iter().map(|narrowed| format!("  {title} {narrowed}")));
    }
    anyhow::ensure!(
        found.is_empty(),
        "this version's schemas would take something away from the objects and writes of {}, at once in every workspace; nothing was written:\n{}\n\
         Run the version that made them, or change these fields back; what is to go needs a new version of its API beside the old one",
        client.url(),
        found.join("\n")
    );
    Ok(())
}

async fn door(client: &AdminClient, path: &str, provider: &str, extras: &Extras, dry_run: bool) -> anyhow::Result<(Vec<Step>, Identity)> {
    // A wrong name is refused before anything is asked.
    Door::new(provider, "").map_err(anyhow::Error::msg)?;
    let export = client.find(&EXPORTS, "", export::EXPORT).await?;
    export.with_context(|| format!("{} has no export {}: run init without --provider first", client.url(), export::EXPORT))?;
    let hash = identity_hash(client, export::EXPORT).await?;
    let door = Door::new(provider, &hash).map_err(anyhow::Error::msg)?;
    let steps = upsert::upsert(client, &extras.on(desired::door(path, &door)), dry_run).await?;
    if !dry_run {
        identity_hash(client, &door.export_name()).await?;
    }
    Ok((steps, Identity { namespace: door.namespace(), account: CONTROLLER.into(), export: door.export_name() }))
}

async fn identity_hash(client: &AdminClient, export: &str) -> anyhow::Result<String> {
    let hash = |export: &Value| export["status"]["identityHash"].as_str().filter(|hash| !hash.is_empty()).map(ToOwned::to_owned);
    let export = client.wait_for(&EXPORTS, "", export, "to have an identity", SETTLED_WITHIN, |export| hash(export).is_some()).await?;
    hash(&export).context("the identity was there a moment ago")
}

fn is_true(object: &Value, condition: &str) -> bool {
    object["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(|c| c["type"] == condition && c["status"] == "True"))
}
