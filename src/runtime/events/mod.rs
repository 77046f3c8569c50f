//! Kubernetes Events for tenants: what happened to their objects, written beside them in their own workspace, through the export's claim.
//!
//! A call hands its events to the [`Recorder`] and goes on; nothing that happens to them comes back to it. `ledger` decides (what is counted,
//! what is sent, what is given up), `letter` knows the words on the wire, `shell` sends.

mod ledger;
mod letter;
mod shell;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::api::names::LogicalCluster;
use crate::reconciler::Event;

use super::telemetry::Metrics;

pub(super) use letter::Subject;
pub(super) use shell::start;

/// Events that wait to be taken up at most: a second of the busiest manager. They are told in passing, so that what is more is dropped, and counted.
const QUEUE: usize = 1024;

/// One event of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The virtual workspace behind which the object's workspace is, as the endpoint slice has it.
    endpoint: Arc<str>,
    workspace: LogicalCluster,
    actor: &'static str,
    subject: Subject,
    event: Event,
}

/// What the one task that sends is told.
enum Slip {
    /// Of an event.
    Note(Box<Note>),
    /// That a workspace has unbound.
    Left(LogicalCluster),
}

/// Where calls leave their events. Cheap to clone; the one of `Default` drops them.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    slips: Option<mpsc::Sender<Slip>>,
    metrics: Arc<Metrics>,
    endpoint: Arc<str>,
}

impl Recorder {
    /// The same for workspaces behind this endpoint.
    pub(super) fn behind(&self, endpoint: Arc<str>) -> Self {
        Self { endpoint, ..self.clone() }
    }

    /// Takes an event, and never makes anybody wait for it.
    pub(super) fn record(&self, workspace: &LogicalCluster, actor: &'static str, subject: Subject, event: Event) {
        let note = Box::new(Note { endpoint: self.endpoint.clone(), workspace: workspace.clone(), actor, subject, event });
        if self.slips.as_ref().is_none_or(|slips| slips.try_send(Slip::Note(note)).is_err()) {
            self.metrics.told("dropped");
        }
    }

    /// Forgets a workspace that has unbound. Where so much waits that this finds no place, its events go as the oldest ones do.
    pub(super) fn forget(&self, workspace: LogicalCluster) {
        if let Some(slips) = &self.slips {
            let _ = slips.try_send(Slip::Left(workspace));
        }
    }
}
