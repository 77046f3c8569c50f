//! The one door between the seam and whatever runs it: the runtime, or a test.

use async_trait::async_trait;
use serde_json::Value;

use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::api::reason::Reason;

use super::ReconcileError;

/// Which API server a call goes to; the port is already bound to one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The tenant's workspace, or its control plane in onboarding mode.
    Workspace,
    /// The provider workspace, or the platform cluster.
    Platform,
    /// The workload cluster of the object.
    Workload,
}

/// What is asked of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verb {
    /// Read it, past every cache.
    Get,
    /// Create it.
    Create(Value),
    /// Replace it whole; the body carries uid and resourceVersion.
    Replace(Value),
    /// Apply to its status, as this field manager.
    ApplyStatus { manager: &'static str, body: Value },
    /// Delete this incarnation.
    Delete { uid: String },
}

impl Verb {
    /// The word for errors and metrics.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create(_) => "create",
            Self::Replace(_) => "update",
            Self::ApplyStatus { .. } => "apply the status of",
            Self::Delete { .. } => "delete",
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) kind: KindRef,
    pub(crate) name: ObjectName,
    pub(crate) verb: Verb,
}

/// What the server made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The object as it is now; after a delete: it still has finalizers.
    Object(Value),
    /// Deleted at once: the server has it no longer.
    Gone,
}

/// Sends one call; dropping the future cancels the wait, not what the server may already have committed.
#[async_trait]
pub(crate) trait Port: Send + Sync {
    async fn call(&self, call: Call) -> Result<Answer, CallError>;
}

/// A call that did not succeed: what was attempted, on what, and what came back. Never holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {attempted}: {failure}")]
pub struct CallError {
    attempted: String,
    failure: Failure,
}

/// What came back instead of success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// 404: there is no such object, or its kind is not served.
    #[error("not found")]
    NotFound,
    /// 409: somebody else wrote first, or the uid is another one.
    #[error("conflict: {0}")]
    Conflict(String),
    /// 409 on a create: the name is taken.
    #[error("it already exists")]
    AlreadyExists,
    /// 403: the rule, claim or binding that would allow it is missing.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// 401: the credentials are not accepted (any more).
    #[error("the credentials were not accepted")]
    Unauthorized,
    /// 422, 400: the server refuses the object as it is.
    #[error("refused: {0}")]
    Invalid(String),
    /// 405: for one, a create in a workspace whose binding is being deleted.
    #[error("not allowed: {0}")]
    NotAllowed(String),
    /// 429: the server asks to wait.
    #[error("the server asks to wait")]
    Throttled,
    /// Any other status.
    #[error("the server answered {0}: {1}")]
    Server(u16, String),
    /// No answer.
    #[error("{0}")]
    Transport(String),
    /// The answer cannot be read.
    #[error("cannot read the answer: {0}")]
    Undecodable(String),
}

impl CallError {
    /// Joins what was attempted (`update projection 2hx7/default/demo`) and what came back.
    pub fn new(attempted: impl Into<String>, failure: Failure) -> Self {
        Self { attempted: attempted.into(), failure }
    }

    /// What came back.
    pub const fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Whether the object was not there.
    pub const fn is_not_found(&self) -> bool {
        matches!(self.failure, Failure::NotFound)
    }

    /// Whether somebody else was faster: the next look at the object decides anew.
    pub const fn is_conflict(&self) -> bool {
        matches!(self.failure, Failure::Conflict(_) | Failure::AlreadyExists)
    }
}

impl ReconcileError for CallError {
    fn reason(&self) -> Reason {
        match self.failure {
            Failure::Forbidden(_) | Failure::Unauthorized => Reason::AccessDenied,
            _ => Reason::ReconcileFailed,
        }
    }
}
