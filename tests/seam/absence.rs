//! External work whose object is not seen: what is proof that the object is gone, and what is none.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::embedded::{ADMIN, Options as Profile};
use kcp_provider_runtime::kit::trial::under_every_fault;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Inputs, Reconciler, Report, ReportedCondition};
use kcp_provider_runtime::runtime::{Body, Credentials, Options, RunError, Runtime, Wire};
use parking_lot::Mutex;
use serde_json::json;
use tower::Service as _;

use crate::caster::{Cast, Caster, cast_name};
use crate::provider::Toy;
use crate::workload::{cast, index};
use crate::{toy, toys, world_of};

/// More than the fifteen minutes for which an absence must last, with what it takes to be noticed.
const LONG: Duration = Duration::from_mins(21);
const SHORT: Duration = Duration::from_mins(14);

/// A provider whose objects do not wait for it: they may vanish at any time.
fn careless(inputs: &mut Inputs<Toy>) -> Caster<Toy> {
    let mut caster = Caster::new(inputs);
    caster.finalizer = None;
    caster
}

/// A workload cluster, and two tenants whose cars are cast there by a provider that no finalizer of theirs waits for.
async fn cast_for_two(world: &World) -> (Workspace, [Workspace; 2]) {
    let one = world.workload_cluster("one").await;
    let tenants = [world.workspace("acme").await, world.workspace("other").await];
    world.serve(careless);
    for tenant in &tenants {
        tenant.apply(toy("car", "red")).await;
        tenant.condition::<Toy>("car", "Cast", True, "Cast").await;
    }
    world.settled().await;
    (one, tenants)
}

async fn delete_workspace(world: &World, name: &str) {
    let path = format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}");
    world.client().delete(&path).await.ok().unwrap();
}

