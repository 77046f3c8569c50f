//! What must hold once nothing is left to do: K15, K17 and R10, and that nothing is left over.
//!
//! Pure: functions of the state.

use serde_json::Value;

use super::Violation;
use super::choice::{self, Choice};
use super::conditions::condition;
use super::event::{Key, PROJECTION, TENANT};
use super::state::{FINALIZER, State, carries, is_going, owner, text};

/// What cannot be judged from here: which workspaces are served, and what could not be read.
const ELSEWHERE: [&str; 3] = ["NotEntitled", "CatalogUnavailable", "ConfigUnavailable"];

/// Every problem of a state at rest. Of a cluster that is being deleted and waits for its provider nothing is asked.
pub(super) fn at_rest(state: &State) -> Vec<Violation> {
    let mut found = Vec::new();
    for (key, tenant) in state.all(TENANT).filter(|(_, tenant)| !is_going(tenant)) {
        let checks: [(&str, Option<String>); 4] = [
            ("R10", was_reconciled(tenant)),
            ("K15", follows_from_the_inputs(state, key, tenant)),
            ("K17", readiness_is_rolled_up(state, key, tenant)),
            ("K9", is_held(state, key, tenant)),
        ];
        found.extend(checks.into_iter().filter_map(|(rule, problem)| Some(violation(rule, state, key, &problem?))));
    }
    let orphans = state.all(PROJECTION).filter(|(key, projection)| {
        let tenant = state.get(&key.of(TENANT));
        !owner(projection).is_empty()
            && !is_going(projection)
            && tenant.is_none_or(|tenant| text(tenant, "/metadata/uid") != owner(projection))
    });
    found.extend(orphans.map(|(key, _)| violation("K16", state, key, "the projection's cluster is gone")));
    found
}

fn violation(rule: &'static str, state: &State, key: &Key, problem: &str) -> Violation {
    let shown = |kind| state.get(&key.of(kind)).map_or_else(|| "nothing".to_owned(), |object| format!("{:#}", super::plain(object)));
    let text = format!("{rule} does not hold at rest: {problem}\n{key}\ncluster: {}\nprojection: {}\n", shown(TENANT), shown(PROJECTION));
    Violation { rule, text }
}

/// R10: no wake-up was lost.
fn was_reconciled(tenant: &Value) -> Option<String> {
    let generation = &tenant["metadata"]["generation"];
    let stale = ["Scheduled", "Projected", "ProviderClusterReady", "Ready"]
        .into_iter()
        .find(|type_| condition(tenant, type_).is_none_or(|condition| condition["observedGeneration"] != *generation))?;
    Some(format!("{stale} does not speak of generation {generation}"))
}

/// K15: what could be had is had, and what is refused is refused for the right reason.
fn follows_from_the_inputs(state: &State, key: &Key, tenant: &Value) -> Option<String> {
    let scheduled = condition(tenant, "Scheduled")?;
    let foreign = condition(tenant, "Projected").is_some_and(|projected| projected["reason"] == "ForeignProjection");
    let going = state.get(&key.of(PROJECTION)).filter(|projection| is_going(projection));
    // The projection of an earlier cluster of this name has to go first, and its provider holds it.
    let waits = going.is_some_and(|projection| owner(projection) != text(tenant, "/metadata/uid"));
    // The same of one that somebody deletes: it is not changed any more.
    let is_pending = condition(tenant, "Projected").is_some_and(|projected| projected["reason"] == "Pending");
    if ELSEWHERE.contains(&text(scheduled, "/reason")) || foreign || (waits && text(scheduled, "/reason") == "NotEvaluated") {
        return None;
    }
    let (choice, projection) = choice::at_rest(state, key)?;
    match (&choice, scheduled["status"] == "True") {
        (Err(reason), false) if text(scheduled, "/reason") == *reason => None,
        (Ok((provider, types)), true) => {
            let Some(projection) = projection else { return Some("there is no projection".into()) };
            let has: Vec<&String> = projection.spec.node_pools.iter().map(|pool| &pool.type_).collect();
            let same = projection.spec.provider_ref.name == *provider && has == types.iter().collect::<Vec<_>>();
            let ends = going.is_some() && is_pending;
            (!same && !ends).then(|| format!("the projection has {has:?}; by the rules: {provider} with {types:?}"))
        }
        _ => Some(format!("Scheduled is {} ({}); by the rules: {}", scheduled["status"], scheduled["reason"], said(&choice))),
    }
}

fn said(choice: &Choice) -> String {
    format!("{choice:?}")
}

/// K17: `status.ready`, `Ready` and the projection's own word are one.
fn readiness_is_rolled_up(state: &State, key: &Key, tenant: &Value) -> Option<String> {
    let holds = |type_| condition(tenant, type_).is_some_and(|condition| condition["status"] == "True");
    let reported = state.get(&key.of(PROJECTION)).is_some_and(|projection| {
        let own = owner(projection) == text(tenant, "/metadata/uid");
        let theirs = condition(projection, "Ready").is_none_or(|ready| ready["status"] == "True");
        let observed = projection["status"]["observedGeneration"].as_i64() >= projection["metadata"]["generation"].as_i64();
        own && theirs && observed && projection["status"]["ready"] == true
    });
    let expected = reported && holds("Scheduled") && holds("Projected");
    let (ready, field) = (holds("Ready"), tenant["status"]["ready"] == true);
    if (ready, field) != (expected, expected) {
        return Some(format!("Ready is {ready}, status.ready is {field}, and should be {expected}"));
    }
    let message = condition(tenant, "Ready").map_or("", |condition| text(condition, "/message"));
    let unnamed =
        ["Scheduled", "Projected", "ProviderClusterReady"].into_iter().find(|type_| !ready && !holds(type_) && !message.contains(type_));
    unnamed.map(|type_| format!("Ready is False and does not name {type_}"))
}

/// K9: whoever has a projection holds the finalizer.
fn is_held(state: &State, key: &Key, tenant: &Value) -> Option<String> {
    let own = state.get(&key.of(PROJECTION)).is_some_and(|projection| owner(projection) == text(tenant, "/metadata/uid"));
    (own && !carries(tenant, FINALIZER)).then(|| "there is a projection and no finalizer".into())
}
