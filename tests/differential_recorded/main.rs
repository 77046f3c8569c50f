//! The differential test with what a real kcp answered before, on a clock of its own: in seconds, and without a kcp.
//!
//! `tests/differential/recorded.gz` is a run of `make differential` with `DIFFERENTIAL_RECORD`. It is of the plan that its seed gives: after a change
//! of the generator it is recorded anew.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]
#![allow(dead_code, reason = "a part of these modules is for whoever asks a real kcp")]

#[path = "../differential/dice.rs"]
mod dice;
#[path = "../differential/embedded.rs"]
mod embedded;
#[path = "../differential/generate/mod.rs"]
mod generate;
#[path = "../differential/lane.rs"]
mod lane;
#[path = "../differential/memory.rs"]
mod memory;
#[path = "../differential/normal.rs"]
mod normal;
#[path = "../differential/plan.rs"]
mod plan;
#[path = "../differential/recording.rs"]
mod recording;
#[path = "../differential/report.rs"]
mod report;
#[path = "../differential/run.rs"]
mod run;
#[path = "../differential/setup.rs"]
mod setup;
#[path = "../differential/shrink.rs"]
mod shrink;
#[path = "../differential/target.rs"]
mod target;
mod wrong;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use embedded::Embedded;
use lane::Lane;
use recording::{Recorded, Recording};
use run::{Run, Sort, run_lane, sorts, tell};
use target::Target;

#[tokio::test(start_paused = true)]
async fn the_embedded_control_plane_answers_as_a_real_kcp_did() {
    let recording = Recording::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/recorded.gz")).unwrap();
    let began = Instant::now();
    let run = Run { name: "replay".into(), seed: recording.seed, lanes: recording.lanes, operations: recording.operations, recorder: None };
    let target: Arc<dyn Target> = Arc::new(Embedded::start());
    let mut outcomes = Vec::new();
    for number in 0..run.lanes {
        let lane = Lane::replay(target.clone(), &format!("{}-{number}", run.name), Recorded::of(&recording, number)).await;
        outcomes.push(run_lane(lane, run.clone(), number).await);
    }
    let mut failures = tell(&run, &outcomes, began);
    for (signature, Sort { count, lane, first }) in sorts(&outcomes) {
        let last = first.operations.last().cloned();
        failures.push(format!("{count} × {signature}\n{}", report::difference(run.seed, lane, last.as_slice(), &first.difference)));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    let played: usize = outcomes.iter().map(|outcome| outcome.counts.operations.values().sum::<usize>()).sum();
    assert_eq!(played, recording.len(), "everything that was recorded was played");
}
