//! The kit itself: what it does to a world, and what it says when something does not come.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::manifest::export::Claim;
use kcp_provider_runtime::embedded::{ADMIN, Options as Profile};
use kcp_provider_runtime::kit::World;
use kcp_provider_runtime::runtime::Options;

use crate::provider::{Painter, Toy};
use crate::{Calls, called, colour, paint, toy, toys, world_of};

#[tokio::test(start_paused = true)]
async fn a_restart_looks_at_everything_and_writes_nothing() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    let calls = paint(&world);
    world.settled().await;
    let before = called(&calls, &acme, "car");
    world.forget_requests();
    world.restart().await;
    world.settled().await;
    assert_eq!(called(&calls, &acme, "car"), before + 1);
    assert_eq!(world.writes(), [].into());
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_unbinds_and_binds_again_is_served_again() {
    let mut world = world_of(toys()).await;
    world.claim(Claim { group: "", resource: "configmaps", verbs: &["get"], identity_hash: None }).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    acme.unbind().await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    acme.bind().await;
    acme.apply(toy("car", "blue")).await;
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    assert_eq!(colour(&acme, "car").await, "blue");
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_an_answer_and_what_it_takes_is_typed() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let refused = acme.try_apply(&toy("car", "a mixture of all")).await.unwrap_err();
    assert!(refused.starts_with("422 ") && refused.contains("colour"), "{refused}");
    assert!(acme.get::<Toy>("car").await.is_none());
    acme.apply(toy("car", "red")).await;
    assert!(acme.get::<Toy>("default/car").await.is_some());
    let all = acme.client().get("/apis/toys.test/v1/toys").await.ok().unwrap();
    assert_eq!(all["items"][0]["colour"], "red");
    assert_eq!(world.client().get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/acme").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn time_passes_as_far_as_it_is_told_to() {
    let world = world_of(toys()).await;
    let began = world.now();
    world.advance(Duration::from_hours(24)).await;
    assert_eq!(world.now().duration_since(began).as_hours(), 24);
}

/// The message of what fails here.
async fn failure(test: impl Future<Output = ()>) -> String {
    use futures::FutureExt as _;
    let panicked = std::panic::AssertUnwindSafe(test).catch_unwind().await.expect_err("it fails");
    *panicked.downcast::<String>().expect("a text")
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_says_what_was_seen_instead() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("ghost", "none")).await;
    paint(&world);
    let said = failure(async {
        acme.condition::<Toy>("ghost", "Painted", True, "Dry").await;
    })
    .await;
    let place = format!("{}:", file!());
    let statement = format!("not within 600 s: toys.toys.test default/ghost in acme ({}) has Painted=True (Dry)", acme.logical_cluster());
    for part in [&*place, &*statement, "\"colour\": \"none\"", "the runtime is ready", "reconcile failed", "none is no colour"] {
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_world_without_a_reconciler_says_so() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let said = failure(async {
        acme.eventually::<Toy>("car", "is red", |_| true).await;
    })
    .await;
    assert!(said.contains("last seen:\n  there is no such object\n") && said.contains("no reconciler is served"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_hour_in_which_nothing_changes_writes_nothing() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    world.settled().await;
    assert_eq!(world.requests().iter().filter(|sent| !sent.is_stream()).map(|sent| sent.verb).collect::<Vec<_>>(), ["apply"]);
    world.advance(Duration::from_hours(1)).await;
    world.settled().await;
    assert_eq!(world.writes(), [("apply", 1)].into(), "an hour changes nothing");
    assert!(world.requests().iter().all(|sent| sent.code == 200), "{:?}", world.requests().iter().find(|sent| sent.code != 200));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_outlives_its_watches_and_a_history_that_was_forgotten() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    paint(&world);
    world.ready().await;
    world.control_plane().close_watches();
    acme.apply(toy("car", "red")).await;
    world.control_plane().compact();
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    world.settled().await;
    assert_eq!(world.writes(), [("apply", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_runtime_without_rights_says_what_it_misses() {
    let users = [(ADMIN, "system:kcp:admin"), ("nobody", "nobodies")];
    let users = users.map(|(name, group)| (name.into(), name.into(), vec![group.into()])).into();
    let mut world = World::with(Profile { users, ..Profile::default() }).await;
    world.export(toys()).await;
    let options = Options { credentials: world.credentials("nobody"), ..world.options() };
    world.run_with(options, |runtime| runtime.serve(|_| Painter(Calls::default())));
    let said = failure(world.ready()).await;
    for part in ["not within 600 s: every runtime is ready", "the runtime is not ready: ", "list    403  /clusters/root:provider/"] {
        assert!(said.contains(part), "{part}\nis not in\n{said}");
    }
}

#[tokio::test]
async fn a_world_is_one_in_real_time_too() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
}
