//! Writing to workspaces themselves, past the virtual workspace, where that is allowed: it costs kcp half as much.
//!
//! Who allows it is the tenant (`kcm bind --direct-writes`) and the export's maximal permission policy (`kcm init --direct-writes`). A workspace that
//! refuses is written to through the virtual workspace, which allows what the binding does, and is asked again after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use tracing::{debug, info};

use crate::api::names::{LogicalCluster, ObjectName};
use crate::reconciler::{Failure, Verb};

use super::rest;

/// For how long a workspace that refused is left alone: a tenant who lets us in sees it work within that time, and one who never does costs a
/// request in that time.
const PAUSE: Duration = Duration::from_mins(10);
/// The same of one that was not reached: so that the next attempt goes the other way, and an outage of everything is over soon.
const DETOUR: Duration = Duration::from_secs(30);

/// Which workspaces are written to directly: all, but for those that refused lately. One entry for each of those that is bound.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The host behind which every workspace is at `/clusters/<logical cluster>`.
    host: String,
    /// Until when.
    refused: Mutex<BTreeMap<LogicalCluster, Duration>>,
}

impl Direct {
    /// Behind the host of a kubeconfig's server.
    pub(crate) fn new(server: &str) -> Self {
        Self { host: rest::host(server).to_owned(), refused: Mutex::default() }
    }

    /// The base URL of a workspace itself for a write; `None` for a read, and while the workspace is left alone.
    pub(crate) fn base(&self, workspace: &LogicalCluster, verb: &Verb, now: Duration) -> Option<String> {
        let waits = self.refused.lock().get(workspace).is_some_and(|until| now < *until);
        (!matches!(verb, Verb::Get) && !waits).then(|| rest::scoped(&self.host, Some(workspace)))
    }

    /// Leaves a workspace alone for a short while: it was not reached.
    pub(crate) fn miss(&self, workspace: &LogicalCluster, now: Duration) {
        let mut refused = self.refused.lock();
        let until = refused.entry(workspace.clone()).or_default();
        *until = (now + DETOUR).max(*until);
    }

    /// Leaves a workspace alone for a while: it refused.
    pub(crate) fn leave(&self, workspace: &LogicalCluster, now: Duration, why: &str) {
        // Ten thousand workspaces that never let us in are told once each.
        if self.refused.lock().insert(workspace.clone(), now + PAUSE).is_none() {
            info!(%workspace, why, "the workspace cannot be written to directly; its virtual workspace is used");
        } else {
            debug!(%workspace, why, "the workspace still cannot be written to directly");
        }
    }

    /// Forgets a workspace that has unbound.
    pub(crate) fn forget(&self, workspace: &LogicalCluster) {
        self.refused.lock().remove(workspace);
    }
}

/// Why an answer is no word on the write itself, so that the virtual workspace is to be asked: who we are may not come in or not do that, or the
/// kind is not served there. In all of these nothing was done.
pub(crate) fn refusal(name: &ObjectName, verb: &Verb, status: StatusCode, body: &[u8]) -> Option<Failure> {
    // Whoever asked reads the object of a success; twice would be once too often.
    if status.is_success() {
        return None;
    }
    let failure = rest::answer(name, verb, status, body).err()?;
    matches!(failure, Failure::Unauthorized | Failure::Forbidden(_) | Failure::Server(404, _)).then_some(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_that_refused_is_asked_again_after_ten_minutes_and_others_at_once() {
        let (direct, at) = (Direct::new("https://kcp:6443/clusters/root:provider"), Duration::from_secs);
        let (write, closed, open) = (Verb::Delete { uid: "u".into() }, LogicalCluster::new("closed"), LogicalCluster::new("open"));
        assert_eq!(direct.base(&closed, &write, at(0)).as_deref(), Some("https://kcp:6443/clusters/closed"));
        direct.leave(&closed, at(0), "why");
        assert_eq!(direct.base(&closed, &write, at(599)), None);
        assert!(direct.base(&open, &write, at(599)).is_some() && direct.base(&closed, &write, at(600)).is_some());
        direct.leave(&closed, at(600), "why");
        assert_eq!(direct.base(&closed, &write, at(700)), None);
        direct.miss(&closed, at(701));
        assert_eq!(direct.base(&closed, &write, at(1_000)), None, "a refusal counts for its whole time");
        direct.miss(&open, at(701));
        assert!(direct.base(&open, &write, at(730)).is_none() && direct.base(&open, &write, at(731)).is_some());
        direct.forget(&closed);
        assert!(direct.base(&closed, &write, at(700)).is_some(), "it may bind again");
        assert_eq!(direct.base(&open, &Verb::Get, at(800)), None, "what is read decides about ends, and is read where the caches read");
    }

    #[test]
    fn only_what_was_surely_not_done_is_done_another_way() {
        let (name, create) = (ObjectName::namespaced("default", "demo"), Verb::Create(serde_json::json!({})));
        let refused = |status: u16, body: &str| refusal(&name, &create, StatusCode::from_u16(status).unwrap(), body.as_bytes()).is_some();
        assert!(refused(401, "") && refused(403, "") && refused(404, "404 page not found"));
        let named = r#"{"kind":"Status","reason":"NotFound","details":{"name":"demo"},"code":404}"#;
        for (status, body) in [(404, named), (409, ""), (422, ""), (429, ""), (500, ""), (504, ""), (201, "{}")] {
            assert!(!refused(status, body), "{status}");
        }
    }
}
