//! Workspaces that come back under an old path, servers that cannot be read at the start, and two managers at once.

use std::time::Duration;

use kcp_provider_runtime::cli::kcp_admin::WORKSPACES;
use kcp_provider_runtime::runtime::Origin;

use crate::backend;
use crate::checker::Checker;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::support::kcp;
use crate::support::platform::{CLUSTERS, Manager, PROJECTIONS, SOON, Tenant, eventually};
use crate::support::proxy::{Proxy, Verb};

#[tokio::test]
async fn a_workspace_that_is_made_again_under_its_path_is_another_tenant() {
    let mut stage = Stage::new(1).await;
    let _manager = stage.manager().await;
    let first = &stage.tenants[0];
    first.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;
    let first_uid = first.scheduled("demo").await["metadata"]["uid"].clone();
    let name = first.name().await;
    let root = kcp().await.admin;
    root.delete_workspace("root", &name).await.unwrap();
    root.wait_gone(&WORKSPACES, "", &name, SOON * 2).await.unwrap();

    let logical_cluster = root.create_workspace("root", &name).await.unwrap();
    assert_ne!(logical_cluster, stage.tenants[0].workspace.logical_cluster);
    let second = Tenant { workspace: crate::support::Workspace::of(&root, logical_cluster) };
    stage.platform.bind(&second.workspace).await;
    second.served().await;
    second.provider("otc").await;
    second.order("demo", "eu-de", "1.34.2", "4", "16Gi").await;

    let demo = second.scheduled("demo").await;
    assert_ne!(demo["metadata"]["uid"], first_uid);
    let projection = second.projection("demo").await.unwrap();
    assert_eq!(projection["metadata"]["ownerReferences"][0]["uid"], demo["metadata"]["uid"]);
    stage.tenants = vec![second];
    let (_, found) = stage.check();
    assert!(found.is_empty(), "{}", found[0]);
}

#[tokio::test]
async fn an_outage_at_the_start_deletes_nothing() {
    let mut stage = Stage::new(1).await;
    let mut manager = stage.manager().await;
    for name in ["a", "b", "c"] {
        stage.tenants[0].order(name, "eu-de", "1.34.2", "4", "16Gi").await;
        stage.tenants[0].scheduled(name).await;
    }
    stage.at_rest("before the outage").await;
    manager.kill().await;
    let tenant = stage.tenants[0].client().clone();
    let there = async || tenant.list(&PROJECTIONS, "default").await.unwrap();
    let before = there().await;

    // One kind after the other cannot be read when a manager starts, which cannot know what there is of it.
    for unreadable in [
        "kubernetesclusters.provider.kubernetes.edge-connect.eu",
        "kubernetesclusters.kubernetes.edge-connect.eu",
        "providers.provider.edge-connect.eu",
        "kubernetesclusterofferings.provider.kubernetes.edge-connect.eu",
        "apiexportendpointslices.apis.kcp.io",
    ] {
        let proxy = Proxy::start(stage.platform.identity().await).await;
        proxy.fail([unreadable]);
        stage.starts();
        let mut manager = Manager::start_unready(proxy.options(&stage.platform), None);
        eventually("it was asked for", async || proxy.count(Verb::List, unreadable) > 1).await;
        let ready = tokio::time::timeout(Duration::from_secs(4), manager.handle.ready()).await;
        assert!(ready.is_err(), "a manager that cannot read {unreadable} is ready");
        assert_eq!(there().await, before, "{unreadable} cannot be read");
        manager.stop().await;
    }
    let _manager = stage.manager().await;
    stage.at_rest("after the outages").await;
    assert_eq!(there().await, before);
}

#[tokio::test]
async fn the_manager_before_an_upgrade_and_the_one_after_it_may_run_at_once() {
    let mut stage = Stage::alone(2).await;
    let mut scenario = Scenario::new(&stage, 11).await;
    let mut old = stage.manager().await;
    stage.tenants[0].order("first", "eu-de", "1.34.2", "4", "16Gi").await;
    stage.tenants[0].scheduled("first").await;
    // As somebody else: two users of one ServiceAccount are two requests at once, which kcp v0.28 may not survive.
    let new = stage.beside(&backend::own_kubeconfig());
    scenario.busy(&stage, Duration::from_secs(15)).await;
    old.kill().await;
    scenario.calm(&stage).await;

    stage.at_rest("after two managers at once").await;
    stage.tenants[0].client().delete(&CLUSTERS, "default", "first").await.unwrap();
    eventually("it goes", async || stage.tenants[0].client().find(&CLUSTERS, "default", "first").await.unwrap().is_none()).await;
    drop(new);
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_years_changes_nothing() {
    let mut stage = Stage::new(1).await;
    let mut manager = stage.manager().await;
    stage.tenants[0].order("before", "eu-de", "1.34.2", "4", "16Gi").await;
    let checker = stage.at_rest("with the right time").await;
    manager.kill().await;
    let workspace = stage.tenants[0].workspace.logical_cluster.to_string();
    let written = |checker: &Checker, name: &str| checker.spent(&workspace, "default", name).writes;
    let before = written(&checker, "before");
    for year in [1990, 2090] {
        let mut options = stage.platform.options().await;
        stage.starts();
        options.origin = Some(Origin { wall: format!("{year}-01-01T00:00:00Z").parse().unwrap(), seed: 1 });
        let manager = Manager::start(options, None).await;
        let name = format!("in-{year}");
        stage.tenants[0].order(&name, "eu-de", "1.34.2", "4", "16Gi").await;
        stage.tenants[0].scheduled(&name).await;
        let checker = stage.at_rest(&format!("in {year}")).await;
        assert_eq!(written(&checker, "before"), before, "nothing is written again in {year}");
        manager.stop().await;
    }
}
