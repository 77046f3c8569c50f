//! What a reconciler answers: conditions and status fields, and when to look again.
//!
//! Pure: values that the runtime turns into one status write, or into none where nothing changed.

use std::time::Duration;

use serde::Serialize;

use crate::api::condition::{self, Condition, ConditionStatus};
use crate::api::reason::Reason;

use super::event::Event;

/// Bytes of a message at most, of a condition's and of an event's.
const MAX_MESSAGE: usize = 1024;

/// The message, at most 1 KiB of it, cut between characters.
pub(crate) fn cut(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// The status fields that one reconciler alone owns: anything that serialises to a JSON object; `()` stands for none.
pub trait StatusFields: Serialize + Send + Sync + 'static {}

impl<S: Serialize + Send + Sync + 'static> StatusFields for S {}

/// One condition as a reconciler reports it; the runtime adds generation and transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedCondition {
    /// One of the actor's own condition types.
    pub type_: &'static str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, for people. The runtime cuts it at 1 KiB.
    pub message: String,
}

impl ReportedCondition {
    /// A condition with all its parts.
    pub fn new(type_: &'static str, status: impl Into<ConditionStatus>, reason: Reason, message: impl Into<String>) -> Self {
        Self { type_, status: status.into(), reason, message: message.into() }
    }

    /// Whether an object that shows these conditions does not say this yet: another status, reason or message, or no such condition. That it is
    /// said of a newer generation is no news. What an event is worth telling of: see [`Report::with_event`].
    pub fn is_news_to(&self, shown: &[Condition]) -> bool {
        condition::find(shown, self.type_).is_none_or(|shown| {
            (shown.status, shown.reason.as_str(), shown.message.as_str()) != (self.status, self.reason.as_str(), cut(&self.message))
        })
    }
}

/// When an object is looked at again if nothing that it concerns changes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// Only when something changes (and at the poll interval, from the cache).
    OnChange,
    /// After this time at the latest, with the declared platform and names inputs listed afresh since now:
    /// one LIST per input and interval for all objects that wait, never one per object. Zero means now.
    After(Duration),
    /// Soon, and less and less often: something that should be there is not.
    Backoff,
}

/// What a reconciler says about an object after it has done its work.
///
/// It is written whole or not at all: a condition that is not the actor's, one that is reported twice, or a status that is no JSON object is
/// the reconciler's own mistake, which is logged and counted as `ReconcileFailed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report<S = ()> {
    pub(crate) conditions: Vec<ReportedCondition>,
    /// `None` leaves the fields as they are.
    pub(crate) status: Option<S>,
    pub(crate) recheck: Recheck,
    pub(crate) events: Vec<Event>,
}

impl<S: StatusFields> Report<S> {
    /// A report with these status fields and no condition yet; looked at again on change.
    pub const fn new(status: S) -> Self {
        Self { conditions: Vec::new(), status: Some(status), recheck: Recheck::OnChange, events: Vec::new() }
    }

    /// Leaves the status fields as they are, and without a condition added the status altogether: there is nothing new to say.
    pub const fn unchanged() -> Self {
        Self { conditions: Vec::new(), status: None, recheck: Recheck::OnChange, events: Vec::new() }
    }

    /// Adds a condition. Conditions of the actor that a report leaves out stay as they are.
    pub fn with(mut self, condition: ReportedCondition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Adds a Kubernetes Event about the object, which the tenant sees with `kubectl get events` and `kubectl describe`.
    ///
    /// It is told once everything else of the report is written, and only then: after a conflict the reconciler is called again and says it
    /// again. Say it when something happens ([`ReportedCondition::is_news_to`] knows), not at each look; what is said again all the same, by this
    /// actor about this object with this type and reason, is one Event that counts, and is patched once in five minutes at most.
    ///
    /// Telling fails nobody: a workspace whose claim on events was rejected misses them and nothing else, and so does an object that is being
    /// deleted.
    pub fn with_event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Says when to look again.
    pub fn recheck(mut self, recheck: Recheck) -> Self {
        self.recheck = recheck;
        self
    }

    /// The conditions reported, in order.
    pub fn conditions(&self) -> &[ReportedCondition] {
        &self.conditions
    }

    /// The events reported, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The status fields reported; `None` where they stay as they are.
    pub const fn status(&self) -> Option<&S> {
        self.status.as_ref()
    }

    /// When to look again.
    pub const fn next_look(&self) -> Recheck {
        self.recheck
    }
}

/// What a reconciler says about an object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Deletion<S = ()> {
    /// Nothing of ours is left: the runtime drops the actor's finalizer, where the object carries it. Nothing else drops it.
    Done,
    /// Something still is; the report says what.
    Pending(Report<S>),
}
