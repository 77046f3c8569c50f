//! `kcm uninstall`: what `init` made is removed, once nobody lives behind it.

pub mod plan;

use std::fmt;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

pub use plan::{Removal, What};

use super::connect::{ConnectArgs, Connection};
use super::drain::{self, Living};
use super::init::prune;
use super::kcp_admin::{AdminClient, Resource};
use super::print_out;
use super::virtual_workspaces::{EndpointArgs, endpoints, workspace_of};
use crate::api::manifest::binding::WORKSPACE_TYPE;
use crate::api::manifest::door::Door;
use crate::api::manifest::export::EXPORT;

/// How often the workspace type is changed anew because somebody else wrote it in between.
const ATTEMPTS: usize = 5;

/// Remove what init made from a provider workspace, once nothing lives behind its export
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm drain --workspace root:provider --wait 30m     first: until tenants have deleted their clusters
  kcm uninstall --workspace root:provider --dry-run  then, with the manager stopped: what would be removed
  kcm uninstall --workspace root:provider
  kcm uninstall --workspace root:provider --catalog  also the catalog's kinds, with everything in the catalog

Removes, in this order: disconnect guards in tenants' workspaces, the default bindings of the workspace type, the providers' doors, the export, its schemas, roles and identities, and
with --catalog the catalog's kinds. Repeating it is fine. While clusters live it refuses and says where; with --force they stay with
their finalizers, until somebody takes these off by hand or kcm init sets the platform up again.

Exit code: 0 removed, 1 refused: something lives there, 2 it cannot be told, or a removal failed.")]
pub struct UninstallArgs {
    /// The provider workspace, as somebody who may write all of it.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// How it is told who lives behind the export.
    #[command(flatten)]
    pub endpoints: EndpointArgs,
    /// Also remove the catalog's kinds: offerings, machine types and configurations go with them
    #[arg(long)]
    pub catalog: bool,
    /// Remove nothing; say what would be
    #[arg(long)]
    pub dry_run: bool,
    /// Remove it even if clusters live there, or if that cannot be told
    #[arg(long)]
    pub force: bool,
}

/// What [`UninstallArgs::uninstall`] did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Who lives there; `None` where it could not be told and `force` went on regardless.
    pub living: Option<Living>,
    /// Whether nothing was removed because of them.
    pub refused: bool,
    /// One step for each object in its order; empty when refused.
    pub steps: Vec<Step>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// What became of one object, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `kind/name`.
    pub object: String,
    /// Whether it was there.
    pub outcome: Outcome,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there and is removed, or is on its way.
    Removed,
    /// It was not there.
    Absent,
    /// It was changed, not removed.
    Changed,
    /// It stays; why.
    Kept(&'static str),
}

impl fmt::Display for Step {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            Outcome::Removed => writeln!(f, "delete     {}", self.object),
            Outcome::Absent => writeln!(f, "absent     {}", self.object),
            Outcome::Changed => writeln!(f, "update     {}", self.object),
            Outcome::Kept(why) => writeln!(f, "keep       {}: {why}", self.object),
        }
    }
}

impl fmt::Display for Report {
    /// A line for each step, then a summary; or why it was refused.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (true, Some(living)) = (self.refused, &self.living) {
            writeln!(f, "refused: {}", living.summary())?;
            for (workspace, count) in living.counts() {
                writeln!(f, "  {workspace}: {count}")?;
            }
            return writeln!(f, "kcm drain lists them and waits for them; --force leaves them behind with their finalizers");
        }
        for step in &self.steps {
            step.fmt(f)?;
        }
        let verb = if self.dry_run { "would be removed or changed" } else { "removed or changed" };
        writeln!(f, "{} {verb}", self.changes())?;
        let bindings = self.living.iter().flat_map(|living| &living.bindings);
        for binding in bindings {
            writeln!(f, "Warning: workspace {} still has the binding {}, which only it can delete", binding.workspace, binding.name)?;
        }
        Ok(())
    }
}

impl Report {
    /// How many objects were there.
    pub fn changes(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.outcome, Outcome::Removed | Outcome::Changed)).count()
    }
}

impl UninstallArgs {
    /// Prints what was removed, or why nothing was.
    pub async fn run(self) -> ExitCode {
        let printed = async {
            let report = self.uninstall().await?;
            print_out(&report.to_string()).context("cannot print what was removed")?;
            Ok::<_, anyhow::Error>(report)
        };
        match printed.await {
            Ok(Report { refused: false, .. }) => drain::DRAINED.into(),
            Ok(_) => drain::LIVING.into(),
            Err(error) => {
                eprintln!("Error: {error:#}");
                drain::UNKNOWN.into()
            }
        }
    }

