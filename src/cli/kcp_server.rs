//! A real kcp as a child process: started with free ports, ready when `start` returns, gone when its owner is.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Seek as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::kcp_admin::{AdminClient, AdminError};
use super::leash::Leash;

/// First starts were measured to take 60 s on 2 busy cores; three times that is broken, not slow.
const READY_WITHIN: Duration = Duration::from_mins(3);
/// kcp needs about 3 s to end in order; what takes longer than this hangs.
const GRACE: Duration = Duration::from_secs(10);
/// How often `/readyz` is asked, and how often a wait is reported.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Lines of the log that an error shows: enough for a fatal message with its stack's head.
const LOG_TAIL: usize = 20;

/// How to start kcp. The binary is required; everything else has a default.
#[derive(Clone, Debug)]
pub struct KcpOptions {
    binary: PathBuf,
    root_directory: Option<PathBuf>,
    remove: bool,
    arguments: Vec<String>,
    ready_within: Duration,
}

impl KcpOptions {
    /// Runs `binary` in a temporary folder that is removed at the end, with kcp's default batteries.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), root_directory: None, remove: false, arguments: Vec::new(), ready_within: READY_WITHIN }
    }

    /// Keeps all data in `directory`, which is made if needed and stays; a second start in it continues, on the same ports.
    #[must_use]
    pub fn with_root_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.root_directory = Some(directory.into());
        self
    }

    /// Removes the directory that was named when the server has ended, unless it is killed: then a second start continues.
    #[must_use]
    pub fn removed_at_the_end(mut self) -> Self {
        self.remove = true;
        self
    }

    /// Adds an argument for `kcp start`, such as `--audit-log-path=…` or `--feature-gates=…`.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// How long `/readyz` may take; 180 s unless stated.
    #[must_use]
    pub fn with_ready_within(mut self, deadline: Duration) -> Self {
        self.ready_within = deadline;
        self
    }
}

/// A running kcp. Dropping it ends the server in the background, and so does the end of this process, however it comes.
#[derive(Debug)]
pub struct KcpServer {
    leash: Leash,
    root_directory: PathBuf,
    ports: Ports,
    /// Open, since a temporary folder goes with the process, and the log in it says why.
    log: File,
}

impl KcpServer {
    /// Starts kcp and waits until `/readyz` answers 200; `progress` hears how long it has been waiting, four times a second.
    ///
    /// Takes 20 to 60 s. Fails when kcp ends meanwhile or the deadline passes, with the end of its log. Cancelled, the server ends.
    pub async fn start(options: &KcpOptions, mut progress: impl FnMut(Duration)) -> Result<Self, KcpError> {
        let began = Instant::now();
        let mut server = Self::spawn(options)?;
        loop {
            let unready = match server.check_ready().await {
                Ok(()) => return Ok(server),
                Err(error) => error,
            };
            if let Some(status) = server.leash.has_ended().map_err(io_error("watch the kcp process"))? {
                return Err(KcpError::Ended { status, log: server.log_tail() });
            }
            let waited = began.elapsed();
            if waited >= options.ready_within {
                return Err(KcpError::NotReady { waited, last: Box::new(unready), log: server.log_tail() });
            }
            progress(waited);
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// The server without a workspace, such as `https://127.0.0.1:41235`.
    pub fn base_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.secure)
    }

