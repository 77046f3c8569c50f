//! A provider that is wrong about some of its objects: it hangs, panics or fails over them for ever, and the others notice nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::{False, True};
use kcp_provider_runtime::api::meta::Kind as _;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::kit::{Sent, Workspace, World};
use kcp_provider_runtime::reconciler::{
    Actor, CallError, Context, Deletion, Failure, Inputs, Reconciler, Report, ReportedCondition, Topic,
};
use serde_json::json;

use crate::provider::Toy;
use crate::{Calls, called, paint, toy, toys, unchecked_toys, world_of, written};

const HOUR: Duration = Duration::from_hours(1);
/// What toys are called that their provider is wrong about.
const TROUBLE: [&str; 3] = ["hangs", "fails", "explodes"];

/// Wrong about toys of such names: in deletions, and in everything where it is told so.
#[derive(Clone, Default)]
struct Moody {
    calls: Calls,
    everywhere: bool,
    mended: Arc<AtomicBool>,
}

impl Moody {
    async fn meet(&self, ctx: &Context<()>, toy: &Toy, is_deletion: bool) -> Result<(), CallError> {
        let name = toy.meta().name.as_str();
        self.calls.lock().unwrap().push(format!("{}/{name}", ctx.workspace));
        if self.mended.load(Ordering::Relaxed) || !(self.everywhere || is_deletion) {
            return Ok(());
        }
        match name.split('-').next().unwrap() {
            "hangs" => std::future::pending().await,
            "fails" => Err(CallError::new("reach the backend", Failure::Transport("it is not there".into()))),
            "explodes" => panic!("the backend exploded"),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Reconciler for Moody {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "moody", finalizer: Some("toys.test/moody"), conditions: &["Kept"] }
    }

    async fn create_or_update(&self, ctx: &Context<()>, toy: &Toy) -> Result<Report, CallError> {
        self.meet(ctx, toy, false).await?;
        let _ = ctx.hold(toy, json!({})).await?;
        Ok(Report::new(()).with(ReportedCondition::new("Kept", true, Reason::Ready, "it is kept")))
    }

    async fn delete(&self, ctx: &Context<()>, toy: &Toy) -> Result<Deletion, CallError> {
        self.meet(ctx, toy, true).await.map(|()| Deletion::Done)
    }
}

async fn kept(workspace: &Workspace, name: &str) {
    workspace.condition::<Toy>(name, "Kept", True, "Ready").await;
}

/// How long it takes until a toy is kept.
async fn time_to_keep(world: &World, workspace: &Workspace, name: &str) -> Duration {
    let ordered = world.now();
    workspace.apply(toy(name, "red")).await;
    kept(workspace, name).await;
    world.now().duration_since(ordered).unsigned_abs()
}

#[tokio::test(start_paused = true)]
async fn calls_that_hang_hold_up_no_other_workspace_and_are_given_up_after_a_minute() {
    let world = world_of(toys()).await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    let moody = Moody { everywhere: true, ..Moody::default() };
    let (calls, mended) = (moody.calls.clone(), moody.mended.clone());
    world.run(move |runtime| runtime.serve(|_| moody.clone()));
    // More than there are workers.
    for at in 0..20 {
        acme.apply(toy(&format!("hangs-{at}"), "red")).await;
    }
    world.advance(Duration::from_secs(5)).await;
    let elsewhere = time_to_keep(&world, &bolt, "car").await;
    assert!(elsewhere < Duration::from_secs(2), "another workspace waited {elsewhere:?}");
    let beside = time_to_keep(&world, &acme, "car").await;
    assert!(beside < Duration::from_mins(10), "a neighbour waited {beside:?}");
    world.advance(HOUR).await;
    let elsewhere = time_to_keep(&world, &bolt, "kite").await;
    assert!(elsewhere < Duration::from_secs(2), "an hour later another workspace waited {elsewhere:?}");
    assert!(called(&calls, &acme, "hangs-0") > 2, "it is tried again");
    assert_eq!(written(&world, "hangs-0").len(), 0);
    assert!(world.handles()[0].metrics().text().contains(r#"controller="moody",reason="ReconcileFailed""#));
    mended.store(true, Ordering::Relaxed);
    for at in 0..20 {
        kept(&acme, &format!("hangs-{at}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_ever_is_tried_every_five_minutes_and_nothing_is_written_of_it() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let moody = Moody { everywhere: true, ..Moody::default() };
    let (calls, mended) = (moody.calls.clone(), moody.mended.clone());
    world.run(move |runtime| runtime.serve(|_| moody.clone()));
    for name in TROUBLE {
        acme.apply(toy(name, "red")).await;
    }
    world.advance(24 * HOUR).await;
    for name in TROUBLE {
        // A call that hangs takes a minute of its own.
        let times = called(&calls, &acme, name);
        assert!((200..600).contains(&times), "{name} was tried {times} times in a day");
        assert_eq!(written(&world, name).len(), 0, "{name}");
    }
    assert!(time_to_keep(&world, &acme, "car").await < Duration::from_secs(2));
    mended.store(true, Ordering::Relaxed);
    for name in TROUBLE {
        kept(&acme, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_never_succeeds_keeps_its_own_object_and_no_other() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let moody = Moody::default();
    let mended = moody.mended.clone();
    world.run(move |runtime| runtime.serve(|_| moody.clone()));
    for name in TROUBLE.iter().chain(&["car"]) {
        acme.apply(toy(name, "red")).await;
        kept(&acme, name).await;
    }
    for name in TROUBLE.iter().chain(&["car"]) {
        acme.delete::<Toy>(name).await;
    }
    acme.gone::<Toy>("car").await;
    assert!(time_to_keep(&world, &acme, "kite").await < Duration::from_secs(2));
    world.advance(24 * HOUR).await;
    for name in TROUBLE {
        let left = acme.get::<Toy>(name).await.unwrap_or_else(|| panic!("{name} went though its deletion was never done"));
        assert_eq!(left.meta().finalizers, ["toys.test/moody"], "{name}");
    }
    mended.store(true, Ordering::Relaxed);
    for name in TROUBLE {
        acme.gone::<Toy>(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_that_panics_over_an_object_ends_neither_the_process_nor_the_objects_own_calls() {
    let world = world_of(toys()).await;
    let (acme, bolt) = (world.workspace("acme").await, world.workspace("bolt").await);
    world.run(|runtime| {
        runtime.serve(|inputs: &mut Inputs<Toy>| {
            let of = |toy: &Toy| -> Vec<Topic> { if toy.meta().name == "odd" { panic!("no topic is known for it") } else { Vec::new() } };
            let _ = inputs.names::<Toy>(of, |_| Vec::new());
            Moody::default()
        })
    });
    acme.apply(toy("odd", "red")).await;
    assert!(time_to_keep(&world, &bolt, "car").await < Duration::from_secs(2));
    kept(&acme, "odd").await;
    acme.delete::<Toy>("odd").await;
    acme.gone::<Toy>("odd").await;
}

#[tokio::test(start_paused = true)]
async fn whose_an_object_is_may_panic_over_it_and_then_it_is_left_alone() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    world.run(|runtime| {
        runtime.serve(|inputs: &mut Inputs<Toy>| {
            inputs.only(|toy| if toy.meta().name == "odd" { panic!("nobody knows") } else { true });
            Moody::default()
        })
    });
    acme.apply(toy("odd", "red")).await;
    assert!(time_to_keep(&world, &acme, "car").await < Duration::from_secs(2));
    world.settled().await;
    assert_eq!(written(&world, "odd").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_only_its_tenant_can_mend_is_told_once_and_not_tried_again_until_then() {
    let world = world_of(unchecked_toys()).await;
    let acme = world.workspace("acme").await;
    let calls = paint(&world);
    acme.apply(toy("wreck", 7)).await;
    acme.condition::<Toy>("wreck", "Painted", False, "InvalidObject").await;
    world.settled().await;
    world.forget_requests();
    world.advance(24 * HOUR).await;
    // Nobody has accepted a claim on events here, which are tried once more.
    let about = |sent: &Sent| !sent.is_stream() && !sent.target.contains("/events");
    let asked: Vec<_> = world.requests().into_iter().filter(about).collect();
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(*calls.lock().unwrap(), [] as [&str; 0]);
}
