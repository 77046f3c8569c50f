//! What a cluster costs, and what a hundred of them that are done cost: nothing.

use std::time::Duration;

use jiff::Timestamp;

use crate::checker::Spent;
use crate::checker::event::TENANT;
use crate::stage::{Stage, report};
use crate::support::platform::{CLUSTERS, PROJECTIONS, SOON, Tenant};

const TENANTS: usize = 10;
const EACH: usize = 10;
/// For how long nothing is asked.
const QUIET: Duration = Duration::from_mins(1);

/// A tenant's clusters; no name is in two workspaces, since a line about what is not there says its name alone.
fn names(tenant: &Tenant) -> impl Iterator<Item = String> {
    let workspace = tenant.workspace.logical_cluster.to_string();
    (0..EACH).map(move |number| format!("demo-{number}-{workspace}"))
}

/// What each cluster has cost: something, and this at most.
fn each_has_cost(stage: &Stage, expected: Spent, what: &str) {
    let (checker, found) = stage.check();
    assert!(found.is_empty(), "{what}: {}", found[0]);
    for tenant in &stage.tenants {
        for name in names(tenant) {
            let spent = checker.spent(tenant.workspace.logical_cluster.as_str(), "default", &name);
            assert!(
                (3..=expected.writes).contains(&spent.writes) && spent.reads == expected.reads,
                "{what}: {name} in {} has cost {spent:?}",
                tenant.workspace.logical_cluster
            );
        }
    }
}

#[tokio::test]
async fn a_hundred_clusters_cost_at_most_four_writes_each_one_when_ready_two_when_gone_and_nothing_once_they_are_done() {
    let mut stage = Stage::new(TENANTS).await;
    let mut manager = stage.manager().await;
    for tenant in &stage.tenants {
        for name in names(tenant) {
            tenant.order(&name, "eu-de", "1.34.2", "4", "16Gi").await;
        }
    }
    stage.at_rest("after a hundred orders").await;
    each_has_cost(&stage, Spent { writes: 4, reads: 0 }, "until it waits for its provider");

    for tenant in &stage.tenants {
        let provider = stage.provider(tenant).await;
        for name in names(tenant) {
            let projection = provider.get(&PROJECTIONS, "default", &name).await.unwrap();
            provider.patch(&PROJECTIONS.subresource("status"), "default", &name, &report(&projection, true)).await.unwrap();
        }
    }
    let checker = stage.at_rest("after a hundred reports").await;
    let ready = checker.state().all(TENANT).filter(|(_, cluster)| cluster["status"]["ready"] == true).count();
    assert_eq!(ready, TENANTS * EACH);
    each_has_cost(&stage, Spent { writes: 5, reads: 0 }, "until it is ready");

    let began = Timestamp::now();
    manager.lives_on(QUIET).await;
    let asked: Vec<String> = stage
        .events()
        .into_iter()
        .filter(|event| event.at > began && event.principal.is_ours() && event.verb != "watch")
        .map(|event| format!("{} {}", event.verb, event.path))
        .collect();
    assert_eq!(asked, [] as [&str; 0], "in {} s with nothing to do", QUIET.as_secs());

    for tenant in &stage.tenants {
        for name in names(tenant) {
            tenant.client().delete(&CLUSTERS, "default", &name).await.unwrap();
        }
    }
    for tenant in &stage.tenants {
        for name in names(tenant) {
            tenant.client().wait_gone(&CLUSTERS, "default", &name, SOON).await.unwrap();
        }
    }
    stage.at_rest("after a hundred deletions").await;
    stage.is_told_in_full().await;
    each_has_cost(&stage, Spent { writes: 7, reads: 0 }, "until it is gone");
}
