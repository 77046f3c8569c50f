//! The command `kcm`.

use std::process::ExitCode;

use clap::Parser;
use kcp_provider_runtime::cli::main::Cli;

// One thread: the manager computes little, and a second one costs it memory and wake-ups.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    Cli::parse().run().await
}
