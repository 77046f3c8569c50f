//! One look at an object: what has to be there before its reconciler is called, and what is said when something is not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use crate::api::meta::{Kind as _, OPERATION_ANNOTATION};
use crate::api::names::ObjectName;
use crate::api::reason::Reason;
use crate::reconciler::{CallError, Inside, Kubeconfig, Port, Recheck, Reconciler, Verb};
use crate::runtime::access::{Minter, Place, Refused};
use crate::runtime::finalizer::{self, Step};
use crate::runtime::port::LivePort;
use crate::runtime::raw::Operation;
use crate::runtime::served::{AnyConfig, Job};
use crate::runtime::status;

use super::external::{Footing, Refusal};
use super::{Ends, Said, Seat, Trouble};

/// What a look came to.
pub(super) struct Looked {
    pub(super) result: Result<Said, Trouble>,
    /// Whether an input was missing.
    pub(super) starved: bool,
    /// When what was handed out is to be replaced.
    pub(super) refresh: Option<Duration>,
}

impl Looked {
    pub(super) const fn of(result: Result<Said, Trouble>) -> Self {
        Self { result, starved: false, refresh: None }
    }
}

/// What an object's workspace is entered with, where its reconciler asks for that.
pub(super) struct Admission {
    minter: Option<Arc<Minter>>,
    place: Place,
    /// The other objects of the kind in the workspace.
    others: Vec<ObjectName>,
    kubeconfig: Option<Kubeconfig>,
    refresh: Option<Duration>,
}

impl<R: Reconciler> Seat<R> {
    /// Takes away what a person asked for, sees to everything that a call needs, and calls the reconciler; or says why not.
    pub(super) async fn look(&self, job: &mut Job, live: &Arc<LivePort>) -> Looked {
        let moment = job.moment;
        let port: Arc<dyn Port> = live.clone();
        let mut inside = self.inside(job, port.clone(), serde_json::from_str(&job.raw.body).unwrap_or_default());
        if job.raw.operation == Operation::Reconcile
            && let Err(error) = self.take_away_operation(&inside).await
        {
            return Looked::of(Err(Trouble::Call(error)));
        }
        let step = finalizer::next_step(&inside.snapshot.get_mut().raw);
        let object = match self.read(&job.raw) {
            Ok(object) => object,
            Err(problem) => {
                let message = format!("the object cannot be read: {problem}");
                return Looked::of(self.say(&inside, Reason::InvalidObject, &message, moment).await);
            }
        };
        if let Some(first) = job.superseded_by.take().filter(|_| step == Step::CreateOrUpdate) {
            let message = format!("only the oldest of this workspace counts, which is {first}; this one takes over when that is gone");
            return Looked::of(self.say(&inside, Reason::Superseded, &message, moment).await);
        }
        let config = std::mem::replace(&mut job.config, Err(String::new()));
        let Some(usable) = usable::<R>(job, &config, step) else {
            // What was decided stays; only where a decision is needed is its lack to be told.
            let holds = status::holds(&inside.snapshot.get_mut().raw, self.actor.conditions[0]);
            let message = config.err().unwrap_or_default();
            let result = if holds { Ok(Said::default()) } else { self.say(&inside, Reason::ConfigUnavailable, &message, moment).await };
            return Looked { starved: true, ..Looked::of(result) };
        };
        let footing = match job.external.take() {
            None => Ok(Footing::default()),
            Some(external) => {
                let raw = &inside.snapshot.get_mut().raw;
                self.stand(live, external, &job.key, job.path.as_deref(), raw, step).await
            }
        };
        let footing = match footing {
            Ok(footing) => footing,
            Err(Refusal::Nothing) => return Looked::of(Ok(Said::default())),
            Err(Refusal::Trouble(trouble)) => return Looked::of(Err(trouble)),
            Err(Refusal::Lack(lack)) => return Looked { starved: true, ..Looked::of(self.wait(&inside, &lack, moment).await) },
        };
        inside.safe = footing.safe();
        let external_url = config.as_ref().ok().or(job.last_config.as_ref()).and_then(|config| config.external_url.clone());
        let admission = match self.enter(job, &mut inside, step, external_url.as_deref()).await {
            Ok(admission) => admission,
            Err(Trouble::NoAccess(Refused { reason, message })) => {
                let said = self.say(&inside, reason, &message, moment).await;
                return Looked::of(said.map(|said| Said { recheck: Recheck::Backoff, ..said }));
            }
            Err(trouble) => return Looked::of(Err(trouble)),
        };
        let ctx = Self::context(job, usable, admission.kubeconfig.clone(), footing.client(&port), inside);
        let ends = Ends { live, footing: &footing, admission: &admission };
        let result = self.call(&ctx, &object, step, moment, ends).await;
        Looked { result, starved: ctx.inside.starved.load(Ordering::Relaxed), refresh: admission.refresh }
    }

