//! What a provider keeps of its tenants' secrets for the end of its work.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::manifest::export::Claim;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Workspace, World};
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Failure, Inputs, Reconciler, Report, ReportedCondition};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Clouds};
use crate::courier::Log;
use crate::provider::Toy;
use crate::workload::index;
use crate::{toy, toys, world_of};

const SECRETS: &str = "/api/v1/namespaces/kcm-system/secrets";
const RECORDS: &str = "/api/v1/namespaces/kcm-system/configmaps";
/// More than the fifteen minutes for which an absence must last, with what it takes to be noticed.
const LONG: Duration = Duration::from_mins(21);

/// A provider workspace with room for records, and the tenant acme.
async fn world() -> World {
    let mut world = world_of(toys()).await;
    world.claim(Claim { group: "", resource: "secrets", verbs: &["get"], identity_hash: None }).await;
    world.provider().apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcm-system"}})).await;
    world.workspace("acme").await;
    world
}

async fn set_password(tenant: &Workspace, password: &str) {
    let metadata = json!({"name": "cloud", "namespace": "default"});
    tenant.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": password}})).await;
}

/// As a workspace does that goes: its Secrets are gone before everything else.
async fn lose_password(tenant: &Workspace) {
    tenant.client().delete("/api/v1/namespaces/default/secrets/cloud").await.ok().unwrap();
}

fn serve(world: &World, cloud: &Cloud) {
    let cloud = cloud.clone();
    world.serve(move |inputs| Clouds::<Toy>::new(inputs, &cloud));
}

fn serve_careless(world: &World, cloud: &Cloud) {
    let cloud = cloud.clone();
    world.serve(move |inputs| Clouds::<Toy>::careless(inputs, &cloud));
}

/// An account of acme's toy car, under this password.
async fn opened(world: &World, cloud: &Cloud, password: &str) -> Workspace {
    let acme = world.tenant("acme");
    cloud.accept(password);
    set_password(&acme, password).await;
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Open", True, "Ready").await;
    world.settled().await;
    acme
}

/// The Secrets that are kept.
async fn kept(world: &World) -> Vec<Value> {
    let all = world.provider().client().get(&format!("{SECRETS}?labelSelector=runtime.edge-connect.eu/controller")).await;
    all.ok().unwrap()["items"].as_array().unwrap().clone()
}

/// What was written in the provider workspace, in its order.
fn told(world: &World) -> Vec<String> {
    let kind =
        |target: &str| [(SECRETS, "secret"), (RECORDS, "record")].iter().find(|(path, _)| target.contains(path)).map(|(_, kind)| *kind);
    let requests = world.requests().into_iter().filter(|sent| !sent.is_stream());
    requests.filter_map(|sent| Some(format!("{} {}", sent.verb, kind(&sent.target)?))).collect()
}

