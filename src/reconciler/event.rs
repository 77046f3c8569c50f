//! What a reconciler tells a tenant in passing: a Kubernetes Event beside the object.
//!
//! Pure: values. A condition says how things are, and stays; an event says that something happened, is counted when it happens again, and is
//! forgotten by the server after an hour.

use crate::api::reason::Reason;

/// Whether an event is good to know, or asks for somebody to act: `type` of a Kubernetes Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Things go their way.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A Kubernetes Event about the object of the call, for its tenant to read: see [`Report::with_event`](super::Report::with_event).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub(crate) type_: EventType,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Event {
    /// Something that is good to know. The runtime cuts the message at 1 KiB.
    pub fn normal(reason: Reason, message: impl Into<String>) -> Self {
        Self { type_: EventType::Normal, reason, message: message.into() }
    }

    /// Something that somebody should look at. The runtime cuts the message at 1 KiB.
    pub fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self { type_: EventType::Warning, reason, message: message.into() }
    }

    /// Whether it asks for somebody to act.
    pub const fn type_(&self) -> EventType {
        self.type_
    }

    /// Why, in one word.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Why, for people; as it was given, however long.
    pub fn message(&self) -> &str {
        &self.message
    }
}
