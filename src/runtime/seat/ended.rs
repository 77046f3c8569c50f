//! What follows from a look: when the object is looked at again, and what the operator reads of it.

use tracing::{error, info, warn};

use crate::api::names::ObjectKey;
use crate::api::reason::Reason;
use crate::reconciler::{Recheck, ReconcileError, Reconciler};
use crate::runtime::access::Refused;
use crate::runtime::port::LivePort;
use crate::runtime::queue::Outcome;
use crate::runtime::served::Ended;

use super::look::Looked;
use super::{DEADLINE, Seat, Trouble};

impl<R: Reconciler> Seat<R> {
    pub(super) fn ended(&self, key: &ObjectKey, live: &LivePort, Looked { result, starved, refresh }: Looked) -> Ended {
        let controller = self.actor.name;
        let mut ended = Ended {
            outcome: Outcome::Settled,
            recheck: None,
            refresh,
            starved,
            written: live.written(),
            refused: live.refused(),
            failed: None,
        };
        let (reason, text) = match result.map(|said| said.recheck) {
            Ok(Recheck::OnChange) => return ended,
            Ok(Recheck::After(wait)) if wait.is_zero() => {
                ended.outcome = Outcome::After(wait);
                return ended;
            }
            Ok(Recheck::After(wait)) => {
                ended.recheck = Some(wait);
                return ended;
            }
            Ok(Recheck::Backoff) => {
                ended.outcome = Outcome::Backoff;
                return ended;
            }
            Err(Trouble::Error { conflict: true, text, .. }) => {
                info!(controller, %key, %text, "somebody else wrote first; looking again");
                (Reason::ReconcileFailed, None)
            }
            Err(Trouble::Call(error)) if error.is_conflict() => {
                info!(controller, %key, %error, "somebody else wrote first; looking again");
                (Reason::ReconcileFailed, None)
            }
            Err(Trouble::Error { reason, text, .. }) => (reason, Some(text)),
            Err(Trouble::Call(error)) => (error.reason(), Some(error.to_string())),
            Err(Trouble::NoAccess(Refused { reason, message })) => (reason, Some(message)),
            Err(Trouble::Misspoken(problem)) => (Reason::ReconcileFailed, Some(format!("nothing was written: {problem}"))),
            Err(Trouble::Panicked(panic)) => {
                error!(controller, %key, panic, "the reconciler panicked; only this object is affected");
                (Reason::ReconcileFailed, None)
            }
            Err(Trouble::TooSlow) => (Reason::ReconcileFailed, Some(format!("it took more than {} s", DEADLINE.as_secs()))),
        };
        if let Some(error) = text {
            warn!(controller, %key, reason = reason.as_str(), %error, "reconcile failed; it is tried again");
        }
        ended.outcome = Outcome::Backoff;
        ended.failed = Some(reason);
        ended
    }
}
