//! The seam, as a provider team sees it: a toy provider over public items alone, run by the real runtime against the embedded control plane.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod absence;
mod access;
mod asked;
mod bonds;
mod caster;
mod cloud;
#[allow(dead_code, reason = "each target uses its part of it")]
mod courier;
mod direct;
mod events;
mod faults;
mod fragile;
#[path = "../invariants/furnish.rs"]
mod furnish;
mod guard;
mod kcm;
#[allow(dead_code, reason = "each target uses its part of it")]
mod keeper;
mod panics;
mod preflight;
mod provider;
mod secured;
mod strict;
#[path = "../reports/told.rs"]
mod told;
mod trouble;
mod workload;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::kit::{Resource, Sent, Workspace, World};
use keeper::PAINTS;
use provider::{Painter, Toy};
use serde_json::{Value, json};
use strict::Strict;

type Calls = Arc<Mutex<Vec<String>>>;

/// What a toy may be: its colour is a word, its status what its provider says.
fn toys() -> Resource {
    let condition = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["type"], "properties": {"type": {"type": "string"}},
    });
    let conditions = json!({"type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
    let status =
        json!({"type": "object", "properties": {"colour": {"type": "string"}, "coats": {"type": "integer"}, "conditions": conditions}});
    Resource::new::<Toy>(json!({"type": "object", "properties": {"colour": {"type": "string", "maxLength": 9}, "status": status}}))
}

/// Toys of which nothing is checked.
fn unchecked_toys() -> Resource {
    Resource::new::<Toy>(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
}

async fn world_of(toys: Resource) -> World {
    let mut world = World::new().await;
    world.export(toys).await;
    world
}

fn paint(world: &World) -> Calls {
    let calls = Calls::default();
    let told = calls.clone();
    world.serve(move |_| Painter(told.clone()));
    calls
}

fn toy(name: &str, colour: impl Into<Value>) -> Value {
    json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": {"name": name}, "colour": colour.into()})
}

/// How often a toy was called.
fn called(calls: &Calls, workspace: &Workspace, name: &str) -> usize {
    let toy = format!("{}/{name}", workspace.logical_cluster());
    calls.lock().unwrap().iter().filter(|call| **call == toy).count()
}

fn written(world: &World, name: &str) -> Vec<Sent> {
    world.requests().into_iter().filter(|sent| sent.is_write() && sent.body["metadata"]["name"] == name).collect()
}

async fn colour(workspace: &Workspace, name: &str) -> Value {
    workspace.get_json::<Toy>(name).await.unwrap()["status"]["colour"].take()
}

#[test]
fn a_provider_is_sixty_lines() {
    let lines = include_str!("provider.rs").lines().count();
    assert!(lines <= 60, "the toy provider has grown to {lines} lines: the seam asks for too much");
    assert!(!include_str!("provider.rs").contains("kube::"), "a provider needs no client library");
}

#[tokio::test(start_paused = true)]
async fn a_report_becomes_one_status_write_under_the_objects_identity() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let made = acme.apply(toy("car", "red")).await;
    paint(&world);
    let dry = acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    world.settled().await;
    let [mut write] = <[Sent; 1]>::try_from(written(&world, "car")).unwrap();
    let provider = world.provider().logical_cluster();
    let through = format!("/services/apiexport/{provider}/toys.test/clusters/{}", acme.logical_cluster());
    let target = format!("{through}/apis/toys.test/v1/namespaces/default/toys/car/status?fieldManager=painter&force=true");
    assert_eq!((write.verb, write.target), ("apply", target));
    let since = write.body["status"]["conditions"][0].as_object_mut().unwrap().remove("lastTransitionTime").unwrap();
    assert_eq!(since, dry.last_transition_time.as_str());
    let since: jiff::Timestamp = dry.last_transition_time.parse().unwrap();
    assert!(world.now().duration_since(since).unsigned_abs() < Duration::from_mins(1), "{since}");
    let condition = json!({"type": "Painted", "status": "True", "reason": "Dry", "message": "it is red", "observedGeneration": 1});
    let [uid, version] = ["uid", "resourceVersion"].map(|field| made["metadata"][field].clone());
    let metadata = json!({"name": "car", "namespace": "default", "uid": uid, "resourceVersion": version});
    let status = json!({"colour": "red", "conditions": [condition]});
    assert_eq!(write.body, json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": metadata, "status": status}));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_as_it_should_be_costs_no_request() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    let calls = paint(&world);
    world.settled().await;
    assert_eq!(world.writes(), [("apply", 1)].into());
    assert_eq!(called(&calls, &acme, "car"), 2, "once for its making, once for our own write");
    for note in ["a", "b", "c"] {
        acme.merge::<Toy>("car", json!({"metadata": {"annotations": {"note": note}}})).await;
        world.settled().await;
    }
    assert_eq!(called(&calls, &acme, "car"), 5);
    assert_eq!(world.writes(), [("apply", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_panic_are_their_objects_own() {
    let world = world_of(toys()).await;
    let (one, other) = (world.workspace("one").await, world.workspace("other").await);
    for (workspace, name, colour) in [(&one, "ghost", "none"), (&one, "bomb", "explosive"), (&other, "car", "red")] {
        workspace.apply(toy(name, colour)).await;
    }
    let calls = paint(&world);
    world.advance(Duration::from_mins(1)).await;
    assert!(called(&calls, &one, "bomb") > 2 && called(&calls, &one, "ghost") > 2, "they are tried again");
    one.apply(toy("kite", "blue")).await;
    other.apply(toy("ghost", "white")).await;
    one.condition::<Toy>("kite", "Painted", True, "Dry").await;
    other.condition::<Toy>("ghost", "Painted", True, "Dry").await;
    assert_eq!(["car", "kite", "bomb"].map(|name| written(&world, name).len()), [1, 1, 0]);
    let elsewhere = format!("/clusters/{}/", other.logical_cluster());
    let ghosts: Vec<_> = written(&world, "ghost").iter().map(|sent| sent.target.contains(&elsewhere)).collect();
    assert_eq!(ghosts, [true], "the same name in another workspace is another toy");
    let text = world.handles()[0].metrics().text();
    assert!(text.contains(r#"controller="painter",reason="ReconcileFailed""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_told_the_field_and_its_siblings_go_on() {
    let world = world_of(unchecked_toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    paint(&world);
    acme.apply(toy("wreck", 7)).await;
    acme.apply(toy("kite", "blue")).await;
    let told = acme.condition::<Toy>("wreck", "Painted", False, "InvalidObject").await;
    assert!(told.message.starts_with("the object cannot be read: colour: invalid type: integer `7`"), "{}", told.message);
    world.settled().await;
    assert_eq!([colour(&acme, "car").await, colour(&acme, "kite").await], ["red", "blue"]);
    acme.apply(toy("wreck", "green")).await;
    acme.condition::<Toy>("wreck", "Painted", True, "Dry").await;
    assert_eq!(colour(&acme, "wreck").await, "green", "it is mended by its tenant alone");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_is_ready_once_everything_was_listed() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    paint(&world);
    assert_eq!(world.handles()[0].missing(), None, "nobody has looked yet");
    world.ready().await;
    assert_eq!(world.handles()[0].missing(), Some(Vec::new()));
    acme.apply(toy("car", "green")).await;
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    assert_eq!(colour(&acme, "car").await, "green");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_configuration_and_without_defaults_an_object_is_told_so() {
    let world = world_of(toys()).await;
    let paints = Resource::of(PAINTS, json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    world.provider().define(paints).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    world.serve(|_| Strict);
    let told = acme.condition::<Toy>("car", "Painted", False, "ConfigUnavailable").await;
    assert_eq!(told.message, "there is no configuration object");
    assert_eq!(acme.get_json::<Toy>("car").await.unwrap()["status"]["coats"], 0, "no status field goes on telling of success");
}
