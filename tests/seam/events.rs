//! Kubernetes Events: what tenants are told in passing, how often, and of what they are told nothing.

use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::manifest::export::Claim;
use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::api::meta::Kind as _;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, Event, Inputs, Recheck, Reconciler, Report, ReportedCondition,
};
use serde_json::{Value, json};

use crate::kcm::platform;
use crate::provider::Toy;
use crate::told::{asked, codes, only, refused, unserved};
use crate::{toy, unchecked_toys, world_of};

/// Longer than an event is held back.
const MINUTES: Duration = Duration::from_mins(6);

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once_beside_its_cluster_and_a_cluster_that_is_placed_at_once_has_no_event() {
    let world = platform(1).await;
    let acme = world.workspace("acme").await;
    acme.apply(samples::tenant()[0].clone()).await;
    acme.apply(samples::tenant()[1].clone()).await;
    acme.condition::<KubernetesCluster>("demo", "Projected", True, "InSync").await;
    world.settled().await;
    assert!(asked(&world).is_empty(), "nothing is told of what goes its way");
    acme.apply(unserved("late", "9.9.9")).await;
    refused(&acme, "late").await;
    world.settled().await;
    let (event, cluster) = (only(&acme, "late").await, acme.get_json::<KubernetesCluster>("late").await.unwrap());
    let about = json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "namespace": "default", "name": "late",
        "uid": cluster["metadata"]["uid"]});
    assert_eq!(event["involvedObject"], about);
    assert_eq!([&event["type"], &event["reason"], &event["count"]], [&json!("Warning"), &json!("OfferingNotFound"), &json!(1)]);
    let said = cluster["status"]["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Scheduled").unwrap();
    assert_eq!(event["message"], said["message"]);
    assert_eq!([&event["source"]["component"], &event["reportingComponent"]], ["cluster-scheduler"; 2]);
    world.advance(Duration::from_hours(2)).await;
    assert_eq!(codes(&world), [("create", 201)], "it is looked at every five minutes, and that is no news");
    assert!(acme.events::<KubernetesCluster>("demo").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_said_again_in_other_words_is_one_event_that_counts_and_is_patched_once_in_five_minutes() {
    let world = platform(1).await;
    let acme = world.workspace("acme").await;
    acme.apply(unserved("late", "9.9.0")).await;
    refused(&acme, "late").await;
    world.settled().await;
    for patch in 1..=8 {
        acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": format!("9.9.{patch}")}})).await;
        refused(&acme, "late").await;
    }
    assert_eq!(codes(&world), [("create", 201)], "the others wait for their time");
    world.advance(MINUTES).await;
    assert_eq!(codes(&world), [("create", 201), ("patch", 200)]);
    let event = only(&acme, "late").await;
    assert_eq!(event["count"], 9);
    assert!(event["message"].as_str().unwrap().contains("version 9.9.8"), "{event}");
    assert_ne!(event["firstTimestamp"], event["lastTimestamp"]);
    let later = world.requests().len();
    world.advance(MINUTES).await;
    assert!(world.requests()[later..].iter().all(Sent::is_stream), "then there is nothing left to be said");
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_started_anew_goes_on_with_the_event_that_it_finds() {
    let world = platform(1).await;
    let acme = world.workspace("acme").await;
    acme.apply(unserved("late", "9.9.0")).await;
    refused(&acme, "late").await;
    world.settled().await;
    world.restart().await;
    world.settled().await;
    assert_eq!(codes(&world), [("create", 201)], "a start is no news");
    for version in ["9.9.1", "9.9.2"] {
        acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": version}})).await;
        refused(&acme, "late").await;
        world.advance(MINUTES).await;
    }
    assert_eq!(codes(&world)[1..], [("create", 409), ("patch", 200), ("patch", 200), ("patch", 200)]);
    assert_eq!(only(&acme, "late").await["count"], 3);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_has_forgotten_is_made_again() {
    let world = platform(1).await;
    let acme = world.workspace("acme").await;
    acme.apply(unserved("late", "9.9.0")).await;
    refused(&acme, "late").await;
    world.settled().await;
    let name = only(&acme, "late").await["metadata"]["name"].as_str().unwrap().to_owned();
    acme.client().delete(&format!("/api/v1/namespaces/default/events/{name}")).await.ok().unwrap();
    world.advance(MINUTES).await;
    acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": "9.9.1"}})).await;
    refused(&acme, "late").await;
    world.settled().await;
    assert_eq!(codes(&world)[1..], [("patch", 404), ("create", 201)]);
    assert_eq!(only(&acme, "late").await["count"], 2);
}

/// kcp v0.28 labels claimed objects by each of the two groups of events, and one of them knows nothing of the claim on the other.
#[tokio::test(start_paused = true)]
async fn an_event_that_kcp_hides_is_followed_by_another_that_tells_the_rest() {
    let world = platform(1).await;
    let acme = world.workspace("acme").await;
    acme.apply(unserved("late", "9.9.0")).await;
    refused(&acme, "late").await;
    world.settled().await;
    let name = only(&acme, "late").await["metadata"]["name"].as_str().unwrap().to_owned();
    acme.client().merge(&format!("/apis/events.k8s.io/v1/namespaces/default/events/{name}"), &json!({})).await.ok().unwrap();
    for version in ["9.9.1", "9.9.2", "9.9.3"] {
        acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": version}})).await;
        refused(&acme, "late").await;
    }
    world.advance(MINUTES).await;
    assert_eq!(codes(&world)[1..], [("patch", 404), ("create", 409), ("create", 201)]);
    let counts: i64 = acme.events::<KubernetesCluster>("late").await.iter().map(|event| event["count"].as_i64().unwrap()).sum();
    assert_eq!(counts, 4);
    acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": "9.9.4"}})).await;
    refused(&acme, "late").await;
    world.advance(MINUTES).await;
    assert_eq!(codes(&world)[4..], [("create", 201)], "by then it is known");
    world.restart().await;
    acme.merge::<KubernetesCluster>("late", json!({"spec": {"version": "9.9.5"}})).await;
    refused(&acme, "late").await;
    world.settled().await;
    assert_eq!(codes(&world)[5..], [("create", 409), ("patch", 404), ("create", 201)]);
    assert_eq!(acme.events::<KubernetesCluster>("late").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_refusals_is_a_hundred_events_of_its_workspace_and_holds_up_nobody_elses() {
    let world = platform(1).await;
    let (greedy, modest) = (world.workspace("greedy").await, world.workspace("modest").await);
    for at in 0..250 {
        greedy.apply(unserved(&format!("late-{at}"), "9.9.0")).await;
    }
    modest.apply(unserved("late", "9.9.0")).await;
    refused(&modest, "late").await;
    for at in 0..250 {
        refused(&greedy, &format!("late-{at}")).await;
    }
    world.settled().await;
    assert_eq!(only(&modest, "late").await["count"], 1);
    assert_eq!(asked(&world).iter().filter(|sent| sent.verb == "create").count(), 101);
    assert!(world.handles()[0].metrics().text().contains("kcp_provider_events_total{outcome=\"dropped\"} 150"));
}

/// Tells more than it should.
struct Teller;

#[async_trait]
impl Reconciler for Teller {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "teller", finalizer: Some("toys.test/told"), conditions: &["Told"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        ctx.hold(toy, json!({})).await?;
        let told = ReportedCondition::new("Told", true, Reason::Custom("Told"), "it is told");
        let long = Event::warning(Reason::Custom("Long"), "ä".repeat(4000));
        Ok(Report::new(()).with(told).with_event(Event::normal(Reason::Custom("Looked"), "it was looked at")).with_event(long))
    }

    async fn delete(&self, ctx: &Context<()>, toy: &Toy) -> Result<Deletion, CallError> {
        let since: jiff::Timestamp = toy.meta().deletion_timestamp.as_deref().unwrap_or_default().parse().unwrap_or(ctx.now);
        if ctx.now.duration_since(since).as_secs() > 60 {
            return Ok(Deletion::Done);
        }
        let going = ReportedCondition::new("Told", false, Reason::Deleting, "it goes");
        let event = Event::warning(Reason::Deleting, "it goes");
        Ok(Deletion::Pending(Report::new(()).with(going).with_event(event).recheck(Recheck::After(Duration::from_secs(20)))))
    }
}

async fn toys() -> World {
    let mut world = world_of(unchecked_toys()).await;
    world.claim(Claim { group: "", resource: "events", verbs: &["create", "patch"], identity_hash: None }).await;
    world.serve(|_: &mut Inputs<Toy>| Teller);
    world
}

async fn told(acme: &Workspace, name: &str) -> Vec<String> {
    let events = acme.events::<Toy>(name).await;
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let mut told: Vec<String> = events.iter().map(|event| format!("{} {}", text(event, "type"), text(event, "reason"))).collect();
    told.sort();
    told
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_tells_is_told_within_its_bound_and_nothing_is_of_what_is_going() {
    let world = toys().await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Told", True, "Told").await;
    world.settled().await;
    assert_eq!(told(&acme, "car").await, ["Normal Looked", "Warning Long"]);
    let long = acme.events::<Toy>("car").await.into_iter().find(|event| event["reason"] == "Long").unwrap();
    assert_eq!(long["message"].as_str().unwrap().len(), 1024);
    world.advance(MINUTES).await;
    world.forget_requests();
    acme.delete::<Toy>("car").await;
    acme.condition::<Toy>("car", "Told", False, "Deleting").await;
    acme.gone::<Toy>("car").await;
    world.advance(MINUTES).await;
    assert!(asked(&world).is_empty(), "{:?}", codes(&world));
}

#[tokio::test(start_paused = true)]
async fn what_the_runtime_says_in_place_of_a_reconciler_is_told_once() {
    let world = toys().await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("wreck", 7)).await;
    acme.condition::<Toy>("wreck", "Told", False, "InvalidObject").await;
    for note in ["a", "b", "c"] {
        acme.merge::<Toy>("wreck", json!({"metadata": {"annotations": {"note": note}}, "generation": note})).await;
        world.settled().await;
    }
    world.advance(MINUTES).await;
    assert_eq!(codes(&world), [("create", 201)]);
    assert_eq!(told(&acme, "wreck").await, ["Warning InvalidObject"]);
    assert!(acme.events::<Toy>("wreck").await[0]["message"].as_str().unwrap().contains("colour: invalid type"));
}
