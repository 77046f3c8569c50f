//! Invariants of a cluster's life: the pin, the finalizer, the projection's beginning and end.
//!
//! Pure: functions of one step.

use super::Step;
use super::event::{PROJECTION, Principal, TENANT};
use super::state::{FINALIZER, carries, is_going, owner, text};

pub(super) fn the_pin_stays(step: &Step<'_>) -> Option<String> {
    if !step.is_of(TENANT) || !step.is_ours() {
        return None;
    }
    let pin = |object| text(object, "/spec/providerRef/name");
    let (before, after) = (pin(step.before?), pin(step.after()?));
    (!before.is_empty() && before != after).then(|| format!("the pin was {before:?} and is {after:?}"))
}

pub(super) fn a_projection_is_held(step: &Step<'_>) -> Option<String> {
    let after = step.after().filter(|_| step.is_of(PROJECTION) && step.is_ours() && step.event.verb == "create")?;
    let (uid, provider) = (owner(after), text(after, "/spec/providerRef/name"));
    match step.memory.pin_of(uid, step.event.at) {
        None => Some(format!("its owner {uid:?} was not seen pinned and with the finalizer")),
        // An object that names another provider than the one where it lives stays there; its pin is what it was made for.
        Some(pin) if pin != provider => Some(format!("its owner is pinned to {pin:?}, not {provider:?}")),
        Some(_) => None,
    }
}

/// At once, after a second, then 2, 4, 8, 16 and 30: seven times in a minute. As many more for what two managers may do that take turns.
const OFTEN: usize = 14;

pub(super) fn nobody_is_fought(step: &Step<'_>) -> Option<String> {
    let after = step.after().filter(|_| step.is_of(PROJECTION) && step.is_ours() && step.event.verb == "create")?;
    let made = 1 + step.memory.made_lately(&step.event.key, owner(after), step.event.at);
    (made > OFTEN).then(|| format!("it is made for the {made}th time within a minute"))
}

pub(super) fn the_finalizer_outlives(step: &Step<'_>) -> Option<String> {
    if !step.is_of(TENANT) || step.event.principal != Principal::Scheduler {
        return None;
    }
    let before = step.before.filter(|before| carries(before, FINALIZER))?;
    let released = step.event.gone || step.after().is_some_and(|after| !carries(after, FINALIZER));
    if !released {
        return None;
    }
    let projection = step.event.key.of(PROJECTION);
    if step.state.get(&projection).is_some_and(|there| owner(there) == text(before, "/metadata/uid")) {
        return Some("its projection is there".into());
    }
    if !is_going(before) {
        return Some("nobody wants the object gone".into());
    }
    (!step.memory.told_gone.contains(&projection)).then(|| "the server was not asked, or did not say that the projection is gone".into())
}

pub(super) fn a_projection_stays(step: &Step<'_>) -> Option<String> {
    if !step.is_of(PROJECTION) || !step.is_ours() || step.event.verb != "delete" || step.event.code >= 300 {
        return None;
    }
    let tenant = step.state.get(&step.event.key.of(TENANT))?;
    let is_its = text(tenant, "/metadata/uid") == owner(step.before?);
    (is_its && !is_going(tenant)).then(|| "its cluster is there and not being deleted".into())
}