    /// Removes what `init` made, or finds out what that would be. May be cancelled and repeated: the order is such that nobody comes in meanwhile.
    ///
    /// # Errors
    /// When it cannot be told who lives there and nothing forces it; and when the server refuses a removal.
    pub async fn uninstall(&self) -> anyhow::Result<Report> {
        let Connection { client, path, .. } = self.connect.connect().await?;
        let living = match drain::look(&client, &self.endpoints).await {
            Ok(living) => Some(living),
            Err(error) if self.force => {
                tracing::warn!(error = format!("{error:#}"), "it cannot be told who lives behind the export; going on");
                None
            }
            Err(error) => return Err(error.context("nothing was removed: it cannot be told who lives behind the export")),
        };
        let refused = !self.force && living.as_ref().is_some_and(|living| !living.is_empty());
        let steps = if refused { Vec::new() } else { self.remove(&client, &path).await? };
        Ok(Report { living, refused, steps, dry_run: self.dry_run })
    }

    async fn remove(&self, client: &AdminClient, path: &str) -> anyhow::Result<Vec<Step>> {
        let exports = client.list(&plan::EXPORTS, "").await.context("cannot list the exports")?;
        let doors = plan::doors(&exports);
        let mut steps = self.unguard(client, &exports).await?;
        steps.push(self.close(client, path, &doors).await?);
        let mut removals: Vec<Removal> = doors.iter().flat_map(plan::door).collect();
        removals.push(plan::export());
        // Listed before the export goes: what others still name must stay.
        let schemas = client.list(&plan::SCHEMAS, "").await.context("cannot list the schemas")?;
        let others: Vec<&Value> = exports.iter().filter(|export| !plan::is_ours(export)).collect();
        for schema in schemas.iter().filter(|schema| prune::is_ours(schema)) {
            removals.push(plan::schema(schema, &others));
        }
        removals.extend(plan::roles());
        removals.extend(plan::catalog(self.catalog));
        for removal in removals {
            steps.push(self.one(client, removal).await?);
        }
        Ok(steps)
    }

    /// Takes the disconnect guards out of the tenants' workspaces, while the export still lets us in: one that stays would hold its binding for ever.
    async fn unguard(&self, client: &AdminClient, exports: &[Value]) -> anyhow::Result<Vec<Step>> {
        let mut steps = Vec::new();
        if !exports.iter().any(plan::claims_guard) {
            return Ok(steps);
        }
        let endpoints = match endpoints(client, EXPORT, &self.endpoints).await {
            Err(_) if self.force => None,
            found => found?,
        };
        for endpoint in endpoints.into_iter().flatten() {
            let bindings = match endpoint.bindings().await {
                Err(_) if self.force => continue,
                found => found?,
            };
            for place in bindings.iter().map(workspace_of) {
                let workspace = endpoint.workspace(place)?;
                for Removal { resource, name, .. } in plan::guard() {
                    // Where the claim is not accepted, there is no guard, and no way to it.
                    if let Ok(Some(_)) = workspace.find(&resource, "", &name).await {
                        let object = format!("{}/{name} in workspace {place}", resource.plural);
                        if !self.dry_run {
                            workspace.delete(&resource, "", &name).await.with_context(|| format!("cannot delete {object}"))?;
                        }
                        steps.push(Step { object, outcome: Outcome::Removed });
                    }
                }
            }
        }
        Ok(steps)
    }

    async fn one(&self, client: &AdminClient, removal: Removal) -> anyhow::Result<Step> {
        let Removal { resource, namespace, name, what } = removal;
        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let object = format!("{}/{place}{name}", resource.plural.trim_end_matches('s'));
        let found = client.find(&resource, &namespace, &name).await.with_context(|| format!("cannot read {object}"))?;
        let outcome = match (found, what) {
            (None, _) => Outcome::Absent,
            (Some(_), What::Kept(why)) => Outcome::Kept(why),
            (Some(_), What::Removed) if self.dry_run => Outcome::Removed,
            (Some(_), What::Removed) => {
                client.delete(&resource, &namespace, &name).await.with_context(|| format!("cannot delete {object}"))?;
                Outcome::Removed
            }
        };
        Ok(Step { object, outcome })
    }

    /// Takes our exports out of the workspace type, so that no new workspace binds them. The type itself stays: workspaces name it.
    async fn close(&self, client: &AdminClient, path: &str, doors: &[Door]) -> anyhow::Result<Step> {
        let types = Resource::new("tenancy.kcp.io", "v1alpha1", "workspacetypes");
        let step = |outcome| Step { object: format!("workspacetype/{WORKSPACE_TYPE}"), outcome };
        for attempt in 1.. {
            let found = client.find(&types, "", WORKSPACE_TYPE).await.context("cannot read the workspace type")?;
            let Some(live) = found else { return Ok(step(Outcome::Absent)) };
            let Some(closed) = plan::closed(&live, path, doors) else {
                return Ok(step(Outcome::Kept("workspaces name it, and it binds nothing of this")));
            };
            if self.dry_run {
                return Ok(step(Outcome::Changed));
            }
            match client.replace(&types, "", WORKSPACE_TYPE, &closed).await {
                Ok(_) => return Ok(step(Outcome::Changed)),
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
                Err(error) => return Err(error).context("cannot take the exports out of the workspace type"),
            }
        }
        unreachable!("the loop has no end of its own")
    }
}
