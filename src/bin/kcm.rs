//! The command `kcm`.

use std::process::ExitCode;

use clap::Parser;
use kcp_provider_runtime::cli::main::Cli;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    Cli::parse().run().await
}
