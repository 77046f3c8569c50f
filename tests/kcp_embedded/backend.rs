//! The embedded server: one for all tests of this process.

use std::io::Write as _;
use std::sync::mpsc::{Sender, channel};

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use kcp_provider_runtime::embedded::{Options, Server};

use crate::support::Kcp;

/// Starts the server on a thread of its own, since it must outlive the runtime of the test that came first. It ends with this process.
pub(crate) fn start() -> Result<Kcp, String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime of its own for the shared server");
        runtime.block_on(serve(&sender)).unwrap_or_else(|problem| drop(sender.send(Err(problem.to_string()))));
    });
    receiver.recv().unwrap_or_else(|_| Err("the thread that starts it panicked".into()))
}

/// A user without rights of their own, and their token.
pub(crate) const COURIER: &str = "courier-of-tests";

async fn serve(started: &Sender<Result<Kcp, String>>) -> anyhow::Result<()> {
    let mut users = Options::default().users;
    users.push((COURIER.into(), COURIER.into(), Vec::new()));
    let server = Server::start(Options { started: jiff::Timestamp::now(), users, ..Options::default() }).await?;
    let mut kubeconfig = tempfile::NamedTempFile::new()?;
    kubeconfig.write_all(server.kubeconfig(&[]).as_bytes())?;
    let admin = AdminClient::from_kubeconfig(kubeconfig.path()).await?;
    // The receiver waits for exactly this.
    let _ = started.send(Ok(Kcp { admin }));
    std::future::pending().await
}
