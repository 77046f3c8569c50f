//! Faults: what can go wrong, when it does, and how it is carried out on the way between a runtime and its server.
//!
//! Reading order: `fault` (the words), this file (who is struck), `wire` and `lines` (how), `seam` (a reconciler that fails).

mod fault;
mod lines;
mod seam;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::embedded::dice::Dice;

pub use fault::{Fault, Plan, Side, Site, Target};
pub use seam::Brittle;

pub(super) use wire::{Mortal, Tap};

/// How long the server, or a kind of it, cannot be reached: longer than a request's deadline.
const DOWN: Duration = Duration::from_secs(40);
/// How long nobody is known, or nothing allowed.
const REFUSED: Duration = Duration::from_mins(1);
/// How many more writes to an object somebody else is faster than.
const STORM: u8 = 2;

/// Random faults: each place is struck by one of these with this chance, until then.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// What can happen.
    pub faults: BTreeSet<Fault>,
    /// How likely it is at each place, of 1.
    pub rate: f64,
    /// What the dice are made from.
    pub seed: u64,
    /// For how long, from the moment when it is let loose.
    pub lasts: Duration,
}

/// What does whatever a disturbance is; it may take its time.
type Disturbance = Arc<dyn Fn(usize) + Send + Sync>;

/// What is struck by what. Cheap to clone: clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    plan: BTreeMap<Site, Fault>,
    chaos: Option<(Chaos, Instant, Dice)>,
    /// Every place that was reached, while somebody writes them down.
    places: Option<Vec<(Site, Target)>>,
    struck: Vec<(Site, Fault)>,
    calls: u64,
    down: Option<Instant>,
    unauthorized: Option<Instant>,
    forbidden: Option<Instant>,
    storms: BTreeMap<String, u8>,
    /// Collections that nobody lists or watches, until then.
    blind: BTreeMap<String, Instant>,
    /// Shards that nobody reaches, until then.
    cut_off: BTreeMap<usize, Instant>,
    disturb: Option<Disturbance>,
}

/// What holds at the moment for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasting {
    Down,
    Unauthorized,
    Forbidden,
}

impl Faults {
    /// Strikes these places, and no others.
    pub(super) fn follow(&self, plan: &Plan) {
        self.0.lock().plan = plan.0.iter().copied().collect();
    }

    /// Strikes at random from now on.
    pub(super) fn let_loose(&self, chaos: Chaos) {
        let (until, dice) = (Instant::now() + chaos.lasts, Dice::new(chaos.seed));
        self.0.lock().chaos = Some((chaos, until, dice));
    }

    /// No faults from now on; what lasts ends.
    pub(super) fn cease(&self) {
        let mut state = self.0.lock();
        let State { places, struck, calls, disturb, .. } = std::mem::take(&mut *state);
        *state = State { places, struck, calls, disturb, ..State::default() };
    }

    /// Writes down the places that are reached from now on.
    pub(super) fn survey(&self) {
        self.0.lock().places = Some(Vec::new());
    }

    pub(super) fn disturb_by(&self, disturb: impl Fn(usize) + Send + Sync + 'static) {
        self.0.lock().disturb = Some(Arc::new(disturb));
    }

    pub(super) fn places(&self) -> Vec<(Site, Target)> {
        self.0.lock().places.clone().unwrap_or_default()
    }

    /// What happened so far, as a plan.
    pub(super) fn struck(&self) -> Plan {
        Plan(self.0.lock().struck.clone())
    }

    /// What happens at this place; what lasts has begun then.
    fn strike(&self, site: Site, target: Target) -> Option<Fault> {
        let mut state = self.0.lock();
        if let Some(places) = &mut state.places {
            places.push((site, target));
        }
        let fault = state.plan.get(&site).copied().or_else(|| state.draw(target))?;
        state.struck.push((site, fault));
        let now = Instant::now();
        match fault {
            Fault::Down => state.down = Some(now + DOWN),
            Fault::Unauthorized => state.unauthorized = Some(now + REFUSED),
            Fault::Forbidden => state.forbidden = Some(now + REFUSED),
            Fault::Disturb(which) => {
                let disturb = state.disturb.clone();
                drop(state);
                if let Some(disturb) = disturb {
                    disturb(which.into());
                }
            }
            _ => {}
        }
        Some(fault)
    }

    /// The number of a call of a reconciler that begins, and what happens to it.
    fn strike_call(&self) -> Option<Fault> {
        let at = {
            let mut state = self.0.lock();
            state.calls += 1;
            state.calls - 1
        };
        self.strike(Site::Call(at), Target::Call)
    }

    /// Nobody reaches the virtual workspaces of this shard for a while.
    pub(super) fn cut_off(&self, shard: usize, lasts: Duration) {
        self.0.lock().cut_off.insert(shard, Instant::now() + lasts);
    }

    /// Nobody lists or watches this collection for a while.
    fn blind(&self, path: &str) {
        self.0.lock().blind.insert(path.to_owned(), Instant::now() + DOWN);
    }

    fn lasting(&self, path: &str, target: Target) -> Option<Lasting> {
        let state = self.0.lock();
        let now = Instant::now();
        if matches!(target, Target::List | Target::Watch) && state.blind.get(path).is_some_and(|until| now < *until) {
            return Some(Lasting::Down);
        }
        if shard_of(path).and_then(|shard| state.cut_off.get(&shard)).is_some_and(|until| now < *until) {
            return Some(Lasting::Down);
        }
        let holds = |until: Option<Instant>| until.is_some_and(|until| now < until);
        let all = [(state.down, Lasting::Down), (state.unauthorized, Lasting::Unauthorized), (state.forbidden, Lasting::Forbidden)];
        all.into_iter().find(|(until, _)| holds(*until)).map(|(_, lasting)| lasting)
    }

    /// Whether somebody else is faster than this write: this one, and the next few to the same object.
    fn is_overtaken(&self, path: &str, begins: bool) -> bool {
        let mut state = self.0.lock();
        if begins {
            state.storms.insert(path.to_owned(), STORM);
            return true;
        }
        let Some(left) = state.storms.get_mut(path) else { return false };
        *left -= 1;
        if *left == 0 {
            state.storms.remove(path);
        }
        true
    }
}

impl State {
    fn draw(&mut self, target: Target) -> Option<Fault> {
        let (chaos, until, dice) = self.chaos.as_mut()?;
        if Instant::now() >= *until {
            return None;
        }
        if unit(dice.draw()) >= chaos.rate {
            return None;
        }
        let possible: Vec<Fault> = target.faults().filter(|fault| chaos.faults.contains(fault)).collect();
        if possible.is_empty() {
            return None;
        }
        let which = dice.draw() % possible.len() as u64;
        usize::try_from(which).ok().and_then(|which| possible.get(which).copied())
    }
}

/// The shard by whose virtual workspace a request goes.
fn shard_of(path: &str) -> Option<usize> {
    match path.strip_prefix("/shards/") {
        Some(rest) => rest.split('/').next()?.parse().ok(),
        None => path.starts_with("/services/apiexport/").then_some(0),
    }
}

fn unit(draw: u64) -> f64 {
    let top = u32::try_from(draw >> 32).unwrap_or_default();
    f64::from(top) / f64::from(u32::MAX)
}
