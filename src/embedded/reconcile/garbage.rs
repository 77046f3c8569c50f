//! Whatever lost its owner goes, within one workspace and never across.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{is_going, release};
use crate::embedded::served::Served;
use crate::embedded::store::Place;
use crate::embedded::world::{Task, World};

/// Keeps an owner until what it owns is gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until what it owned does not name it any more.
pub(crate) const ORPHAN: &str = "orphan";

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
        let kept =
            |finalizer: &str| object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|there| there == finalizer));
        if is_going(object) && (kept(FOREGROUND) || kept(ORPHAN)) {
            let Place { workspace, namespace, name } = place.clone();
            self.ask(self.options.timing.collect, Task::Foreground(kind.storage.clone(), workspace, namespace, name));
        }
    }

    pub(super) fn disown(&mut self, kind: &Served, place: &Place, last: &Value) {
        for owner in owners(last) {
            let key = (place.workspace.clone(), Arc::from(owner["uid"].as_str().unwrap_or_default()));
            if let Some(owned) = self.owned.get_mut(&key) {
                owned.remove(&(kind.storage.clone(), place.clone()));
                if owned.is_empty() {
                    self.owned.remove(&key);
                }
            }
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

    fn exists(&self, place: &Place, owner: &Value) -> bool {
        // An owner of a kind that is not served cannot be told from one that is there.
        let Some((kind, at)) = self.owner_kind(place, owner) else { return true };
        self.stored(&kind, &at).is_some_and(|stored| stored.value()["metadata"]["uid"] == owner["uid"])
    }

    fn by_storage(&self, workspace: &str, storage: &str) -> Option<Arc<Served>> {
        self.stored_kinds(workspace).into_iter().find(|kind| &*kind.storage == storage)
    }

    /// Deletes what has no owner left; what has another one forgets those that are gone.
    pub(super) fn do_orphans(&mut self, workspace: &Arc<str>, uid: &Arc<str>) {
        let owned = self.owned.get(&(workspace.clone(), uid.clone())).cloned().unwrap_or_default();
        for (storage, place) in owned {
            let Some(kind) = self.by_storage(workspace, &storage) else { continue };
            let Some(object) = self.stored(&kind, &place).map(|stored| stored.value()) else { continue };
            let (there, gone): (Vec<&Value>, Vec<&Value>) = owners(&object).partition(|owner| self.exists(&place, owner));
            if gone.is_empty() || !gone.iter().any(|owner| owner["uid"] == **uid) {
                continue;
            }
            if there.is_empty() {
                self.delete(&kind, &place, None);
                continue;
            }
            let there: Value = there.into_iter().cloned().collect();
            self.edit(&kind, workspace, &place.namespace, &place.name, "", |object| object["metadata"]["ownerReferences"] = there);
        }
    }

    /// An owner that is deleted in the foreground goes after what it owns and blocks it; one that leaves orphans goes after they are told.
    pub(super) fn do_foreground(&mut self, storage: &str, workspace: &Arc<str>, namespace: &str, name: &str) {
        let Some(kind) = self.by_storage(workspace, storage) else { return };
        let Some(object) = self.read(&kind, workspace, namespace, name).filter(is_going) else { return };
        let kept =
            |finalizer: &str| object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|there| there == finalizer));
        let uid: Arc<str> = object["metadata"]["uid"].as_str().unwrap_or_default().into();
        let owned = self.owned.get(&(workspace.clone(), uid.clone())).cloned().unwrap_or_default();
        let mut blocked = false;
        for (storage, place) in owned {
            let Some(owned_kind) = self.by_storage(workspace, &storage) else { continue };
            let Some(dependent) = self.stored(&owned_kind, &place).map(|stored| stored.value()) else { continue };
            let Some(owner) = owners(&dependent).find(|owner| owner["uid"] == *uid) else { continue };
            if kept(ORPHAN) {
                self.edit(&owned_kind, workspace, &place.namespace, &place.name, "", |dependent| {
                    let left: Vec<Value> = owners(dependent).filter(|owner| owner["uid"] != *uid).cloned().collect();
                    match left.is_empty() {
                        true => drop(dependent["metadata"].as_object_mut().map(|metadata| metadata.remove("ownerReferences"))),
                        false => dependent["metadata"]["ownerReferences"] = left.into(),
                    }
                });
                continue;
            }
            let blocks = owner["blockOwnerDeletion"] == true;
            if !is_going(&dependent) {
                self.delete(&owned_kind, &place, None);
            }
            blocked |= blocks && self.stored(&owned_kind, &place).is_some();
        }
        if !blocked {
            self.edit(&kind, workspace, namespace, name, "", |object| {
                release(object, FOREGROUND);
                release(object, ORPHAN);
            });
        }
        let _ = Duration::ZERO;
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}
