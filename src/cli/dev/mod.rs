//! `kcm dev`: the whole of it on this machine, with tenants and clusters to play with.
//!
//! Reading order: [`scenario`] (what there is), [`rows`] (what the server shows), [`expectations`] (whether it is right), [`table`] (how it
//! looks); then `run` (beginning and end), `plane` (the server), `serve` (nothing but the server), `setup` (who is made when), `site` (requests)
//! and `screen` (output).

pub mod expectations;
mod kubeconfig;
mod plane;
pub mod rows;
mod run;
pub mod scenario;
mod screen;
mod serve;
mod setup;
mod site;
pub mod table;
mod verdict;

/// The example's provider, as its team wrote it: one file, on public items alone.
#[path = "../../../examples/provider-otc/provider.rs"]
mod provider;

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

/// Run a control plane with a catalog, two providers and three tenants on this machine, and watch their clusters
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("for-programs").args(["once", "serve_only"])))]
#[command(after_help = "Examples:
  kcm dev                      until Ctrl-C; prints the kubeconfig and three kubectl lines to try
  kcm dev --once               play the scenario, print the table; exit 0 only if everything came out as it should
  kcm dev --once -o json       the same for a program
  kcm dev --kcp                all of this on a real kcp in place of the embedded control plane
  kcm dev --serve-only --workspace provider --workspace team-a --write-kubeconfig dev.kubeconfig
                               the embedded control plane alone, for kubectl and for a provider in any language
  kcm dev --serve-only -o json & the same in a script, which reads one line once it is ready

The embedded control plane is a kcp in memory and needs nothing. --kcp needs Go once, to build kcp (KCP_BINARY names a kcp to use instead).
Everything is gone at the end: the control plane, its data, logs, kubeconfigs.")]
pub struct DevArgs {
    /// Play the scenario through, the cluster that cannot be scheduled at first included, print the table and end
    #[arg(long, conflicts_with = "serve_only")]
    pub once: bool,
    /// Run on a real kcp in place of the embedded control plane
    #[arg(long, conflicts_with = "serve_only")]
    pub kcp: bool,
    /// Serve the embedded control plane without the scenario, until Ctrl-C
    #[arg(long)]
    pub serve_only: bool,
    /// A workspace to make, by its path with or without the leading root:; may be given several times
    #[arg(long = "workspace", value_name = "PATH", requires = "serve_only")]
    pub workspaces: Vec<String>,
    /// The port on 127.0.0.1; 0 is any free one
    #[arg(long, default_value_t, requires = "serve_only")]
    pub port: u16,
    /// Write the administrator's kubeconfig to this file, mode 0600, once everything is there; it is removed at the end
    #[arg(long, value_name = "FILE", requires = "serve_only")]
    pub write_kubeconfig: Option<PathBuf>,
    /// How the outcome is printed
    #[arg(long, short, value_enum, default_value_t, requires = "for-programs")]
    pub output: Output,
}

/// How the outcome is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    #[default]
    Table,
    /// One object for programs.
    Json,
}

impl DevArgs {
    /// Runs until Ctrl-C, SIGTERM or SIGHUP, or with `--once` until the scenario is through; then ends and removes everything.
    /// A second signal more than a second after the first ends the process at once, which may leave its temporary folder.
    ///
    /// Logs go to a file in its folder, so that the table stays readable; with `log_json` one object a line.
    ///
    /// # Errors
    /// With `--once` when an expectation did not hold; always when the control plane cannot be built or started or a part ends by itself.
    pub async fn run(self, log_json: bool) -> anyhow::Result<()> {
        // What runs for long is large, and does not belong on the stack of every verb.
        if self.serve_only { Box::pin(serve::run(self, log_json)).await } else { Box::pin(run::run(self, log_json)).await }
    }
}
