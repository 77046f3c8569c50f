//! etcd and kube-apiserver as child processes: started on free ports, ready when `start` returns, gone when their owner is.

use std::fs::{File, Permissions};
use std::io::{Read as _, Seek as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::cli::leash::Leash;
use kcp_provider_runtime::cli::servers;
use rcgen::KeyPair;
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio::time::interval;

use super::client;
use crate::backend::say;

/// What is not ready then is broken, not slow.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// Both end in about a second; what takes longer hangs, and nothing of theirs is wanted any more.
const GRACE: Duration = Duration::from_secs(5);
/// How often a server is asked whether it is ready.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// How often a wait is reported.
const REPORT_EVERY: Duration = Duration::from_secs(15);
/// Lines of a log that an error shows.
const LOG_TAIL: usize = 20;

/// A running Kubernetes API. Dropping it ends both servers in the background, and so does the end of this process, however it comes.
pub(super) struct KubeServer {
    etcd: Process,
    api: Process,
    kubeconfig: SecretString,
}

impl KubeServer {
    /// Builds what is missing, starts etcd, then kube-apiserver, and waits until `/readyz` answers 200 and the namespace `default` is there.
    ///
    /// Fails when one of them ends meanwhile or the deadline passes, with the end of its log. Cancelled, both end.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let (etcd, api) = (servers::ETCD.binary().await?, servers::KUBE_APISERVER.binary().await?);
        say("starting Kubernetes for the tests of this process: known to take 5 to 15 s");
        let [store, peer, secure] = free_ports()?;
        let data = folder("etcd-")?;
        let mut etcd = Process::start("etcd", &etcd, &data, etcd_arguments(&data, store, peer))?;
        // kube-apiserver gives up when its store does not answer for some seconds, which a busy machine may take to start one.
        etcd.wait(async || Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, store)).await?)).await?;

        let data = folder("kube-apiserver-")?;
        let token = furnish(&data)?;
        let mut api = Process::start("kube-apiserver", &api, &data, api_arguments(&data, store, secure))?;
        let kubeconfig = api.wait(async || ready(&kubeconfig(&data, secure, &token)?).await).await?;
        say("Kubernetes is ready");
        Ok(Self { etcd, api, kubeconfig })
    }

    /// The administrator's kubeconfig: certificates and token are in it.
    pub(super) fn kubeconfig(&self) -> &SecretString {
        &self.kubeconfig
    }

    /// Waits until one of the two has ended, which none should by itself, and tells which and how.
    pub(super) async fn ended(&mut self) -> anyhow::Result<String> {
        let (process, status) = tokio::select! {
            status = self.etcd.leash.ended() => (&self.etcd, status?),
            status = self.api.leash.ended() => (&self.api, status?),
        };
        Ok(format!("{} ({status}); the end of its log:\n{}", process.name, process.log_tail()))
    }
}

/// The kubeconfig, once the server answers to it.
async fn ready(kubeconfig: &SecretString) -> anyhow::Result<SecretString> {
    let admin: AdminClient = client(kubeconfig).await?;
    admin.get_text("/readyz").await?;
    // The server makes it a moment after it is ready.
    admin.get(&Resource::new("", "v1", "namespaces"), "", "default").await?;
    Ok(kubeconfig.clone())
}

/// A child process with a folder of its own, which goes with it.
struct Process {
    name: &'static str,
    leash: Leash,
    /// Open, since the folder goes with the process, and the log in it says why.
    log: File,
}

impl Process {
    fn start(name: &'static str, binary: &Path, folder: &Path, arguments: Vec<String>) -> anyhow::Result<Self> {
        let log = File::options().create(true).read(true).append(true).open(folder.join("log"))?;
        let leash =
            Leash::start(binary, arguments, Some(folder), GRACE, log.try_clone()?).with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, leash, log })
    }

    /// Asks until there is an answer.
    async fn wait<T>(&mut self, ask: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let (began, mut said) = (Instant::now(), Instant::now());
        let mut polls = interval(POLL_EVERY);
        loop {
            polls.tick().await;
            let unready = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(problem) => problem,
            };
            if let Some(status) = self.leash.has_ended()? {
                bail!("{} ended before it was ready ({status}); the end of its log:\n{}", self.name, self.log_tail());
            }
            let waited = began.elapsed().as_secs();
            if began.elapsed() >= READY_WITHIN {
                bail!("{} was not ready after {waited} s: {unready:#}; the end of its log:\n{}", self.name, self.log_tail());
            }
            if said.elapsed() >= REPORT_EVERY {
                said = Instant::now();
                say(&format!("waiting for {} to be ready: {waited} s", self.name));
            }
        }
    }

    fn log_tail(&self) -> String {
        let mut text = Vec::new();
        // What cannot be read is not told: this is the end of an error that says the rest.
        let _ = (&self.log).rewind().and_then(|()| (&self.log).read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}

/// A folder that its owner alone may read, since keys and tokens are in it. The leash removes it, also when this process is killed.
fn folder(prefix: &str) -> anyhow::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir();
    Ok(folder.context("cannot create a temporary folder")?.keep())
}

/// Ports that nobody listens on now. All are held until the last is found, so that they differ.
fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let listeners = (0..N).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<Vec<_>, _>>()?;
    let ports = listeners.iter().map(|listener| listener.local_addr().map(|address| address.port())).collect::<Result<Vec<_>, _>>()?;
    Ok(ports.try_into().expect("as many ports as listeners"))
}

/// Writes what kube-apiserver reads when it starts: the keys of accounts' tokens, and the administrator's token, which is returned.
fn furnish(folder: &Path) -> anyhow::Result<String> {
    let key = KeyPair::generate()?;
    std::fs::write(folder.join("accounts.key"), key.serialize_pem())?;
    std::fs::write(folder.join("accounts.pub"), key.public_key_pem())?;
    // As hard to guess as another such key.
    let token = format!("{:x}", Sha256::digest(KeyPair::generate()?.serialize_der()));
    std::fs::write(folder.join("tokens.csv"), format!("{token},admin,admin,\"system:masters\"\n"))?;
    Ok(token)
}

/// The kubeconfig of the administrator, once the server has made its certificates.
fn kubeconfig(folder: &Path, port: u16, token: &str) -> anyhow::Result<SecretString> {
    // The authority's certificate follows the server's in it.
    let authority = STANDARD.encode(std::fs::read(folder.join("apiserver.crt"))?);
    let server = format!("https://127.0.0.1:{port}");
    let text = json!({"apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "contexts": [{"name": "admin", "context": {"cluster": "kube", "user": "admin"}}],
        "clusters": [{"name": "kube", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": token}}]});
    Ok(text.to_string().into())
}

fn etcd_arguments(folder: &Path, port: u16, peer: u16) -> Vec<String> {
    let (store, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", folder.join("data").display()),
        format!("--listen-client-urls={store}"),
        format!("--advertise-client-urls={store}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // The data never outlive the process.
        "--unsafe-no-fsync".into(),
    ]
}

fn api_arguments(folder: &Path, store: u16, port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{store}"),
        "--bind-address=127.0.0.1".into(),
        // The default is an address of a network, which a machine need not have.
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", folder.display()),
        "--authorization-mode=RBAC".into(),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        // There is no other server to be found, and a loopback address may not be published.
        "--endpoint-reconciler-type=none".into(),
        // It wants the account `default` in each namespace, which a controller makes that is not here.
        "--disable-admission-plugins=ServiceAccount".into(),
    ]
}
