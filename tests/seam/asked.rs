//! What is asked of the runtime about objects: one of each workspace, to look once more, to leave it alone, and to delete without a configuration.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True, Unknown};
use kcp_provider_runtime::api::meta::{Kind as _, OPERATION_ANNOTATION};
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Resource, Workspace, World};
use serde_json::json;

use crate::keeper::{Keeper, Ledger, PAINTS, deleted_with};
use crate::provider::{Painter, Toy};
use crate::{Calls, called, paint, toy, toys, world_of};

fn paint_one(world: &World) -> Calls {
    let calls = Calls::default();
    let told = calls.clone();
    world.serve(move |inputs| {
        inputs.one_per_workspace();
        Painter(told.clone())
    });
    calls
}

async fn painted(workspace: &Workspace, name: &str) {
    workspace.condition::<Toy>(name, "Painted", True, "Dry").await;
}

#[tokio::test(start_paused = true)]
async fn where_one_counts_the_oldest_does_and_the_next_takes_over_when_it_is_gone() {
    let world = world_of(toys()).await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    let calls = paint_one(&world);
    for name in ["zebra", "car", "ant"] {
        acme.apply(toy(name, "red")).await;
        world.advance(Duration::from_secs(2)).await;
    }
    bolt.apply(toy("car", "red")).await;
    painted(&acme, "zebra").await;
    painted(&bolt, "car").await;
    for name in ["car", "ant"] {
        let told = acme.condition::<Toy>(name, "Painted", False, "Superseded").await;
        assert_eq!(told.message, "only the oldest of this workspace counts, which is default/zebra; this one takes over when that is gone");
        assert_eq!(called(&calls, &acme, name), 0);
    }
    // As long as it is there it counts, though it is being deleted.
    acme.merge::<Toy>("zebra", json!({"metadata": {"finalizers": ["toys.test/parts"]}})).await;
    acme.delete::<Toy>("zebra").await;
    world.settled().await;
    acme.condition::<Toy>("car", "Painted", False, "Superseded").await;
    acme.merge::<Toy>("zebra", json!({"metadata": {"finalizers": null}})).await;
    painted(&acme, "car").await;
    let told = acme.eventually::<Toy>("ant", "is told of the next", |_| true).await;
    assert_eq!(told.meta().name, "ant");
    world.settled().await;
    let told = acme.condition::<Toy>("ant", "Painted", False, "Superseded").await;
    assert!(told.message.contains("default/car"), "{}", told.message);
    world.forget_requests();
    world.restart().await;
    world.settled().await;
    assert_eq!(world.writes(), [].into(), "a restart comes to the same");
    acme.delete::<Toy>("ant").await;
    acme.gone::<Toy>("ant").await;
    assert_eq!(called(&calls, &acme, "ant"), 0);
}

