//! Pure: which workspaces accept the disconnect guard, and whether anybody lives there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::names::LogicalCluster;
use crate::runtime::guard::policy::{self, Place, Places};
use crate::runtime::raw::Raw;

use super::Core;
use super::streams::{Role, ShardId};

/// The bindings that accept the guard, and whether each is being deleted.
#[derive(Debug, Default)]
pub(super) struct Guards {
    accepting: BTreeMap<(ShardId, LogicalCluster), BTreeMap<Arc<str>, bool>>,
}

impl Guards {
    /// Takes a binding as the roster shows it.
    pub(super) fn take(&mut self, shard: ShardId, workspace: &LogicalCluster, raw: &Raw) {
        match policy::accepts(&raw.body) {
            Some(going) => drop(self.accepting.entry((shard, workspace.clone())).or_default().insert(raw.name.name.clone(), going)),
            None => self.forget(shard, workspace, &raw.name.name),
        }
    }

    /// A binding is gone, or accepts no more.
    pub(super) fn forget(&mut self, shard: ShardId, workspace: &LogicalCluster, name: &str) {
        let at = (shard, workspace.clone());
        if let Some(bindings) = self.accepting.get_mut(&at) {
            bindings.remove(name);
            if bindings.is_empty() {
                self.accepting.remove(&at);
            }
        }
    }

    /// An endpoint is gone.
    pub(super) fn forget_shard(&mut self, shard: ShardId) {
        self.accepting.retain(|(of, _), _| *of != shard);
    }
}

impl Core {
    /// Every workspace that accepts the guard; none where nobody does, which costs nothing.
    pub(crate) fn places(&self) -> Places {
        let place = |((shard, workspace), bindings): (&(ShardId, LogicalCluster), &BTreeMap<Arc<str>, bool>)| {
            let lives = self.objects.any_in(workspace);
            // What was not listed completely yet may hold some: that nobody lives there is only known after it.
            let known =
                self.streams.open.values().all(|stream| !matches!(stream.role, Role::Objects(of, _) if of == *shard) || stream.synced);
            let live = if lives { Some(true) } else { known.then_some(false) };
            (workspace.clone(), Place { endpoint: self.shards.url(*shard), bindings: bindings.clone(), live })
        };
        self.guards.accepting.iter().map(place).collect()
    }
}
