//! The end of external work whose object is gone: the reconciler's `delete` with the object as it was recorded.

use std::sync::Arc;

use serde_json::Value;
use tracing::{info, warn};

use crate::api::kcp::{ENDPOINT_SLICE, EndpointSlice};
use crate::api::meta::Kind;
use crate::api::names::ObjectName;
use crate::api::reason::Reason;
use crate::reconciler::{Answer, CallError, Deletion, Failure, Inside, Port, Recheck, Reconciler};
use crate::runtime::external::{ExternalWork, Probe};
use crate::runtime::fence;
use crate::runtime::finalizer::Step;
use crate::runtime::port::LivePort;
use crate::runtime::queue::Outcome;
use crate::runtime::served::{Ended, Job};

use super::external::Refusal;
use super::look::Looked;
use super::{Said, Seat, Trouble};

/// What the server says of an object that is not seen.
enum Word {
    Gone,
    /// It is there after all, or another one of its name.
    There,
    /// Neither; what it said instead.
    Nothing(String),
}

impl<R: Reconciler> Seat<R> {
    /// Makes sure once more that the object is gone, and has its work ended. Neither status nor finalizer is written: nobody is there to read it.
    pub(super) async fn clean_up(&self, mut job: Job, external: ExternalWork, probe: &Probe) -> Ended {
        let live = Arc::new(std::mem::take(&mut job.port));
        let (key, controller) = (job.key.clone(), self.actor.name);
        let result = match ask::<R>(&live, probe, &external.export, &job.key.name).await {
            Word::Gone => fence::awaited(self.end(&live, job, external)).await.unwrap_or_else(|panic| Err(Trouble::Panicked(panic))),
            Word::There => {
                info!(controller, %key, "an object that was not seen is there; its external work goes on");
                Ok(Recheck::OnChange)
            }
            Word::Nothing(said) => {
                let what = format!("the server does not say that it is gone, so that its external work is not ended: {said}");
                Err(Trouble::Error { reason: Reason::AccessPending, conflict: false, text: what })
            }
        };
        let result = result.map(|recheck| Said { recheck, ..Said::default() });
        let mut ended = self.ended(&key, &live, Looked::of(result));
        // Nothing tells of a change any more: only time does.
        if let Some(wait) = ended.recheck.take() {
            ended.outcome = Outcome::After(wait);
        }
        ended
    }

    async fn end(&self, live: &Arc<LivePort>, mut job: Job, external: ExternalWork) -> Result<Recheck, Trouble> {
        let (key, controller) = (job.key.clone(), self.actor.name);
        let failed = |text: String| Trouble::Error { reason: Reason::ReconcileFailed, conflict: false, text };
        let raw: Value = serde_json::from_str(&job.raw.body).unwrap_or_default();
        let object = self.read(&job.raw).map_err(|problem| failed(format!("the recorded object cannot be read: {problem}")))?;
        let config = std::mem::replace(&mut job.config, Err(String::new()));
        let known = config.ok().or(job.last_config.take()).and_then(|config| config.value.downcast::<R::Config>().ok());
        let config = known.unwrap_or_default();
        let footing = match self.stand(live, external, &key, job.path.as_deref(), &raw, Step::Delete).await {
            Ok(footing) => footing,
            Err(Refusal::Nothing) => return Ok(Recheck::OnChange),
            Err(Refusal::Trouble(trouble)) => return Err(trouble),
            Err(Refusal::Lack(lack)) => return Err(Trouble::Error { reason: lack.reason, conflict: false, text: lack.what }),
        };
        warn!(controller, %key, "the object is gone and its external work is not: it is ended now");
        let port: Arc<dyn Port> = live.clone();
        let workload = footing.client(&port);
        let inside = Inside { safe: footing.safe(), ..self.inside(&mut job, port, raw) };
        let ctx = Self::context(&mut job, config, None, workload, inside);
        let end =
            if footing.has_ended() { Deletion::Done } else { self.guarded(async { self.reconciler.delete(&ctx, &object).await }).await? };
        match end {
            Deletion::Done => {
                footing.finish(live).await.map_err(Trouble::Call)?;
                info!(controller, %key, "the external work of an object that is gone has ended");
                Ok(Recheck::OnChange)
            }
            Deletion::Pending(report) if report.recheck == Recheck::OnChange => Ok(Recheck::Backoff),
            Deletion::Pending(report) => Ok(report.recheck),
        }
    }
}

async fn ask<R: Reconciler>(live: &LivePort, probe: &Probe, export: &str, name: &ObjectName) -> Word {
    for endpoint in &probe.endpoints {
        match live.look(endpoint, R::Object::REF, name).await {
            Err(Failure::NotFound) => {}
            // Who has no binding cannot be looked at, and has nothing of ours.
            Err(Failure::Forbidden(_)) if !probe.is_bound => {}
            Ok(_) => return Word::There,
            Err(failure) => {
                return Word::Nothing(CallError::new(format!("get {} {name} behind {endpoint}", R::Object::REF), failure).to_string());
            }
        }
    }
    if probe.endpoints.is_empty() { nobody_is_bound(live, export).await } else { Word::Gone }
}

/// With its last binding the slice loses its last endpoint: nothing is left that could be asked for the object.
async fn nobody_is_bound(live: &LivePort, export: &str) -> Word {
    let name = ObjectName::cluster_scoped(export);
    let slice = match live.look_near(ENDPOINT_SLICE, &name).await {
        Ok(Answer::Object(slice)) => serde_json::from_value::<EndpointSlice>(slice).map_err(|error| error.to_string()),
        Ok(Answer::Gone) => Err("no answer".into()),
        Err(failure) => Err(failure.to_string()),
    };
    match slice {
        Ok(slice) if slice.status.endpoints.is_empty() => Word::Gone,
        Ok(_) => Word::Nothing("the endpoint slice has endpoints that were not looked at".into()),
        Err(problem) => Word::Nothing(format!("the endpoint slice {name}: {problem}")),
    }
}
