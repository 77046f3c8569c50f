//! One reconciler in its place: its types are hidden behind [`Served`], its calls are guarded, and what it says is written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tracing::{error, info};

use crate::api::condition::ConditionStatus;
use crate::api::config::FieldError;
use crate::api::meta::{Kind, KindRef};
use crate::api::names::ObjectName;
use crate::api::reason::Reason;
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{
    Actor, Answer, Call, CallError, ClusterContext, Context, Declared, Deletion, Event, External, Inputs, Inside, Kubeconfig, Mode,
    PlatformClient, PlatformInput, Port, ProviderConfig, Recheck, ReconcileError, Reconciler, Report, ReportedCondition, Snapshot,
    StatusFields, Target, TenantIdentity, Verb, WorkloadClient, Workspace, WorkspaceClient,
};

use super::access::{Account, Refused};
use super::clock::Moment;
use super::events::Subject;
use super::external::Lack;
use super::fence::{self, Broken};
use super::finalizer::{self, Step};
use super::port::LivePort;
use super::raw::{Operation, Raw};
use super::served::{AnyConfig, Concerned, Ended, Job, NamesSpec, Served, Subscription, ViewSpec};
use super::status;
use look::{Admission, Looked};

mod external;
mod orphan;
mod vault;

use external::Footing;

/// How long the reconciler's own part of a call may take. It is dropped then wherever it waits, in the middle of a request too; the status
/// write that may follow a call in time has the deadline of one request more.
const DEADLINE: Duration = Duration::from_mins(1);

/// A reconciler in its place.
pub(crate) struct Seat<R: Reconciler> {
    reconciler: R,
    declared: Declared<R::Object>,
    actor: Actor,
    /// Who kubeconfigs of workspaces are for, where they are asked for.
    account: Option<Account>,
}

impl<R: Reconciler> Seat<R> {
    pub(crate) fn new(build: impl FnOnce(&mut Inputs<R::Object>) -> R) -> Self {
        let mut inputs = Inputs::new();
        let reconciler = build(&mut inputs);
        let actor = reconciler.actor();
        let mut declared = inputs.declared;
        let account = declared.access.take().map(|rights| Account::of(actor.name, rights));
        Self { reconciler, declared, actor, account }
    }

    fn context(
        job: &mut Job,
        config: Arc<R::Config>,
        kubeconfig: Option<Kubeconfig>,
        workload: Option<WorkloadClient>,
        inside: Inside,
    ) -> Context<R::Config> {
        let (logical_cluster, port) = (job.key.workspace.clone(), inside.port.clone());
        Context {
            identity: TenantIdentity::of(&logical_cluster),
            mode: Mode::Kcp,
            config,
            now: job.moment.wall,
            clusters: ClusterContext {
                control_plane: WorkspaceClient::new(port.clone(), &logical_cluster).with_kubeconfig(kubeconfig),
                workload,
                platform: PlatformClient::new(port.clone()),
            },
            workspace: Workspace { logical_cluster, path: job.path.take() },
            inside,
        }
    }

    fn inside(&self, job: &mut Job, port: Arc<dyn Port>, raw: Value) -> Inside {
        Inside {
            port,
            actor: self.actor,
            seen: std::mem::take(&mut job.seen),
            starved: AtomicBool::new(false),
            snapshot: Mutex::new(Snapshot { raw }),
            safe: None,
        }
    }

    /// Calls the reconciler and writes what it says. What it no longer needs after its last word is given back before the finalizer.
    async fn call(
        &self,
        ctx: &Context<R::Config>,
        object: &R::Object,
        step: Step,
        moment: Moment,
        ends: Ends<'_>,
    ) -> Result<Said, Trouble> {
        let verdict = match step {
            Step::CreateOrUpdate => Some(self.guarded(async { self.reconciler.create_or_update(ctx, object).await }).await?),
            // It has been said before, and what it needed may be gone by now.
            Step::Delete if ends.footing.has_ended() => None,
            Step::Delete => match self.guarded(async { self.reconciler.delete(ctx, object).await }).await? {
                Deletion::Done => None,
                Deletion::Pending(report) => Some(report),
            },
        };
        if let Some(report) = verdict {
            return self.publish(ctx, report, moment).await;
        }
        let Ends { live, footing, admission } = ends;
        footing.finish(live).await.map_err(Trouble::Call)?;
        self.leave(admission, object).await?;
        self.release(ctx).await.map(|()| Said::default()).map_err(Trouble::Call)
    }

    async fn guarded<T>(&self, call: impl Future<Output = Result<T, R::Error>>) -> Result<T, Trouble> {
        let deadline = if mutated(Mutant::NoCallDeadline) { Duration::from_hours(24) } else { DEADLINE };
        // What the error says of itself is the provider's code as well.
        let told = |error: R::Error| Trouble::Error { reason: error.reason(), conflict: is_conflict(&error), text: error.to_string() };
        fence::in_time(deadline, async { call.await.map_err(told) }).await.map_err(Trouble::from)?
    }

