//! Builds a pinned Go server into the cache: once, under a lock, with a report for whoever waits.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::Server;

/// How often a wait says that it still waits.
const REPORT_EVERY: Duration = Duration::from_secs(15);
/// How often the lock of another builder is tried; a build takes minutes, so that half a second does not matter.
const LOCK_EVERY: Duration = Duration::from_millis(500);
/// Where Go's own installer puts it; looked at when `PATH` has none.
const INSTALLED_GO: &str = "/usr/local/go/bin/go";

/// Why a server's binary could not be provided.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The override variable names something that is not a file.
    #[error("{variable} names {}, which is not a file", path.display())]
    OverrideMissing {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// There is no folder to cache in.
    #[error("cannot tell where to cache server binaries: set HOME, or XDG_CACHE_HOME to an absolute path")]
    NoCache,
    /// Go is not there, or is too old and may not fetch a newer one.
    #[error(
        "{name} is built from its Go module, and {problem}: Go {needed} or newer is needed (looked for in PATH and at {INSTALLED_GO}). \
         Install Go, or set {variable} to a {name} binary. `make test-fast` needs only Rust."
    )]
    NoGo {
        /// The server.
        name: &'static str,
        /// What was found.
        problem: String,
        /// The least Go version, from the server's `go.mod`.
        needed: String,
        /// The override variable.
        variable: &'static str,
    },
    /// `go build` ended with an error.
    #[error("building {name} failed ({status}): {output}")]
    Failed {
        /// The server.
        name: &'static str,
        /// How `go build` ended.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        output: String,
    },
    /// A file or process could not be handled.
    #[error("cannot {attempt}")]
    Io {
        /// What was attempted, with its path.
        attempt: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// Builds `server` so that it is at `target`, unless another process has done it meanwhile.
pub(super) async fn build(server: &Server, target: &Path) -> Result<PathBuf, BuildError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    attempt(|| format!("create {}", folder.display()), std::fs::create_dir_all(folder))?;
    let lock = lock(server, &target.with_extension("lock")).await?;
    if !target.is_file() {
        remove_leftovers(folder);
        let partial = target.with_extension(format!("{}.partial", std::process::id()));
        compile(server, &partial).await?;
        attempt(|| format!("rename {} to {}", partial.display(), target.display()), std::fs::rename(&partial, target))?;
    }
    drop(lock);
    Ok(target.to_path_buf())
}

/// Writes one line to standard error. Not `eprintln!`, which a test harness swallows just where somebody waits for minutes.
pub(super) fn say(line: &str) {
    // A closed standard error is no reason to fail a build.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Waits for the lock that keeps two builders from building the same; it goes with the returned file, or with the process.
async fn lock(server: &Server, path: &Path) -> Result<File, BuildError> {
    let file = attempt(|| format!("open {}", path.display()), File::create(path))?;
    let mut report = Report::new(format!("waiting for another process that builds {}", server.name));
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => report.tick(),
            Err(TryLockError::Error(source)) => return Err(BuildError::Io { attempt: format!("lock {}", path.display()), source }),
        }
        tokio::time::sleep(LOCK_EVERY).await;
    }
}

/// Deletes what killed builds left behind; the caller holds the lock, so that no live build is among them.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "partial") {
            // Only disk space is lost when this fails.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

async fn compile(server: &Server, output: &Path) -> Result<(), BuildError> {
    let module = attempt(|| "create a temporary folder".into(), tempfile::tempdir())?;
    for (name, content) in [("go.mod", server.go_mod), ("go.sum", server.go_sum)] {
        attempt(|| format!("write {name} for {}", server.name), std::fs::write(module.path().join(name), content))?;
    }
    let go = usable_go(server, module.path(), &["go", INSTALLED_GO]).await?;
    say(&format!("building {} ({}): known to take about {}, once", server.name, server.package, server.known_build_time));
    let mut report = Report::new(format!("still building {}", server.name));
    let mut command = Command::new(&go);
    command.args(["build", "-trimpath", "-ldflags", server.linker_flags, "-o"]).arg(output).arg(server.package).current_dir(module.path());
    // A workspace or flags of the caller's own Go projects must not change what the pins say.
    command.env("GOWORK", "off").env("GOFLAGS", "-mod=readonly");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let mut built = Box::pin(command.output());
    let Output { status, stderr, .. } = loop {
        match tokio::time::timeout(REPORT_EVERY, &mut built).await {
            Ok(result) => break attempt(|| format!("run {} build", go.display()), result)?,
            Err(_) => report.tick(),
        }
    };
    if !status.success() {
        return Err(BuildError::Failed { name: server.name, status, output: last_lines(&stderr) });
    }
    say(&format!("built {} in {} s", server.name, report.started.elapsed().as_secs()));
    Ok(())
}

/// The first of `candidates` that is there, if it can build `server`; asked inside its module, where Go may switch to a newer toolchain.
async fn usable_go(server: &Server, module: &Path, candidates: &[&str]) -> Result<PathBuf, BuildError> {
    let needed = needed_go(server.go_mod);
    let Server { name, override_variable: variable, .. } = *server;
    let refuse = |problem| Err(BuildError::NoGo { name, problem, needed: needed.to_owned(), variable });
    for go in candidates {
        let asked = Command::new(go).args(["env", "GOVERSION"]).current_dir(module).env("GOWORK", "off").output().await;
        let Output { status, stdout, stderr } = match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => attempt(|| format!("run {go} env GOVERSION"), other)?,
        };
        let found = String::from_utf8_lossy(&stdout).trim().to_owned();
        if !status.success() {
            return refuse(format!("{go} refuses it ({})", last_lines(&stderr)));
        }
        if go_version(&found) < go_version(needed) {
            return refuse(format!("{go} is {found}"));
        }
        return Ok(PathBuf::from(go));
    }
    refuse("Go is missing".to_owned())
}

/// The version in the `go` line of a `go.mod`, such as `1.24.0`.
fn needed_go(go_mod: &'static str) -> &'static str {
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map_or("1.24", str::trim)
}

/// Major and minor of `go1.26.8` or `1.24.0`; an unreadable one (a development build) counts as new.
fn go_version(text: &str) -> (u32, u32) {
    let mut numbers = text.strip_prefix("go").unwrap_or(text).split('.').map(|part| part.parse().unwrap_or(u32::MAX));
    (numbers.next().unwrap_or(u32::MAX), numbers.next().unwrap_or(0))
}

/// The end of a tool's output; 20 lines hold any message of the Go linker, and the start is download lines.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn attempt<T>(what: impl FnOnce() -> String, result: io::Result<T>) -> Result<T, BuildError> {
    result.map_err(|source| BuildError::Io { attempt: what(), source })
}

/// Says every 15 s what is waited for, and how long already.
struct Report {
    what: String,
    started: Instant,
    said: Instant,
}

impl Report {
    fn new(what: String) -> Self {
        let now = Instant::now();
        Self { what, started: now, said: now }
    }

    fn tick(&mut self) {
        if self.said.elapsed() + LOCK_EVERY >= REPORT_EVERY {
            self.said = Instant::now();
            say(&format!("{}: {} s", self.what, self.started.elapsed().as_secs()));
        }
    }
}

#[cfg(test)]
mod tests;
