//! The controller of the provider `otc`, as a provider team would deploy it: it comes in through its own door and sees projections only.
//!
//! ```text
//! kcm init --workspace root:provider --provider otc --write-kubeconfig otc.kubeconfig
//! cargo run --example provider-otc -- --kubeconfig otc.kubeconfig --workspace root:provider
//! ```

mod provider;

use std::path::PathBuf;

use clap::Parser;
use kcp_provider_runtime::api::config::Span;
use kcp_provider_runtime::runtime::{Credentials, Options, RunError, Runtime};
use provider::Provider;

/// Builds the clusters that tenants ordered from otc.
#[derive(Parser)]
struct Args {
    /// The provider's own identity, as `kcm init --provider otc --write-kubeconfig` issues it
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The provider workspace
    #[arg(long, value_name = "PATH", default_value = "root:provider")]
    workspace: String,
    /// How long a cluster takes
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    after: Span,
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let Args { kubeconfig, workspace, after } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let options = Options::new(Credentials::File(kubeconfig), "otc.provider.kubernetes.edge-connect.eu").with_workspace(workspace);
    let runtime = Runtime::new(options).serve(|inputs| Provider::new(inputs, "otc", after.get()));
    let handle = runtime.handle();
    tokio::spawn(async move {
        // Without a handler for Ctrl-C the signal itself ends the process.
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.stop();
        }
    });
    runtime.run().await
}
