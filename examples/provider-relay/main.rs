//! A complete provider without workers in kcp: for each Relay that a tenant orders a Deployment runs on a workload cluster, with a kubeconfig of
//! the tenant's workspace. `kcp.yaml` beside this file is what the provider workspace needs; `docs/PROVIDERS.md` goes through it.
//!
//! ```text
//! cargo run --example provider-relay -- --kubeconfig relay.kubeconfig --workspace root:relays
//! ```

mod kinds;
mod provider;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Parser;
use kcp_provider_runtime::runtime::{Credentials, Options, RunError, Runtime};
use provider::Relays;

/// Runs relays for tenants.
#[derive(Parser)]
struct Args {
    /// The identity of the provider's `ServiceAccount`, as kcp.yaml makes it
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The provider workspace
    #[arg(long, value_name = "PATH", default_value = "root:relays")]
    workspace: String,
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let Args { kubeconfig, workspace } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let options = Options::new(Credentials::File(kubeconfig), "relays.example.org").with_workspace(workspace);
    let runtime = Runtime::new(Options { config_name: "relay".into(), ..options }).serve(Relays::new);
    let handle = runtime.handle();
    tokio::spawn(async move {
        // Where no handler can be had, the signal itself ends the process.
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.stop();
        }
    });
    runtime.run().await
}
