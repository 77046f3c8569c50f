//! Outages: at the start, in the middle, of everything or of a part; and what is asked once they are over.

use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::meta::Kind as _;
use kcp_provider_runtime::api::projection::Projection;
use kcp_provider_runtime::api::tenant::KubernetesCluster;
use kcp_provider_runtime::embedded::Options;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use serde_json::{Value, json};

use crate::support::{Fate, order, platform, run, tenant, world};

const HOUR: Duration = Duration::from_hours(1);
const OUTAGE: Duration = Duration::from_mins(3);
const ALL: [Fate; 9] = [
    Fate::Refused,
    Fate::Unanswered,
    Fate::HalfOpen,
    Fate::EmptyList,
    Fate::Code(401),
    Fate::Code(403),
    Fate::Code(404),
    Fate::Code(500),
    Fate::Code(503),
];

/// A tenant whose cluster its provider calls ready.
async fn ready(world: &World, name: &str) -> Workspace {
    let workspace = tenant(world, name).await;
    let projection = workspace.eventually::<Projection>("demo", "is there", |_| true).await;
    let generation = projection.metadata.generation();
    let said = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": generation,
        "lastTransitionTime": world.now().to_string()});
    workspace.merge_status::<Projection>("demo", json!({"ready": true, "observedGeneration": generation, "conditions": [said]})).await;
    workspace.condition::<KubernetesCluster>("demo", "Ready", True, "Ready").await;
    workspace
}

async fn both(workspace: &Workspace) -> [Value; 2] {
    [workspace.get_json::<KubernetesCluster>("demo").await.unwrap(), workspace.get_json::<Projection>("demo").await.unwrap()]
}

/// What must be as it was. A status may have been written meanwhile: kinds that a shard did not serve come back one after the other.
fn lasting(object: &Value) -> Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let words: Vec<Value> = conditions.map(|condition| json!([condition["type"], condition["status"], condition["reason"]])).collect();
    json!([object["metadata"]["uid"], object["metadata"]["generation"], object["metadata"]["deletionTimestamp"], object["spec"], words])
}

/// Reports 36 and 32: everything, the tenants' side or the platform's side cannot be read when the manager starts.
#[tokio::test(start_paused = true)]
async fn an_outage_at_the_start_deletes_nothing_and_changes_nothing() {
    for fate in ALL {
        for part in ["https://", "/services/", "/clusters/root:provider/"] {
            let (world, _) = platform().await;
            let acme = ready(&world, "acme").await;
            world.settled().await;
            let before = both(&acme).await;
            world.stop().await;
            world.forget_requests();
            let faults = run(&world);
            faults.add(part, fate);
            world.advance(OUTAGE).await;
            assert!(faults.met() > 3, "{fate:?} of {part}");
            assert_eq!((world.writes(), both(&acme).await), ([].into(), before.clone()), "{fate:?} of {part}");
            faults.end();
            world.settled().await;
            let [was, is] = [before, both(&acme).await].map(|both| both.each_ref().map(lasting));
            assert_eq!(is, was, "{fate:?} of {part}");
            assert!(!world.writes().contains_key("delete"), "{fate:?} of {part}");
        }
    }
}

/// Report 36, of one kind alone: the clusters are seen, and what was made for them is not.
#[tokio::test(start_paused = true)]
async fn a_projection_that_cannot_be_seen_any_more_is_taken_for_what_it_was() {
    for fate in ALL {
        let (world, faults) = platform().await;
        let acme = ready(&world, "acme").await;
        world.settled().await;
        world.forget_requests();
        let before = both(&acme).await;
        faults.add(&format!("/clusters/*/apis/{}/", Projection::REF.api_version()), fate);
        world.control_plane().close_watches();
        world.control_plane().compact();
        world.advance(HOUR).await;
        assert!(faults.met() > 3, "{fate:?}");
        assert_eq!((world.writes(), both(&acme).await), ([].into(), before.clone()), "{fate:?}");
        faults.end();
        world.settled().await;
        assert_eq!((world.writes(), both(&acme).await), ([].into(), before), "{fate:?}");
    }
}

