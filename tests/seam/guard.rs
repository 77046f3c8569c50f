//! The disconnect guard, in a world of the kit: when it is there. What it refuses, only a real kcp can show.

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::manifest::export::{Claim, GUARD_GROUP, guard_claims};
use kcp_provider_runtime::kit::{Workspace, World};
use serde_json::json;

use crate::provider::Toy;
use crate::{paint, toy, toys, world_of};

const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/disconnect-guard.toys.test";
const BINDING: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/disconnect-guard.toys.test";

async fn guarded() -> World {
    let mut world = world_of(toys()).await;
    for claim in guard_claims() {
        world.claim(claim).await;
    }
    world
}

/// The codes of the policy and of what puts it in force.
async fn guard(workspace: &Workspace) -> [u16; 2] {
    [workspace.client().get(POLICY).await.code, workspace.client().get(BINDING).await.code]
}

async fn eventually(workspace: &Workspace, codes: [u16; 2]) {
    let mut second = tokio::time::interval(std::time::Duration::from_secs(1));
    for _ in 0..600 {
        if guard(workspace).await == codes {
            return;
        }
        second.tick().await;
    }
    panic!("not within ten minutes: the guard is {codes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_stands_exactly_while_objects_live_and_costs_nothing_at_rest() {
    let world = guarded().await;
    let (acme, other) = (world.workspace("acme").await, world.workspace("other").await);
    paint(&world);
    world.settled().await;
    assert_eq!(guard(&acme).await, [404, 404]);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    eventually(&acme, [200, 200]).await;
    assert_eq!(guard(&other).await, [404, 404], "nobody lives there");
    let policy = acme.client().get(POLICY).await.ok().unwrap();
    let rule = policy["spec"]["matchConditions"][1]["expression"].as_str().unwrap();
    assert_eq!(rule, "oldObject.metadata.name in ['toys.test']");

    acme.apply(toy("bus", "blue")).await;
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    world.forget_requests();
    tokio::time::advance(std::time::Duration::from_mins(30)).await;
    assert_eq!(guard(&acme).await, [200, 200], "one of two is left");
    let asked = world.requests().into_iter().filter(|sent| sent.target.contains(GUARD_GROUP)).count();
    assert_eq!(asked, 0, "a guard that is as it should be costs no request");

    // A new process finds it as it should be, and takes it away with the last object.
    world.restart().await;
    world.settled().await;
    acme.delete::<Toy>("bus").await;
    acme.gone::<Toy>("bus").await;
    eventually(&acme, [404, 404]).await;
}

#[tokio::test(start_paused = true)]
async fn a_workspace_whose_binding_accepts_only_one_claim_has_no_guard() {
    let mut world = world_of(toys()).await;
    let [policies, _]: [Claim; 2] = guard_claims().try_into().unwrap();
    world.claim(policies).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    world.settled().await;
    assert_eq!(guard(&acme).await, [404, 404]);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_a_tenant_changed_is_put_right_by_the_next_process() {
    let world = guarded().await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    eventually(&acme, [200, 200]).await;
    let lax = json!({"spec": {"failurePolicy": "Ignore"}});
    acme.client().merge(POLICY, &lax).await.ok().unwrap();
    world.restart().await;
    world.settled().await;
    let mended = async || acme.client().get(POLICY).await.ok().unwrap()["spec"]["failurePolicy"] == "Fail";
    let mut second = tokio::time::interval(std::time::Duration::from_secs(1));
    for _ in 0..600 {
        if mended().await {
            return;
        }
        second.tick().await;
    }
    panic!("not within ten minutes: the policy is ours again");
}
