//! `kcm explain`: how a decision comes about, for a cluster on a server or for objects in files.

mod bounds;
mod input;
mod offline;
mod online;
mod world;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use self::world::World;
use super::connect::{ConnectArgs, file_name};
use super::print_out;
use crate::api::projection::Projection;
use crate::api::tenant::KubernetesCluster;
use crate::kcm::explain::{Explanation, render};

/// Every cluster is schedulable.
const SCHEDULABLE: u8 = 0;
/// Some cluster is not.
const UNSCHEDULABLE: u8 = 1;
/// There is no decision: the input is bad, or the server does not give it.
const NO_DECISION: u8 = 2;

/// How many problems are printed: enough to mend a file in one go, few enough to read.
const PRINTED: usize = 50;

/// Explain why a cluster is scheduled as it is, or why not, and what would change that
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm explain demo -n default --workspace root:orgs:acme                 a tenant's cluster; the kubeconfig is for the provider workspace
  kcm explain demo --workspace 2hx7k1zvvxv5hcw0 --provider-workspace root:provider -o json
  kcm explain -f catalog.yaml -f clusters.yaml                           files alone, for a catalog's own tests: asks no server
  kubectl get kc,pkc,prov -A -o yaml | kcm explain -f - catalog.yaml     a tenant's objects against another catalog

Files hold any mix of KubernetesCluster (both kinds), Provider, KubernetesClusterOffering, VirtualMachineType and ProviderConfig, as YAML
with several documents, JSON, or lists of them. All clusters in them share their Providers. Objects without a namespace are in default.

Not looked at: allowedWorkspaces of a ProviderConfig, whose paths only the manager resolves. A cluster that is schedulable here can still be
NotEntitled: in files a warning says so, on a server the cluster's own condition, which is shown as a warning.

Exit code: 0 all clusters are schedulable, 1 some are not, 2 there is no decision: bad input (file, document and field are named),
or a server that does not answer as it should.")]
pub struct ExplainArgs {
    /// The tenant's cluster
    #[arg(value_name = "NAME", required_unless_present = "files", conflicts_with = "files")]
    pub name: Option<String>,
    /// Its namespace
    #[arg(short, long, default_value = offline::NAMESPACE, value_name = "NAMESPACE", conflicts_with = "files")]
    pub namespace: String,
    /// The tenant's workspace: a path such as root:orgs:acme, or a logical cluster's name
    #[arg(long, value_name = "WORKSPACE", required_unless_present = "files", conflicts_with = "files")]
    pub workspace: Option<String>,
    /// The workspace with the catalog, in place of the one in the kubeconfig's server URL
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "files")]
    pub provider_workspace: Option<String>,
    /// Kubeconfig whose current context is used; of a list, the first file that exists. Default: ~/.kube/config
    #[arg(long, env = "KUBECONFIG", hide_env_values = true, value_name = "FILE", value_parser = file_name())]
    pub kubeconfig: Option<PathBuf>,
    /// Files to read in place of a server; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Text for people, or a JSON array with one entry per cluster for programs
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl ExplainArgs {
    /// Prints the explanations, and what stands in their way on standard error; the exit code says which.
    pub async fn run(self) -> ExitCode {
        let explained = if self.files.is_empty() { self.online().await } else { Ok(self.offline()) };
        let printed = explained.and_then(|explanations| {
            let Some(explanations) = explanations else { return Ok(NO_DECISION) };
            print(&explanations, self.output).context("cannot write the answer")?;
            Ok(if explanations.iter().all(|explanation| explanation.scheduled) { SCHEDULABLE } else { UNSCHEDULABLE })
        });
        printed.map_or_else(
            |error| {
                eprintln!("Error: {error:#}");
                ExitCode::from(NO_DECISION)
            },
            ExitCode::from,
        )
    }

    /// `None` once the problems are printed.
    fn offline(&self) -> Option<Vec<Explanation>> {
        let gathered = input::read(&self.files).and_then(offline::gather);
        match gathered {
            Ok(offline::Gathered { world, warnings }) => Some(decide(&world, &warnings, world::in_files)),
            Err(problems) => {
                for problem in problems.iter().take(PRINTED) {
                    eprintln!("Error: {problem}");
                }
                if problems.len() > PRINTED {
                    eprintln!("Error: and {} more problems", problems.len() - PRINTED);
                }
                None
            }
        }
    }

    async fn online(&self) -> anyhow::Result<Option<Vec<Explanation>>> {
        let target = online::Target {
            name: self.name.clone().context("NAME is missing")?,
            namespace: self.namespace.clone(),
            workspace: self.workspace.clone().context("--workspace is missing")?,
            provider: ConnectArgs { kubeconfig: self.kubeconfig.clone(), workspace: self.provider_workspace.clone() },
        };
        let (world, warnings) = online::gather(&target).await?;
        let explanations = decide(&world, &warnings, world::on_a_server);
        let notes = world.clusters.iter().zip(&explanations).filter_map(|(cluster, explanation)| online::differs(cluster, explanation));
        notes.for_each(|note| warn(&note));
        Ok(Some(explanations))
    }
}

/// The decisions, after everything that puts them into doubt.
fn decide(world: &World, warnings: &[String], whose: fn(&Projection, &KubernetesCluster) -> world::Use) -> Vec<Explanation> {
    let (explanations, notes) = world.explanations(whose);
    warnings.iter().chain(&notes).for_each(|warning| warn(warning));
    explanations
}

fn warn(text: &str) {
    eprintln!("Warning: {text}");
}

fn print(explanations: &[Explanation], output: Output) -> io::Result<()> {
    let text = match output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(explanations)?),
        Output::Text => explanations.iter().map(render).collect::<Vec<_>>().join("\n"),
    };
    print_out(&text)
}
