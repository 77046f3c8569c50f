//! A real Kubernetes as the workload cluster: one API server for all tests of this process, and what a provider does there.
//!
//! It has no nodes and no controllers: nothing runs, no namespace ends and no owner's deletion reaches what it owns. The API is all of it, with its
//! admission, its RBAC and its accounts.

mod casts;
mod relay;
mod server;

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use secrecy::{ExposeSecret as _, SecretString};

use crate::backend::say;
use server::KubeServer;

/// The shared Kubernetes, for one test.
pub(crate) struct Kube {
    /// An administrator (`system:masters`) of the whole cluster.
    pub(crate) admin: AdminClient,
    /// The same administrator's kubeconfig, with all that it needs in it.
    pub(crate) kubeconfig: SecretString,
}

/// The shared Kubernetes, which the first caller starts; without its binaries and Go it fails and says what is missing.
///
/// Nobody stops it: when this process ends, however it does, the leashes end both servers and remove their data.
pub(crate) async fn kube() -> Kube {
    static KUBE: OnceLock<Result<SecretString, String>> = OnceLock::new();
    let started = tokio::task::spawn_blocking(|| KUBE.get_or_init(start).clone()).await.expect("starting Kubernetes does not panic");
    let kubeconfig = started.unwrap_or_else(|problem| panic!("no Kubernetes to test with: {problem}"));
    // A client's connections live on the runtime that made it, and each test has one of its own.
    Kube { admin: client(&kubeconfig).await.expect("it was good for the one who waited"), kubeconfig }
}

/// A client of the text of a kubeconfig. Sends nothing.
async fn client(kubeconfig: &SecretString) -> anyhow::Result<AdminClient> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(kubeconfig.expose_secret().as_bytes())?;
    Ok(AdminClient::from_kubeconfig(file.path()).await?)
}

/// Starts it on a thread of its own, since it must outlive the runtime of the test that came first.
fn start() -> Result<SecretString, String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime of its own for the shared Kubernetes");
        runtime.block_on(serve(&sender)).unwrap_or_else(|problem| drop(sender.send(Err(format!("{problem:#}")))));
    });
    receiver.recv().unwrap_or_else(|_| Err("the thread that starts it panicked".into()))
}

async fn serve(started: &Sender<Result<SecretString, String>>) -> anyhow::Result<()> {
    let mut server = KubeServer::start().await?;
    // The receiver waits for exactly this.
    let _ = started.send(Ok(server.kubeconfig().clone()));
    let ended = server.ended().await?;
    say(&format!("the shared Kubernetes ended by itself: {ended}"));
    Ok(())
}
