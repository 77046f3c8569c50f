//! The controller of the provider `otc`, as a provider team would deploy it: it comes in through its own door and sees projections only.
//!
//! ```text
//! kcm init --workspace root:provider --provider otc --write-kubeconfig otc.kubeconfig
//! cargo run --example provider-otc -- --kubeconfig otc.kubeconfig --workspace root:provider
//! ```

mod provider;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Parser;
use kcp_provider_runtime::api::config::Span;
use kcp_provider_runtime::runtime::{Credentials, Handle, Options, Preflight, RunError, Runtime, Starting};
use provider::Provider;
use tokio::signal::unix::{SignalKind, signal};

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
    let options = Options { preflight: Some(Preflight::new(backend_is_there)), ..options };
    let runtime = Runtime::new(options).serve(|inputs| Provider::new(inputs, "otc", after.get()));
    stop_on_signals(&runtime.handle());
    runtime.run().await
}

/// Asked once, before anybody is served; an error ends the process with these words.
async fn backend_is_there(starting: Starting) -> Result<(), String> {
    // A real provider asks its backend here. This one pretends, and can only be asked for the wrong door.
    if starting.export.starts_with("otc.") { Ok(()) } else { Err(format!("otc builds nothing for {}", starting.export)) }
}

/// Ctrl-C, or what a supervisor sends, ends the controller in order.
fn stop_on_signals(handle: &Handle) {
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        // Where no handler can be had, the signal itself ends the process.
        let Ok(mut signals) = signal(kind) else { continue };
        let handle = handle.clone();
        tokio::spawn(async move {
            signals.recv().await;
            handle.stop();
        });
    }
}
