//! What comes of each step, and the way to rest.

use super::controller::{Mutation, preconditions};
use super::objects::Size;
use super::rules;
use super::server::{K2, K9};
use super::state::{Input, Name, State};
use super::world::{Action, World, of_the_controller, of_the_inputs, of_the_provider};

/// More steps than it takes from anywhere.
const FAR: usize = 200;

impl World {
    /// Takes a step, and counts the numbers of its outcome anew.
    pub(crate) fn follow(&self, state: &mut State, action: Action) {
        match action {
            Action::TenantOrders(at)
            | Action::TenantEdits(at)
            | Action::TenantDeletes(at)
            | Action::TenantStripsTheFinalizer(at)
            | Action::ProviderReports(at)
            | Action::ProviderFinishes(at)
            | Action::WorkspaceCollects(at)
            | Action::SomebodyDeletesTheProjection(at) => outside(state, &action, at),
            Action::TenantIsListedAnew(at) | Action::ProjectionIsListedAnew(at) | Action::PatienceEnds(at) => {
                fault(state, &action, at, self.mutation);
            }
            _ => self.inside(state, action),
        }
        state.broken = state.broken.filter(|rule| self.counts(rule));
        state.names.iter_mut().for_each(Name::renumber);
    }

    /// Whether a rule of writes is asked for. A create cannot name what it depends on: one that arrives after it was given up may find its object
    /// gone, or about to go. What comes of that is asked at rest: the workspace collects it, or the next object of the name deletes it.
    fn counts(&self, rule: &str) -> bool {
        self.left.delays == 0 || ![K2, K9].contains(&rule)
    }

    fn inside(&self, state: &mut State, action: Action) {
        let mutation = self.mutation;
        match action {
            Action::Changes(input, provider) => {
                let left = if input == Input::Offerings { &mut state.left.offers } else { &mut state.left.setups };
                *left -= 1;
                let feed = &mut state.feeds[input as usize];
                feed.server ^= provider.bit();
                feed.news.push(feed.server);
            }
            Action::StreamShowsTheTenant(at) => {
                let paid = state.names[at].tenant.show();
                state.names[at].seen(true, paid, mutation);
            }
            Action::StreamShowsTheProjection(at) => {
                let paid = state.names[at].projection.show();
                state.names[at].seen(mutation != Some(Mutation::DeafToTheProjection), paid, mutation);
            }
            Action::StreamShows(input) => {
                let after = state.feeds[input as usize].news.remove(0);
                state.see(input, after, mutation);
            }
            Action::Begins(at, actor) => state.start(at, actor, mutation),
            Action::Sends(at, actor) => state.send(at, actor, mutation),
            Action::Hears(at, actor) => state.hear(at, actor, false, mutation),
            Action::HearsNothing(at, actor) => {
                state.left.losses -= 1;
                state.hear(at, actor, true, mutation);
            }
            Action::GivesUp(at, actor) => {
                state.left.delays -= 1;
                state.give_up(at, actor, mutation);
            }
            Action::LateRequestArrives(at) => {
                let name = &mut state.names[at];
                let broken = name.late.take().and_then(|request| name.serve(request, preconditions(mutation)).1);
                state.broken = state.broken.or(broken);
            }
            Action::CatalogBreaks => {
                state.left.outages -= 1;
                state.readable = false;
            }
            Action::CatalogRecovers => state.recover(mutation),
            Action::Crash => {
                state.left.crashes -= 1;
                state.restart();
            }
            other => unreachable!("{other:?} is no step of the controller"),
        }
    }

    /// Whether everything comes to rest when nothing more happens from outside.
    pub(crate) fn settles(&self, state: &State) -> bool {
        let mut state = state.clone();
        let mut actions = Vec::new();
        for _ in 0..FAR {
            if state.broken.is_some() {
                return true;
            }
            let Some(next) = next(&state, &mut actions) else { return rules::is_at_rest(&state) };
            self.follow(&mut state, next);
        }
        false
    }
}

/// What happens next by itself. What is to be seen is shown first: over an old cache a call may fail again and again.
fn next(state: &State, actions: &mut Vec<Action>) -> Option<Action> {
    actions.clear();
    of_the_inputs(state, actions);
    for (at, name) in state.names.iter().enumerate() {
        of_the_controller(name, at, actions);
    }
    let is_shown = |action: &&Action| matches!(action, Action::StreamShowsTheTenant(_) | Action::StreamShowsTheProjection(_));
    if let Some(next) = actions.iter().find(is_shown).or(actions.first()) {
        return Some(*next);
    }
    for (at, name) in state.names.iter().enumerate() {
        of_the_provider(name, at, actions);
    }
    actions.first().copied()
}

/// What tenants, the provider and the workspace do.
fn outside(state: &mut State, action: &Action, at: usize) {
    let State { names, left, .. } = state;
    let name = &mut names[at];
    match action {
        Action::TenantOrders(_) => {
            left.orders -= 1;
            name.order();
        }
        Action::TenantEdits(_) => {
            left.edits -= 1;
            name.edit(|tenant| tenant.size = Size::Large);
        }
        Action::TenantDeletes(_) => {
            left.deletions -= 1;
            name.edit(|tenant| tenant.deleting = true);
        }
        Action::TenantStripsTheFinalizer(_) => {
            left.strips -= 1;
            name.edit(|tenant| tenant.held = false);
        }
        Action::ProviderReports(_) => name.report(|there| (there.kept, there.report) = (true, Some(there.generation))),
        Action::ProviderFinishes(_) => name.report(|there| there.kept = false),
        Action::SomebodyDeletesTheProjection(_) => {
            left.meddling -= 1;
            name.lose_projection();
        }
        _ => name.lose_projection(),
    }
}

fn fault(state: &mut State, action: &Action, at: usize, mutation: Option<Mutation>) {
    let State { names, left, .. } = state;
    let name = &mut names[at];
    match action {
        Action::TenantIsListedAnew(_) => {
            left.relists -= 1;
            name.tenant.relist();
            name.seen(true, true, mutation);
        }
        Action::ProjectionIsListedAnew(_) => {
            left.relists -= 1;
            name.projection.relist();
            name.seen(true, true, mutation);
        }
        _ => {
            left.patience -= u8::from(!rules::waits_in_vain(name));
            (name.tenant.debt, name.projection.debt) = (None, None);
            name.seen(false, true, mutation);
        }
    }
}
