//! A running `kcm dev`, whichever control plane it has, and what it must not leave behind.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// On a real kcp the scenario takes 70 s on 2 idle cores. A cold build of kcp is `make servers`, which comes before.
const PLAYED: Duration = Duration::from_mins(8);
/// kcp ends in 3 s, or is killed after 10.
const CLEAN: Duration = Duration::from_mins(1);

/// A running `kcm dev` whose every file and process can be told from those of others.
pub(crate) struct Dev {
    pub(crate) child: Child,
    pub(crate) folder: TempDir,
    /// Two at a time would only slow each other down.
    _turn: MutexGuard<'static, ()>,
}

impl Dev {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kcm"));
        command.arg("dev").args(arguments).current_dir(folder.path());
        command.env("TMPDIR", folder.path()).env_remove("RUST_BACKTRACE").env_remove("KUBECONFIG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Self { child: command.spawn().unwrap(), folder, _turn: turn }
    }

    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("it still runs").to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().await.unwrap().success());
    }

    /// Waits for its end, and until no process and no file of it is left.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        let status = timeout(CLEAN, self.child.wait()).await.expect("it does not end").unwrap();
        let clean = async {
            let mut pause = tokio::time::interval(Duration::from_millis(200));
            while !processes(self.folder.path()).is_empty() || entries(self.folder.path()) > 0 {
                pause.tick().await;
            }
        };
        let left = || format!("left behind: {:?}, {} files", processes(self.folder.path()), entries(self.folder.path()));
        timeout(CLEAN, clean).await.unwrap_or_else(|_| panic!("{}", left()));
        status
    }
}

/// How many things are in a folder.
pub(crate) fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// The command lines that name the folder: kcp's and its leash's.
pub(crate) fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    let lines = ids.filter_map(|path| std::fs::read(path).ok()).map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}

/// Reads lines until one holds the words, and returns it with all before it.
pub(crate) async fn until(output: &mut (impl AsyncRead + Unpin), words: &str) -> String {
    let mut lines = BufReader::new(output).lines();
    let mut seen = String::new();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            seen.push_str(&line);
            seen.push('\n');
            if line.contains(words) {
                return true;
            }
        }
        false
    };
    let found = timeout(PLAYED, found).await.unwrap_or(false);
    assert!(found, "it never said {words:?}, but:\n{seen}");
    seen
}

/// Plays the scenario through, which must come out as it should and leave nothing; returns when what happened, in seconds since the start.
pub(crate) async fn plays_the_scenario(arguments: &[&str]) -> impl Fn(&str) -> f64 {
    let mut dev = Dev::start(&[&["--once", "-o", "json"], arguments].concat()).await;
    let (mut output, mut errors) = (String::new(), String::new());
    let (mut stdout, mut stderr) = (dev.child.stdout.take().unwrap(), dev.child.stderr.take().unwrap());
    let read = async { tokio::try_join!(stdout.read_to_string(&mut output), stderr.read_to_string(&mut errors)) };
    timeout(PLAYED, read).await.expect("it does not end").unwrap();
    let status = dev.ended().await;
    assert_eq!(status.code(), Some(0), "{errors}");
    let verdict: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(verdict["ok"], true, "{verdict}");
    let clusters = verdict["clusters"].as_array().unwrap();
    let ready: Vec<&str> = clusters.iter().filter(|row| row["ready"] == true).filter_map(|row| row["workspace"].as_str()).collect();
    assert_eq!(ready, ["root:acme", "root:acme", "root:globex", "root:globex", "root:initech"]);
    let times = verdict["seconds"].clone();
    eprintln!("seconds since the start: {times}");
    let seconds = move |name: &str| times[name].as_f64().unwrap_or_else(|| panic!("no {name} in {times}"));
    // The cluster that waits for a Provider is scheduled by its coming, not by a requeue minutes later.
    assert!(seconds("mendedScheduled") - seconds("mended") < 10.0, "{}", verdict["seconds"]);
    seconds
}

/// Plays until tenants are invited to, then is told to stop, and must leave nothing.
pub(crate) async fn ends_while_tenants_play(arguments: &[&str], signal: &str) {
    let mut dev = Dev::start(arguments).await;
    let mut stdout = dev.child.stdout.take().unwrap();
    let drained = tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
    let mut stderr = dev.child.stderr.take().unwrap();
    let said = until(&mut stderr, "Ctrl-C ends and removes everything").await;
    let kubeconfig = said.split_once("The kubeconfig is ").and_then(|(_, rest)| rest.split_once(';')).expect("the kubeconfig is told").0;
    assert!(Path::new(kubeconfig).starts_with(dev.folder.path()) && Path::new(kubeconfig).is_file(), "{kubeconfig}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("kubectl --kubeconfig")).collect();
    assert_eq!(lines.len(), 3, "{said}");
    dev.signal(signal).await;
    let status = dev.ended().await;
    assert_eq!(status.code(), Some(0));
    drained.await.unwrap().unwrap();
}