    /// kcp's own kubeconfig: contexts `root` (current), `base`, `system:admin`, `shard-base`.
    ///
    /// The token of its `kcp-admin` changes with every start: read it again after a restart.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.root_directory.join("admin.kubeconfig")
    }

    /// A kubeconfig of the administrator for one workspace path or logical cluster, written beside kcp's own, readable by its owner
    /// only.
    pub async fn kubeconfig_for(&self, workspace: &str) -> Result<PathBuf, KcpError> {
        let name = workspace.replace(':', "_");
        let path = self.root_directory.join(format!("workspace-{name}.kubeconfig"));
        self.admin(workspace).await?.write_kubeconfig(&path)?;
        Ok(path)
    }

    /// A client of the administrator in one workspace path or logical cluster. Reads the kubeconfig, sends nothing.
    pub async fn admin(&self, workspace: &str) -> Result<AdminClient, KcpError> {
        let client = AdminClient::from_kubeconfig(&self.admin_kubeconfig()).await?;
        // The kubeconfig of an earlier start in this folder may name another port.
        Ok(client.at_url(&self.base_url())?.in_workspace(workspace)?)
    }

    /// The folder with kcp's data, kubeconfig and log.
    pub fn root_directory(&self) -> &Path {
        &self.root_directory
    }

    /// Everything kcp wrote; goes with the root directory.
    pub fn log(&self) -> PathBuf {
        self.root_directory.join("kcp.log")
    }

    /// Waits until kcp has ended, which it should not by itself. May be cancelled and called again.
    pub async fn ended(&mut self) -> Result<ExitStatus, KcpError> {
        self.leash.ended().await.map_err(io_error("wait for the kcp process"))
    }

    /// Ends kcp in order (about 3 s; killed after 10 s) and removes a temporary folder. Waits for the end.
    pub async fn stop(self) -> Result<(), KcpError> {
        self.leash.stop().await.map(drop).map_err(io_error("stop kcp"))
    }

    /// Kills kcp without warning, as a test of recovery needs it; a temporary folder stays. Waits until nobody answers at its ports any more:
    /// a large process takes a moment to die.
    pub async fn kill(self) -> Result<(), KcpError> {
        self.leash.kill().await.map_err(io_error("kill kcp"))?;
        let began = Instant::now();
        while !self.ports.are_free() {
            if began.elapsed() >= GRACE {
                return Err(io_error("see kcp end")(io::ErrorKind::TimedOut.into()));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        Ok(())
    }

    fn spawn(options: &KcpOptions) -> Result<Self, KcpError> {
        let (root_directory, ours) = match &options.root_directory {
            Some(directory) => (directory.clone(), options.remove.then(|| directory.clone())),
            None => temporary_directory().map(|directory| (directory.clone(), Some(directory)))?,
        };
        std::fs::create_dir_all(&root_directory).map_err(io_error("create kcp's root directory"))?;
        let ports = Ports::for_directory(&root_directory).map_err(io_error("find free ports on 127.0.0.1"))?;
        let log = File::options().create(true).read(true).append(true).open(root_directory.join("kcp.log"));
        let log = log.map_err(io_error("open kcp's log"))?;
        let output = log.try_clone().map_err(io_error("open kcp's log"))?;
        let arguments = arguments(&root_directory, ports, &options.arguments);
        let leash = Leash::start(&options.binary, arguments, ours.as_deref(), GRACE, output).map_err(io_error("start kcp's leash"))?;
        Ok(Self { leash, root_directory, ports, log })
    }

    async fn check_ready(&self) -> Result<(), KcpError> {
        // Until kcp has written its kubeconfig, and with a token of an earlier start, this fails as it should: not ready.
        self.admin("root").await?.at_path("")?.get_text("/readyz").await?;
        Ok(())
    }

    fn log_tail(&self) -> String {
        let mut text = Vec::new();
        // What cannot be read is not told: this is the end of an error that says the rest.
        let _ = (&self.log).rewind().and_then(|()| (&self.log).read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].iter().fold(String::new(), |mut tail, line| {
            // A line of kcp's log can hold a whole object; its start tells what happened. Writing to a `String` does not fail.
            let _ = writeln!(tail, "{}", line.chars().take(400).collect::<String>());
            tail
        })
    }
}

/// Why kcp is not there.
#[derive(Debug, thiserror::Error)]
pub enum KcpError {
    /// kcp ended before it was ready.
    #[error("kcp ended before it was ready ({status}); the end of its log:\n{log}")]
    Ended {
        /// How it ended; 126 or 127 when the binary cannot be run.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// kcp runs but is not ready in time.
    #[error("kcp was not ready after {} s; the end of its log:\n{log}", waited.as_secs())]
    NotReady {
        /// How long it was waited for.
        waited: Duration,
        /// What the last question to it was answered.
        #[source]
        last: Box<KcpError>,
        /// The end of its log.
        log: String,
    },
    /// A request to it failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A file, port or process could not be handled.
    #[error("cannot {attempt}")]
    Io {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

fn io_error(attempt: &'static str) -> impl FnOnce(io::Error) -> KcpError {
    move |source| KcpError::Io { attempt, source }
}

/// The folder is private to its owner, since kcp writes its administrator's token there.
fn temporary_directory() -> Result<PathBuf, KcpError> {
    let directory = tempfile::Builder::new().prefix("kcp-").permissions(Permissions::from_mode(0o700)).tempdir();
    let directory = directory.map_err(io_error("create a temporary folder for kcp"))?;
    // The leash removes it, also when this process is killed.
    Ok(directory.keep())
}

fn arguments(root_directory: &Path, ports: Ports, extra: &[String]) -> Vec<String> {
    let mut arguments = vec![
        "start".into(),
        format!("--root-directory={}", root_directory.display()),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.secure),
        format!("--embedded-etcd-client-port={}", ports.etcd_client),
        format!("--embedded-etcd-peer-port={}", ports.etcd_peer),
        // The default preallocates 64 MB per segment, which a folder that lives for a minute does not earn back.
        "--embedded-etcd-wal-size-bytes=5000".into(),
    ];
    arguments.extend_from_slice(extra);
    arguments
}

/// The three ports of one kcp. They are remembered in its root directory, since its data and kubeconfigs name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ports {
    secure: u16,
    etcd_client: u16,
    etcd_peer: u16,
}

impl Ports {
    fn for_directory(directory: &Path) -> io::Result<Self> {
        let file = directory.join("ports.json");
        let remembered = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        if let Some(ports) = remembered.filter(|ports| ports.are_free()) {
            return Ok(ports);
        }
        let ports = Self::free()?;
        std::fs::write(&file, serde_json::to_vec(&ports)?)?;
        Ok(ports)
    }

    /// Three ports that nobody listens on now. All are held until the last is found, so that they differ.
    fn free() -> io::Result<Self> {
        let [secure, etcd_client, etcd_peer] = [listen(0)?, listen(0)?, listen(0)?];
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
        Ok(Self { secure: port(&secure)?, etcd_client: port(&etcd_client)?, etcd_peer: port(&etcd_peer)? })
    }

    fn are_free(self) -> bool {
        [self.secure, self.etcd_client, self.etcd_peer].into_iter().all(|port| listen(port).is_ok())
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that take the place of kcp: what matters here is how their end is told.
    fn program(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kcp");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    #[tokio::test]
    async fn a_kcp_that_ends_at_once_is_told_with_its_log() {
        let (_folder, binary) = program("echo 'no such flag' >&2; exit 3");
        let error = KcpServer::start(&KcpOptions::new(binary), |_| {}).await.unwrap_err();
        assert!(matches!(&error, KcpError::Ended { status, log } if status.code() == Some(3) && log.contains("no such flag")), "{error}");
    }

    #[tokio::test]
    async fn the_log_of_a_kcp_that_never_gets_ready_is_in_the_error() {
        let (folder, binary) = program("echo 'waiting for godot'; exec sleep 1000");
        let options = KcpOptions::new(binary).with_root_directory(folder.path().join("root")).with_ready_within(Duration::from_secs(1));
        let mut reports = 0;
        let error = KcpServer::start(&options, |_| reports += 1).await.unwrap_err();
        assert!(error.to_string().contains("waiting for godot"), "{error}");
        assert!(reports > 0, "nobody heard of the wait");
    }

    #[test]
    fn what_is_in_a_temporary_folder_is_for_its_owner_alone() {
        let folder = temporary_directory().unwrap();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        std::fs::remove_dir(folder).unwrap();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_restart_in_the_same_directory_takes_the_same_ports() {
        let directory = tempfile::tempdir().unwrap();
        let first = Ports::for_directory(directory.path()).unwrap();
        assert_eq!(Ports::for_directory(directory.path()).unwrap(), first);
        let _taken = listen(first.etcd_peer).unwrap();
        let moved = Ports::for_directory(directory.path()).unwrap();
        assert_ne!(moved, first, "a port that somebody else listens on was taken");
    }

    #[test]
    fn extra_arguments_come_last_so_that_they_win() {
        let ports = Ports { secure: 1, etcd_client: 2, etcd_peer: 3 };
        let all = arguments(Path::new("/r"), ports, &["--bind-address=0.0.0.0".into()]);
        assert_eq!(all.last().unwrap(), "--bind-address=0.0.0.0");
        assert!(all.contains(&"--root-directory=/r".into()));
    }
}
