//! The real kcp: one for all tests of this process.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use kcp_provider_runtime::cli::kcp_server::{KcpOptions, KcpServer};
use kcp_provider_runtime::cli::servers;

use crate::support::Kcp;

/// Starts kcp on a thread of its own, since it must outlive the runtime of the test that came first, and builds it if need be; without kcp
/// and Go it fails and says what is missing.
///
/// Nobody stops it: when this process ends, however it does, kcp's leash ends kcp and removes its data.
pub(crate) fn start() -> Result<Kcp, String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime of its own for the shared kcp");
        runtime.block_on(async {
            if let Some(kubeconfig) = std::env::var_os(REUSED) {
                let admin = AdminClient::from_kubeconfig(&PathBuf::from(kubeconfig)).await.and_then(|admin| admin.in_workspace("root"));
                drop(sender.send(admin.map(|admin| Kcp { admin }).map_err(|problem| format!("{REUSED}: {problem}"))));
                return;
            }
            match serve().await {
                Ok((mut server, kcp)) => {
                    // The receiver waits for exactly this.
                    let _ = sender.send(Ok(kcp));
                    let status = server.ended().await;
                    say(&format!("the shared kcp ended by itself: {status:?}"));
                    if let Some(file) = std::env::var_os(ENDED) {
                        let log = std::fs::read_to_string(server.log()).unwrap_or_default();
                        let last: Vec<&str> = log.lines().filter(|line| line.contains("fatal error") || line.contains("panic")).collect();
                        // Whoever set the variable decides what a kcp that ended means.
                        drop(std::fs::write(file, format!("{status:?} {}", last.join("; "))));
                    }
                }
                Err(problem) => drop(sender.send(Err(format!("{problem:#}")))),
            }
        });
    });
    receiver.recv().unwrap_or_else(|_| Err("the thread that starts it panicked".into()))
}

/// Writes one line to standard error. Not `eprintln!`, which the test harness swallows just where somebody waits for minutes.
pub(crate) fn say(line: &str) {
    // A closed standard error fails no test.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Where it is noted that kcp ended by itself, so that a failure of kcp can be told from one of ours.
const ENDED: &str = "KCP_ENDED_FILE";

/// For quick turns while writing tests: the admin kubeconfig of a kcp that runs already, in place of one that is started.
const REUSED: &str = "KCP_TEST_KUBECONFIG";

/// A user without rights of their own, and their token: kcp v0.28 lends rights of its own to accounts of other workspaces for some seconds, so
/// that what somebody may not do cannot be shown with one.
pub(crate) const COURIER: &str = "courier-of-tests";

async fn serve() -> anyhow::Result<(KcpServer, Kcp)> {
    let binary = servers::KCP.binary().await?;
    // Read once, when kcp starts.
    let mut tokens = tempfile::NamedTempFile::new()?;
    writeln!(tokens, "{COURIER},{COURIER},1")?;
    say("starting kcp for the tests of this process: known to take 20 to 60 s");
    let mut said = Instant::now();
    let progress = |waited: Duration| {
        if said.elapsed() >= Duration::from_secs(15) {
            said = Instant::now();
            say(&format!("waiting for kcp to be ready: {} s", waited.as_secs()));
        }
    };
    let server =
        KcpServer::start(&KcpOptions::new(binary).with_argument(format!("--token-auth-file={}", tokens.path().display())), progress)
            .await?;
    say("kcp is ready; the tests wait for it most of the time");
    let admin = server.admin("root").await?;
    Ok((server, Kcp { admin }))
}
