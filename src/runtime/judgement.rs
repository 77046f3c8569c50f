//! What is said of a configuration in its own status, written until it is there.

use std::time::Duration;

use serde_json::Value;
use tracing::warn;

use crate::api::condition::ConditionStatus;
use crate::api::config::FieldError;
use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::api::reason::Reason;
use crate::reconciler::{Actor, Failure, ReportedCondition, Verb};

use super::raw::Raw;
use super::rest;
use super::status;
use super::transport::{Ask, Reply};

/// The wait after the first failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait: a rule that was missing and was added is noticed within it.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

const ACTOR: Actor = Actor { name: "provider-config", finalizer: None, conditions: &["Accepted"] };

/// The request that says whether a configuration is in force; `None` when its status says so already.
pub(super) fn ask(base: &str, kind: KindRef, raw: &Raw, problems: &[FieldError], now: &str) -> Option<Ask> {
    let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let verdict = if problems.is_empty() {
        ReportedCondition::new("Accepted", ConditionStatus::True, Reason::Accepted, "in force")
    } else {
        ReportedCondition::new("Accepted", ConditionStatus::False, Reason::Invalid, format!("{text}; the last good one stays in force"))
    };
    let object: Value = serde_json::from_str(&raw.body).ok()?;
    let fields =
        object.pointer("/metadata/generation").map_or(Value::Null, |generation| serde_json::json!({"observedGeneration": generation}));
    let body = status::body(kind, &object, &ACTOR, &[verdict], &fields, now)?;
    let name = ObjectName::cluster_scoped(raw.name.name.clone());
    Some(rest::ask(base, kind, &name, &Verb::ApplyStatus { manager: ACTOR.name, body }))
}

/// Sends until the server has taken it, or says that there is no such object. A conflict means that the object is another one by now; what it is then
/// is judged anew, and whoever does so, or stops, drops this. One request per wait, and no end otherwise.
pub(super) async fn write<Fut>(name: &ObjectName, mut send: impl FnMut() -> Fut + Send)
where
    Fut: Future<Output = Result<Reply, String>> + Send,
{
    let mut wait = FIRST_WAIT;
    loop {
        match send().await {
            Ok(reply) if reply.status.is_success() => return,
            Ok(reply) if is_gone(name, &reply) => return,
            Ok(reply) => {
                let (code, message) = (reply.status.as_u16(), rest::message(&reply.body));
                warn!(%name, code, message, "cannot write the status of the configuration; it is tried again");
            }
            Err(problem) => warn!(%name, %problem, "cannot write the status of the configuration; it is tried again"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// A 404 that does not name the object is that of a kind which is not served at the moment.
fn is_gone(name: &ObjectName, reply: &Reply) -> bool {
    rest::answer(name, &Verb::Get, reply.status, &reply.body) == Err(Failure::NotFound)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::StatusCode;
    use tokio::time::Instant;

    use super::*;

    /// Answers with these codes, one after the other; says how many were taken and how long it took.
    async fn answered(codes: &[u16], is_named: bool) -> (usize, Duration) {
        let codes = Mutex::new(codes.iter());
        let left = || codes.lock().unwrap().len();
        let (all, start) = (left(), Instant::now());
        let name = ObjectName::cluster_scoped("kcm");
        write(&name, || {
            let code = *codes.lock().unwrap().next().expect("it stops when it should");
            std::future::ready(match code {
                0 => Err("connection refused".to_owned()),
                code => {
                    let named = code == 404 && is_named;
                    let body: &'static str = if named { r#"{"kind":"Status","reason":"NotFound","details":{"name":"kcm"}}"# } else { "" };
                    Ok(Reply { status: StatusCode::from_u16(code).unwrap(), retry_after: None, body: body.into() })
                }
            })
        })
        .await;
        (all - left(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_verdict_is_written_again_until_it_is_there_or_pointless() {
        for (codes, is_named, taken, why) in [
            (&[0, 403, 500, 200][..], true, 4, "no answer, no rule, no luck: each may pass"),
            (&[200, 200], true, 1, "it is there"),
            (&[500, 409, 200], true, 3, "somebody was faster, who is judged anew unless the server was wrong"),
            (&[404, 200], true, 1, "the object is gone"),
            (&[404, 200], false, 2, "the kind is not served at the moment"),
        ] {
            assert_eq!(answered(codes, is_named).await.0, taken, "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_double_up_to_five_minutes() {
        let mut codes = [500; 12];
        codes[11] = 200;
        let waits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
        let (_, took) = answered(&codes, true).await;
        assert_eq!(took.as_secs(), waits.iter().sum::<u64>());
    }
}