async fn delete_workspace(world: &World, name: &str) {
    world.client().delete(&format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}")).await.ok().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_work_of_a_workspace_that_is_gone_has_the_secrets_that_it_needs_and_leaves_none() {
    let (world, cloud) = (world().await, Cloud::default());
    serve_careless(&world, &cloud);
    opened(&world, &cloud, "hush").await;
    assert_eq!((cloud.count(), kept(&world).await.len()), (1, 1));
    delete_workspace(&world, "acme").await;
    world.restart().await;
    world.forget_requests();
    world.advance(LONG).await;
    assert_eq!((cloud.count(), kept(&world).await, index(&world).await), (0, vec![], vec![]));
    assert_eq!(told(&world), ["get secret", "update record", "delete secret", "delete record"], "the record says first that it has ended");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_kept_beside_the_record_and_what_is_kept_already_costs_nothing() {
    let (world, cloud) = (world().await, Cloud::default());
    serve(&world, &cloud);
    let acme = opened(&world, &cloud, "hush").await;
    assert_eq!(told(&world), ["create record", "create secret", "update record"]);
    let secret = kept(&world).await.remove(0);
    let labels = json!({"runtime.edge-connect.eu/controller": "clouds", "runtime.edge-connect.eu/workspace": acme.logical_cluster()});
    let record = world.provider().client().get(RECORDS).await.ok().unwrap()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["metadata"]["name"] == secret["metadata"]["name"])
        .cloned()
        .unwrap();
    assert_eq!((&secret["metadata"]["labels"], &record["metadata"]["labels"]), (&labels, &labels));
    assert_eq!(secret["data"], json!({"password": "aHVzaA=="}));

    world.restart().await;
    world.forget_requests();
    for _ in 0..2 {
        acme.merge::<Toy>("car", json!({"metadata": {"annotations": {"openmcp.cloud/operation": "reconcile"}}})).await;
        world.settled().await;
    }
    assert_eq!(told(&world), [""; 0], "neither after a start nor later");

    cloud.accept("hush hush");
    set_password(&acme, "hush hush").await;
    acme.apply(toy("car", "blue")).await;
    world.settled().await;
    assert_eq!(told(&world), ["update record", "update secret"], "the record knows the object as it is, and the Secret another password");
    world.forget_requests();
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    assert_eq!(told(&world), ["get secret", "update record", "delete secret", "delete record"]);
    assert_eq!((cloud.count(), kept(&world).await, index(&world).await), (0, vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_object_for_which_nothing_was_kept_costs_nothing_more_at_its_end() {
    let (world, cloud) = (world().await, Cloud::default());
    serve(&world, &cloud);
    let acme = world.tenant("acme");
    acme.apply(toy("car", "red")).await;
    world.settled().await;
    world.forget_requests();
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    assert_eq!(told(&world), ["get secret", "delete record"], "the first is the reconciler's own question");
}

#[tokio::test(start_paused = true)]
async fn secrets_that_somebody_takes_away_are_kept_again_and_no_work_ends_without_them() {
    let (world, cloud) = (world().await, Cloud::default());
    serve(&world, &cloud);
    let acme = opened(&world, &cloud, "hush").await;
    let mut lost = kept(&world).await.remove(0);
    let path = format!("{SECRETS}/{}", lost["metadata"]["name"].as_str().unwrap());
    world.provider().client().delete(&path).await.ok().unwrap();
    world.settled().await;
    assert_eq!(kept(&world).await[0]["data"], lost["data"], "as long as its tenant has them");

    world.stop().await;
    world.provider().client().delete(&path).await.ok().unwrap();
    acme.delete::<Toy>("car").await;
    serve(&world, &cloud);
    world.advance(LONG).await;
    assert_eq!((cloud.count(), index(&world).await.len()), (1, 1), "whoever does not know how to end it does not say that it has ended");
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        lost["metadata"].as_object_mut().unwrap().remove(field);
    }
    world.provider().client().create(SECRETS, &lost).await.ok().unwrap();
    acme.gone::<Toy>("car").await;
    world.settled().await;
    assert_eq!((cloud.count(), kept(&world).await, index(&world).await), (0, vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_secret_whose_record_is_gone_is_taken_away_by_the_server() {
    let (world, cloud) = (world().await, Cloud::default());
    serve(&world, &cloud);
    opened(&world, &cloud, "hush").await;
    world.stop().await;
    let mut late = kept(&world).await.remove(0);
    let name = late["metadata"]["name"].as_str().unwrap().to_owned();
    world.provider().client().delete(&format!("{RECORDS}/{name}")).await.ok().unwrap();
    assert_eq!(kept(&world).await, [Value::Null; 0]);
    // A request that was under way when its process died.
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        late["metadata"].as_object_mut().unwrap().remove(field);
    }
    world.provider().client().create(SECRETS, &late).await.ok().unwrap();
    assert_eq!(kept(&world).await, [Value::Null; 0]);
}

type Declares = fn(&mut Inputs<Toy>);
type Keeps = fn() -> BTreeMap<String, SecretString>;

/// A provider that asks to keep this and says what came of it.
struct Hoarder(Keeps);

#[async_trait]
impl Reconciler for Hoarder {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "hoarder", finalizer: None, conditions: &["Kept"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, _: &Toy) -> Result<Report, CallError> {
        let error = ctx.secure((self.0)()).await.unwrap_err();
        assert!(matches!(error.failure(), Failure::Invalid(_)));
        let told = format!("{error}; {:?}", ctx.secured().await.map(|secrets| secrets.is_some()));
        Ok(Report::new(()).with(ReportedCondition::new("Kept", true, Reason::Ready, told)))
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_too_much_or_has_not_declared_it_is_told_so_and_nothing_is_sent() {
    let (declared, recorded): (Declares, Declares) = (Inputs::secured, Inputs::external);
    let much = || BTreeMap::from([("key".to_owned(), "x".repeat(1 << 20).into())]);
    let little = || BTreeMap::from([("key".to_owned(), "x".into())]);
    let misplaced = || BTreeMap::from([("hu sh".to_owned(), "x".into())]);
    let cases: [(Declares, Keeps, &str, bool); 4] = [
        (declared, much, "they are 1048579 bytes, and a Secret holds 1048576; Ok(false)", true),
        (declared, misplaced, "key 1 of 1, in their order, is none of a Secret's", true),
        (recorded, little, "has not declared inputs.secured()", false),
        (|_| {}, little, "has not declared inputs.secured()", false),
    ];
    for (declare, secrets, says, asks) in cases {
        let world = world().await;
        world.serve(move |inputs| {
            declare(inputs);
            Hoarder(secrets)
        });
        let acme = world.tenant("acme");
        acme.apply(toy("car", "red")).await;
        let told = acme.condition::<Toy>("car", "Kept", True, "Ready").await;
        assert!(told.message.contains(says) && !told.message.contains("hu sh"), "{}", told.message);
        world.settled().await;
        let sent = world
            .requests()
            .into_iter()
            .filter(|sent| sent.target.contains(SECRETS) && !(asks && (sent.is_stream() || sent.verb == "get")));
        assert_eq!(sent.collect::<Vec<_>>(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_what_is_kept_shows_anywhere() {
    let (world, cloud) = (world().await, Cloud::default());
    let log = Log::default();
    let listening = log.listen();
    // What goes wrong on the way: a Secret that may not be written any more, and one that cannot be read.
    serve(&world, &cloud);
    let acme = opened(&world, &cloud, "canary").await;
    let path = format!("{SECRETS}/{}", kept(&world).await[0]["metadata"]["name"].as_str().unwrap());
    world.provider().client().merge(&path, &json!({"immutable": true})).await.ok().unwrap();
    cloud.accept("another canary");
    set_password(&acme, "another canary").await;
    acme.apply(toy("car", "blue")).await;
    world.advance(Duration::from_mins(2)).await;
    let unreadable = json!({"immutable": null, "data": {"password": "/w=="}});
    world.provider().client().delete(&path).await.ok().unwrap();
    world.settled().await;
    world.provider().client().merge(&path, &unreadable).await.ok().unwrap();
    acme.delete::<Toy>("car").await;
    world.advance(Duration::from_mins(2)).await;
    drop(listening);
    let seen = [
        log.text(),
        acme.get_json::<Toy>("car").await.unwrap().to_string(),
        format!("{:?}", acme.events::<Toy>("car").await),
        world.handles()[0].metrics().text(),
    ];
    for told in ["immutable", "its key password holds no text"] {
        assert!(log.text().contains(told), "the log does not say what is wrong: {told}");
    }
    assert!(seen[1].contains("it is open under {\\\"password\\\": SecretBox<str>([REDACTED])}"), "{}", seen[1]);
    for text in &seen {
        for canary in ["canary", "Y2FuYXJ5", "YW5vdGhlciBjYW5hcnk="] {
            let at = text.find(canary);
            assert!(at.is_none(), "{:?}", at.map(|at| text[at.saturating_sub(200)..].chars().take(300).collect::<String>()));
        }
    }
}

#[test]
fn no_work_ends_without_its_secrets_and_none_stay_whatever_goes_wrong_once() {
    let story = async |world: &World| {
        let cloud = Cloud::default();
        let acme = world.tenant("acme");
        cloud.accept("hush");
        set_password(&acme, "hush").await;
        serve(world, &cloud);
        // One that goes as soon as there is something of it.
        acme.apply(toy("boat", "red")).await;
        while cloud.count() == 0 {
            world.advance(Duration::from_millis(1)).await;
        }
        lose_password(&acme).await;
        acme.delete::<Toy>("boat").await;
        acme.gone::<Toy>("boat").await;
        assert_eq!(cloud.count(), 0);
        set_password(&acme, "hush").await;
        acme.apply(toy("car", "red")).await;
        acme.condition::<Toy>("car", "Open", True, "Ready").await;
        cloud.accept("hush hush");
        set_password(&acme, "hush hush").await;
        acme.apply(toy("car", "blue")).await;
        acme.condition::<Toy>("car", "Open", True, "Ready").await;
        assert_eq!(cloud.count(), 1);
        lose_password(&acme).await;
        acme.delete::<Toy>("car").await;
        acme.gone::<Toy>("car").await;
        assert_eq!((cloud.count(), kept(world).await, index(world).await), (0, vec![], vec![]));
    };
    let explored = under_every_fault(world, story);
    println!("{explored}");
    explored.assert();
}

#[test]
fn the_work_of_what_is_gone_ends_with_its_secrets_whatever_goes_wrong_once() {
    let prepare = async || {
        let (world, cloud) = (world().await, Cloud::default());
        serve_careless(&world, &cloud);
        let acme = opened(&world, &cloud, "hush").await;
        world.stop().await;
        lose_password(&acme).await;
        acme.delete::<Toy>("car").await;
        world
    };
    let story = async |world: &World| {
        world.within(Duration::from_hours(2));
        let cloud = Cloud::default();
        cloud.accept("hush");
        let records = world.provider().client().get(&format!("{RECORDS}?labelSelector=runtime.edge-connect.eu/controller")).await;
        cloud.remember(records.ok().unwrap()["items"][0]["data"]["uid"].as_str().unwrap());
        serve_careless(world, &cloud);
        world.advance(LONG).await;
        for _ in 0..120 {
            world.advance(Duration::from_mins(1)).await;
            if index(world).await.is_empty() {
                assert_eq!((cloud.count(), kept(world).await), (0, vec![]));
                return;
            }
        }
        panic!("the record of what has ended is not gone after two hours");
    };
    let explored = under_every_fault(prepare, story);
    println!("{explored}");
    explored.assert();
}
