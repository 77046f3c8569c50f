//! Whatever of a provider panics, the harm is the least there is: to one object, or to one input until it changes. The process goes on, and no
//! tenant reads in which words it was.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::kit::{Resource, Workspace, World};
use serde_json::{Value, json};

use crate::fragile::{Fragile, Pot, SECRET, Toy};
use crate::keeper::PAINTS;
use crate::{Calls, called, toy, unchecked_toys, world_of, written};

const MINUTE: Duration = Duration::from_mins(1);

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A shelf with one pot on it, of this colour, and a tenant; nothing is served yet.
async fn shop(colour: &str) -> (World, Workspace) {
    let world = world_of(unchecked_toys()).await;
    world.provider().define(Resource::new::<Pot>(anything())).await;
    world.provider().define(Resource::of(PAINTS, anything())).await;
    pot(&world, "first", colour).await;
    let acme = world.workspace("acme").await;
    (world, acme)
}

fn mix(world: &World) -> Calls {
    let calls = Calls::default();
    let told = calls.clone();
    world.serve(move |inputs| Fragile::new(inputs, told.clone()));
    calls
}

async fn pot(world: &World, name: &str, colour: &str) {
    let pot = json!({"apiVersion": "toys.test/v1", "kind": "Pot", "metadata": {"name": name}, "colour": colour});
    world.provider().apply(pot).await;
}

async fn brand(world: &World, brand: &str) {
    let paints = json!({"apiVersion": "toys.test/v1", "kind": "Paints", "metadata": {"name": "kcm"}, "spec": {"brand": brand}});
    world.provider().apply(paints).await;
}

/// What a toy is told once it is mixed.
async fn mixed(workspace: &Workspace, name: &str) -> String {
    workspace.condition::<Toy>(name, "Mixed", True, "Ready").await.message
}

/// Why a toy is not mixed.
async fn not_mixed(workspace: &Workspace, name: &str, reason: &str) -> String {
    workspace.condition::<Toy>(name, "Mixed", False, reason).await.message
}

