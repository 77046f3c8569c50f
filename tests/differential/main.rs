//! The differential test: seeded random operations against two servers that must answer the same.
//!
//! Every lane has workspaces of its own on both servers: a provider `p` with the exports `lab` and `store`, the tenants `t1` and `t2`, and
//! `t3` who never binds. Lanes run side by side, so that waiting in one does not stop the others. An operation names everything by
//! symbols (`⟦rv:t1/Widget/default/a⟧`), which each side replaces by what its own server said: thus one plan fits both servers, and
//! still makes sense when parts of it are left out. Answers are compared in a normal form ([`normal`]): what a server chooses freely,
//! such as uids, times and logical clusters, becomes a symbol numbered by first appearance, so that equal symbols mean equal entities;
//! codes, headers that matter, words, bodies, managed fields and sequences of events are compared as they are.
//!
//! Settling windows: none for requests on objects; 5 s for what comes from a cache; up to 20 s for what controllers follow (labels of
//! claimed objects, rights); up to 90 s for binding, unbinding, schema rolls, workspaces and namespaces, each until a stated condition
//! holds on both sides. What does not hold in time is a difference.
//!
//! Environment:
//! - `DIFFERENTIAL_OPERATIONS`: how many random operations (10 000).
//! - `DIFFERENTIAL_SEED`: where the dice begin (1).
//! - `DIFFERENTIAL_LANES`: how many lanes (6).
//! - `DIFFERENTIAL_SHRINK`: 0 shows differences as they were found, without looking for the fewest operations that lead to each (1).
//! - `DIFFERENTIAL_RECORD`: a file for what both answered; `tests/differential/recorded.gz` is one, which `differential_recorded` plays.
//! - `KCP_TEST_KUBECONFIG`: the admin kubeconfig of a kcp that runs already, started with the users of [`target::TOKENS`].

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]
#![allow(dead_code, reason = "a part of these modules is for whoever plays a recording")]

mod dice;
mod embedded;
mod generate;
mod lane;
mod memory;
mod normal;
mod plan;
mod recording;
mod report;
mod run;
mod setup;
mod shrink;
mod target;

use std::path::PathBuf;
use std::sync::Arc;

use embedded::Embedded;
use kcp_provider_runtime::cli::kcp_server::{KcpOptions, KcpServer};
use kcp_provider_runtime::cli::servers;
use recording::Recorder;
use run::{Run, compare};
use target::{Https, TOKENS, Target};

/// The real kcp: one that runs, or one that is started here and ends with the returned value.
async fn real_kcp() -> (Option<KcpServer>, Arc<dyn Target>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(kubeconfig) = std::env::var_os("KCP_TEST_KUBECONFIG") {
        return (None, Arc::new(Https::from_kubeconfig(kubeconfig.as_ref()).await.unwrap()), folder);
    }
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, TOKENS).unwrap();
    let binary = servers::KCP.binary().await.unwrap();
    let options = KcpOptions::new(binary).with_argument(format!("--token-auth-file={}", tokens.display()));
    let server = KcpServer::start(&options, |_| {}).await.unwrap();
    let target = Https::from_kubeconfig(&server.admin_kubeconfig()).await.unwrap();
    (Some(server), Arc::new(target), folder)
}

/// First a few operations in two sets of workspaces of one kcp: what differs there is luck, which the comparison must not see. Then the embedded
/// control plane beside it.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_control_plane_answers_as_a_real_kcp_does_which_answers_as_itself() {
    let (server, kcp, _folder) = real_kcp().await;
    compare([kcp.clone(), kcp.clone()], Run { operations: 25, ..Run::new("self") }).await;
    let mut run = Run::new("both");
    let file = std::env::var_os("DIFFERENTIAL_RECORD").map(PathBuf::from);
    let recorder = file.map(|file| Recorder::create(&file, run.seed, run.lanes, run.operations).unwrap());
    run.recorder = recorder.map(|recorder| Arc::new(parking_lot::Mutex::new(recorder)));
    compare([kcp, Arc::new(Embedded::start())], run.clone()).await;
    if let Some(recorder) = run.recorder {
        recorder.lock().finish().unwrap();
    }
    drop(server);
}
