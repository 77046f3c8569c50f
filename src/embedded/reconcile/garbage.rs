//! Whatever lost its owner goes, within one workspace and never across. The rules are those of Kubernetes' garbage collector.

use std::sync::Arc;

use serde_json::Value;

use super::{is_going, release};
use crate::embedded::served::Served;
use crate::embedded::store::Place;
use crate::embedded::world::objects::{set, some};
use crate::embedded::world::{Task, World};

/// Keeps an owner until what it owns is gone.
const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until what it owned does not name it any more.
const ORPHAN: &str = "orphan";

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go after it.
    Background,
    /// It goes after those that block it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// The finalizers of an object that is deleted like this: what an earlier deletion asked for holds no more.
    pub(crate) fn finalizers(self, before: &Value) -> Value {
        let before = before.as_array().cloned().unwrap_or_default();
        let own = match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        };
        let others =
            before.into_iter().filter(|there| Some(there.as_str().unwrap_or_default()) == own || (there != FOREGROUND && there != ORPHAN));
        let mut finalizers: Vec<Value> = others.collect();
        if let Some(own) = own.filter(|own| finalizers.iter().all(|there| there != own)) {
            finalizers.push(own.into());
        }
        some(finalizers)
    }
}

impl World {
    /// Remembers whom an object names as its owners; owners that do not exist are as good as gone.
    pub(super) fn note_owners(&mut self, kind: &Served, place: &Place, object: &Value) {
        let mut missing = Vec::new();
        for owner in owners(object) {
            let uid: Arc<str> = owner["uid"].as_str().unwrap_or_default().into();
            self.owned.entry((place.workspace.clone(), uid.clone())).or_default().insert((kind.storage.clone(), place.clone()));
            if !self.exists(place, owner) {
                missing.push(uid);
            }
        }
        for uid in missing {
            self.ask(self.options.timing.collect, Task::Orphans(place.workspace.clone(), uid));
        }
        if is_going(object) && (has(object, FOREGROUND) || has(object, ORPHAN)) {
            let Place { workspace, namespace, name } = place.clone();
            self.ask(self.options.timing.collect, Task::Foreground(kind.storage.clone(), workspace, namespace, name));
        }
    }

    /// An object names other owners than before: those that it names no more need not wait for it.
    pub(crate) fn changes_owners(&mut self, kind: &Served, place: &Place, old: &Value, new: &Value) {
        for owner in owners(old).filter(|owner| owners(new).all(|left| left != *owner)) {
            if owners(new).all(|left| left["uid"] != owner["uid"]) {
                self.forget_owned(kind, place, owner);
            }
            self.look_at_owner(place, owner);
        }
    }

    fn forget_owned(&mut self, kind: &Served, place: &Place, owner: &Value) {
        let key = (place.workspace.clone(), Arc::from(owner["uid"].as_str().unwrap_or_default()));
        if let Some(owned) = self.owned.get_mut(&key) {
            owned.remove(&(kind.storage.clone(), place.clone()));
            if owned.is_empty() {
                self.owned.remove(&key);
            }
        }
    }

    pub(super) fn disown(&mut self, kind: &Served, place: &Place, last: &Value) {
        for owner in owners(last) {
            self.forget_owned(kind, place, owner);
            self.look_at_owner(place, owner);
        }
        let uid: Arc<str> = last["metadata"]["uid"].as_str().unwrap_or_default().into();
        if self.owned.contains_key(&(place.workspace.clone(), uid.clone())) {
            self.ask(self.options.timing.collect, Task::Orphans(place.workspace.clone(), uid));
        }
    }

    /// An owner that waits for what it owns may be waiting no more.
    fn look_at_owner(&mut self, place: &Place, owner: &Value) {
        let Some((kind, at)) = self.owner_kind(place, owner) else { return };
        if self.stored(&kind, &at).is_some_and(|stored| is_going(&stored.value())) {
            self.ask(self.options.timing.collect, Task::Foreground(kind.storage.clone(), at.workspace, at.namespace, at.name));
        }
    }

    fn owner_kind(&self, place: &Place, owner: &Value) -> Option<(Arc<Served>, Place)> {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let kind = self.kinds(&place.workspace).into_iter().find(|kind| {
            &*kind.names.group == group && &*kind.version == version && &*kind.names.kind == text("kind") && kind.verbs.contains(&"get")
        })?;
        let namespace = if kind.namespaced { &*place.namespace } else { "" };
        let at = Place::new(&place.workspace, namespace, text("name"));
        Some((kind, at))
    }

    /// The owner that a reference names, if it is there.
    fn owner(&self, place: &Place, owner: &Value) -> Option<Value> {
        let (kind, at) = self.owner_kind(place, owner)?;
        self.stored(&kind, &at).map(|stored| stored.value()).filter(|found| found["metadata"]["uid"] == owner["uid"])
    }

