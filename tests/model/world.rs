//! The state space: what can happen in a state, and what is asked of every one.

use stateright::{Model, Property};

use super::controller::Mutation;
use super::objects::{Actor, Provider, Size};
use super::rules::{self, ANEW, GONE, K15, K17, ORPHAN, R10, READY, REFUSED, RYW, WAITING};
use super::server::{K1, K2, K7, K9, K10, K11, K16};
use super::state::{Feed, Input, Left, Name, State};

pub(crate) const SETTLES: &str = "ESR: from every state everything comes to rest";

/// A model: how much happens, and what is wrong with the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) names: usize,
    /// Who has an offering and is configured when it begins; nobody else ever is.
    pub(crate) providers: &'static [Provider],
    pub(crate) left: Left,
    pub(crate) mutation: Option<Mutation>,
    /// Whether from every state the way to rest is walked, too.
    pub(crate) thorough: bool,
}

/// One step. The number is that of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    TenantOrders(usize),
    TenantEdits(usize),
    TenantDeletes(usize),
    TenantStripsTheFinalizer(usize),
    ProviderReports(usize),
    ProviderFinishes(usize),
    WorkspaceCollects(usize),
    SomebodyDeletesTheProjection(usize),
    Changes(Input, Provider),
    StreamShowsTheTenant(usize),
    StreamShowsTheProjection(usize),
    StreamShows(Input),
    Begins(usize, Actor),
    Sends(usize, Actor),
    Hears(usize, Actor),
    /// The answer to what was done is lost.
    HearsNothing(usize, Actor),
    /// The request arrives some time after its sender has given it up.
    GivesUp(usize, Actor),
    LateRequestArrives(usize),
    CatalogBreaks,
    CatalogRecovers,
    TenantIsListedAnew(usize),
    ProjectionIsListedAnew(usize),
    PatienceEnds(usize),
    Crash,
}

/// Adds what may happen.
struct May<'a>(&'a mut Vec<Action>);

impl May<'_> {
    fn when(&mut self, holds: bool, action: Action) {
        if holds {
            self.0.push(action);
        }
    }
}

/// What a tenant or somebody with its rights may do.
fn of_the_tenant(name: &Name, left: &Left, at: usize, may: &mut May<'_>) {
    match name.tenant.server {
        None => may.when(left.orders > 0, Action::TenantOrders(at)),
        Some(tenant) => {
            may.when(left.edits > 0 && !tenant.deleting && tenant.size == Size::Small, Action::TenantEdits(at));
            may.when(left.deletions > 0 && !tenant.deleting, Action::TenantDeletes(at));
            may.when(left.strips > 0 && tenant.held, Action::TenantStripsTheFinalizer(at));
        }
    }
    let there = name.projection.server.is_some_and(|there| !there.deleting);
    may.when(left.meddling > 0 && there, Action::SomebodyDeletesTheProjection(at));
}

/// What the provider and the workspace do by themselves.
pub(crate) fn of_the_provider(name: &Name, at: usize, actions: &mut Vec<Action>) {
    let mut may = May(actions);
    may.when(rules::reports(name), Action::ProviderReports(at));
    may.when(rules::finishes(name), Action::ProviderFinishes(at));
    may.when(rules::is_collected(name), Action::WorkspaceCollects(at));
}

/// What the streams show and the controller does by itself.
pub(crate) fn of_the_controller(name: &Name, at: usize, actions: &mut Vec<Action>) {
    let mut may = May(actions);
    may.when(!name.tenant.news.is_empty(), Action::StreamShowsTheTenant(at));
    may.when(!name.projection.news.is_empty(), Action::StreamShowsTheProjection(at));
    for actor in Actor::ALL {
        let work = &name.works[actor as usize];
        match work.call.map(|call| call.answer) {
            Some(None) => may.when(true, Action::Sends(at, actor)),
            Some(Some(_)) => may.when(true, Action::Hears(at, actor)),
            None => may.when(work.queued && !name.is_blocked(), Action::Begins(at, actor)),
        }
    }
    may.when(name.late.is_some(), Action::LateRequestArrives(at));
    may.when(rules::waits_in_vain(name), Action::PatienceEnds(at));
}

