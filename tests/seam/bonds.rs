//! A reconciler that hears who binds and unbinds: when it is told, when it is not, and that it harms nobody there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kcp_provider_runtime::api::condition::ConditionStatus::True;
use kcp_provider_runtime::api::reason::Reason;
use kcp_provider_runtime::kit::{Workspace, World};
use kcp_provider_runtime::reconciler::{self, Actor, CallError, Context, Deletion, Reconciler, Report, ReportedCondition};

use crate::provider::Toy;
use crate::{toy, toys, world_of};

type Heard = Arc<Mutex<Vec<String>>>;

/// Writes down who comes and goes, and fails where it is told to.
struct Porter {
    heard: Heard,
    /// Workspaces, by their logical clusters, at which it never comes back, and at which it panics.
    hangs: Heard,
    panics: Heard,
}

impl Porter {
    async fn attend(&self, workspace: &reconciler::Workspace, what: &str) {
        let place = workspace.logical_cluster.to_string();
        self.heard.lock().unwrap().push(format!("{what} {place}"));
        assert!(!self.panics.lock().unwrap().contains(&place), "the porter tripped");
        if self.hangs.lock().unwrap().contains(&place) {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Reconciler for Porter {
    type Object = Toy;
    type Config = ();
    type Status = ();
    type Error = CallError;

    fn actor(&self) -> Actor {
        Actor { name: "porter", finalizer: None, conditions: &["Seen"] }
    }

    async fn create_or_update(&self, _: &Context<()>, _: &Toy) -> Result<Report, CallError> {
        Ok(Report::new(()).with(ReportedCondition::new("Seen", true, Reason::Ready, "it came by")))
    }

    async fn delete(&self, _: &Context<()>, _: &Toy) -> Result<Deletion, CallError> {
        Ok(Deletion::Done)
    }

    async fn bound(&self, workspace: &reconciler::Workspace) {
        self.attend(workspace, "bound").await;
    }

    async fn unbound(&self, workspace: &reconciler::Workspace) {
        self.attend(workspace, "unbound").await;
    }
}

/// What the porter hears, and where it fails.
#[derive(Clone, Default)]
struct House {
    heard: Heard,
    hangs: Heard,
    panics: Heard,
}

impl House {
    fn serve(&self, world: &World) {
        let House { heard, hangs, panics } = self.clone();
        world.serve(move |_| Porter { heard: heard.clone(), hangs: hangs.clone(), panics: panics.clone() });
    }

    /// What was heard since it was last asked, in the order of the words.
    fn heard(&self) -> Vec<String> {
        let mut heard = std::mem::take(&mut *self.heard.lock().unwrap());
        heard.sort();
        heard
    }
}

fn words(what: &str, workspaces: &[&Workspace]) -> Vec<String> {
    let mut words: Vec<String> = workspaces.iter().map(|workspace| format!("{what} {}", workspace.logical_cluster())).collect();
    words.sort();
    words
}

#[tokio::test(start_paused = true)]
async fn it_is_told_of_everybody_at_the_start_of_whoever_comes_and_of_whoever_goes_once() {
    let world = world_of(toys()).await;
    let (acme, other) = (world.workspace("acme").await, world.workspace("other").await);
    let house = House::default();
    house.serve(&world);
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&acme, &other]), "idle ones too");
    let late = world.workspace("late").await;
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&late]));
    acme.apply(toy("car", "red")).await;
    acme.condition::<Toy>("car", "Seen", True, "Ready").await;
    acme.unbind().await;
    world.advance(Duration::from_mins(1)).await;
    world.settled().await;
    assert_eq!(house.heard(), words("unbound", &[&acme]));
    acme.bind().await;
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&acme]), "who comes back is told of again");
    world.advance(Duration::from_hours(1)).await;
    assert_eq!(house.heard(), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_a_forgotten_history_and_a_restart_unbind_nobody() {
    let world = world_of(toys()).await;
    let acme = world.workspace("acme").await;
    let house = House::default();
    house.serve(&world);
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&acme]));
    world.cut_off(0, Duration::from_mins(10));
    world.advance(Duration::from_mins(20)).await;
    world.control_plane().close_watches();
    world.control_plane().compact();
    world.advance(Duration::from_mins(5)).await;
    world.settled().await;
    assert_eq!(house.heard(), [] as [String; 0]);
    world.restart().await;
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&acme]), "another process knows nothing of what this one was told");
}

