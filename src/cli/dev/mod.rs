//! `kcm dev`: the whole of it on this machine, with tenants and clusters to play with.
//!
//! Reading order: [`scenario`] (what there is), [`rows`] (what the server shows), [`expectations`] (whether it is right), [`table`] (how it
//! looks); then `run` (beginning and end), `setup` (who is made when), `site` (requests) and `screen` (output).

pub mod expectations;
mod kubeconfig;
pub mod rows;
mod run;
pub mod scenario;
mod screen;
mod setup;
mod site;
pub mod table;
mod verdict;

/// The example's provider, as its team wrote it: one file, on public items alone.
#[path = "../../../examples/provider-otc/provider.rs"]
mod provider;

use clap::{Args, ValueEnum};

/// Run a kcp with a catalog, two providers and three tenants on this machine, and watch their clusters
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm dev                      until Ctrl-C; prints the kubeconfig and three kubectl lines to try
  kcm dev --once               play the scenario, print the table; exit 0 only if everything came out as it should
  kcm dev --once -o json       the same for a program

Needs Go once, to build kcp (KCP_BINARY names a kcp to use instead). Everything is gone at the end: kcp, its data, logs, kubeconfigs.")]
pub struct DevArgs {
    /// Play the scenario through, the cluster that cannot be scheduled at first included, print the table and end
    #[arg(long)]
    pub once: bool,
    /// How the outcome is printed
    #[arg(long, short, value_enum, default_value_t, requires = "once")]
    pub output: Output,
}

/// How the outcome is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    #[default]
    Table,
    /// One object for programs.
    Json,
}

impl DevArgs {
    /// Runs until Ctrl-C, SIGTERM or SIGHUP, or with `--once` until the scenario is through; then ends and removes everything.
    ///
    /// Logs go to a file in its folder, so that the table stays readable; with `log_json` one object a line.
    ///
    /// # Errors
    /// With `--once` when an expectation did not hold; always when kcp cannot be built or started or a part ends by itself.
    pub async fn run(self, log_json: bool) -> anyhow::Result<()> {
        // What runs for long is large, and does not belong on the stack of every verb.
        Box::pin(run::run(self, log_json)).await
    }
}
