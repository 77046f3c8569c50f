//! Invariants of requests: where they go and what they name.
//!
//! Pure: functions of one step.

use super::Step;
use super::event::{PROJECTION, PROVIDER, TENANT};
use super::state::text;

pub(super) fn no_secret_is_read(step: &Step<'_>) -> Option<String> {
    (step.is_ours() && step.is_of("secrets")).then(|| "it is about secrets".into())
}

/// Every uid that we write is one of that workspace: of the object itself, of its owners, and of what an event is about.
pub(super) fn nothing_leaks(step: &Step<'_>) -> Option<String> {
    if !step.is_ours() || !step.event.is_write() {
        return None;
    }
    let (here, body) = (&step.event.key.workspace, &step.event.body);
    // Nothing of a tenant's is reached by a path; the provider workspace is.
    if here.contains(':') {
        return None;
    }
    let annotated = body["metadata"]["annotations"]["kcp.io/cluster"].as_str();
    if let Some(elsewhere) = annotated.filter(|cluster| cluster != here) {
        return Some(format!("the body is of {elsewhere}, the request of {here}"));
    }
    let owners = body["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let uids = owners
        .iter()
        .map(|owner| text(owner, "/uid"))
        .chain(["/metadata/uid", "/preconditions/uid", "/involvedObject/uid"].map(|at| text(body, at)));
    let mut homes = uids.filter_map(|uid| Some((uid, step.memory.home.get(uid)?)));
    homes.find(|(_, home)| *home != here).map(|(uid, home)| format!("the uid {uid} is one of {home}, the request one of {here}"))
}

pub(super) fn writes_name_the_incarnation(step: &Step<'_>) -> Option<String> {
    let ours = step.is_ours() && (step.is_of(TENANT) || step.is_of(PROJECTION));
    let body = &step.event.body;
    // What a server refused before it read it cannot be seen.
    let unread = body.is_null() && step.event.code >= 400;
    let missing = match step.event.verb.as_str() {
        _ if !ours || unread => None,
        "delete" if text(body, "/preconditions/uid").is_empty() => Some("no uid"),
        "update" | "patch" if text(body, "/metadata/uid").is_empty() => Some("no uid"),
        "update" | "patch" if text(body, "/metadata/resourceVersion").is_empty() => Some("no resourceVersion"),
        "deletecollection" => Some("no object at all"),
        _ => None,
    }?;
    Some(format!("it names {missing}"))
}

pub(super) fn paths_are_for_people(step: &Step<'_>) -> Option<String> {
    let kind = [TENANT, PROJECTION, PROVIDER].contains(&step.event.key.kind.as_str());
    let asked = step.event.path.split("/clusters/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    (kind && step.is_ours() && asked.contains(':')).then(|| format!("it names {asked}"))
}

pub(super) fn refusals_are_heard(step: &Step<'_>) -> Option<String> {
    let again = step.is_ours() && step.event.is_write() && step.memory.was_just_refused(step.event);
    again.then(|| format!("version {} was refused twice a moment ago", text(&step.event.body, "/metadata/resourceVersion")))
}

/// In its weaker form, which a trace can show: the kinds that a decision is about were listed, by this process. A status may say before that
/// they cannot be.
pub(super) fn nothing_is_done_unseen(step: &Step<'_>) -> Option<String> {
    let acts = step.is_ours() && step.event.is_write() && step.event.subresource.is_empty();
    if !acts || !(step.is_of(TENANT) || step.is_of(PROJECTION)) {
        return None;
    }
    let unseen = [TENANT, PROJECTION].into_iter().find(|kind| !step.memory.listed.contains(*kind))?;
    Some(format!("{unseen} was not listed yet"))
}