/// Nothing of the words of a panic went to the server.
fn kept_to_itself(world: &World) {
    let told: Vec<_> = world.requests().into_iter().filter(|sent| sent.is_write() && sent.body.to_string().contains(SECRET)).collect();
    assert!(told.is_empty(), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_cannot_be_made_stays_as_it_was_and_those_who_read_it_are_told_when_it_is_too_old() {
    let (world, acme) = shop("red").await;
    let calls = mix(&world);
    acme.apply(toy("car", "red")).await;
    assert_eq!(mixed(&acme, "car").await, r#"first of """#);
    pot(&world, "second", "unfolded").await;
    world.advance(Duration::from_secs(10)).await;
    acme.apply(toy("kite", "red")).await;
    assert_eq!(mixed(&acme, "kite").await, r#"first of """#, "the last good one counts for a minute");
    world.advance(2 * MINUTE).await;
    acme.apply(toy("boat", "red")).await;
    let told = not_mixed(&acme, "boat", "CatalogUnavailable").await;
    assert!(told.starts_with("the provider panicked over pots.toys.test (since "), "{told}");
    assert_eq!(world.handles()[0].missing(), Some(Vec::new()), "it is ready, for it has a view");
    pot(&world, "second", "blue").await;
    assert_eq!(mixed(&acme, "boat").await, r#"first+second of """#);
    assert!(called(&calls, &acme, "boat") < 5, "it is waited for");
    kept_to_itself(&world);
}

#[tokio::test(start_paused = true)]
async fn a_view_that_could_never_be_made_is_missed_like_one_that_was_never_read() {
    let (world, acme) = shop("unfolded").await;
    mix(&world);
    acme.apply(toy("car", "red")).await;
    let told = not_mixed(&acme, "car", "CatalogUnavailable").await;
    assert!(told.starts_with("the provider panicked over pots.toys.test (since "), "{told}");
    world.advance(MINUTE).await;
    assert_eq!(world.handles()[0].missing(), Some(vec!["the provider panicked over pots.toys.test".to_owned()]));
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    acme.apply(toy("kite", "red")).await;
    pot(&world, "first", "red").await;
    mixed(&acme, "kite").await;
    world.ready().await;
    kept_to_itself(&world);
}

#[tokio::test(start_paused = true)]
async fn where_it_panics_whom_a_change_concerns_everybody_is_looked_at() {
    let (world, acme) = shop("red").await;
    let bolt = world.workspace("bolt").await;
    let calls = mix(&world);
    for workspace in [&acme, &bolt] {
        workspace.apply(toy("car", "red")).await;
        mixed(workspace, "car").await;
    }
    world.settled().await;
    let count = || [&acme, &bolt].map(|workspace| called(&calls, workspace, "car"));
    let before = count();
    pot(&world, "second", "red").await;
    world.settled().await;
    assert_eq!(count(), before, "it is of no concern to them");
    pot(&world, "unraised", "red").await;
    world.settled().await;
    // Once for the change, once for what it wrote.
    assert_eq!(count(), before.map(|calls| calls + 2), "the platform");
    brand(&world, "unraised").await;
    world.settled().await;
    assert_eq!(count(), before.map(|calls| calls + 4), "the configuration");
    acme.apply(toy("unraised", "red")).await;
    world.settled().await;
    assert_eq!(count(), [before[0] + 5, before[1] + 4], "a name is heard of in its workspace");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_over_which_it_panics_is_refused_and_the_last_good_one_stays() {
    for bad in ["unchecked", "unset"] {
        let (world, acme) = shop("red").await;
        brand(&world, bad).await;
        mix(&world);
        acme.apply(toy("car", "red")).await;
        let told = not_mixed(&acme, "car", "ConfigUnavailable").await;
        assert!(told.starts_with("the configuration is not valid: spec: the provider cannot check this"), "{told}");
        brand(&world, "dry").await;
        assert_eq!(mixed(&acme, "car").await, r#"first of "dry""#);
        brand(&world, bad).await;
        acme.apply(toy("kite", "red")).await;
        assert_eq!(mixed(&acme, "kite").await, r#"first of "dry""#, "{bad}");
        world.settled().await;
        let judged = world.provider().client().get("/apis/toys.test/v1/paints/kcm").await.ok().unwrap();
        let verdict = &judged["status"]["conditions"][0];
        assert_eq!((&verdict["status"], &verdict["reason"]), (&json!("False"), &json!("Invalid")), "{judged}");
        kept_to_itself(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_over_which_its_own_type_panics_is_told_that_it_cannot_be_read() {
    let (world, acme) = shop("red").await;
    let calls = mix(&world);
    acme.apply(toy("wreck", "unread")).await;
    acme.apply(toy("car", "red")).await;
    let told = not_mixed(&acme, "wreck", "InvalidObject").await;
    assert_eq!(told, "the object cannot be read: the provider's own code failed over it");
    mixed(&acme, "car").await;
    world.settled().await;
    assert_eq!(called(&calls, &acme, "wreck"), 0);
    acme.apply(toy("wreck", "red")).await;
    mixed(&acme, "wreck").await;
    kept_to_itself(&world);
}

#[tokio::test(start_paused = true)]
async fn what_panics_when_it_is_told_is_its_objects_own() {
    let (world, acme) = shop("red").await;
    let calls = mix(&world);
    let colours = ["unsaid", "unexplained"];
    for colour in colours {
        acme.apply(toy(colour, colour)).await;
    }
    acme.apply(toy("car", "red")).await;
    mixed(&acme, "car").await;
    world.advance(Duration::from_hours(24)).await;
    for colour in colours {
        let times = called(&calls, &acme, colour);
        assert!((200..600).contains(&times), "{colour} was tried {times} times in a day");
        assert_eq!(written(&world, colour).len(), 0, "{colour}");
    }
    assert!(world.handles()[0].metrics().text().contains(r#"controller="fragile",reason="ReconcileFailed""#));
    for colour in colours {
        acme.apply(toy(colour, "red")).await;
        mixed(&acme, colour).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_which_it_cannot_be_told_what_concerns_it_hears_of_every_change_though_whose_it_is_is_clear() {
    let (world, acme) = shop("red").await;
    world.serve(|inputs| {
        inputs.only(|_: &Toy| true);
        Fragile::new(inputs, Calls::default())
    });
    acme.apply(toy("odd", "unheard")).await;
    assert_eq!(mixed(&acme, "odd").await, r#"first of """#);
    pot(&world, "second", "red").await;
    world.settled().await;
    assert_eq!(mixed(&acme, "odd").await, r#"first+second of """#);
}
