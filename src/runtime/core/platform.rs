//! Pure: the platform's objects, the views folded from them, and the names in tenants' workspaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tracing::error;

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectName};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{AnyView, Objects as PlatformObjects, Trouble};
use crate::runtime::clock::Moment;
use crate::runtime::fence;
use crate::runtime::raw::Raw;
use crate::runtime::served::ViewSpec;

use super::streams::ShardId;

/// One view and what has changed since it was folded.
pub(super) struct ViewState {
    pub(super) spec: ViewSpec,
    /// The last that was made.
    pub(super) value: Option<AnyView>,
    changed: BTreeSet<(KindRef, ObjectName)>,
    /// Whether what there is was not folded yet, in whatever way that ends.
    due: bool,
    /// Since when its fold panics.
    failing: Option<Moment>,
}

impl ViewState {
    /// What a reader of the view must know.
    pub(super) fn trouble(&self, now: Moment) -> Option<Trouble> {
        let since = self.failing?;
        let lasted = now.mono.saturating_sub(since.mono);
        Some(Trouble { what: self.problem(), since: since.stamp(), lasted, hard: self.value.is_none() })
    }

    /// A line for readiness, where there never was a value.
    pub(super) fn missing(&self) -> Option<String> {
        (self.failing.is_some() && self.value.is_none()).then(|| self.problem())
    }

    /// Without the words of the panic: tenants read this, and nobody knows what is in those.
    fn problem(&self) -> String {
        let kinds: Vec<String> = self.spec.kinds.iter().map(KindRef::resource).collect();
        format!("the provider panicked over {}", kinds.join(", "))
    }
}

/// A view that has been folded.
pub(super) struct Folded {
    /// Which.
    pub(super) view: usize,
    pub(super) before: Option<AnyView>,
    /// Whether it could not be used before, or not for much longer.
    pub(super) mended: bool,
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
            self.views.push(ViewState { spec: spec.clone(), value: None, changed: BTreeSet::new(), due: true, failing: None });
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
            view.due = true;
        }
    }

    /// Folds every view that changed, or has no value yet, once all its kinds are `synced`. A fold that panics leaves the value as it was, and is tried
    /// again with the next change: then over everything, so that nothing has to be kept until then, nor to be trusted that may be the cause.
    pub(super) fn fold(&mut self, now: Moment, synced: impl Fn(KindRef) -> bool) -> Vec<Folded> {
        let mut folded = Vec::new();
        for (at, view) in self.views.iter_mut().enumerate() {
            if !view.due || !view.spec.kinds.iter().all(|kind| synced(*kind)) {
                continue;
            }
            view.due = false;
            let mut changed = std::mem::take(&mut view.changed);
            let before = view.value.as_ref().filter(|_| view.failing.is_none());
            if before.is_none() {
                let kinds = view.spec.kinds.iter().filter_map(|kind| self.objects.get_key_value(kind));
                changed.extend(kinds.flat_map(|(kind, objects)| objects.keys().map(|name| (*kind, name.clone()))));
            }
            let changed: Vec<_> = changed.into_iter().collect();
            match fence::called(|| (view.spec.fold)(before, &PlatformObjects(&self.objects), &changed)) {
                Ok(next) => {
                    let mended = view.value.is_none() || view.failing.is_some();
                    view.failing = None;
                    folded.push(Folded { view: at, before: view.value.replace(next), mended });
                }
                Err(panic) => {
                    error!(
                        problem = view.problem(),
                        panic, "a view cannot be made; the last one stays, and it is tried again when something changes"
                    );
                    view.failing.get_or_insert(now);
                }
            }
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
