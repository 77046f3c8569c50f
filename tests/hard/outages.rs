//! kcp itself is killed, three times.

use std::time::Duration;

use kcp_provider_runtime::cli::kcp_admin::AdminClient;

use crate::backend;
use crate::scenario::Scenario;
use crate::stage::Stage;

const KILLS: u64 = 3;

#[tokio::test]
async fn a_kcp_that_is_killed_three_times_is_found_again_with_its_new_credentials_and_nothing_is_lost() {
    let mut stage = Stage::alone(2).await;
    let mut scenario = Scenario::new(&stage, 7).await;
    let manager = stage.manager_as(&backend::own_kubeconfig());
    for kill in 1..=KILLS {
        scenario.busy(&stage, Duration::from_secs(4)).await;
        // The administrator of kcp's own kubeconfig has another token after every start.
        let before = AdminClient::from_kubeconfig(&backend::own_kubeconfig()).await.unwrap();
        stage
            .kill_kcp(async || {
                let refused = before.get_text("/readyz").await.unwrap_err();
                assert_eq!(refused.code(), Some(401), "after kill {kill}: {refused}");
            })
            .await;
    }
    scenario.calm(&stage).await;

    stage.at_rest("after three kills of kcp").await;

    let log = manager.log();
    assert!(log.contains("they were read again"), "the credentials were read again: {log}");
    assert!(!log.contains("panicked"), "{log}");
}
