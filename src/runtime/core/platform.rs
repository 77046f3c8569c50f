//! Pure: the platform's objects, the views folded from them, and the names in tenants' workspaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectName};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{AnyView, Objects as PlatformObjects};
use crate::runtime::raw::Raw;
use crate::runtime::served::ViewSpec;

use super::streams::ShardId;

/// One view and what has changed since it was folded.
pub(super) struct ViewState {
    pub(super) spec: ViewSpec,
    pub(super) value: Option<AnyView>,
    changed: BTreeSet<(KindRef, ObjectName)>,
}

/// The platform's objects and the views over them.
#[derive(Default)]
pub(super) struct Platform {
    objects: BTreeMap<KindRef, BTreeMap<ObjectName, Arc<str>>>,
    versions: BTreeMap<(KindRef, ObjectName), Box<str>>,
    pub(super) views: Vec<ViewState>,
}

impl Platform {
    /// Keeps a view; one that several reconcilers declare is kept once.
    pub(super) fn declare(&mut self, spec: &ViewSpec) {
        if !self.views.iter().any(|view| view.spec.id == spec.id) {
            self.views.push(ViewState { spec: spec.clone(), value: None, changed: BTreeSet::new() });
        }
    }

    /// The kinds that all views are made from.
    pub(super) fn kinds(&self) -> BTreeSet<KindRef> {
        self.views.iter().flat_map(|view| view.spec.kinds.iter().copied()).collect()
    }

    pub(super) fn upsert(&mut self, kind: KindRef, raw: Raw) {
        let at = (kind, raw.name.clone());
        if self.versions.get(&at) == Some(&raw.resource_version) {
            return;
        }
        self.versions.insert(at, raw.resource_version);
        self.objects.entry(kind).or_default().insert(raw.name.clone(), raw.body);
        self.touch(kind, &raw.name);
    }

    pub(super) fn remove(&mut self, kind: KindRef, name: &ObjectName) {
        self.versions.remove(&(kind, name.clone()));
        if self.objects.get_mut(&kind).and_then(|objects| objects.remove(name)).is_some() {
            self.touch(kind, name);
        }
    }

    /// Makes the kind hold exactly these objects.
    pub(super) fn reset(&mut self, kind: KindRef, items: Vec<Raw>) {
        let named: BTreeSet<ObjectName> = items.iter().map(|raw| raw.name.clone()).collect();
        let gone: Vec<ObjectName> =
            self.objects.get(&kind).into_iter().flat_map(BTreeMap::keys).filter(|name| !named.contains(*name)).cloned().collect();
        for name in gone {
            self.remove(kind, &name);
        }
        for raw in items {
            self.upsert(kind, raw);
        }
    }

    fn touch(&mut self, kind: KindRef, name: &ObjectName) {
        for view in self.views.iter_mut().filter(|view| view.spec.kinds.contains(&kind)) {
            view.changed.insert((kind, name.clone()));
        }
    }

    /// Folds every view that changed, or has no value yet though all its kinds are `synced`; returns for each its index and the value before.
    pub(super) fn fold(&mut self, synced: impl Fn(KindRef) -> bool) -> Vec<(usize, Option<AnyView>)> {
        let mut folded = Vec::new();
        for (at, view) in self.views.iter_mut().enumerate() {
            if (view.value.is_some() && view.changed.is_empty()) || !view.spec.kinds.iter().all(|kind| synced(*kind)) {
                continue;
            }
            let changed: Vec<_> = std::mem::take(&mut view.changed).into_iter().collect();
            let next = (view.spec.fold)(view.value.as_ref(), &PlatformObjects(&self.objects), &changed);
            folded.push((at, view.value.replace(next)));
        }
        folded
    }
}

/// The names of one kind in all workspaces.
#[derive(Debug, Default)]
pub(super) struct NamesOfKind {
    workspaces: BTreeMap<LogicalCluster, NamesOfWorkspace>,
}

/// The names of one kind in one workspace: where each came from, and the set that calls are handed.
type NamesOfWorkspace = (BTreeMap<String, ShardId>, Arc<BTreeSet<String>>);

impl NamesOfKind {
    /// The names in a workspace.
    pub(super) fn get(&self, workspace: &LogicalCluster) -> Arc<BTreeSet<String>> {
        if mutated(Mutant::EverybodysProviders) {
            return Arc::new(self.workspaces.values().flat_map(|(_, names)| names.iter().cloned()).collect());
        }
        self.workspaces.get(workspace).map(|(_, names)| names.clone()).unwrap_or_default()
    }

    /// Whether the name is new.
    pub(super) fn insert(&mut self, workspace: &LogicalCluster, name: &str, shard: ShardId) -> bool {
        let (by_name, names) = self.workspaces.entry(workspace.clone()).or_default();
        let new = by_name.insert(name.to_owned(), shard).is_none();
        if new {
            *names = Arc::new(by_name.keys().cloned().collect());
        }
        new
    }

    /// Whether the name was there, from this shard.
    pub(super) fn remove(&mut self, workspace: &LogicalCluster, name: &str, shard: ShardId) -> bool {
        let Some((by_name, names)) = self.workspaces.get_mut(workspace) else { return false };
        if by_name.get(name) != Some(&shard) {
            return false;
        }
        by_name.remove(name);
        *names = Arc::new(by_name.keys().cloned().collect());
        if by_name.is_empty() {
            self.workspaces.remove(workspace);
        }
        true
    }

    /// Everything that came from this shard, of one workspace or of all.
    pub(super) fn of_shard(&self, shard: ShardId, workspace: Option<&LogicalCluster>) -> Vec<(LogicalCluster, String)> {
        let mut found = Vec::new();
        let places: Vec<_> = match workspace {
            Some(workspace) => self.workspaces.get_key_value(workspace).into_iter().collect(),
            None => self.workspaces.iter().collect(),
        };
        for (place, (by_name, _)) in places {
            found.extend(by_name.iter().filter(|(_, from)| **from == shard).map(|(name, _)| (place.clone(), name.clone())));
        }
        found
    }
}
