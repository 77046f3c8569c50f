//! `kcm dev --kcp` as a newcomer runs it: it plays the main job on a kcp of its own, and leaves nothing behind, however it ends.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "dev/support.rs"]
mod support;

use std::time::Duration;

use support::{Dev, ends_while_tenants_play, entries, plays_the_scenario, processes, until};
use tokio::time::timeout;

/// A kcp that is built is a process within a second, on a busy machine after some.
const STARTED: Duration = Duration::from_mins(1);

#[tokio::test]
async fn once_plays_the_scenario_through_and_leaves_nothing() {
    drop(plays_the_scenario(&["--kcp"]).await);
}

#[tokio::test]
async fn ctrl_c_ends_everything_while_tenants_play() {
    ends_while_tenants_play(&["--kcp"], "INT").await;
}

#[tokio::test]
async fn a_sigterm_while_kcp_starts_leaves_no_kcp() {
    let mut dev = Dev::start(&["--kcp"]).await;
    let mut stderr = dev.child.stderr.take().unwrap();
    until(&mut stderr, "start kcp").await;
    let started = async {
        let mut pause = tokio::time::interval(Duration::from_millis(50));
        // Also shows that these tests could see a kcp that stays.
        while processes(dev.folder.path()).is_empty() || entries(dev.folder.path()) == 0 {
            pause.tick().await;
        }
    };
    timeout(STARTED, started).await.expect("kcp is started");
    dev.signal("TERM").await;
    assert_eq!(dev.ended().await.code(), Some(0));
}