#[tokio::test(start_paused = true)]
async fn who_unbinds_during_an_outage_is_told_of_after_it() {
    let world = world_of(toys()).await;
    let (acme, other) = (world.workspace("acme").await, world.workspace("other").await);
    let house = House::default();
    house.serve(&world);
    world.settled().await;
    assert_eq!(house.heard(), words("bound", &[&acme, &other]));
    world.cut_off(0, Duration::from_mins(10));
    acme.unbind().await;
    world.advance(Duration::from_mins(5)).await;
    assert_eq!(house.heard(), [] as [String; 0]);
    world.advance(Duration::from_mins(10)).await;
    world.settled().await;
    assert_eq!(house.heard(), words("unbound", &[&acme]));
}

/// The last one takes its shard's endpoint along, and the slice may tell of that before the roster tells of the binding.
#[tokio::test(start_paused = true)]
async fn who_unbinds_last_is_told_of_and_so_is_who_does_so_during_an_outage() {
    for outage in [false, true] {
        let world = world_of(toys()).await;
        let acme = world.workspace("acme").await;
        let house = House::default();
        house.serve(&world);
        acme.apply(toy("car", "red")).await;
        acme.condition::<Toy>("car", "Seen", True, "Ready").await;
        world.settled().await;
        assert_eq!(house.heard(), words("bound", &[&acme]));
        if outage {
            world.cut_off(0, Duration::from_mins(10));
        }
        acme.unbind().await;
        world.advance(Duration::from_mins(5)).await;
        assert_eq!(house.heard(), if outage { Vec::new() } else { words("unbound", &[&acme]) });
        world.advance(Duration::from_mins(15)).await;
        world.settled().await;
        assert_eq!(house.heard(), if outage { words("unbound", &[&acme]) } else { Vec::new() }, "outage: {outage}");
        acme.bind().await;
        world.settled().await;
        assert_eq!(house.heard(), words("bound", &[&acme]), "outage: {outage}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_panics_or_hangs_there_keeps_nobody_waiting() {
    let world = world_of(toys()).await;
    let house = House::default();
    let mut stuck = Vec::new();
    for at in 0..5 {
        let workspace = world.workspace(&format!("stuck-{at}")).await;
        house.hangs.lock().unwrap().push(workspace.logical_cluster().to_string());
        stuck.push(workspace);
    }
    let bomb = world.workspace("bomb").await;
    house.panics.lock().unwrap().push(bomb.logical_cluster().to_string());
    let acme = world.workspace("acme").await;
    let began = world.now();
    house.serve(&world);
    for workspace in stuck.iter().chain([&bomb, &acme]) {
        workspace.apply(toy("car", "red")).await;
        workspace.condition::<Toy>("car", "Seen", True, "Ready").await;
    }
    let all: Vec<&Workspace> = stuck.iter().chain([&bomb, &acme]).collect();
    assert_eq!(house.heard(), words("bound", &all));
    assert!(world.now().duration_since(began).as_secs() < 30, "nobody waited for the minute of who hangs");
    // One after the other for one workspace: what hangs is dropped after its minute, and what came meanwhile is told then.
    stuck[0].unbind().await;
    bomb.unbind().await;
    world.advance(Duration::from_secs(20)).await;
    assert_eq!(house.heard(), words("unbound", &[&bomb]), "a panic ends its telling and is not repeated");
    world.advance(Duration::from_mins(1)).await;
    assert_eq!(house.heard(), words("unbound", &[&stuck[0]]));
    world.settled().await;
    world.stop().await;
}
