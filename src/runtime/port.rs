//! The one writer: every request of a reconciler goes out here, bound to one workspace behind one shard.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{Answer, Call, CallError, Failure, Port, Target, Verb, describe};

use super::core::Event;
use super::direct;
use super::external::{Lack, Member};
use super::queue::Work;
use super::rest;
use super::shell::Outside;
use super::transport::{Reply, Transport};
use super::workload::{Connection, Door};

/// From the first byte of a request to the last of its answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// What a write left on the server, for the cache to catch up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) kind: KindRef,
    pub(crate) name: ObjectName,
    pub(crate) uid: String,
    /// The new resourceVersion; `None` when the object is gone.
    pub(crate) version: Option<u64>,
    /// Whether it was deleted, though it may be there until others let go of it.
    pub(crate) deleted: bool,
}

/// A write of ours that was refused since the object is in a later state, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) kind: KindRef,
    pub(crate) name: ObjectName,
    /// The incarnation that was meant.
    pub(crate) uid: String,
    /// The state that was meant, where it was.
    pub(crate) version: Option<u64>,
}

/// Sends the calls of one reconcile; a value made for it and dropped with it.
#[derive(Default)]
pub(crate) struct LivePort {
    way: Option<Way>,
    written: Mutex<Vec<Written>>,
    refused: Mutex<Vec<Refused>>,
    /// The workload cluster that this call has reached.
    workload: Mutex<Option<Arc<Connection>>>,
}

struct Way {
    /// The call's own name, and where its writes are told of.
    work: Work,
    events: mpsc::Sender<Event>,
    outside: Outside,
    workspace_base: String,
}

impl Way {
    async fn ask(&self, base: &str, kind: KindRef, name: &ObjectName) -> Result<Answer, Failure> {
        let reply = self.send(&self.outside.transport, base, kind, name, &Verb::Get).await.map_err(Failure::Transport)?;
        rest::answer(name, &Verb::Get, reply.status, &reply.body)
    }

    async fn send(&self, to: &Transport, base: &str, kind: KindRef, name: &ObjectName, verb: &Verb) -> Result<Reply, String> {
        self.outside.metrics.request(verb.word(), to.send(&rest::ask(base, kind, name, verb), DEADLINE).await)
    }

    /// Sends to the call's workspace: a write to the workspace itself where that is wanted and allowed, and everything else behind the virtual
    /// workspace. Nothing is sent twice unless it was refused.
    async fn send_home(&self, Call { kind, name, verb, .. }: &Call) -> Result<Reply, String> {
        let Outside { transport, clock, direct, metrics, .. } = &self.outside;
        let (workspace, virtually) = (&self.work.key.workspace, self.workspace_base.as_str());
        let way = direct.as_ref().and_then(|direct| Some((direct, direct.base(workspace, verb, clock.now())?)));
        let Some((direct, base)) = way else { return self.send(transport, virtually, *kind, name, verb).await };
        let reply = match self.send(transport, &base, *kind, name, verb).await {
            Ok(reply) => reply,
            Err(problem) => {
                metrics.direct("failed");
                direct.miss(workspace, clock.now());
                return Err(problem);
            }
        };
        let Some(refusal) = direct::refusal(name, verb, reply.status, &reply.body) else {
            metrics.direct("sent");
            return Ok(reply);
        };
        metrics.direct("refused");
        let reply = self.send(transport, virtually, *kind, name, verb).await?;
        // What is refused both ways is not refused for the way it took.
        if direct::refusal(name, verb, reply.status, &reply.body).is_none() {
            direct.leave(workspace, clock.now(), &refusal.to_string());
        }
        Ok(reply)
    }
}

impl LivePort {
    pub(crate) fn new(outside: Outside, endpoint: &str, work: Work, events: mpsc::Sender<Event>) -> Self {
        let workspace_base = rest::scoped(endpoint, Some(&work.key.workspace));
        let way = Way { work, events, outside, workspace_base };
        Self { way: Some(way), written: Mutex::default(), refused: Mutex::default(), workload: Mutex::default() }
    }

    /// Opens the way to the workload cluster that this call is to use.
    pub(crate) async fn reach(&self, namespace: &str, member: &Member) -> Result<Arc<Connection>, Lack> {
        let Some(way) = &self.way else { return Err(Lack::pending("there is no way to a server".into())) };
        let Outside { transport, metrics, provider_base: base, workloads, .. } = &way.outside;
        let connection = workloads.connect(&Door { transport, metrics, base, namespace }, member).await?;
        *self.workload.lock() = Some(connection.clone());
        Ok(connection)
    }

    /// Asks for one object of the call's workspace behind an endpoint, past every cache.
    pub(crate) async fn look(&self, endpoint: &str, kind: KindRef, name: &ObjectName) -> Result<Answer, Failure> {
        let Some(way) = &self.way else { return Err(Failure::Transport("there is no way to a server".into())) };
        way.ask(&rest::scoped(endpoint, Some(&way.work.key.workspace)), kind, name).await
    }

