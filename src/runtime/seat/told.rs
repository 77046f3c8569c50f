//! What a reconciler is told beside its calls, under their guard.

use tracing::{error, warn};

use crate::reconciler::{Reconciler, Workspace};
use crate::runtime::fence::{self, Broken};

use super::{DEADLINE, Seat};

impl<R: Reconciler> Seat<R> {
    /// Tells it that a workspace has bound, or has unbound. A panic and a hang end here.
    pub(super) async fn told(&self, workspace: &Workspace, bound: bool) {
        let (controller, what) = (self.actor.name, if bound { "bound" } else { "unbound" });
        let telling = async { if bound { self.reconciler.bound(workspace).await } else { self.reconciler.unbound(workspace).await } };
        match fence::in_time(DEADLINE, telling).await {
            Ok(()) => {}
            Err(Broken::Panicked(panic)) => {
                error!(controller, %workspace, panic, "the reconciler panicked when it was told that a workspace has {what}; it is not told again");
            }
            Err(Broken::TooSlow) => {
                let seconds = DEADLINE.as_secs();
                warn!(controller, %workspace, "the reconciler took more than {seconds} s when it was told that a workspace has {what}; it is not told again");
            }
        }
    }
}
