//! Trials: one story of a world, told again and again, each time with other faults.
//!
//! Everything is deterministic: a world begins from an image, its time is paused, and whatever looks random comes from a seed; so a plan of faults
//! has one outcome, and whoever has the plan has the failure.

mod ending;
mod explore;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::runtime::words;

use super::faults::{Plan, Site, Target};
use super::journal::Sent;
use super::ordeal::{Image, Stage};
use super::world::World;

use ending::Ending;
pub use explore::{Count, Explored, Failure, Hunt, under_every_fault};

/// What disturbs a world from outside: it begins in the middle of things, and may let time pass.
pub type Disturb = fn(Stage) -> BoxFuture<'static, ()>;

/// A story, and the world in which it begins.
pub struct Trial<S> {
    image: Image,
    story: S,
    disturbances: Vec<(&'static str, Disturb)>,
}

/// How one run went.
#[derive(Debug)]
pub struct Played {
    /// Equal for equal runs.
    pub digest: u64,
    /// The faults that struck.
    pub struck: Plan,
    /// What of the story did not come true, and what else was wrong at its end.
    pub problem: Option<String>,
    /// What runtimes asked since the story last forgot it; without bodies.
    pub requests: Vec<Sent>,
    ending: Ending,
    places: Vec<(Site, Target)>,
}

impl<S: AsyncFn(&World)> Trial<S> {
    /// `prepare` makes the world: exports, definitions, tenants. `story` serves reconcilers in it, plays whoever uses them, and waits for what has
    /// to come; what it waits for must come whatever goes wrong. When the story is over, the faults end and the world comes to rest, and what is
    /// there then must be what is there without faults.
    ///
    /// Neither is to use real time, threads, or anything else that differs between runs.
    ///
    /// # Panics
    /// When the world cannot be prepared, or a reconciler is served in it already: that is a part of the story.
    pub fn new(prepare: impl AsyncFnOnce() -> World, story: S) -> Self {
        let image = paused(async {
            let world = prepare().await;
            assert!(
                world.handles().is_empty(),
                "serve reconcilers in the story: what runs in the world that is prepared is no part of a trial"
            );
            world.age().await;
            world.image()
        });
        Self { image, story, disturbances: Vec::new() }
    }

    /// Adds what happens to a world from outside: [`Fault::Disturb`](super::faults::Fault::Disturb) with its number, from 0.
    #[must_use]
    pub fn with_disturbance(mut self, name: &'static str, disturb: Disturb) -> Self {
        self.disturbances.push((name, disturb));
        self
    }

    /// Plays the story once with these faults.
    pub fn play(&self, plan: &Plan) -> Played {
        self.play_with(|world| world.suffer(plan))
    }

    /// Plays the story once in a world whose runtimes draw from this seed, as the story may with [`World::seed`].
    pub fn play_seed(&self, seed: u64) -> Played {
        self.play_with(|world| world.draw_from(seed))
    }

    /// Plays it once in a world that this has been done to.
    pub(crate) fn play_with(&self, begin: impl FnOnce(&World)) -> Played {
        quietly(|| {
            paused(async {
                let world = World::from(&self.image);
                world.survey();
                let disturbances: Vec<Disturb> = self.disturbances.iter().map(|(_, disturb)| *disturb).collect();
                world.disturb_by(disturbances);
                begin(&world);
                let told = AssertUnwindSafe(async {
                    (self.story)(&world).await;
                    world.cease();
                    world.settled().await;
                });
                let problem = told.catch_unwind().await.err().map(|panic| words(&*panic));
                let ending = Ending::of(world.control_plane().since(&self.image.snapshot));
                Played {
                    digest: world.digest(),
                    struck: world.suffered(),
                    problem,
                    requests: world.heads(),
                    ending,
                    places: world.places(),
                }
            })
        })
    }
}

/// In a runtime of its own whose time is paused.
fn paused<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.unwrap_or_else(|error| panic!("no runtime can be made: {error}")).block_on(work)
}

thread_local! {
    /// Whether a panic of this thread is somebody's answer rather than news.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does something whose panics are told by its outcome and printed by nobody.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
