//! Which kinds a workspace serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::World;
use crate::embedded::kinds::built_in;
use crate::embedded::served::Served;

impl World {
    /// A kind as a workspace serves it.
    pub(crate) fn kind(&self, workspace: &str, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        let key = (group.into(), version.into(), plural.into());
        if let Some(kind) = built_in().1.get(&key) {
            return Some(kind.clone());
        }
        let same = |kind: &&Arc<Served>| &*kind.names.group == group && &*kind.version == version && &*kind.names.plural == plural;
        self.workspaces.get(workspace)?.custom.iter().find(same).cloned()
    }

    /// Every kind of a workspace, in discovery's order: Kubernetes' own, kcp's, then the others by group.
    pub(crate) fn kinds(&self, workspace: &str) -> Vec<Arc<Served>> {
        let custom = self.workspaces.get(workspace).map(|workspace| workspace.custom.clone()).unwrap_or_default();
        built_in().0.iter().cloned().chain(custom).collect()
    }

    /// Changes what a workspace serves besides the built-in kinds.
    pub(crate) fn set_custom(&mut self, workspace: &str, change: impl FnOnce(Vec<Arc<Served>>) -> Vec<Arc<Served>>) {
        let Some(found) = self.workspaces.get_mut(workspace) else { return };
        let storages = |custom: &[Arc<Served>]| custom.iter().map(|kind| kind.storage.clone()).collect::<BTreeSet<_>>();
        let before = storages(&found.custom);
        let mut custom = change(std::mem::take(&mut found.custom));
        custom.sort_by(|a, b| (&a.names.group, &a.names.plural).cmp(&(&b.names.group, &b.names.plural)));
        let after = storages(&custom);
        found.custom = custom;
        let served = &mut self.shards[found.shard].served;
        for storage in after.difference(&before) {
            *served.entry(storage.clone()).or_default() += 1;
        }
        for storage in before.difference(&after) {
            if let Some(count) = served.get_mut(storage) {
                *count -= 1;
            }
        }
    }

    /// One version of every stored kind that a workspace can hold objects of.
    pub(crate) fn stored_kinds(&self, workspace: &str) -> Vec<Arc<Served>> {
        let mut by_storage = BTreeMap::new();
        for kind in self.kinds(workspace).into_iter().filter(|kind| kind.verbs.contains(&"get")) {
            by_storage.entry(kind.storage.clone()).or_insert(kind);
        }
        by_storage.into_values().collect()
    }
}
