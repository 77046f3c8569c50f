//! The command line of `kcm`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use super::{bind, dev, doctor, drain, explain, init, manifests, manuals, run, servers, uninstall};

/// Orders Kubernetes clusters in kcp workspaces: a scheduler and its runtime.
#[derive(Debug, Parser)]
#[command(name = "kcm", version, about, max_term_width = 120, arg_required_else_help = true)]
#[command(after_help = "Start here:
  kcm dev                                     a control plane on this machine, with tenants and clusters to play with
  kcm init --workspace root:provider          set up a provider workspace
  kcm run --workspace root:provider           run the manager")]
pub struct Cli {
    /// Log lines as JSON
    #[arg(long, global = true)]
    pub log_json: bool,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a control plane with tenants and clusters on this machine, and watch.
    Dev(dev::DevArgs),
    /// Set up a provider workspace, or a provider's door.
    Init(init::InitArgs),
    /// Run the manager.
    Run(run::RunArgs),
    /// Print the binding that a tenant applies.
    Bind(bind::BindArgs),
    /// Explain why a cluster is scheduled as it is, or why not.
    Explain(explain::ExplainArgs),
    /// Check a provider workspace: what is missing, and what to do.
    Doctor(doctor::DoctorArgs),
    /// List what still lives in the workspaces that bind, and wait until nothing does.
    Drain(drain::DrainArgs),
    /// Remove what init made, once nothing lives behind it.
    Uninstall(uninstall::UninstallArgs),
    /// Print the manifests, or write them to a folder.
    Manifests(manifests::ManifestsArgs),
    /// Print the completions of a shell.
    Completions(manuals::CompletionsArgs),
    /// Write the man pages to a folder.
    #[command(hide = true)]
    Man(manuals::ManArgs),
    /// Build the real servers that `dev --kcp` and the tests run, once.
    #[command(hide = true)]
    Servers(servers::ServersArgs),
}

impl Cli {
    /// Runs the verb; an error is for the terminal, with exit code 1. Some verbs have codes of their own.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        // `dev` logs to a file, so that its table stays readable.
        if !matches!(self.verb, Verb::Dev(_)) {
            log_to_stderr(self.log_json);
        }
        match self.verb {
            Verb::Dev(verb) => verb.run(self.log_json).await?,
            Verb::Init(verb) => verb.run().await?,
            Verb::Run(verb) => verb.run().await?,
            Verb::Bind(verb) => verb.run().await?,
            Verb::Explain(verb) => return Ok(verb.run().await),
            Verb::Doctor(verb) => return verb.run().await,
            Verb::Drain(verb) => return Ok(verb.run().await),
            Verb::Uninstall(verb) => return Ok(verb.run().await),
            Verb::Manifests(verb) => verb.run().await?,
            Verb::Completions(verb) => verb.run().await?,
            Verb::Man(verb) => verb.run().await?,
            Verb::Servers(verb) => verb.run().await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `RUST_LOG` chooses what is logged; the default is our own `info` and everybody's warnings.
fn log_to_stderr(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,kcp_provider_runtime=info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A subscriber that is there already stays: a test may have set one.
    let _ = if json { lines.json().try_init() } else { lines.try_init() };
}