/// How many pieces of work are counted in this state.
fn counted(world: &World, state: &str) -> String {
    let text = world.handles()[0].metrics().text();
    let line = format!("kcp_provider_external_works{{state=\"{state}\"}} ");
    text.lines().find_map(|text| text.strip_prefix(&line)).unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_workspace_that_is_gone_leaves_no_work_behind() {
    for shards in [1, 2] {
        a_workspace_goes(shards).await;
    }
}

/// Of two tenants, behind so many endpoints.
async fn a_workspace_goes(shards: usize) {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut world = World::with(Profile { shards, started, ..Profile::default() }).await;
    world.export(toys()).await;
    let (one, [acme, other]) = cast_for_two(&world).await;
    delete_workspace(&world, "acme").await;
    world.forget_requests();
    world.advance(SHORT).await;
    assert!(cast(&one, &acme, "car").await.is_some(), "it may come back");
    assert_eq!((counted(&world, "unbound"), counted(&world, "engaged")), ("1".into(), "1".into()));
    world.advance(LONG).await;
    assert_eq!(cast(&one, &acme, "car").await, None);
    assert!(cast(&one, &other, "car").await.is_some());
    assert_eq!(index(&world).await.len(), 1);
    let writes: Vec<_> = world.requests().into_iter().filter(Sent::is_write).map(|sent| sent.verb).collect();
    assert_eq!(writes, ["delete", "delete"], "of the cast and of the record; nobody is there to read a status");

    delete_workspace(&world, "other").await;
    world.advance(LONG).await;
    assert_eq!(cast(&one, &other, "car").await, None, "also of the last tenant, with whom the endpoint goes");
    assert_eq!((index(&world).await, counted(&world, "engaged")), (vec![], "0".into()));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_vanishes_behind_its_finalizers_back_leaves_no_work_behind() {
    let world = world_of(toys()).await;
    let one = world.workload_cluster("one").await;
    let acme = world.workspace("acme").await;
    world.serve(Caster::<Toy>::new);
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    world.stop().await;
    acme.merge::<Toy>("car", json!({"metadata": {"finalizers": null}})).await;
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    world.serve(Caster::<Toy>::new);
    world.advance(SHORT).await;
    assert!(cast(&one, &acme, "car").await.is_some());
    assert_eq!(counted(&world, "gone"), "1");
    world.restart().await;
    world.advance(SHORT).await;
    assert!(cast(&one, &acme, "car").await.is_some(), "a process that has just begun has seen little");
    world.advance(LONG).await;
    assert_eq!((cast(&one, &acme, "car").await, index(&world).await), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_work_of_an_object_is_not_ended_under_a_later_one_of_its_name() {
    let world = world_of(toys()).await;
    let (one, [acme, _]) = cast_for_two(&world).await;
    acme.delete::<Toy>("car").await;
    acme.gone::<Toy>("car").await;
    acme.apply(toy("car", "blue")).await;
    acme.condition::<Toy>("car", "Cast", True, "Cast").await;
    world.advance(LONG).await;
    assert!(cast(&one, &acme, "car").await.is_some());
    assert_eq!(index(&world).await.len(), 3, "the first one's record waits");
    acme.delete::<Toy>("car").await;
    world.advance(LONG).await;
    world.advance(LONG).await;
    assert_eq!((cast(&one, &acme, "car").await, index(&world).await.len()), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn how_long_an_absence_lasts_is_the_providers_choice_within_reason() {
    let world = world_of(toys()).await;
    let (one, acme) = (world.workload_cluster("one").await, world.workspace("acme").await);
    let with = |grace| Options { absence_grace: grace, ..world.options() };
    for grace in [Duration::ZERO, Duration::from_millis(4999), Duration::from_hours(30 * 24 + 1), Duration::MAX] {
        let refused = Runtime::new(with(grace)).serve(careless).run().await.unwrap_err();
        assert!(matches!(&refused, RunError::Start(why) if why.contains("absence_grace")), "{grace:?}: {refused}");
    }
    for (name, grace) in [("car", Duration::from_secs(20)), ("kite", Duration::from_hours(2))] {
        world.run_with(with(grace), |runtime| runtime.serve(careless));
        acme.apply(toy(name, "red")).await;
        acme.condition::<Toy>(name, "Cast", True, "Cast").await;
        world.settled().await;
        acme.delete::<Toy>(name).await;
        acme.gone::<Toy>(name).await;
        world.advance(grace.checked_sub(Duration::from_secs(1)).unwrap()).await;
        assert!(cast(&one, &acme, name).await.is_some(), "not before {grace:?}");
        world.advance(Duration::from_secs(10)).await;
        assert_eq!((cast(&one, &acme, name).await, index(&world).await), (None, vec![]), "after {grace:?}");
        world.stop().await;
    }
}

/// A provider whose work is somewhere else: in a list of names.
struct Elsewhere(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Reconciler for Elsewhere {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "elsewhere", finalizer: None, conditions: &["Made"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        assert!(ctx.clusters.workload.is_none(), "nobody asked for one");
        *self.0.lock() = vec![toy.metadata.name.clone()];
        Ok(Report::new(()).with(ReportedCondition::new("Made", true, Reason::Ready, "made")))
    }

    /// Takes two calls for it.
    async fn delete(&self, _: &Context<()>, toy: &Toy) -> Result<Deletion, CallError> {
        let mut made = self.0.lock();
        if made.pop().is_none() {
            return Ok(Deletion::Done);
        }
        made.retain(|name| *name != toy.metadata.name);
        Ok(Deletion::Pending(Report::unchanged()))
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_needs_no_workload_cluster_is_recorded_and_ended_too() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let made = Arc::new(Mutex::new(Vec::new()));
    let shared = made.clone();
    world.serve(move |inputs| {
        inputs.external();
        Elsewhere(shared.clone())
    });
    acme.apply(toy("car", "red")).await;
    let told = acme.condition::<Toy>("car", "Made", False, "AccessDenied").await;
    assert!(told.message.contains("index of external work") && told.message.contains("kcm-system"), "{}", told.message);
    world.provider().apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcm-system"}})).await;
    acme.condition::<Toy>("car", "Made", True, "Ready").await;
    assert_eq!(index(&world).await, [["car", ""].map(str::to_owned)]);
    assert!(world.requests().iter().all(|sent| !sent.target.contains("/secrets")), "who asks for no workload cluster reads no Secret");
    acme.delete::<Toy>("car").await;
    world.advance(SHORT).await;
    assert_eq!(*made.lock(), ["car"]);
    world.advance(LONG).await;
    assert_eq!(*made.lock(), [""; 0]);
    assert_eq!(index(&world).await, [[""; 2]; 0]);
}

#[test]
fn the_end_of_the_work_of_what_is_gone_comes_through_every_fault() {
    let prepare = async || {
        let world = world_of(toys()).await;
        let cluster = world.workspace("cluster").await;
        world.provider().pool("one", &cluster.kubeconfig(ADMIN)).await;
        let acme = world.workspace("acme").await;
        acme.apply(toy("car", "red")).await;
        world.serve(careless);
        acme.condition::<Toy>("car", "Cast", True, "Cast").await;
        world.stop().await;
        acme.delete::<Toy>("car").await;
        world
    };
    let story = async |world: &World| {
        world.within(Duration::from_hours(2));
        let (acme, cluster) = (world.tenant("acme"), world.tenant("cluster"));
        world.serve(careless);
        world.advance(LONG).await;
        cluster.gone::<Cast>(&cast_name(acme.logical_cluster().as_str(), "car")).await;
        for _ in 0..120 {
            world.advance(Duration::from_mins(1)).await;
            if index(world).await.is_empty() {
                return;
            }
        }
        panic!("the record of what has ended is not gone after two hours");
    };
    let explored = under_every_fault(prepare, story);
    println!("{explored}");
    explored.assert();
}

/// What stands between a runtime and the tenants' objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    None,
    /// Every request there is answered so.
    Code(u16),
    /// None is answered.
    Silence,
    /// There are no objects, says every list; each one is there, says who is asked for it.
    NoObjects,
    /// The same, and who is asked for one refuses.
    NoObjectsForbidden,
    /// Nothing is told of what changes in the pool.
    DeafPool,
}

/// The options of a runtime that suffers this, as long as it is so.
pub(crate) fn suffering(world: &World, trouble: &Arc<Mutex<Trouble>>) -> Options {
    let options = world.options();
    let Credentials::Service { wire, server, token } = options.credentials.clone() else { unreachable!("it is of this process") };
    let trouble = trouble.clone();
    let between = tower::service_fn(move |request: Request<Bytes>| {
        let (mut wire, trouble) = (wire.clone(), *trouble.lock());
        async move {
            let uri = request.uri().to_string();
            let (tenants, lists, watch) = (uri.contains("/services/"), uri.contains("/toys?"), uri.contains("watch=true"));
            match trouble {
                Trouble::Code(code) if tenants => Ok(answer(code, "{}")),
                Trouble::Silence if tenants => std::future::pending().await,
                Trouble::DeafPool if watch && uri.contains("/kcm-system/secrets?") => {
                    Ok(Response::new(StreamBody::new(futures::stream::pending()).boxed_unsync()))
                }
                Trouble::NoObjects | Trouble::NoObjectsForbidden if tenants && lists && watch => Ok(bookmarks()),
                Trouble::NoObjects | Trouble::NoObjectsForbidden if tenants && lists => {
                    Ok(answer(200, r#"{"kind":"ToyList","metadata":{"resourceVersion":"1"},"items":[]}"#))
                }
                Trouble::NoObjectsForbidden if tenants && uri.contains("/toys/") => Ok(answer(403, "{}")),
                _ => wire.call(request).await,
            }
        }
    });
    Options { credentials: Credentials::Service { wire: Wire::new(between), server, token }, ..options }
}

fn answer(code: u16, body: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// A watch that is well and tells of nothing.
fn bookmarks() -> Response<Body> {
    let beat = tokio::time::interval(Duration::from_mins(1));
    let lines = futures::stream::unfold(beat, async |mut beat| {
        beat.tick().await;
        let line = Bytes::from("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n");
        Some((Ok::<_, std::io::Error>(Frame::data(line)), beat))
    });
    Response::new(StreamBody::new(lines).boxed_unsync())
}

#[tokio::test(start_paused = true)]
async fn an_outage_at_the_start_ends_no_work_however_it_looks() {
    for trouble in
        [Trouble::Code(403), Trouble::Code(404), Trouble::Code(503), Trouble::Silence, Trouble::NoObjects, Trouble::NoObjectsForbidden]
    {
        let world = world_of(toys()).await;
        let (one, [acme, other]) = cast_for_two(&world).await;
        world.stop().await;
        let outage = Arc::new(Mutex::new(trouble));
        world.forget_requests();
        world.run_with(suffering(&world, &outage), |runtime| runtime.serve(careless));
        world.advance(Duration::from_hours(2)).await;
        assert!(cast(&one, &acme, "car").await.is_some() && cast(&one, &other, "car").await.is_some(), "{trouble:?}");
        assert!(world.writes().is_empty(), "{trouble:?}: {:?}", world.writes());
        assert_eq!(counted(&world, "engaged"), "0", "{trouble:?}: nothing is seen");
        let seen = matches!(trouble, Trouble::NoObjects | Trouble::NoObjectsForbidden);
        let asked = world.requests().iter().filter(|sent| sent.verb == "get" && sent.target.contains("/toys/")).count();
        assert_eq!(asked > 0, trouble == Trouble::NoObjects, "{trouble:?}: only without doubt the server is asked");

        // One is deleted meanwhile, of which the end of the outage tells.
        acme.delete::<Toy>("car").await;
        *outage.lock() = Trouble::None;
        world.control_plane().close_watches();
        world.advance(SHORT).await;
        assert!(seen || cast(&one, &acme, "car").await.is_some(), "{trouble:?}: the time before counts for nothing");
        world.advance(LONG).await;
        assert_eq!(cast(&one, &acme, "car").await, None, "{trouble:?}");
        assert!(cast(&one, &other, "car").await.is_some(), "{trouble:?}");
        assert_eq!(index(&world).await.len(), 1, "{trouble:?}");
    }
}
