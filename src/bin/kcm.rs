//! The command `kcm`.

use clap::Parser;
use kcp_provider_runtime::cli::main::Cli;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    Cli::parse().run().await
}