#[test]
fn whatever_goes_wrong_once_the_oldest_counts() {
    let prepare = async || {
        let world = world_of(toys()).await;
        world.workspace("acme").await;
        world
    };
    let story = async |world: &World| {
        paint_one(world);
        let acme = world.tenant("acme");
        acme.apply(toy("zebra", "red")).await;
        world.advance(Duration::from_secs(2)).await;
        acme.apply(toy("car", "red")).await;
        acme.condition::<Toy>("car", "Painted", False, "Superseded").await;
        acme.delete::<Toy>("zebra").await;
        painted(&acme, "car").await;
    };
    under_every_fault(prepare, story).assert();
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_ignored_is_left_alone_until_it_is_not() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let calls = paint(&world);
    let mut car = toy("car", "red");
    car["metadata"]["annotations"] = json!({OPERATION_ANNOTATION: "ignore"});
    acme.apply(car).await;
    world.settled().await;
    world.advance(Duration::from_mins(30)).await;
    assert_eq!((called(&calls, &acme, "car"), world.writes()), (0, [].into()));
    acme.merge::<Toy>("car", json!({"metadata": {"annotations": {OPERATION_ANNOTATION: null}}})).await;
    painted(&acme, "car").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_looked_at_again_is_once_over_inputs_listed_afresh_and_the_request_is_taken_away() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let calls = paint(&world);
    acme.apply(toy("car", "red")).await;
    painted(&acme, "car").await;
    world.settled().await;
    let before = called(&calls, &acme, "car");
    world.forget_requests();
    acme.merge::<Toy>("car", json!({"metadata": {"annotations": {OPERATION_ANNOTATION: "reconcile", "note": "stays"}}})).await;
    acme.eventually::<Toy>("car", "is no longer asked for", |car| !car.meta().annotations.contains_key(OPERATION_ANNOTATION)).await;
    world.settled().await;
    // Once for the request, once for its end.
    assert_eq!(called(&calls, &acme, "car"), before + 2);
    assert_eq!(world.writes(), [("update", 1)].into());
    assert_eq!(acme.get::<Toy>("car").await.unwrap().meta().annotations["note"], "stays");
    world.advance(Duration::from_hours(2)).await;
    assert_eq!(world.writes(), [("update", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn without_a_configuration_nothing_is_begun_and_what_was_begun_can_be_deleted() {
    let world = world_of(toys()).await;
    let paints = Resource::of(PAINTS, json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    world.provider().define(paints).await;
    let acme = world.workspace("acme").await;
    let ledger = Ledger::default();
    let told = ledger.clone();
    world.serve(move |_| Keeper::<Toy>::new(told.clone()));
    for name in ["car", "kite"] {
        acme.apply(toy(name, "red")).await;
        acme.condition::<Toy>(name, "Kept", False, "ConfigUnavailable").await;
        acme.condition::<Toy>(name, "Clean", Unknown, "NotEvaluated").await;
    }
    world
        .provider()
        .apply(json!({"apiVersion": "toys.test/v1", "kind": "Paints", "metadata": {"name": "kcm"}, "spec": {"brand": "Gloss"}}))
        .await;
    for name in ["car", "kite"] {
        acme.condition::<Toy>(name, "Kept", True, "Ready").await;
    }
    world.settled().await;
    world.provider().client().delete("/apis/toys.test/v1/paints/kcm").await.ok().unwrap();
    world.settled().await;
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    // Another process has never seen one.
    world.restart().await;
    world.ready().await;
    acme.delete::<Toy>("kite").await;
    acme.gone::<Toy>("kite").await;
    assert_eq!(deleted_with(&ledger), ["Gloss", ""]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_is_used_by_whatever_is_looked_at_a_second_later_and_by_the_rest_in_turn() {
    const TOYS: usize = 300;
    let world = world_of(toys()).await;
    let paints = Resource::of(PAINTS, json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    world.provider().define(paints).await;
    let paints =
        |brand: &str| json!({"apiVersion": "toys.test/v1", "kind": "Paints", "metadata": {"name": "kcm"}, "spec": {"brand": brand}});
    world.provider().apply(paints("Gloss")).await;
    // Another provider's changes nothing.
    let mut other = paints("Rust");
    other["metadata"]["name"] = "other".into();
    world.provider().apply(other).await;
    let acme = world.workspace("acme").await;
    for at in 0..TOYS {
        acme.apply(toy(&format!("toy-{at:03}"), "red")).await;
    }
    world.serve(|_| Keeper::<Toy>::new(Ledger::default()));
    world.settled().await;
    world.forget_requests();
    let (changed, last) = (world.now(), format!("toy-{:03}", TOYS - 1));
    world.provider().apply(paints("Matt")).await;
    world.advance(Duration::from_secs(1)).await;
    acme.merge::<Toy>(&last, json!({"colour": "blue"})).await;
    let told = acme.condition::<Toy>(&last, "Kept", True, "Ready").await;
    assert_eq!(told.message, "with Matt");
    assert!(world.now().duration_since(changed).as_secs() < 3, "it was looked at at once");
    let of_toys = || world.requests().iter().filter(|sent| sent.is_write() && sent.target.contains("/toys/")).count();
    let at_once = of_toys();
    assert!(at_once < TOYS / 2, "{at_once} of {TOYS} were looked at in the first seconds");
    world.advance(Duration::from_secs(10)).await;
    assert_eq!(of_toys(), TOYS);
}