    fn exists(&self, place: &Place, owner: &Value) -> bool {
        // An owner of a kind that is not served cannot be told from one that is there, nor can one in a namespace from outside of all.
        let Some((kind, _)) = self.owner_kind(place, owner) else { return true };
        (kind.namespaced && place.namespace.is_empty()) || self.owner(place, owner).is_some()
    }

    fn by_storage(&self, workspace: &str, storage: &str) -> Option<Arc<Served>> {
        self.stored_kinds(workspace).into_iter().find(|kind| &*kind.storage == storage)
    }

    /// What names an owner: kind, place and object.
    fn dependents(&self, workspace: &Arc<str>, uid: &Arc<str>) -> Vec<(Arc<Served>, Place, Value)> {
        let owned = self.owned.get(&(workspace.clone(), uid.clone())).into_iter().flatten();
        let found = owned.filter_map(|(storage, place)| {
            let kind = self.by_storage(workspace, storage)?;
            let object = self.stored(&kind, place)?.value();
            let names_it = owners(&object).any(|owner| owner["uid"] == **uid);
            names_it.then(|| (kind, place.clone(), object))
        });
        found.collect()
    }

    /// Deletes what has no owner left; what has another one forgets those that are gone.
    pub(super) fn do_orphans(&mut self, workspace: &Arc<str>, uid: &Arc<str>) {
        for (kind, place, object) in self.dependents(workspace, uid) {
            if owners(&object).any(|owner| owner["uid"] == **uid && !self.exists(&place, owner)) {
                self.collect(&kind, &place, &object);
            }
        }
    }

    /// What becomes of a dependent, some of whose owners are gone or wait for it to go: with another owner it forgets those, without it goes.
    fn collect(&mut self, kind: &Arc<Served>, place: &Place, object: &Value) {
        if is_going(object) && !has(object, FOREGROUND) {
            return;
        }
        let waits = |owner: &Value| self.owner(place, owner).is_some_and(|found| is_going(&found) && has(&found, FOREGROUND));
        let (solid, others): (Vec<&Value>, Vec<&Value>) = owners(object).partition(|owner| self.exists(place, owner) && !waits(owner));
        if !solid.is_empty() {
            let solid: Value = solid.into_iter().cloned().collect();
            self.edit(kind, &place.workspace, &place.namespace, &place.name, "", |object| object["metadata"]["ownerReferences"] = solid);
            return;
        }
        let waited_for = others.into_iter().any(waits);
        let uid: Arc<str> = object["metadata"]["uid"].as_str().unwrap_or_default().into();
        let own = if waited_for { self.dependents(&place.workspace, &uid) } else { Vec::new() };
        if own.iter().any(|(_, _, own)| is_going(own) && has(own, FOREGROUND)) {
            // They wait for each other: nobody is to wait for this one.
            self.edit(kind, &place.workspace, &place.namespace, &place.name, "", |object| {
                for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
                    owner["blockOwnerDeletion"] = false.into();
                }
            });
        }
        self.delete(kind, place, (!own.is_empty()).then_some(Propagation::Foreground));
    }

    /// An owner that is deleted in the foreground goes after what it owns and blocks it; one that leaves orphans goes after they are told.
    pub(super) fn do_foreground(&mut self, storage: &str, workspace: &Arc<str>, namespace: &str, name: &str) {
        let Some(kind) = self.by_storage(workspace, storage) else { return };
        let Some(object) = self.read(&kind, workspace, namespace, name).filter(is_going) else { return };
        let uid: Arc<str> = object["metadata"]["uid"].as_str().unwrap_or_default().into();
        if has(&object, ORPHAN) {
            for (of, place, _) in self.dependents(workspace, &uid) {
                self.edit(&of, workspace, &place.namespace, &place.name, "", |dependent| {
                    let left: Vec<Value> = owners(dependent).filter(|owner| owner["uid"] != *uid).cloned().collect();
                    set(&mut dependent["metadata"], "ownerReferences", some(left));
                });
            }
        } else if has(&object, FOREGROUND) {
            for (of, place, dependent) in self.dependents(workspace, &uid) {
                self.collect(&of, &place, &dependent);
            }
            let blocks = |object: &Value| owners(object).any(|owner| owner["uid"] == *uid && owner["blockOwnerDeletion"] == true);
            if self.dependents(workspace, &uid).iter().any(|(_, _, dependent)| blocks(dependent)) {
                return;
            }
        }
        self.edit(&kind, workspace, namespace, name, "", |object| {
            release(object, FOREGROUND);
            release(object, ORPHAN);
        });
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn has(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|there| there == finalizer))
}
