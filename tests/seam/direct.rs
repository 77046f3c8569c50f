//! Writes past the virtual workspace: where they are allowed, where they are not, and that nothing else differs.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::embedded::{Options as Profile, Version};
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use kcp_provider_runtime::runtime::Options;
use serde_json::json;

use crate::access::identity;
use crate::provider::Painter;
use crate::{Calls, toy, toys, world_of};

fn paint(world: &World, options: Options) {
    world.run_with(Options { direct_writes: true, ..options }, |runtime| runtime.serve(|_| Painter(Calls::default())));
}

/// The writes of the provider in a workspace: whether each went there directly, and its code.
fn ways(world: &World, workspace: &Workspace) -> Vec<(bool, u16)> {
    let here = format!("/clusters/{}/", workspace.logical_cluster());
    let writes = world.requests().into_iter().filter(Sent::is_write);
    writes.filter(|sent| sent.target.contains(&here)).map(|sent| (sent.target.starts_with(&here), sent.code)).collect()
}

async fn order(workspace: &Workspace, name: &str) {
    workspace.apply(toy(name, "red")).await;
    workspace.condition::<crate::provider::Toy>(name, "Painted", True, "Dry").await;
}

#[tokio::test(start_paused = true)]
async fn whoever_may_write_directly_does_and_nothing_goes_twice() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    paint(&world, world.options());
    order(&acme, "car").await;
    world.settled().await;
    assert_eq!(ways(&world, &acme), [(true, 200)], "one write, and its echo is known as ours");
    world.forget_requests();
    world.advance(Duration::from_mins(30)).await;
    assert_eq!(world.writes(), [].into(), "what is done costs nothing");
}

#[tokio::test(start_paused = true)]
async fn a_workspace_that_refuses_is_written_to_through_its_virtual_workspace_and_asked_again_later() {
    // An account of one workspace is known in others since v0.31.
    let mut world = World::with(Profile { version: Version::V0_31, ..Profile::default() }).await;
    world.export(toys()).await;
    let (closed, open) = (world.workspace("closed").await, world.workspace("open").await);
    // One tenant lets the manager in, the other does not.
    let user = format!("system:kcp:serviceaccount:{}:default:manager", world.provider().logical_cluster());
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "direct"}, "rules": [
        {"nonResourceURLs": ["/"], "verbs": ["access"]},
        {"apiGroups": ["toys.test"], "resources": ["toys/status"], "verbs": ["patch"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "direct"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "direct"}, "subjects": subjects});
    open.apply(role).await;
    open.apply(binding).await;
    paint(&world, identity(&world).await);
    for name in ["car", "kite"] {
        order(&closed, name).await;
        order(&open, name).await;
    }
    world.settled().await;
    assert_eq!(ways(&world, &closed), [(true, 403), (false, 200), (false, 200)], "one refusal is enough for a while");
    assert_eq!(ways(&world, &open), [(true, 200), (true, 200)]);
    world.forget_requests();
    world.advance(Duration::from_mins(11)).await;
    order(&closed, "boat").await;
    world.settled().await;
    assert_eq!(ways(&world, &closed), [(true, 403), (false, 200)]);
    let text = world.handles()[0].metrics().text();
    assert!(text.contains(r#"direct_writes_total{outcome="refused"} 2"#) && text.contains(r#"outcome="sent"} 2"#), "{text}");
}
