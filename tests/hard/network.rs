//! Networks that delay, repeat, break off and go dead between the manager and kcp.

use std::time::Duration;

use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::support::platform::Manager;
use crate::support::proxy::{Proxy, Trouble, Verb};

/// The kinds that the manager watches through the export.
const WATCHED: [&str; 3] = [
    "kubernetesclusters.kubernetes.edge-connect.eu",
    "kubernetesclusters.provider.kubernetes.edge-connect.eu",
    "providers.provider.edge-connect.eu",
];

async fn managed(stage: &mut Stage) -> (Proxy, Manager) {
    let proxy = Proxy::start(stage.platform.identity().await).await;
    stage.starts();
    let manager = Manager::start(proxy.options(&stage.platform), None).await;
    (proxy, manager)
}

fn lists(proxy: &Proxy) -> usize {
    WATCHED.iter().map(|kind| proxy.count(Verb::List, kind)).sum()
}

#[tokio::test]
async fn answers_that_are_late_come_twice_break_off_or_are_of_a_forgotten_past_cost_time_and_nothing_else() {
    let mut stage = Stage::new(2).await;
    let mut scenario = Scenario::new(&stage, 3).await;
    let (proxy, _manager) = managed(&mut stage).await;
    let delay = Duration::from_millis(50);
    for trouble in [
        Trouble { delay, ..Trouble::default() },
        Trouble { twice: true, ..Trouble::default() },
        Trouble { broken: 3, ..Trouble::default() },
        Trouble { forgotten: true, ..Trouble::default() },
        Trouble { delay, twice: true, broken: 5, ..Trouble::default() },
    ] {
        proxy.trouble(trouble);
        // What is open already is as good as it was when it was opened.
        proxy.end_watches();
        scenario.busy(&stage, Duration::from_secs(8)).await;
    }
    proxy.mend();
    scenario.calm(&stage).await;

    stage.at_rest("after a bad network").await;
    stage.is_told_in_full().await;
    // For 24 s answers break off or history is over: at the least pause of half a second that is 48 lists of each kind, if nothing backed off.
    assert!(lists(&proxy) < 100, "a storm of {} lists", lists(&proxy));
}

#[tokio::test]
async fn watches_that_all_end_at_once_are_opened_again_without_a_list() {
    let mut stage = Stage::new(2).await;
    let (proxy, _manager) = managed(&mut stage).await;
    stage.tenants[0].order("before", "eu-de", "1.34.2", "4", "16Gi").await;
    stage.tenants[0].scheduled("before").await;
    let before = lists(&proxy);
    for round in 0..20 {
        proxy.end_watches();
        let name = format!("order-{round}");
        stage.tenants[1].order(&name, "eu-de", "1.34.2", "4", "16Gi").await;
        stage.tenants[1].scheduled(&name).await;
    }
    assert_eq!(lists(&proxy) - before, 0, "a watch goes on where it ended");
    stage.at_rest("after twenty ends of all watches").await;
}

#[tokio::test]
async fn a_network_that_goes_dead_is_given_up_and_what_came_meanwhile_is_done() {
    let mut stage = Stage::new(2).await;
    let mut scenario = Scenario::new(&stage, 5).await;
    let (proxy, _manager) = managed(&mut stage).await;
    stage.tenants[0].order("before", "eu-de", "1.34.2", "4", "16Gi").await;
    stage.tenants[0].scheduled("before").await;
    proxy.die();
    stage.tenants[0].order("meanwhile", "eu-de", "1.34.2", "4", "16Gi").await;
    stage.tenants[1].order("other", "eu-de", "1.34.2", "4", "16Gi").await;
    let asked = lists(&proxy);
    scenario.busy(&stage, Duration::from_secs(20)).await;
    assert!(lists(&proxy) - asked <= WATCHED.len(), "nobody asks faster because nobody answers");
    proxy.mend();
    scenario.calm(&stage).await;

    // An open watch is given up after three minutes of silence, three of the bookmarks that it should have had.
    stage.at_rest_within("after a dead network", Duration::from_secs(260)).await;
    stage.tenants[0].scheduled("meanwhile").await;
}
