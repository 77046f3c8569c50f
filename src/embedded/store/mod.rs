//! What one shard has stored: objects as text, one resourceVersion for all of them, and what changed lately.
//!
//! An object is kept as the JSON that is sent, since most of what happens to it is that somebody reads it; whoever changes it parses it first.

mod history;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::signal::{Signal, Waiter};

pub(crate) use history::Difference;

/// Changes of one kind that a watch can still be started before; older ones are 410. etcd keeps five minutes.
pub(crate) const WINDOW: usize = 4096;

/// Where an object is, within one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The logical cluster.
    pub(crate) workspace: Arc<str>,
    /// `""` for a kind without namespaces.
    pub(crate) namespace: Arc<str>,
    /// The object's name.
    pub(crate) name: Arc<str>,
}

impl Place {
    pub(crate) fn new(workspace: &Arc<str>, namespace: &str, name: &str) -> Self {
        Self { workspace: workspace.clone(), namespace: namespace.into(), name: name.into() }
    }

    /// Where an object of a workspace is, by its metadata.
    pub(crate) fn of(workspace: &Arc<str>, object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self::new(workspace, text("namespace"), text("name"))
    }
}

/// An object as it was at one resourceVersion.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The object in its storage version, `kcp.io/cluster` and resourceVersion in place.
    pub(crate) json: Bytes,
    /// Its resourceVersion.
    pub(crate) revision: u64,
}

impl Stored {
    /// The object, parsed.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The shard's version after it.
    pub(crate) revision: u64,
    pub(crate) place: Place,
    pub(crate) before: Option<Arc<Stored>>,
    /// What is there now. A deletion's last state, which has the deletion's version, is in `last`.
    pub(crate) after: Option<Arc<Stored>>,
    pub(crate) last: Option<Arc<Stored>>,
}

/// All objects of one kind on this shard: bound kinds of different exports are different ones.
#[derive(Debug, Default)]
struct Kind {
    objects: BTreeMap<Place, Arc<Stored>>,
    changes: VecDeque<Change>,
    /// The version of the youngest change that was dropped.
    compacted: u64,
    grown: Signal,
}

impl Clone for Kind {
    fn clone(&self) -> Self {
        let Self { objects, changes, compacted, grown: _ } = self;
        Self { objects: objects.clone(), changes: changes.clone(), compacted: *compacted, grown: Signal::default() }
    }
}

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// One logical cluster, or all.
    pub(crate) workspace: Option<Arc<str>>,
    /// One namespace, or all.
    pub(crate) namespace: Option<Arc<str>>,
}

impl Scope {
    pub(crate) fn holds(&self, place: &Place) -> bool {
        self.workspace.as_ref().is_none_or(|workspace| *workspace == place.workspace)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == place.namespace)
    }

    fn start(&self) -> Bound<Place> {
        let Some(workspace) = &self.workspace else { return Bound::Unbounded };
        let namespace = self.namespace.clone().unwrap_or_default();
        Bound::Included(Place { workspace: workspace.clone(), namespace, name: Arc::default() })
    }
}

/// The version that was asked for is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that a watch can still be started at.
    pub(crate) oldest: u64,
}

/// One shard's objects. A clone goes its own way: nobody who waits for changes of the one hears of those of the other.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// Shared with the stores that this one was cloned from or to, until one of them changes a kind.
    kinds: BTreeMap<Arc<str>, Arc<Kind>>,
    revision: u64,
}

impl Default for Store {
    /// Empty, at version 1, as etcd begins.
    fn default() -> Self {
        Self { kinds: BTreeMap::new(), revision: 1 }
    }
}

impl Store {
    /// The version of the latest change of any object.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, kind: &str, place: &Place) -> Option<&Arc<Stored>> {
        self.kinds.get(kind)?.objects.get(place)
    }

    /// The objects of a scope in the order of their places.
    pub(crate) fn list<'a>(&'a self, kind: &str, scope: &'a Scope) -> impl Iterator<Item = (&'a Place, &'a Arc<Stored>)> {
        let objects = self.kinds.get(kind).map(|kind| &kind.objects);
        let range = objects.into_iter().flat_map(|objects| objects.range((scope.start(), Bound::Unbounded)));
        let inside = |place: &Place| scope.workspace.as_ref().is_none_or(|workspace| *workspace == place.workspace);
        range.take_while(move |(place, _)| inside(place)).filter(|(place, _)| scope.holds(place))
    }

    /// Stores an object under the next version, which is written into it, or deletes it with `None`. Returns the change.
    ///
    /// `last` is a deleted object's last state.
    pub(crate) fn put(&mut self, kind: &Arc<str>, place: Place, object: Option<&mut Value>, last: Option<&mut Value>) -> Change {
        self.revision += 1;
        let revision = self.revision;
        let stored = |object: &mut Value| {
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            // A value of ours has string keys, which is all that can fail.
            Arc::new(Stored { json: serde_json::to_vec(object).unwrap_or_default().into(), revision })
        };
        let (after, last) = (object.map(stored), last.map(stored));
        let kind = Arc::make_mut(self.kinds.entry(kind.clone()).or_default());
        let before = match &after {
            Some(after) => kind.objects.insert(place.clone(), after.clone()),
            None => kind.objects.remove(&place),
        };
        let change = Change { revision, place, before, after, last };
        kind.changes.push_back(change.clone());
        while kind.changes.len() > WINDOW {
            kind.compacted = kind.changes.pop_front().map_or(kind.compacted, |change| change.revision);
        }
        kind.grown.grow();
        change
    }

    /// Shows an object in another way from now on, which is no change of it.
    pub(crate) fn reread(&mut self, kind: &str, place: &Place, object: &Value) {
        let objects = self.kinds.get_mut(kind).map(|kind| &mut Arc::make_mut(kind).objects);
        if let Some(stored) = objects.and_then(|objects| objects.get_mut(place)) {
            *stored = Arc::new(Stored { json: serde_json::to_vec(object).unwrap_or_default().into(), revision: stored.revision });
        }
    }

    /// Wakes with every change of the kind.
    pub(crate) fn latest(&mut self, kind: &Arc<str>) -> Waiter {
        // Not to be shared: whoever waits here waits for changes of this store.
        Arc::make_mut(self.kinds.entry(kind.clone()).or_default()).grown.waiter()
    }

    /// Forgets all changes, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        for kind in self.kinds.values_mut().map(Arc::make_mut) {
            kind.changes.clear();
            kind.compacted = self.revision;
        }
    }

    /// Objects and bytes of their text.
    pub(crate) fn size(&self) -> (usize, usize) {
        let objects = self.kinds.values().flat_map(|kind| kind.objects.values());
        objects.fold((0, 0), |(count, bytes), stored| (count + 1, bytes + stored.json.len()))
    }
}
