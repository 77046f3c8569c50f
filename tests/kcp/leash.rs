//! The end of a server's process, which the embedded server has none of.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kcp_provider_runtime::cli::leash;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn the_server_ends_when_its_owner_is_gone() {
    // The owner is whoever holds the write end of the pipe: here a process of its own, which is killed without warning.
    let mut owner = Command::new("tail").args(["-f", "/dev/null"]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let pipe: Stdio = owner.stdout.take().unwrap().try_into().unwrap();
    let data = tempfile::tempdir().unwrap().keep();
    let grace = Duration::from_secs(10);
    let mut server = leash::command(Path::new("sh"), ["-c", "echo $$; exec sleep 1000"], Some(&data), grace);
    let mut server = server.stdin(pipe).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let id = output.next_line().await.unwrap().unwrap();
    assert!(Path::new(&format!("/proc/{id}")).exists());

    owner.kill().await.unwrap();

    tokio::time::timeout(grace, server.wait()).await.expect("the leash outlived the owner").unwrap();
    assert!(!Path::new(&format!("/proc/{id}")).exists(), "the server outlived its owner");
    assert!(!data.exists(), "the server's data outlived it");
}
