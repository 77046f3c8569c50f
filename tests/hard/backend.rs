//! The kcp of this process, with an audit log, that can be killed and comes back with its data.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use kcp_provider_runtime::cli::kcp_server::{KcpOptions, KcpServer};
use kcp_provider_runtime::cli::servers;
use secrecy::SecretString;
use tokio::sync::{RwLock, mpsc, oneshot};

use crate::support::Kcp;

/// Whoever sets a stage up and uses it: the same before and after a restart of kcp, unlike its own administrator.
pub(crate) const TENANT: &str = "stage-tenant";
/// Who speaks for the provider's controller.
pub(crate) const PROVIDER: &str = "stage-provider";

/// The kinds that rules are about, whoever writes them; of everything else that the manager asks its metadata are enough.
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, Panic]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: kubernetes.edge-connect.eu}
  - {group: provider.kubernetes.edge-connect.eu}
  - {group: provider.edge-connect.eu}
- level: Metadata
  users: ["system:serviceaccount:kcm-system:kcm", kcp-admin]
- level: None
"#;

/// Where kcp is, and how it is ended.
struct Running {
    /// kcp's own kubeconfig; its token changes with every start.
    own_kubeconfig: PathBuf,
    log: PathBuf,
    restart: mpsc::Sender<oneshot::Sender<Result<(), String>>>,
}

static RUNNING: OnceLock<Running> = OnceLock::new();

/// Tests that can stand no end of kcp hold it together; the one that ends kcp holds it alone.
pub(crate) static LIFE: RwLock<()> = RwLock::const_new(());

/// The audit log as it is now.
pub(crate) fn audit_log() -> String {
    std::fs::read_to_string(&RUNNING.get().expect("kcp was started").log).expect("kcp writes its audit log")
}

/// kcp's own kubeconfig.
pub(crate) fn own_kubeconfig() -> PathBuf {
    RUNNING.get().expect("kcp was started").own_kubeconfig.clone()
}

/// Kills kcp without warning and starts it again on its data, which takes a minute at most.
pub(crate) async fn kill_and_restart() {
    let (done, ended) = oneshot::channel();
    RUNNING.get().expect("kcp was started").restart.send(done).await.expect("the thread that has kcp lives as long as this process");
    ended.await.unwrap().unwrap_or_else(|problem| panic!("kcp does not come back: {problem}"));
}

/// Starts kcp on a thread of its own, and builds it if need be. Nobody stops it: its leash ends it with this process and removes its data.
pub(crate) fn start() -> Result<Kcp, String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime of its own for kcp");
        runtime.block_on(async {
            match serve().await {
                Ok((server, options, kcp)) => {
                    let (restart, orders) = mpsc::channel(1);
                    let log = server.root_directory().join("audit.log");
                    let running = Running { own_kubeconfig: server.admin_kubeconfig(), log, restart };
                    drop(RUNNING.set(running));
                    drop(sender.send(Ok(kcp)));
                    obey(server, options, orders).await;
                }
                Err(problem) => drop(sender.send(Err(format!("{problem:#}")))),
            }
        });
    });
    receiver.recv().unwrap_or_else(|_| Err("the thread that starts it panicked".into()))
}

async fn obey(mut server: KcpServer, options: KcpOptions, mut orders: mpsc::Receiver<oneshot::Sender<Result<(), String>>>) {
    loop {
        let done = tokio::select! {
            order = orders.recv() => order,
            status = server.ended() => {
                say(&format!("kcp ended by itself: {status:?}"));
                return;
            }
        };
        let Some(done) = done else { return };
        let killed = server.kill().await;
        let started = KcpServer::start(&options, |_| ()).await;
        match (killed, started) {
            (Ok(()), Ok(again)) => {
                server = again;
                drop(done.send(Ok(())));
            }
            (killed, started) => {
                drop(done.send(Err(format!("{killed:?}, {:?}", started.err()))));
                return;
            }
        }
    }
}

/// Writes one line to standard error. Not `eprintln!`, which the test harness swallows just where somebody waits for minutes.
fn say(line: &str) {
    // A closed standard error fails no test.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

async fn serve() -> anyhow::Result<(KcpServer, KcpOptions, Kcp)> {
    let binary = servers::KCP.binary().await?;
    // Until kcp is there the folder is ours to remove, then its leash's.
    let folder = tempfile::Builder::new().prefix("kcp-").tempdir()?;
    let users = format!("{TENANT},{TENANT},1,\"system:kcp:admin\"\n{PROVIDER},{PROVIDER},2,\"system:kcp:admin\"\n");
    std::fs::write(folder.path().join("tokens.csv"), users)?;
    std::fs::write(folder.path().join("audit.yaml"), POLICY)?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    let options = KcpOptions::new(binary)
        .with_root_directory(folder.path())
        .removed_at_the_end()
        .with_argument(format!("--token-auth-file={}", file("tokens.csv")))
        .with_argument(format!("--audit-policy-file={}", file("audit.yaml")))
        .with_argument(format!("--audit-log-path={}", file("audit.log")))
        // In one file, whatever it weighs: 100 MB are the default, and then there is another one.
        .with_argument("--audit-log-maxsize=4096")
        // No answer leaves before its line is in the file.
        .with_argument("--audit-log-mode=blocking-strict");
    say("starting kcp for the tests of this process: known to take 20 to 60 s");
    let server = KcpServer::start(&options, |_| ()).await?;
    drop(folder.keep());
    let admin: AdminClient = server.admin("root").await?.as_bearer(SecretString::from(TENANT))?;
    Ok((server, options, Kcp { admin }))
}
