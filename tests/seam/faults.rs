//! Faults: that each does what its name says, and that a sweep of them finds what is wrong and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::provider::Toy;
use crate::{paint, toy, toys, world_of};
use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::kit::World;
use kcp_provider_runtime::kit::faults::{Chaos, Fault, Plan, Side, Site};
use kcp_provider_runtime::kit::trial::{Trial, under_every_fault};
use kcp_provider_runtime::reconciler::{Actor, CallError, Context, Deletion, Reconciler, Report, ReportedCondition};

async fn prepare() -> World {
    let world = world_of(toys()).await;
    world.workspace("acme").await.apply(toy("car", "red")).await;
    world
}

async fn painted(world: &World) {
    let acme = world.tenant("acme");
    let calls = paint(world);
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    acme.apply(toy("boat", "blue")).await;
    acme.condition::<Toy>("boat", "Painted", True, "Dry").await;
    acme.delete::<Toy>("boat").await;
    acme.gone::<Toy>("boat").await;
    drop(calls);
}

/// The number of the first request with this verb.
async fn first(verb: &str) -> u64 {
    let world = prepare().await;
    let calls = paint(&world);
    world.settled().await;
    drop(calls);
    world.requests().iter().position(|sent| sent.verb == verb).unwrap() as u64
}

/// What had become of the first status write that was struck so when its caller heard of it, and whether it was in force by then.
async fn struck(fault: Fault) -> (u16, bool, usize) {
    let at = first("apply").await;
    let world = prepare().await;
    world.suffer(&Plan(vec![(Site::Request(at), fault)]));
    let calls = paint(&world);
    let acme = world.tenant("acme");
    world.advance(Duration::from_millis(1)).await;
    let done = acme.get_json::<Toy>("car").await.unwrap()["status"]["colour"] == "red";
    acme.condition::<Toy>("car", "Painted", True, "Dry").await;
    world.settled().await;
    drop(calls);
    let requests = world.requests();
    (requests[usize::try_from(at).unwrap()].code, done, requests.iter().filter(|sent| sent.verb == "apply").count())
}

#[tokio::test(start_paused = true)]
async fn a_fault_strikes_on_its_side_of_the_commit_and_is_recovered_from() {
    use Fault::{Code, Crash, Hang, Reset, Slow, Torn, Trickle};
    use Side::{After, Before};
    for (fault, code, done, writes) in [
        (Reset(Before), 0, false, 2),
        (Reset(After), 0, true, 1),
        (Hang(Before), 0, false, 2),
        (Hang(After), 0, true, 1),
        (Crash(Before), 0, false, 2),
        (Crash(After), 0, true, 1),
        (Slow(Before), 200, false, 1),
        (Slow(After), 200, true, 1),
        (Code(503, Before), 503, false, 2),
        (Code(503, After), 503, true, 1),
        (Torn, 0, true, 1),
        (Trickle, 0, true, 1),
        (Fault::Storm, 409, true, 4),
    ] {
        assert_eq!((fault, struck(fault).await), (fault, (code, done, writes)));
    }
}

#[test]
fn a_reconciler_that_remembers_nothing_comes_through_every_fault() {
    let explored = under_every_fault(prepare, async |world: &World| painted(world).await);
    explored.assert();
    let tried: BTreeSet<Fault> = explored.faults.keys().copied().collect();
    let untried: Vec<Fault> = Fault::all().into_iter().filter(|fault| !tried.contains(fault)).collect();
    assert_eq!(untried, [], "each fault has its place in the life of a toy");
}

/// A provider that says how often it was called: its memory is gone with its process.
struct Forgetful(AtomicUsize);

#[async_trait]
impl Reconciler for Forgetful {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "forgetful", finalizer: None, conditions: &["Painted"] }
    }

    async fn create_or_update(&self, _: &Context<()>, _: &Toy) -> Result<Report, CallError> {
        let coats = self.0.fetch_add(1, Ordering::Relaxed).min(1);
        let reason = kcp_provider_runtime::api::reason::Reason::Custom("Dry");
        Ok(Report::new(()).with(ReportedCondition::new("Painted", true, reason, format!("it has {coats} coats"))))
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }
}

#[test]
fn a_reconciler_that_remembers_something_is_found_and_the_failure_can_be_played_again() {
    let trial = Trial::new(prepare, async |world: &World| {
        world.serve(|_| Forgetful(AtomicUsize::new(0)));
        let acme = world.tenant("acme");
        acme.condition::<Toy>("car", "Painted", True, "Dry").await;
        world.settled().await;
    });
    let found = trial.singles();
    let failure = found.failures.first().unwrap();
    assert!(failure.problem.contains("where without faults it is"), "{}", failure.problem);
    assert!(failure.plan.to_string().contains("crash"), "{}", failure.plan);
    let plan: Plan = failure.plan.to_string().parse().unwrap();
    let (once, twice) = (trial.play(&plan), trial.play(&plan));
    assert_eq!((once.digest, &once.struck), (twice.digest, &plan));
}

#[test]
fn chaos_follows_from_its_seed() {
    let play = |seed| {
        let trial = Trial::new(prepare, async |world: &World| {
            let faults = Fault::all().into_iter().collect();
            world.let_loose(Chaos { faults, rate: 0.3, seed: world.seed(), lasts: Duration::from_mins(1) });
            painted(world).await;
        });
        let played = trial.play_seed(seed);
        assert_eq!(played.problem, None, "seed {seed}");
        (played.struck, played.digest)
    };
    let seen: Vec<_> = (1..=5).map(play).collect();
    assert_eq!(seen, (1..=5).map(play).collect::<Vec<_>>());
    assert!(seen.iter().all(|(struck, _)| !struck.0.is_empty()) && seen[0] != seen[1]);
}

#[test]
#[should_panic(expected = "serve reconcilers in the story")]
fn a_world_in_which_somebody_runs_already_is_no_beginning() {
    let prepare = async || {
        let world = prepare().await;
        let _: Arc<_> = paint(&world);
        world
    };
    let _ = Trial::new(prepare, async |_: &World| {});
}
