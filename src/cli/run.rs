//! `kcm run`: the manager.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use crate::api::config::{self, Span};
use crate::api::manifest::export::EXPORT;
use crate::cli::connect::ConnectArgs;
use crate::cli::init::{self, Outcome};
use crate::cli::kcp_admin::Resource;
use crate::kcm::{Readiness, Scheduler};
use crate::runtime::{Handle, Options, Runtime};

const CONFIGS: Resource = Resource::new(config::GROUP, "v1alpha1", "providerconfigs");

/// Runs the manager until it is told to stop.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kcm run --kubeconfig kcm.kubeconfig --workspace root:provider
  kcm run --kubeconfig kcm.kubeconfig --workspace root:provider --unschedulable-requeue 1m --admin-address 127.0.0.1:8080")]
pub struct RunArgs {
    /// The provider workspace, and the manager's identity as `kcm init --write-kubeconfig` issues it.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// The name of the export that tenants bind.
    #[arg(long, default_value = EXPORT, value_name = "NAME")]
    pub export: String,
    /// The name of KCM's `ProviderConfig`.
    #[arg(long, default_value = "kcm", value_name = "NAME")]
    pub provider_config: String,
    /// How long an unschedulable cluster waits for its next decision; beats the `ProviderConfig`.
    #[arg(long, value_name = "DURATION", value_parser = positive_span)]
    pub unschedulable_requeue: Option<Span>,
    /// Reconciles under way at once; more of them only wait at kcp, unless it has more than a handful of cores.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub workers: usize,
    /// Requests that wait for an answer at once; 1 for kcp before v0.31, which concurrent requests of one user can crash.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub requests: usize,
    /// Write to tenants' workspaces themselves where they allow it, at half the cost for kcp, and through the virtual workspace elsewhere. See
    /// `kcm init --direct-writes` and `kcm bind --direct-writes` for what allows it. Not with a `ServiceAccount` on kcp before v0.31
    #[arg(long)]
    pub direct_writes: bool,
    /// Where /readyz, /livez and /metrics are served.
    #[arg(long, value_name = "ADDRESS")]
    pub admin_address: Option<SocketAddr>,
    /// Replaces a prefix of the endpoint URLs that kcp publishes, where they cannot be reached from here. May be given several times.
    #[arg(long, value_name = "FROM=TO", value_parser = replacement)]
    pub endpoint_override: Vec<(String, String)>,
}

/// A duration above zero.
pub fn positive_span(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span.get() == Duration::ZERO { Err("0 would decide without a pause; the shortest useful wait is about 1s".into()) } else { Ok(span) }
}

/// `FROM=TO`, as `--endpoint-override` takes it.
pub(super) fn replacement(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once('=').ok_or("expected FROM=TO")?;
    Ok((from.to_owned(), to.to_owned()))
}

impl RunArgs {
    /// Runs until SIGTERM or SIGINT.
    pub async fn run(self) -> anyhow::Result<()> {
        let runtime = self.clone().runtime()?;
        // Before the exports: a signal that nobody listens for yet would end the process at once, between two writes.
        stop_on_signals(runtime.handle())?;
        self.own_exports().await;
        runtime.run().await.context("the manager stopped")
    }

    /// With `exports: Manage` in the configuration, upserts schemas and export as `init` does: once, at the start. What goes wrong here is
    /// logged and stops nobody: the tenants are served with the export as it is, and the next start tries again.
    async fn own_exports(&self) {
        match self.upsert_exports().await {
            Ok(None) => {}
            Ok(Some(changes)) => info!(changes, "the exports are managed here; they are as they should be"),
            Err(error) => error!(
                error = format!("{error:#}"),
                "cannot manage the exports, which stay as they are; `kcm init --manage-exports` grants what that takes"
            ),
        }
    }

    async fn upsert_exports(&self) -> anyhow::Result<Option<usize>> {
        let client = self.connect.client().await?;
        let config = match client.find(&CONFIGS, "", &self.provider_config).await {
            Ok(Some(config)) => config,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error).context("cannot see whether the exports are to be managed"),
        };
        if config["spec"]["kcp"]["exports"] != "Manage" {
            return Ok(None);
        }
        if self.export != EXPORT {
            warn!(export = self.export, "exports: Manage makes the export {EXPORT} only; the one of another name stays as it is");
            return Ok(None);
        }
        let (steps, _) = init::upsert_exports(&client).await?;
        Ok(Some(steps.iter().filter(|step| step.outcome != Outcome::Unchanged).count()))
    }

    /// The runtime with KCM's two reconcilers.
    pub fn runtime(self) -> anyhow::Result<Runtime> {
        let credentials = self.connect.credentials()?;
        let requeue = self.unschedulable_requeue.as_ref().map(Span::get);
        let options = Options {
            workspace: self.connect.workspace,
            config_name: self.provider_config,
            workers: self.workers,
            requests: self.requests,
            direct_writes: self.direct_writes,
            endpoint_overrides: self.endpoint_override,
            admin: self.admin_address,
            ..Options::new(credentials, self.export)
        };
        Ok(Runtime::new(options).serve(move |inputs| Scheduler::new(inputs).with_requeue(requeue)).serve(Readiness::new))
    }
}

/// Turns the first SIGTERM or SIGINT into an orderly stop; a second one ends the process at once.
pub fn stop_on_signals(handle: Handle) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
        handle.stop();
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
        std::process::exit(130);
    });
    Ok(())
}