    async fn publish(&self, ctx: &Context<R::Config>, report: Report<R::Status>, moment: Moment) -> Result<Said, Trouble> {
        let Report { conditions, status, recheck, events } = report;
        status::check(&self.actor, &conditions).map_err(Trouble::Misspoken)?;
        let fields = fields(status.as_ref()).map_err(Trouble::Misspoken)?;
        self.write_status(&ctx.inside, &conditions, &fields, moment).await.map_err(Trouble::Call)?;
        Ok(Said { recheck, events: tellable(&ctx.inside, events) })
    }

    async fn write_status(
        &self,
        inside: &Inside,
        conditions: &[ReportedCondition],
        fields: &Value,
        moment: Moment,
    ) -> Result<(), CallError> {
        let body = {
            let snapshot = inside.snapshot.lock();
            status::body(R::Object::REF, &snapshot.raw, &self.actor, conditions, fields, &moment.stamp())
        };
        if let Some(body) = body {
            self.send(inside, Verb::ApplyStatus { manager: self.actor.name, body }).await?;
        }
        Ok(())
    }

    /// Drops the actor's finalizer, where the object carries it.
    async fn release(&self, ctx: &Context<R::Config>) -> Result<(), CallError> {
        let Some(finalizer) = self.actor.finalizer else { return Ok(()) };
        let slim = finalizer::without(&ctx.inside.snapshot.lock().raw, finalizer);
        if let Some(slim) = slim {
            self.send(&ctx.inside, Verb::Replace(slim)).await?;
        }
        Ok(())
    }

    async fn send(&self, inside: &Inside, verb: Verb) -> Result<(), CallError> {
        let name = object_name(&inside.snapshot.lock().raw);
        match inside.port.call(Call { target: Target::Workspace, kind: R::Object::REF, name, verb }).await? {
            Answer::Object(raw) => inside.snapshot.lock().raw = raw,
            Answer::Gone => {}
        }
        Ok(())
    }

    /// Says what an object waits for that cannot have what its external work needs. What is as it should be stays so for what may pass.
    async fn wait(&self, inside: &Inside, lack: &Lack, moment: Moment) -> Result<Said, Trouble> {
        let controller = self.actor.name;
        let what = &lack.what;
        info!(controller, reason = lack.reason.as_str(), %what, "external work waits");
        let holds = lack.passing && status::holds(&inside.snapshot.lock().raw, self.actor.conditions[0]);
        let said = if holds { Said::default() } else { self.say(inside, lack.reason, what, moment).await? };
        Ok(Said { recheck: Recheck::Backoff, ..said })
    }

    /// What the runtime says itself when it does not call the reconciler: in the actor's first condition, the others become Unknown, and the
    /// status fields what the reconciler has for this case. The tenant gets an event of it, once.
    async fn say(&self, inside: &Inside, reason: Reason, message: &str, moment: Moment) -> Result<Said, Trouble> {
        let conditions: Vec<_> = self
            .actor
            .conditions
            .iter()
            .enumerate()
            .map(|(at, type_)| {
                if at == 0 {
                    return ReportedCondition::new(type_, false, reason, message);
                }
                let because = format!("see {}", self.actor.conditions[0]);
                ReportedCondition::new(type_, ConditionStatus::Unknown, Reason::NotEvaluated, because)
            })
            .collect();
        let generation = inside.snapshot.lock().raw.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        let fields = self.unevaluated(generation);
        let is_news = status::is_news(&inside.snapshot.lock().raw, &conditions[0]);
        self.write_status(inside, &conditions, &fields, moment).await.map_err(Trouble::Call)?;
        let events = is_news.then(|| Event::warning(reason, message)).into_iter().collect();
        Ok(Said { recheck: Recheck::OnChange, events: tellable(inside, events) })
    }
}

/// What a call that ended in a report leaves to be done.
struct Said {
    recheck: Recheck,
    events: Vec<Event>,
}

impl Default for Said {
    fn default() -> Self {
        Self { recheck: Recheck::OnChange, events: Vec::new() }
    }
}

/// The events that are told: none of an object that is on its way out, whose events would outlive it.
fn tellable(inside: &Inside, events: Vec<Event>) -> Vec<Event> {
    if !events.is_empty() && finalizer::next_step(&inside.snapshot.lock().raw) == Step::Delete { Vec::new() } else { events }
}

/// With what a call ends its external work.
#[derive(Clone, Copy)]
struct Ends<'a> {
    live: &'a LivePort,
    footing: &'a Footing,
    admission: &'a Admission,
}

