//! A leash: a child process that cannot outlive its owner, not even one that is killed with SIGKILL.
//!
//! The leash is a small `sh` between owner and child. Its standard input is a pipe whose only writer is the owner, so the kernel
//! itself reports the owner's end as end of file, however it came about. Then the child gets SIGTERM, after the grace SIGKILL, and
//! a directory that belonged to it is removed. A child that ends by itself ends the leash with the same exit code.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

/// What `sh` runs. Arguments: directory to remove at the end or `""`, grace in seconds, then the program and its arguments.
///
/// The child does not inherit the pipe, and the reader is a process of its own, so that the leash also holds when `sh` is killed.
const SCRIPT: &str = r#"
remove=$1; grace=$2; shift 2
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{
  read -r line <&3
  kill -TERM "$child"
  while [ "$grace" -gt 0 ] && kill -0 "$child"; do sleep 1; grace=$((grace - 1)); done
  kill -KILL "$child"
} >/dev/null 2>&1 &
reader=$!
exec 3<&-
wait "$child" 2>/dev/null; code=$?
kill "$reader" 2>/dev/null
if [ -n "$remove" ]; then rm -rf -- "$remove"; fi
exit "$code"
"#;

/// How much longer than the grace the owner waits for the leash itself: removing a server's data takes a moment.
const MARGIN: Duration = Duration::from_secs(5);

/// A running child on a leash. Dropping it ends the child in the background; [`Leash::stop`] waits for the end.
#[derive(Debug)]
pub struct Leash {
    shell: Child,
    /// The owner's end of the pipe; closing it is the signal to end.
    pipe: Option<ChildStdin>,
    grace: Duration,
}

impl Leash {
    /// Starts `program` with `arguments`; both output streams go where `output` says, standard input is empty.
    ///
    /// `remove` is deleted with all it holds when the child has ended. `grace` is rounded down to seconds. Does not block. A program
    /// that cannot be started shows as exit code 126 or 127 of [`Leash::ended`].
    pub fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        remove: Option<&Path>,
        grace: Duration,
        output: std::fs::File,
    ) -> io::Result<Self> {
        let errors = output.try_clone()?;
        let mut command = command(program, arguments, remove, grace);
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe, grace })
    }

    /// Waits until the child has ended, by itself or not. May be cancelled and called again.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        // `Child::wait` closes the standard input it owns; the pipe was taken out of it so that waiting does not end the child.
        self.shell.wait().await
    }

    /// The exit status when the child has ended already. Does not block.
    pub fn has_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.shell.try_wait()
    }

    /// Ends the child: SIGTERM, after the grace SIGKILL. Waits for the end.
    ///
    /// Fails with [`io::ErrorKind::TimedOut`] when the leash did not end a few seconds after the grace; the whole process group is
    /// killed then. Cancelled, the child still ends.
    pub async fn stop(mut self) -> io::Result<ExitStatus> {
        drop(self.pipe.take());
        if let Ok(ended) = tokio::time::timeout(self.grace + MARGIN, self.shell.wait()).await {
            return ended;
        }
        self.kill().await?;
        Err(io::Error::new(io::ErrorKind::TimedOut, "the process did not end in its grace and was killed"))
    }

    /// Kills the child and the leash at once, as a crash of the machine would; a directory to remove stays.
    pub async fn kill(mut self) -> io::Result<()> {
        if let Some(id) = self.shell.id() {
            // The leash leads a process group of its own, which is what the negative id names.
            let status = Command::new("kill").args(["-KILL", "--", &format!("-{id}")]).status().await?;
            if !status.success() {
                return Err(io::Error::other(format!("kill -KILL -{id} ended with {status}")));
            }
        }
        self.shell.wait().await.map(drop)
    }
}

/// The leash as a command whose standard input the caller sets: when its last writer is gone, the child ends.
///
/// It leads a process group of its own, so that Ctrl-C in a terminal reaches the owner alone, which then ends in order.
pub fn command<S: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = S>, remove: Option<&Path>, grace: Duration) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "leash"]);
    command.arg(remove.unwrap_or(Path::new(""))).arg(grace.as_secs().to_string());
    command.arg(program).args(arguments).process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn leash(script: &str, remove: Option<&Path>, grace: u64) -> (Leash, std::io::PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        let output = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        (Leash::start(Path::new("sh"), ["-c", script], remove, Duration::from_secs(grace), output).unwrap(), reader)
    }

    fn read_line(reader: &mut std::io::PipeReader) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while reader.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    #[tokio::test]
    async fn a_child_that_ends_by_itself_is_noticed_with_its_code() {
        let (mut leash, _output) = leash("exit 7", None, 10);
        assert_eq!(leash.ended().await.unwrap().code(), Some(7));
        assert_eq!(leash.has_ended().unwrap().and_then(|status| status.code()), Some(7));
    }

    #[tokio::test]
    async fn a_program_that_does_not_exist_shows_as_an_end() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let output = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let mut leash = Leash::start(Path::new("/nowhere/kcp"), ["start"], None, Duration::from_secs(10), output).unwrap();
        assert_eq!(leash.ended().await.unwrap().code(), Some(127));
    }

    #[tokio::test]
    async fn waiting_for_the_end_does_not_cause_it() {
        let (mut leash, mut output) = leash("echo ready; exec sleep 1000", None, 10);
        assert_eq!(read_line(&mut output), "ready");
        let waited = tokio::time::timeout(Duration::from_millis(300), leash.ended()).await;
        assert!(waited.is_err(), "the child ended while its owner only waited: {waited:?}");
        leash.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_stopped_child_may_finish_and_its_directory_goes() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let (leash, mut output) = leash("trap 'echo finished; exit 0' TERM; echo ready; while :; do sleep 0.05; done", Some(&data), 10);
        assert_eq!(read_line(&mut output), "ready");
        assert_eq!(leash.stop().await.unwrap().code(), Some(0));
        assert_eq!(read_line(&mut output), "finished");
        assert!(!data.exists(), "the directory of the child stayed");
    }

    #[tokio::test]
    async fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
        let (leash, mut output) = leash("trap '' TERM; echo ready; while :; do sleep 0.05; done", None, 1);
        assert_eq!(read_line(&mut output), "ready");
        assert_eq!(leash.stop().await.unwrap().code(), Some(128 + 9));
    }

    #[tokio::test]
    async fn killing_spares_nobody_and_nothing_is_tidied() {
        let directory = tempfile::tempdir().unwrap();
        let (leash, mut output) = leash("trap 'echo finished' TERM; echo ready; while :; do sleep 0.05; done", Some(directory.path()), 10);
        assert_eq!(read_line(&mut output), "ready");
        leash.kill().await.unwrap();
        // Everybody who held the output is gone: reading ends, and nobody said goodbye.
        assert_eq!(read_line(&mut output), "");
        assert!(directory.path().exists());
    }
}