/// Reports 32 and 36 for a manager at work: what it saw is kept, whatever the server says meanwhile.
#[tokio::test(start_paused = true)]
async fn an_outage_at_work_deletes_nothing_and_what_came_meanwhile_is_done_after_it() {
    for fate in ALL {
        let (world, faults) = platform().await;
        let acme = ready(&world, "acme").await;
        world.settled().await;
        world.forget_requests();
        let before = both(&acme).await;
        faults.add("/services/", fate);
        world.control_plane().close_watches();
        world.advance(HOUR).await;
        assert_eq!((world.writes(), both(&acme).await), ([].into(), before), "{fate:?}");
        let other = tenant(&world, "other").await;
        acme.delete::<KubernetesCluster>("demo").await;
        world.advance(Duration::from_mins(1)).await;
        assert_eq!(world.writes(), [].into(), "{fate:?}");
        faults.end();
        acme.gone::<Projection>("demo").await;
        acme.gone::<KubernetesCluster>("demo").await;
        other.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
        world.ready().await;
    }
}

/// Report 4: the server goes while writes are under way, so that some are done and never answered.
#[tokio::test(start_paused = true)]
async fn writes_whose_answers_are_lost_happen_once() {
    for verb in ["POST", "PUT", "PATCH", "DELETE"] {
        for fate in [Fate::Lost, Fate::Refused, Fate::Unanswered] {
            let (world, faults) = platform().await;
            faults.add(&format!("{verb} "), fate);
            let acme = world.workspace("acme").await;
            order(&acme).await;
            world.advance(Duration::from_mins(2)).await;
            let early = acme.get::<Projection>("demo").await;
            faults.end();
            acme.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
            let projection = acme.eventually::<Projection>("demo", "is there", |_| true).await;
            if let Some(early) = early {
                assert_eq!(projection.metadata.uid, early.metadata.uid, "{verb} {fate:?}");
            }
            faults.add(&format!("{verb} "), fate);
            acme.delete::<KubernetesCluster>("demo").await;
            world.advance(Duration::from_mins(2)).await;
            faults.end();
            acme.gone::<KubernetesCluster>("demo").await;
            acme.gone::<Projection>("demo").await;
            world.settled().await;
            let made = |sent: &&Sent| sent.verb == "create" && sent.code == 201;
            assert_eq!(world.requests().iter().filter(made).count(), 1, "{verb} {fate:?}");
        }
    }
}

/// Report 43: all watches end at once, again and again.
#[tokio::test(start_paused = true)]
async fn watches_that_all_end_at_once_are_opened_again_without_a_list() {
    let world = world(Options { shards: 3, ..Options::default() }).await;
    let faults = run(&world);
    for name in ["a", "b", "c"] {
        tenant(&world, name).await.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
    }
    world.settled().await;
    world.forget_requests();
    let (streams, rounds) = (faults.watched().len() + 4, 100);
    for _ in 0..rounds {
        world.control_plane().close_watches();
        world.advance(Duration::from_millis(100)).await;
    }
    let asked = world.requests();
    assert!(asked.iter().all(|sent| sent.verb == "watch"), "{:?}", asked.iter().find(|sent| sent.verb != "watch"));
    // Ten seconds, and each stream waits a second from one opening to the next.
    assert!(asked.len() <= streams * 11 && asked.len() >= streams * 9, "{} for {streams} streams", asked.len());
    world.forget_requests();
    world.control_plane().compact();
    world.control_plane().close_watches();
    world.advance(Duration::from_secs(10)).await;
    let lists = world.requests().iter().filter(|sent| sent.verb == "list").count();
    assert!(lists <= streams, "{lists} lists for {streams} streams whose history is forgotten");
}

/// Report 19: an object that the server refuses, and goes on refusing.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_is_tried_ever_more_rarely_and_holds_up_nobody() {
    let (world, faults) = platform().await;
    let (acme, other) = (world.workspace("acme").await, world.workspace("other").await);
    faults.add(&format!("PATCH {}", world.control_plane().url()), Fate::Code(422));
    order(&acme).await;
    world.advance(HOUR).await;
    let hot = faults.met();
    assert!((10..60).contains(&hot), "{hot} requests in an hour");
    faults.end();
    order(&other).await;
    other.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
    acme.condition::<KubernetesCluster>("demo", "Scheduled", True, "Scheduled").await;
}
