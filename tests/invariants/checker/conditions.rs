//! Invariants of what is said in a status.
//!
//! Pure: functions of one step.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Step;
use super::event::{Principal, TENANT};
use super::state::text;

const OF_THE_SCHEDULER: [&str; 2] = ["Scheduled", "Projected"];
const OF_THE_STATUS: [&str; 2] = ["ProviderClusterReady", "Ready"];

fn conditions(object: &Value) -> &[Value] {
    object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A condition of an object.
pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    conditions(object).iter().find(|condition| condition["type"] == type_)
}

/// Conditions that one of ours has changed or added, each with what it was.
fn said<'a>(step: &Step<'a>) -> Vec<(Option<&'a Value>, &'a Value)> {
    let Some(after) = step.after().filter(|_| step.is_of(TENANT) && step.is_ours()) else { return Vec::new() };
    let before = |condition: &Value| step.before.and_then(|before| self::condition(before, text(condition, "/type")));
    conditions(after).iter().map(|condition| (before(condition), condition)).filter(|(before, after)| *before != Some(*after)).collect()
}

pub(super) fn writers_are_disjoint(step: &Step<'_>) -> Option<String> {
    let after = step.after().filter(|_| step.is_of(TENANT) && step.is_ours())?;
    let not_its = match step.event.principal {
        Principal::Scheduler => OF_THE_STATUS,
        _ => OF_THE_SCHEDULER,
    };
    // To apply what is another's takes it over, though nothing changes.
    let applied = (step.event.subresource == "status").then_some(&step.event.body);
    if let Some(type_) = not_its.into_iter().find(|type_| applied.is_some_and(|body| condition(body, type_).is_some())) {
        return Some(format!("{:?} applies {type_}", step.event.principal));
    }
    let of = |object: Option<&Value>, type_| object.and_then(|object| condition(object, type_)).cloned();
    if let Some(type_) = not_its.into_iter().find(|type_| of(step.before, type_) != of(Some(after), type_)) {
        return Some(format!("{:?} changed {type_}", step.event.principal));
    }
    let field = |object: Option<&Value>, name: &str| object.map_or(Value::Null, |object| object["status"][name].clone());
    let fields = ["ready", "observedGeneration"].into_iter().find(|name| field(step.before, name) != field(Some(after), name));
    let field = fields.filter(|_| step.event.principal == Principal::Scheduler)?;
    Some(format!("the scheduler changed status.{field}"))
}

pub(super) fn generations_are_of_the_state(step: &Step<'_>) -> Option<String> {
    let after = step.after().filter(|_| step.is_of(TENANT) && step.is_ours())?;
    let used = step.before?["metadata"]["generation"].as_i64()?;
    let now = after["metadata"]["generation"].as_i64()?;
    let wrong = |name: &str, before: Option<i64>, said: Option<i64>| match said {
        None => Some(format!("{name} has none")),
        Some(said) if said > now => Some(format!("{name} says {said}, the object has {now}")),
        Some(said) if before.is_some_and(|before| said < before) => Some(format!("{name} fell from {before:?} to {said}")),
        Some(said) if said != used => Some(format!("{name} says {said}, the state used has {used}")),
        Some(_) => None,
    };
    let of = |condition: &Value| condition["observedGeneration"].as_i64();
    let found = said(step).into_iter().find_map(|(before, after)| wrong(text(after, "/type"), before.and_then(of), of(after)));
    let own = |object: &Value| object["status"]["observedGeneration"].as_i64();
    let (before, said) = (step.before.and_then(own), own(after));
    found.or_else(|| if before == said { None } else { wrong("status", before, said) })
}

pub(super) fn times_change_with_the_status(step: &Step<'_>) -> Option<String> {
    said(step).into_iter().find_map(|(before, after)| {
        let before = before?;
        let (type_, since) = (text(after, "/type"), text(after, "/lastTransitionTime"));
        let (same_status, same_time) = (before["status"] == after["status"], before["lastTransitionTime"] == since);
        match (same_status, same_time) {
            (true, false) => Some(format!("{type_} has a new time and its old status")),
            // Times are whole seconds: two changes within one have the same.
            (false, true) if !is_now(since, step) => Some(format!("{type_} has a new status and its old time")),
            _ => None,
        }
    })
}

/// From the beginning of a call, whose time is written, until the server has taken its last write: the deadlines of both, and two seconds for the
/// whole seconds of times.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(60 + 30 + 2);

fn is_now(time: &str, step: &Step<'_>) -> bool {
    let late = |time: Timestamp| step.event.at.duration_since(time);
    // Processes that stand still are late besides.
    let within = ON_ITS_WAY.max(step.memory.window);
    time.parse().is_ok_and(|time| step.memory.clocks.iter().any(|ahead| (late(time) + *ahead).abs() <= within))
}

/// What the runtime says in an actor's first condition when it does not call it.
const UNCALLED: [&str; 5] = ["InvalidObject", "ConfigUnavailable", "AccessPending", "AccessDenied", "Superseded"];

fn reasons(type_: &str, status: &str) -> (&'static [&'static str], bool) {
    const REFUSALS: &[&str] = &["CatalogUnavailable", "NotEntitled", "OfferingNotFound", "ProviderNotConfigured", "CapabilityMismatch"];
    match (type_, status) {
        (_, "Unknown") => (&["NotEvaluated"], false),
        ("Scheduled", "True") => (&["Scheduled"], false),
        ("Scheduled", _) => (REFUSALS, true),
        ("Projected", "True") => (&["InSync"], false),
        ("Projected", _) => (&["NotScheduled", "Pending", "ForeignProjection", "Deleting"], false),
        ("ProviderClusterReady" | "Ready", "True") => (&["Ready"], false),
        // In a deletion the second condition says more than the first.
        ("ProviderClusterReady", _) => (&["NoProjection", "StatusOutdated", "ProviderNotReady", "Deleting"], true),
        ("Ready", _) => (&["Pending", "Deleting"], false),
        _ => (&[], false),
    }
}

pub(super) fn reasons_are_of_the_table(step: &Step<'_>) -> Option<String> {
    let mut types = BTreeSet::new();
    let all = step.after().map(conditions).filter(|_| step.is_of(TENANT) && step.is_ours()).unwrap_or_default();
    if let Some(twice) = all.iter().find(|condition| !types.insert(text(condition, "/type"))) {
        return Some(format!("{} is there twice", twice["type"]));
    }
    said(step).into_iter().find_map(|(_, condition)| {
        let [which, status, reason, message] = ["/type", "/status", "/reason", "/message"].map(|at| text(condition, at));
        let (allowed, first) = reasons(which, status);
        if message.len() > 1024 {
            return Some(format!("{which}: the message has {} bytes", message.len()));
        }
        let known = allowed.contains(&reason) || (first && UNCALLED.contains(&reason));
        (!known).then(|| format!("{which}={status} has the reason {reason:?}"))
    })
}
