//! Workload clusters, as a workerless provider and its operator see them.

use std::sync::Arc;
use std::time::Duration;

use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::embedded::ADMIN;
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Workspace, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::absence::{Trouble, suffering};
use crate::caster::{Cast, Caster, cast_name};
use crate::provider::Toy;
use crate::{toy, toys, world_of};

const POOL: &str = "/api/v1/namespaces/kcm-system/secrets";
const INDEX: &str = "/api/v1/namespaces/kcm-system/configmaps";

/// The generation of an object's cast on a workload cluster; `None` where it has none there.
pub(crate) async fn cast(cluster: &Workspace, tenant: &Workspace, name: &str) -> Option<String> {
    let cast = cluster.get::<Cast>(&cast_name(tenant.logical_cluster().as_str(), name)).await?;
    Some(cast.data["generation"].clone())
}

/// What is recorded: the object's name and its workload cluster.
pub(crate) async fn index(world: &World) -> Vec<[String; 2]> {
    let all = world.provider().client().get(&format!("{INDEX}?labelSelector=runtime.edge-connect.eu/controller")).await.ok().unwrap();
    let text = |record: &Value, key: &str| record["data"][key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = all["items"].as_array().unwrap().iter().map(|record| ["name", "cluster"].map(|key| text(record, key))).collect();
    all.sort();
    all
}

async fn annotate(world: &World, secret: &str, key: &str, value: Value) {
    let patch = json!({"metadata": {"annotations": {key: value}}});
    world.provider().client().merge(&format!("{POOL}/{secret}"), &patch).await.ok().unwrap();
}

async fn drop_secret(world: &World, secret: &str) {
    world.provider().client().delete(&format!("{POOL}/{secret}")).await.ok().unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_pool_the_object_says_what_it_waits_for_and_goes_on_once_there_is_one() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    let one = world.workload_cluster("one").await;
    drop_secret(&world, "one").await;
    world.serve(Caster::<Toy>::new);
    let told = acme.condition::<Toy>("car", "Cast", False, "AccessPending").await;
    for part in ["a Secret in kcm-system", "runtime.edge-connect.eu/workload-purpose=workload"] {
        assert!(told.message.contains(part), "{}", told.message);
    }
    world.settled().await;
    assert_eq!(index(&world).await, [[""; 2]; 0], "nothing is recorded of what has not begun");
    world.provider().pool("one", &one.kubeconfig(ADMIN)).await;
    let done = acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    assert_eq!((done.message.as_str(), cast(&one, &acme, "car").await.as_deref()), ("cast at one", Some("1")));
}

#[tokio::test(start_paused = true)]
async fn work_stays_where_it_began() {
    let world = world_of(toys()).await;
    let (a, b) = (world.workload_cluster("a").await, world.workload_cluster("b").await);
    drop_secret(&world, "b").await;
    let acme = world.workspace("acme").await;
    world.serve(Caster::<Toy>::new);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    world.provider().pool("b", &b.kubeconfig(ADMIN)).await;
    for name in ["boat", "kite"] {
        acme.apply(toy(name, "red")).await;
        acme.condition::<Toy>(name, "Cast", True, "Cast").await;
    }
    let placed = |rows: &[[&str; 2]]| rows.iter().map(|row| row.map(str::to_owned)).collect::<Vec<_>>();
    let before = placed(&[["boat", "b"], ["car", "a"], ["kite", "a"]]);
    assert_eq!(index(&world).await, before, "where the least is to do, by name where several have as little");

    annotate(&world, "a", "runtime.edge-connect.eu/workload-closed", json!("true")).await;
    acme.apply(toy("car", "blue")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    for name in ["ball", "doll"] {
        acme.apply(toy(name, "red")).await;
        acme.condition::<Toy>(name, "Cast", True, "Cast").await;
    }
    world.settled().await;
    assert_eq!(cast(&a, &acme, "car").await.as_deref(), Some("2"), "what is closed serves what it has");
    assert_eq!(
        index(&world).await,
        [placed(&[["ball", "b"], ["boat", "b"], ["car", "a"], ["doll", "b"]]), placed(&[["kite", "a"]])].concat()
    );

    world.restart().await;
    drop_secret(&world, "a").await;
    let told = acme.condition::<Toy>("car", "Cast", False, "AccessPending").await;
    assert!(told.message.contains("kcm-system/a is not in the pool any more"), "{}", told.message);
    acme.apply(toy("car", "green")).await;
    acme.apply(toy("boat", "green")).await;
    acme.condition::<Toy>("boat", "Cast", True, "Cast").await;
    world.settled().await;
    assert_eq!(cast(&b, &acme, "car").await, None, "it is not moved");
    world.provider().pool("a", &a.kubeconfig(ADMIN)).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    assert_eq!(cast(&a, &acme, "car").await.as_deref(), Some("3"));
}

#[tokio::test(start_paused = true)]
async fn a_rotated_kubeconfig_is_used_by_the_next_call_and_read_once() {
    let world = world_of(toys()).await;
    let (one, other) = (world.workload_cluster("one").await, world.workload_cluster("other").await);
    drop_secret(&world, "other").await;
    let acme = world.workspace("acme").await;
    world.serve(Caster::<Toy>::new);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    world.provider().pool("one", &other.kubeconfig(ADMIN)).await;
    for colour in ["blue", "green"] {
        acme.apply(toy("car", colour)).await;
        world.settled().await;
    }
    assert_eq!([cast(&one, &acme, "car").await.as_deref(), cast(&other, &acme, "car").await.as_deref()], [Some("1"), Some("3")]);
    let read = world.requests().iter().filter(|sent| sent.verb == "get" && sent.target.contains(POOL)).count();
    assert_eq!(read, 2, "once for each state of the Secret");
    let follows = world.requests().into_iter().filter(|sent| sent.is_stream() && sent.target.contains(POOL));
    assert!(follows.map(|sent| sent.target).all(|target| target.contains("labelSelector=runtime.edge-connect.eu%2Fworkload-purpose")));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_kubeconfig_is_told_without_what_is_in_it_and_can_be_mended() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    acme.apply(toy("car", "red")).await;
    let good = one.kubeconfig(ADMIN);
    let wrong = [
        ("canary: [", "it is no kubeconfig".to_owned()),
        (r#"{"canary": 1}"#, "no current context".to_owned()),
        (&good.replace("\"server\":", "\"proxy-url\":\"http://canary\",\"server\":"), "proxy-url".to_owned()),
    ];
    world.provider().pool("one", wrong[0].0).await;
    world.serve(Caster::<Toy>::new);
    for (kubeconfig, says) in wrong {
        world.provider().pool("one", kubeconfig).await;
        world.settled().await;
        let told = acme.condition::<Toy>("car", "Cast", False, "AccessDenied").await;
        assert!(told.message.contains("the Secret kcm-system/one") && told.message.contains(&says), "{}", told.message);
        assert!(!told.message.contains("canary"), "{}", told.message);
    }
    world.provider().client().merge(&format!("{POOL}/one"), &json!({"data": null})).await.ok().unwrap();
    world.settled().await;
    let told = acme.condition::<Toy>("car", "Cast", False, "AccessDenied").await;
    assert!(told.message.ends_with("has no key kubeconfig"), "{}", told.message);
    assert_eq!(index(&world).await, [[""; 2]; 0]);
    world.provider().pool("one", &good).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_are_read_again() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    world.provider().pool("one", &one.kubeconfig("stranger")).await;
    acme.apply(toy("car", "red")).await;
    world.serve(Caster::<Toy>::new);
    world.advance(Duration::from_mins(1)).await;
    let text = world.handles()[0].metrics().text();
    assert!(text.contains(r#"controller="caster",reason="AccessDenied""#), "{text}");
    world.provider().pool("one", &one.kubeconfig(ADMIN)).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_are_read_again_though_no_watch_tells_of_a_change() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    world.provider().pool("one", &one.kubeconfig("stranger")).await;
    acme.apply(toy("car", "red")).await;
    let options = suffering(&world, &Arc::new(Mutex::new(Trouble::DeafPool)));
    world.run_with(options, |runtime| runtime.serve(Caster::<Toy>::new));
    // Silence is believed for three minutes.
    world.advance(Duration::from_secs(5)).await;
    world.provider().pool("one", &one.kubeconfig(ADMIN)).await;
    world.within(Duration::from_mins(2));
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
}

/// What was written about an object and its work, in its order.
fn told(world: &World) -> Vec<&'static str> {
    let what = |target: &str| match target {
        target if target.contains("kcm-system/configmaps") => "record",
        target if target.contains("/configmaps") => "cast",
        target if target.contains("/status") => "status",
        _ => "toy",
    };
    let words =
        [("create", "record", "+record"), ("create", "cast", "+cast"), ("delete", "record", "-record"), ("delete", "cast", "-cast")];
    let say = |verb: &str, target: &str| {
        let what = what(target);
        words.iter().find(|(of, about, _)| *of == verb && *about == what).map_or(what, |(_, _, word)| word)
    };
    world.requests().iter().filter(|sent| sent.is_write()).map(|sent| say(sent.verb, &sent.target)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_record_precedes_the_work_and_goes_after_it() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    world.serve(Caster::<Toy>::new);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    world.settled().await;
    assert_eq!(told(&world), ["+record", "toy", "+cast", "status"]);
    let record = world.requests().into_iter().find(|sent| sent.verb == "create" && sent.target.contains(INDEX)).unwrap().body;
    let labels = json!({"runtime.edge-connect.eu/controller": "caster", "runtime.edge-connect.eu/workspace": acme.logical_cluster()});
    assert_eq!(record["metadata"]["labels"], labels);
    let object: Value = serde_json::from_str(record["data"]["object"].as_str().unwrap()).unwrap();
    assert_eq!((&object["colour"], &object["metadata"]["name"], object.get("status")), (&json!("red"), &json!("car"), None));

    world.forget_requests();
    world.advance(Duration::from_hours(1)).await;
    world.settled().await;
    assert_eq!(world.requests().iter().filter(|sent| !sent.is_stream() && !sent.target.contains("/configmaps/cast-")).count(), 0);

    acme.apply(toy("car", "blue")).await;
    world.settled().await;
    assert_eq!(told(&world), ["record", "cast", "status"], "the record knows the object as it is");
    world.forget_requests();
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.settled().await;
    assert_eq!(told(&world), ["-cast", "-record", "toy"]);
    assert_eq!((cast(&one, &acme, "car").await, index(&world).await), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_work_never_began_goes_without_a_pool_and_one_whose_work_is_out_of_reach_waits() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    world.serve(Caster::<Toy>::new);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    drop_secret(&world, "one").await;
    acme.apply(toy("boat", "red")).await;
    acme.condition::<Toy>("boat", "Cast", False, "AccessPending").await;
    for name in ["boat", "car"] {
        acme.delete::<Toy>(name).await;
    }
    acme.gone::<Toy>("boat").await;
    let told = acme.condition::<Toy>("car", "Cast", False, "AccessPending").await;
    assert!(told.message.contains("kcm-system/one"), "{}", told.message);
    world.provider().pool("one", &one.kubeconfig(ADMIN)).await;
    acme.gone::<Toy>("car").await;
    assert_eq!((cast(&one, &acme, "car").await, index(&world).await), (None, vec![]));
}

#[test]
fn a_workerless_provider_comes_through_every_fault() {
    let prepare = async || {
        let world = world_of(toys()).await;
        // A workspace of the same kcp, so that what is left there is compared too.
        let cluster = world.workspace("cluster").await;
        world.provider().pool("one", &cluster.kubeconfig(ADMIN)).await;
        world.workspace("acme").await.apply(toy("car", "red")).await;
        world
    };
    let story = async |world: &World| {
        let acme = world.tenant("acme");
        world.serve(Caster::<Toy>::new);
        acme.condition::<Toy>("car", "Cast", True, "Cast").await;
        acme.apply(toy("boat", "blue")).await;
        acme.condition::<Toy>("boat", "Cast", True, "Cast").await;
        acme.apply(toy("boat", "red")).await;
        acme.condition::<Toy>("boat", "Cast", True, "Cast").await;
        acme.delete::<Toy>("boat").await;
        acme.gone::<Toy>("boat").await;
    };
    let explored = under_every_fault(prepare, story);
    println!("{explored}");
    explored.assert();
}