    /// The same in the provider workspace.
    pub(crate) async fn look_near(&self, kind: KindRef, name: &ObjectName) -> Result<Answer, Failure> {
        let Some(way) = &self.way else { return Err(Failure::Transport("there is no way to a server".into())) };
        way.ask(&way.outside.provider_base, kind, name).await
    }

    /// Tells the heart something.
    pub(crate) async fn tell(&self, event: Event) {
        if let Some(way) = &self.way {
            // Nobody listens any more when the process stops.
            let _ = way.events.send(event).await;
        }
    }

    /// The writes that went through, in their order; empties the list.
    pub(crate) fn written(&self) -> Vec<Written> {
        std::mem::take(&mut self.written.lock())
    }

    /// The writes that were refused since their objects are not as they were read; empties the list.
    pub(crate) fn refused(&self) -> Vec<Refused> {
        std::mem::take(&mut self.refused.lock())
    }

    /// Remembers a write and tells the heart, which has to know of it before anything that follows from it can be seen.
    async fn remember(&self, way: &Way, call: &Call, answer: &Answer) {
        if call.target != Target::Workspace || call.verb == Verb::Get {
            return;
        }
        let (uid, version) = match answer {
            Answer::Object(object) => {
                let text = |path| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
                // With its last finalizer an object is gone, although the answer shows it once more, under the version before.
                let is_gone = !text("/metadata/deletionTimestamp").is_empty()
                    && object.pointer("/metadata/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty);
                (text("/metadata/uid").to_owned(), text("/metadata/resourceVersion").parse().ok().filter(|_| !is_gone))
            }
            Answer::Gone => match &call.verb {
                Verb::Delete { uid } => (uid.clone(), None),
                _ => return,
            },
        };
        let written = Written { kind: call.kind, name: call.name.clone(), uid, version, deleted: matches!(call.verb, Verb::Delete { .. }) };
        self.written.lock().push(written.clone());
        // Nobody listens any more when the process stops.
        let _ = way.events.send(Event::Wrote { work: way.work.clone(), written }).await;
    }
}

/// What a failure says of the object that was to be written: it is no longer as it was read.
fn refusal(call: &Call, failure: &Failure) -> Option<Refused> {
    if call.target != Target::Workspace || !matches!(failure, Failure::Conflict(_) | Failure::NotFound) {
        return None;
    }
    let (uid, version) = match &call.verb {
        Verb::Get | Verb::Create(_) => return None,
        Verb::Replace(body) | Verb::ApplyStatus { body, .. } => {
            let text = |path| body.pointer(path).and_then(Value::as_str);
            (text("/metadata/uid")?.to_owned(), text("/metadata/resourceVersion").and_then(|version| version.parse().ok()))
        }
        Verb::Delete { uid } => (uid.clone(), None),
    };
    Some(Refused { kind: call.kind, name: call.name.clone(), uid, version })
}

#[async_trait]
impl Port for LivePort {
    async fn call(&self, call: Call) -> Result<Answer, CallError> {
        let refused = |failure| CallError::new(format!("{} {}", call.verb.word(), call.name), failure);
        let Some(way) = &self.way else { return Err(refused(Failure::Transport("there is no way to a server".into()))) };
        let workload = self.workload.lock().clone();
        let place = match (call.target, &workload) {
            (Target::Workspace, _) => way.work.key.workspace.as_str(),
            (Target::Platform, _) => "the provider workspace",
            (Target::Workload, Some(reached)) => &*reached.place,
            (Target::Workload, None) => return Err(refused(Failure::Transport("there is no workload cluster".into()))),
        };
        let failed = |failure| CallError::new(format!("{} {}", call.verb.word(), describe(call.kind, place, &call.name)), failure);
        let reply = match &workload {
            Some(reached) if call.target == Target::Workload => {
                way.send(&reached.transport, reached.transport.server(), call.kind, &call.name, &call.verb).await
            }
            _ if call.target == Target::Workspace => way.send_home(&call).await,
            _ => way.send(&way.outside.transport, &way.outside.provider_base, call.kind, &call.name, &call.verb).await,
        };
        if reply.is_err() && matches!(call.verb, Verb::Delete { .. }) && mutated(Mutant::LostIsDone) {
            return Ok(Answer::Gone);
        }
        let reply = reply.map_err(|problem| failed(Failure::Transport(problem)))?;
        if reply.status == StatusCode::UNAUTHORIZED
            && let (Target::Workload, Some(reached)) = (call.target, &workload)
        {
            way.outside.workloads.distrust(reached);
        }
        let mut answer = match rest::answer(&call.name, &call.verb, reply.status, &reply.body) {
            Ok(answer) => answer,
            Err(failure) => {
                self.refused.lock().extend(refusal(&call, &failure));
                return Err(failed(failure));
            }
        };
        if let Answer::Object(object) = &mut answer
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("managedFields");
        }
        self.remember(way, &call, &answer).await;
        Ok(answer)
    }
}