/// The same of the inputs that all names share.
pub(crate) fn of_the_inputs(state: &State, actions: &mut Vec<Action>) {
    let mut may = May(actions);
    may.when(!state.readable, Action::CatalogRecovers);
    for input in Input::ALL {
        may.when(state.reads(input) && !state.feeds[input as usize].news.is_empty(), Action::StreamShows(input));
    }
}

fn faults(name: &Name, left: &Left, at: usize, may: &mut May<'_>) {
    for actor in Actor::ALL {
        let Some(call) = &name.works[actor as usize].call else { continue };
        may.when(left.losses > 0 && call.answer.is_some(), Action::HearsNothing(at, actor));
        may.when(left.delays > 0 && call.answer.is_none() && call.step.writes(), Action::GivesUp(at, actor));
    }
    may.when(left.relists > 0 && !name.tenant.news.is_empty(), Action::TenantIsListedAnew(at));
    may.when(left.relists > 0 && !name.projection.news.is_empty(), Action::ProjectionIsListedAnew(at));
    may.when(left.patience > 0 && name.is_blocked() && !rules::waits_in_vain(name), Action::PatienceEnds(at));
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let all = self.providers.iter().fold(0, |all, provider| all | provider.bit());
        let feeds = Input::ALL.map(|_| Feed { server: all, news: Vec::new(), cached: all });
        vec![State { names: vec![Name::new(); self.names], feeds, readable: true, left: self.left, broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let State { names, left, readable, .. } = state;
        for (at, name) in names.iter().enumerate() {
            of_the_tenant(name, left, at, &mut May(actions));
            of_the_provider(name, at, actions);
            of_the_controller(name, at, actions);
            faults(name, left, at, &mut May(actions));
        }
        of_the_inputs(state, actions);
        let mut may = May(actions);
        for provider in self.providers {
            may.when(left.offers > 0, Action::Changes(Input::Offerings, *provider));
            may.when(left.setups > 0, Action::Changes(Input::Providers, *provider));
        }
        may.when(left.outages > 0 && *readable, Action::CatalogBreaks);
        may.when(left.crashes > 0, Action::Crash);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        self.follow(&mut state, action);
        state.names.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(K1, |_, state: &State| state.broken != Some(K1)),
            Property::always(K2, |_, state: &State| state.broken != Some(K2)),
            Property::always(K7, |_, state: &State| state.broken != Some(K7)),
            Property::always(K9, |_, state: &State| state.broken != Some(K9)),
            Property::always(K10, |_, state: &State| state.broken != Some(K10)),
            Property::always(K11, |_, state: &State| state.broken != Some(K11)),
            Property::always(K16, |_, state: &State| state.broken != Some(K16)),
            Property::always(RYW, |_, state: &State| rules::problem(state) != Some(RYW)),
            Property::always(R10, |_, state: &State| rules::problem(state) != Some(R10)),
            Property::always(K15, |_, state: &State| rules::problem(state) != Some(K15)),
            Property::always(K17, |_, state: &State| rules::problem(state) != Some(K17)),
            Property::always(GONE, |_, state: &State| rules::problem(state) != Some(GONE)),
            Property::always(SETTLES, |world: &Self, state: &State| !world.thorough || world.settles(state)),
            Property::sometimes(READY, |_, state: &State| rules::is_ready(state)),
            Property::sometimes(REFUSED, |_, state: &State| rules::is_refused(state)),
            Property::sometimes(WAITING, |_, state: &State| rules::is_waiting(state)),
            Property::sometimes(ANEW, |world: &Self, state: &State| world.left.orders > 1 && rules::is_anew(state)),
            Property::sometimes(ORPHAN, |_, state: &State| rules::is_removing_an_orphan(state)),
        ]
    }
}