    async fn take_away_operation(&self, inside: &Inside) -> Result<(), CallError> {
        let mut slim = inside.snapshot.lock().raw.clone();
        if let Some(annotations) = slim.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.remove(OPERATION_ANNOTATION);
        }
        self.send(inside, Verb::Replace(slim)).await
    }

    /// Gets a kubeconfig of the workspace where one is asked for. The finalizer comes first: whoever is let in is put out with the object.
    async fn enter(&self, job: &mut Job, inside: &mut Inside, step: Step, external: Option<&str>) -> Result<Admission, Trouble> {
        let place = Place {
            workspace: job.key.workspace.clone(),
            base: job.base.clone(),
            external: external.map(str::to_owned),
            claims: job.claims.clone(),
        };
        let mut admission =
            Admission { minter: job.minter.take(), place, others: std::mem::take(&mut job.others), kubeconfig: None, refresh: None };
        let (Some(account), Some(minter)) = (&self.account, &admission.minter) else { return Ok(admission) };
        let raw = &inside.snapshot.get_mut().raw;
        let missing = self.actor.finalizer.filter(|finalizer| !finalizer::carries(raw, finalizer));
        let held = self.actor.finalizer.is_some() && missing.is_none();
        let granted = match (step, held) {
            (Step::CreateOrUpdate, _) => {
                if let Some(finalizer) = missing {
                    let with = finalizer::with(raw, finalizer);
                    self.send(inside, Verb::Replace(with)).await.map_err(Trouble::Call)?;
                }
                Some(minter.grant(&admission.place, account, &job.key.name, job.moment).await.map_err(Trouble::NoAccess)?)
            }
            // Without a finalizer nothing was begun.
            (Step::Delete, true) => minter.grant(&admission.place, account, &job.key.name, job.moment).await.ok(),
            (Step::Delete, false) => None,
        };
        if let Some(granted) = granted {
            admission.refresh = Some(granted.refresh);
            admission.kubeconfig = Some(granted.kubeconfig);
        }
        Ok(admission)
    }

    /// After the last deletion in a workspace nobody is let into it any more.
    pub(super) async fn leave(&self, admission: &Admission, object: &R::Object) -> Result<(), Trouble> {
        let Admission { minter: Some(minter), place, others, .. } = admission else { return Ok(()) };
        let Some(account) = &self.account else { return Ok(()) };
        minter.leave(place, account, &object.object_name(), others).await.map_err(Trouble::NoAccess)
    }
}

/// What a call is made with: the configuration in force; a deletion does with the last one, and with the default where there was none.
fn usable<R: Reconciler>(job: &Job, config: &Result<AnyConfig, String>, step: Step) -> Option<Arc<R::Config>> {
    let of = |config: &AnyConfig| config.value.clone().downcast::<R::Config>().ok();
    let known = config.as_ref().ok().and_then(of);
    let last = || job.last_config.as_ref().and_then(of).unwrap_or_default();
    known.or_else(|| (step == Step::Delete).then(last))
}