/// Why a call did not end in a report.
enum Trouble {
    Error {
        reason: Reason,
        conflict: bool,
        text: String,
    },
    Call(CallError),
    /// There is no access to the workspace, where that is asked for.
    NoAccess(Refused),
    /// The reconciler said what cannot be written; what.
    Misspoken(String),
    /// In which words, for the operator alone.
    Panicked(String),
    TooSlow,
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Panicked(words) => Self::Panicked(words),
            Broken::TooSlow => Self::TooSlow,
        }
    }
}

/// The status fields as they go over the wire; null where there are none.
fn fields<S: StatusFields>(status: Option<&S>) -> Result<Value, String> {
    let misspoken = |problem: &str| format!("the status {} {problem}", std::any::type_name::<S>());
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) if fields.contains_key("conditions") => {
            Err(misspoken("has a field `conditions`, which are reported apart"))
        }
        Ok(fields @ (Value::Object(_) | Value::Null)) => Ok(fields),
        Ok(_) => Err(misspoken("is no JSON object")),
        Err(error) => Err(misspoken(&format!("cannot be serialised: {error}"))),
    }
}

fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<CallError>().is_some_and(CallError::is_conflict) {
            return true;
        }
        next = error.source();
    }
    false
}

fn object_name(raw: &Value) -> ObjectName {
    let text = |path| raw.pointer(path).and_then(Value::as_str).unwrap_or_default();
    ObjectName::namespaced(text("/metadata/namespace"), text("/metadata/name"))
}

#[async_trait]
impl<R: Reconciler> Served for Seat<R> {
    fn actor(&self) -> Actor {
        self.actor
    }

    fn kind(&self) -> KindRef {
        R::Object::REF
    }

    fn children(&self) -> &[KindRef] {
        &self.declared.children
    }

    fn names(&self) -> Vec<NamesSpec> {
        self.declared.names.iter().map(|input| NamesSpec { kind: input.kind, raised: input.raised }).collect()
    }

    fn views(&self) -> Vec<ViewSpec> {
        let spec = |input: &PlatformInput<R::Object>| ViewSpec {
            id: input.view,
            kinds: input.kinds.clone(),
            fold: input.fold.clone(),
            raised: input.raised.clone(),
        };
        self.declared.platform.iter().map(spec).collect()
    }

    fn wants_access(&self) -> bool {
        self.account.is_some()
    }

    fn is_single(&self) -> bool {
        self.declared.single
    }

    fn external(&self) -> External {
        self.declared.external
    }

    fn secures(&self) -> bool {
        self.declared.secured
    }

    fn config_kind(&self) -> Option<KindRef> {
        R::Config::KIND
    }

    fn read_config(&self, raw: Option<&Raw>) -> Result<Option<AnyConfig>, Vec<FieldError>> {
        fence::called(|| inputs::configuration::<R::Config>(raw)).unwrap_or_else(|panic| {
            error!(controller = self.actor.name, panic, "the provider panicked over its configuration, which is refused");
            Err(vec![FieldError::new("spec", "the provider cannot check this, for its own code failed over it; its log says more")])
        })
    }

    fn config_change(&self, before: &AnyConfig, after: &AnyConfig) -> Concerned {
        match &self.declared.config {
            Some(input) => Concerned::of(self.actor.name, "the configuration", || (input.raised)(&*before.value, &*after.value)),
            None => Concerned::Everybody,
        }
    }

    fn topics(&self, raw: &Raw) -> Option<BTreeSet<Subscription>> {
        self.concerns(raw)
    }

    async fn hear(&self, workspace: &Workspace, bound: bool) {
        self.told(workspace, bound).await;
    }

    async fn run(&self, mut job: Job) -> Ended {
        if let Some((external, probe)) = job.external.as_mut().and_then(|external| Some((external.clone(), external.orphan.take()?))) {
            return self.clean_up(job, external, &probe).await;
        }
        let live = Arc::new(std::mem::take(&mut job.port));
        let key = job.key.clone();
        let mut looked = match job.raw.operation {
            Operation::Ignore => Looked::of(Ok(Said::default())),
            // Its reconciler's calls have fences of their own; this one is for whatever else its types do.
            Operation::None | Operation::Reconcile => {
                fence::awaited(self.look(&mut job, &live)).await.unwrap_or_else(|panic| Looked::of(Err(Trouble::Panicked(panic))))
            }
        };
        for event in looked.result.as_mut().map(|said| std::mem::take(&mut said.events)).unwrap_or_default() {
            let subject = Subject { kind: R::Object::REF, name: key.name.clone(), uid: job.raw.uid.to_string() };
            job.recorder.record(&key.workspace, self.actor.name, subject, event);
        }
        self.ended(&key, &live, looked)
    }
}

mod ended;
mod inputs;
mod look;
#[cfg(test)]
mod tests;
mod told;
