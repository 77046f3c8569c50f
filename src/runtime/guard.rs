//! The disconnect guard: in each workspace whose binding accepts its claims, an admission policy that refuses to delete the binding while service
//! objects live there.
//!
//! [`policy`] decides; here it is read, written and taken away, one workspace after the other. It is a help for tenants and no lock: who
//! administers a workspace can delete the policy itself. Nothing else waits for it, and what goes wrong here is logged and tried again.

pub(super) mod policy;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::api::manifest::export::guard_name;
use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectName};
use crate::reconciler::{Answer, Failure, Verb};

use super::rest;
use super::shell::Outside;
use policy::{Place, Places, Want};

/// From the first byte of a request to the last of its answer.
const REQUEST: Duration = Duration::from_secs(30);
/// The wait after the first failure in a workspace; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest: a claim that was accepted again is noticed within it.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What is known of a workspace's guard.
#[derive(Debug, Default)]
struct Known {
    /// What it was brought to last.
    done: Option<Want>,
    /// The last failure, until something else is wanted.
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Failed {
    want: Want,
    /// When it may be tried again.
    at: Instant,
    /// The wait after the next failure.
    pause: Duration,
}

/// Keeps the guards of `places` as they should be until the sender is gone. A guard that is as it should be costs no request.
pub(super) async fn keep(mut places: watch::Receiver<Places>, outside: Outside, export: String) {
    let mut known: BTreeMap<LogicalCluster, Known> = BTreeMap::new();
    loop {
        let now = places.borrow_and_update().clone();
        known.retain(|workspace, _| now.contains_key(workspace));
        for (workspace, place) in &now {
            let state = known.entry(workspace.clone()).or_default();
            let Some(want) = policy::want(place).filter(|want| state.done.as_ref() != Some(want)) else { continue };
            let before = state.failed.as_ref().filter(|failed| failed.want == want);
            if before.is_some_and(|failed| failed.at > Instant::now()) {
                continue;
            }
            let pause = before.map_or(FIRST_WAIT, |failed| failed.pause);
            match bring(&outside, &export, workspace, place, &want).await {
                Ok(changed) => {
                    if changed {
                        info!(%workspace, guarded = matches!(want, Want::Guarded(_)), "the disconnect guard changed");
                    }
                    *state = Known { done: Some(want), failed: None };
                }
                Err(problem) => {
                    warn!(%workspace, problem, "cannot keep the disconnect guard; it is tried again");
                    state.failed = Some(Failed { want, at: Instant::now() + pause, pause: (pause * 2).min(LONGEST_WAIT) });
                }
            }
        }
        let next = known.values().filter_map(|state| state.failed.as_ref().map(|failed| failed.at)).min();
        let retry = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = places.changed() => if changed.is_err() { return },
            () = retry => {}
        }
    }
}

/// Makes the policy and then its binding, or takes the binding and then the policy: in between there is a policy that nothing refers to, which
/// refuses nothing. Returns whether anything was written.
async fn bring(outside: &Outside, export: &str, workspace: &LogicalCluster, place: &Place, want: &Want) -> Result<bool, String> {
    let base = rest::scoped(&place.endpoint, Some(workspace));
    let name = ObjectName::cluster_scoped(guard_name(export));
    let send = async |kind: KindRef, verb: Verb| {
        let ask = rest::ask(&base, kind, &name, &verb);
        let reply = outside.metrics.request(verb.word(), outside.transport.send(&ask, REQUEST).await);
        let reply = reply.map_err(|problem| format!("{} {kind} {name}: {problem}", verb.word()))?;
        match rest::answer(&name, &verb, reply.status, &reply.body) {
            Ok(Answer::Object(object)) => Ok(Some(object)),
            Ok(Answer::Gone) | Err(Failure::NotFound) => Ok(None),
            Err(failure) => Err(format!("{} {kind} {name}: {failure}", verb.word())),
        }
    };
    let mut changed = false;
    match want {
        Want::Guarded(bindings) => {
            for (kind, body) in policy::objects(export, bindings) {
                let verb = match send(kind, Verb::Get).await? {
                    None => Verb::Create(body),
                    Some(live) if policy::holds(&body, &live) => continue,
                    Some(live) => Verb::Replace(policy::replaced(&body, &live)),
                };
                send(kind, verb).await?;
                changed = true;
            }
        }
        Want::Free => {
            for kind in [policy::BINDING, policy::POLICY] {
                let Some(live) = send(kind, Verb::Get).await? else { continue };
                let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
                send(kind, Verb::Delete { uid }).await?;
                changed = true;
            }
        }
    }
    Ok(changed)
}
