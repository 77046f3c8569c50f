//! What must hold in a state, worked out from the rules a second time and plainly.

use super::objects::{Projected, Provider, Said, Size, Tenant};
use super::state::{Input, Name, Request, State};

/// What is wrong with a name.
pub(crate) type Problem = &'static str;

pub(crate) const RYW: Problem = "RYW: no write is waited for that no stream has yet to show";
pub(crate) const R10: Problem = "R10: at rest every condition speaks of the object as it is: no wake-up was lost";
pub(crate) const K15: Problem = "K15: at rest what could be had is had, and what is refused is refused for the right reason";
pub(crate) const K17: Problem = "K17: at rest Ready is what the phases and the provider say";
pub(crate) const GONE: Problem = "K16: at rest what was deleted is gone, and nothing is left of it";

/// What can be reached, so that the rules are not kept by nothing happening.
pub(crate) const READY: &str = "a cluster is ready and everything rests";
pub(crate) const REFUSED: &str = "a cluster whose provider has lost its offering keeps its projection";
pub(crate) const WAITING: &str = "a deleted cluster waits for its provider";
pub(crate) const ANEW: &str = "a name was ordered anew and its cluster is ready";
pub(crate) const ORPHAN: &str = "the projection of an earlier cluster is deleted";

/// Whether the controller and the provider have nothing left to do, whatever else may happen.
pub(crate) fn is_at_rest(state: &State) -> bool {
    state.readable
        && state.feeds.iter().all(|feed| feed.news.is_empty())
        && state.names.iter().all(|name| is_idle(name) && !has_provider_work(name))
}

fn is_idle(name: &Name) -> bool {
    let idle = name.works.iter().all(|work| !work.queued && work.call.is_none());
    idle && name.late.is_none() && name.tenant.is_still() && name.projection.is_still()
}

/// Whether the provider reports or takes down, or the workspace collects an orphan.
pub(crate) fn has_provider_work(name: &Name) -> bool {
    reports(name) || finishes(name) || is_collected(name)
}

pub(crate) fn reports(name: &Name) -> bool {
    name.projection.server.is_some_and(|there| !there.deleting && (!there.kept || there.report != Some(there.generation)))
}

pub(crate) fn finishes(name: &Name) -> bool {
    name.projection.server.is_some_and(|there| there.deleting && there.kept)
}

pub(crate) fn is_collected(name: &Name) -> bool {
    let owner = name.tenant.server.map(|tenant| tenant.uid);
    name.projection.server.is_some_and(|there| !there.deleting && owner != Some(there.owner))
}

/// Whether a write is waited for that no stream has yet to show.
pub(crate) fn waits_in_vain(name: &Name) -> bool {
    !name.tenant.can_be_paid() || !name.projection.can_be_paid()
}

/// The first rule of states that does not hold.
pub(crate) fn problem(state: &State) -> Option<Problem> {
    if state.names.iter().any(waits_in_vain) {
        return Some(RYW);
    }
    if !is_at_rest(state) {
        return None;
    }
    let inputs = [Input::Offerings, Input::Providers].map(|input| state.feeds[input as usize].server);
    state.names.iter().find_map(|name| at_rest(name, inputs))
}

fn at_rest(name: &Name, inputs: [u8; 2]) -> Option<Problem> {
    let projection = name.projection.server;
    match name.tenant.server {
        None => projection.map(|_| GONE),
        Some(tenant) if tenant.deleting => Some(GONE),
        Some(tenant) => of_a_cluster(&tenant, projection.as_ref(), inputs),
    }
}

fn of_a_cluster(tenant: &Tenant, projection: Option<&Projected>, inputs: [u8; 2]) -> Option<Problem> {
    let is_current = |said: &Option<Said>| said.is_some_and(|said| said.generation == tenant.generation);
    if !tenant.said.iter().all(is_current) || tenant.rolled.is_none_or(|(_, generation)| generation != tenant.generation) {
        return Some(R10);
    }
    let holds = |at: usize| tenant.said[at].is_some_and(|said| said.spoken.holds == Some(true));
    let reason = |at: usize| tenant.said[at].map_or("", |said| said.spoken.reason.text());
    if projection.is_some_and(|projection| projection.owner != tenant.uid || !tenant.held) {
        return Some(GONE);
    }
    let as_it_should = match expected(tenant, projection, inputs) {
        Ok((provider, type_)) => {
            let is = projection.map(|there| (there.provider, there.type_, there.asked));
            let said = (reason(0), reason(1)) == ("Scheduled", "InSync");
            said && holds(0) && holds(1) && tenant.pin == Some(provider) && is == Some((provider, type_, tenant.size))
        }
        Err(because) => {
            // A projection that is what the spec asks for stays so, and is said to be.
            let in_sync = projection.is_some_and(|there| there.asked == tenant.size);
            !holds(0) && reason(0) == because && holds(1) == in_sync && (in_sync || reason(1) == "NotScheduled")
        }
    };
    if !as_it_should {
        return Some(K15);
    }
    let reported = projection.is_some_and(|there| there.report >= Some(there.generation));
    let ready = reported && holds(0) && holds(1);
    let is_rolled_up = holds(2) == reported && holds(3) == ready && tenant.rolled.is_some_and(|(says, _)| says == ready);
    (!is_rolled_up).then_some(K17)
}

/// Scheduling rules 1 to 5: the provider and the type, or the reason.
fn expected(tenant: &Tenant, projection: Option<&Projected>, inputs: [u8; 2]) -> Result<(Provider, Size), &'static str> {
    let pin = projection.map(|there| there.provider).or(tenant.pin);
    let kept = projection.filter(|there| there.asked == tenant.size).map(|there| there.type_);
    let [offerings, providers] = inputs;
    let (mut serves, mut candidate) = (false, false);
    for provider in Provider::ALL {
        if offerings & provider.bit() == 0 || pin.is_some_and(|pin| pin != provider) {
            continue;
        }
        serves = true;
        if providers & provider.bit() == 0 {
            continue;
        }
        candidate = true;
        let fits = |size: &&Size| **size >= tenant.size && kept.is_none_or(|kept| kept == **size);
        if let Some(size) = provider.sizes().iter().find(fits) {
            return Ok((provider, *size));
        }
    }
    Err(match (serves, candidate) {
        (false, _) => "OfferingNotFound",
        (true, false) => "ProviderNotConfigured",
        (true, true) => "CapabilityMismatch",
    })
}

pub(crate) fn is_ready(state: &State) -> bool {
    is_at_rest(state)
        && state.names.iter().any(|name| name.tenant.server.is_some_and(|tenant| tenant.rolled.is_some_and(|(ready, _)| ready)))
}

pub(crate) fn is_refused(state: &State) -> bool {
    let lost = |tenant: Tenant| tenant.said[0].is_some_and(|said| said.spoken.reason.text() == "OfferingNotFound");
    is_at_rest(state) && state.names.iter().any(|name| name.projection.server.is_some() && name.tenant.server.is_some_and(lost))
}

pub(crate) fn is_waiting(state: &State) -> bool {
    state.names.iter().any(|name| finishes(name) && name.tenant.server.is_some_and(|tenant| tenant.deleting && tenant.held))
}

pub(crate) fn is_anew(state: &State) -> bool {
    state.left.orders == 0 && state.left.deletions == 0 && is_ready(state)
}

pub(crate) fn is_removing_an_orphan(state: &State) -> bool {
    let calls = state.names.iter().flat_map(|name| &name.works).filter_map(|work| work.call);
    calls.into_iter().any(|call| matches!(call.act, Some(Request::Delete(_))) && !call.tenant.deleting)
}
