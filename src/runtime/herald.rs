//! Tells reconcilers which workspaces bind and unbind: beside all else, so that whoever is slow there keeps nobody waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::error;

use crate::api::names::LogicalCluster;
use crate::reconciler::Workspace;

use super::served::Served;

/// Tellings of one reconciler under way at once: after a start there is one for each workspace, and what they ask a provider's backend for is
/// asked by few at a time.
const AT_ONCE: usize = 8;
/// What waits for one workspace at most: its last change and the one before, so that one that left and came back is told so. Older ones say
/// nothing more.
const WORDS: usize = 2;

/// What one reconciler has still to be told: so much for each workspace that it is bounded by their number.
#[derive(Debug, Default)]
struct Pending {
    waiting: BTreeMap<LogicalCluster, VecDeque<(Workspace, bool)>>,
    /// Whose turn it is: each workspace once that waits and is not being told.
    turns: VecDeque<LogicalCluster>,
    busy: BTreeSet<LogicalCluster>,
}

impl Pending {
    fn add(&mut self, workspace: &Workspace, bound: bool) {
        let place = &workspace.logical_cluster;
        let words = self.waiting.entry(place.clone()).or_default();
        if words.is_empty() && !self.busy.contains(place) {
            self.turns.push_back(place.clone());
        }
        if words.back().is_none_or(|(_, last)| *last != bound) {
            words.push_back((workspace.clone(), bound));
        }
        if words.len() > WORDS {
            words.pop_front();
        }
    }

    fn next(&mut self) -> Option<(Workspace, bool)> {
        let place = self.turns.pop_front()?;
        let words = self.waiting.get_mut(&place)?;
        let word = words.pop_front();
        if words.is_empty() {
            self.waiting.remove(&place);
        }
        self.busy.insert(place);
        word
    }

    fn done(&mut self, place: &LogicalCluster) {
        self.busy.remove(place);
        if self.waiting.contains_key(place) {
            self.turns.push_back(place.clone());
        }
    }
}

#[derive(Default)]
struct Queue {
    pending: Mutex<Pending>,
    bell: Notify,
}

/// Takes what is to be told. Never waits.
pub(super) struct Herald(Vec<Arc<Queue>>);

impl Herald {
    /// One, and for each reconciler what tells it, to be run as a task; these never end by themselves.
    pub(super) fn new(actors: &[Arc<dyn Served>]) -> (Self, Vec<impl Future<Output = ()> + Send + 'static>) {
        let queues: Vec<Arc<Queue>> = actors.iter().map(|_| Arc::default()).collect();
        let tellers = actors.iter().cloned().zip(queues.iter().cloned()).map(|(actor, queue)| tell(actor, queue)).collect();
        (Self(queues), tellers)
    }

    /// Every reconciler is to hear that a workspace has bound, or has unbound.
    pub(super) fn tell(&self, workspace: &Workspace, bound: bool) {
        for queue in &self.0 {
            queue.pending.lock().add(workspace, bound);
            queue.bell.notify_one();
        }
    }
}

async fn tell(actor: Arc<dyn Served>, queue: Arc<Queue>) {
    let mut tellings = JoinSet::new();
    loop {
        while tellings.len() < AT_ONCE {
            let Some((workspace, bound)) = queue.pending.lock().next() else { break };
            let actor = actor.clone();
            tellings.spawn(async move {
                actor.hear(&workspace, bound).await;
                workspace.logical_cluster
            });
        }
        tokio::select! {
            biased;
            Some(told) = tellings.join_next() => match told {
                Ok(place) => queue.pending.lock().done(&place),
                Err(error) => error!(%error, "a telling ended outside its guard; that workspace is told nothing more"),
            },
            () = queue.bell.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Workspace {
        Workspace { logical_cluster: LogicalCluster::new(name), path: None }
    }

    fn told(pending: &mut Pending) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        while let Some((workspace, bound)) = pending.next() {
            all.push((workspace.to_string(), bound));
        }
        all
    }

    #[test]
    fn a_workspace_is_told_of_one_at_a_time_and_nobody_waits_for_another() {
        let mut pending = Pending::default();
        for (name, bound) in [("a", true), ("b", true), ("a", false)] {
            pending.add(&place(name), bound);
        }
        assert_eq!(told(&mut pending), [("a".into(), true), ("b".into(), true)]);
        pending.done(&LogicalCluster::new("a"));
        assert_eq!(told(&mut pending), [("a".into(), false)]);
    }

    #[test]
    fn what_came_and_went_often_is_told_its_last_two_changes_and_nothing_is_kept() {
        let mut pending = Pending::default();
        let workspace = place("a");
        for bound in [true, false, true, false, true, true] {
            pending.add(&workspace, bound);
        }
        for expected in [false, true] {
            assert_eq!(told(&mut pending), [("a".into(), expected)]);
            pending.done(&workspace.logical_cluster);
        }
        assert_eq!(told(&mut pending), []);
        assert!(pending.waiting.is_empty() && pending.turns.is_empty() && pending.busy.is_empty());
    }
}
