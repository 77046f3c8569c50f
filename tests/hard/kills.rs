//! The manager is killed at thirty moments of a busy time.

use crate::dice::Dice;
use crate::scenario::Scenario;
use crate::stage::Stage;

const KILLS: usize = 30;

#[tokio::test]
async fn a_manager_that_is_killed_at_thirty_moments_breaks_no_invariant_and_everything_converges() {
    let seed = std::env::var("HARD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut stage = Stage::new(3).await;
    let mut scenario = Scenario::new(&stage, seed).await;
    let mut moments = Dice::new(seed, 1);
    let mut manager = stage.manager().await;
    for _ in 0..KILLS {
        // From before it has read anything to long after it has.
        for _ in 0..moments.below(25) {
            scenario.turn(&stage).await;
        }
        manager.kill().await;
        manager = stage.manager().await;
    }
    scenario.calm(&stage).await;

    let checker = stage.at_rest(&format!("after {KILLS} kills with seed {seed}")).await;

    stage.is_told_in_full().await;
    for ((principal, what), count) in checker.counts() {
        eprintln!("{count:6} {principal:?} {what}");
    }
    let log = manager.log();
    assert!(!log.contains("panicked"), "{log}");
}
