//! Objects in and out: what every write does, whoever asks for it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Task, World};
use crate::embedded::observe::Event;
use crate::embedded::patch::managed::{self, Operation, Reset, Writer};
use crate::embedded::reconcile::{DEFINITION_FINALIZER, Propagation};
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::{Change, Place, Scope, Stored};

/// A write that has passed all checks.
pub(crate) struct Draft<'a> {
    /// The kind and version that it is written in.
    pub(crate) kind: &'a Arc<Served>,
    pub(crate) place: Place,
    /// The object before, in the same version.
    pub(crate) old: Option<Value>,
    pub(crate) new: Value,
    /// `status` or `""`.
    pub(crate) subresource: &'a str,
    /// Who writes; `None` when the managed fields are in the object already.
    pub(crate) manager: Option<&'a str>,
}

/// The annotation that names an object's logical cluster.
pub(crate) const CLUSTER: &str = "kcp.io/cluster";
/// The manager of what kcp's own controllers write.
const CONTROLLER: &str = "kcp";

impl World {
    /// An object as it is stored, in its storage version.
    pub(crate) fn stored(&self, kind: &Served, place: &Place) -> Option<&Arc<Stored>> {
        let shard = self.shard_of(&place.workspace)?;
        self.shards[shard].store.get(&kind.storage, place)
    }

    /// An object, parsed.
    pub(crate) fn read(&self, kind: &Served, workspace: &Arc<str>, namespace: &str, name: &str) -> Option<Value> {
        self.stored(kind, &Place::new(workspace, namespace, name)).map(|stored| stored.value())
    }

    /// The objects of a kind in one workspace, parsed.
    pub(crate) fn all(&self, kind: &Served, workspace: &Arc<str>) -> Vec<Value> {
        let scope = Scope { workspace: Some(workspace.clone()), namespace: None };
        let Some(shard) = self.shard_of(workspace) else { return Vec::new() };
        self.shards[shard].store.list(&kind.storage, &scope).map(|(_, stored)| stored.value()).collect()
    }

    /// Creates an object as a controller of kcp does: no check, but everything that a write brings about.
    pub(crate) fn make(&mut self, kind: &Arc<Served>, workspace: &Arc<str>, namespace: &str, name: &str, mut new: Value) -> Value {
        new["metadata"]["name"] = name.into();
        if !namespace.is_empty() {
            new["metadata"]["namespace"] = namespace.into();
        }
        kind.schema.default(&mut new);
        let place = Place::new(workspace, namespace, name);
        self.insert(Draft { kind, place, old: None, new, subresource: "", manager: Some(CONTROLLER) })
    }

    /// Changes an object as a controller of kcp does; nothing where there is none, and nothing is written when nothing changes.
    pub(crate) fn edit(
        &mut self,
        kind: &Arc<Served>,
        workspace: &Arc<str>,
        namespace: &str,
        name: &str,
        subresource: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let place = Place::new(workspace, namespace, name);
        let Some(old) = self.stored(kind, &place).map(|stored| stored.value()) else { return };
        let mut new = old.clone();
        change(&mut new);
        let mut labelled = new.clone();
        self.label(kind, &place, &mut labelled);
        if labelled == old {
            return;
        }
        self.replace(Draft { kind, place, old: Some(old), new, subresource, manager: Some(CONTROLLER) });
    }

    /// Stores a new object and returns it.
    pub(crate) fn insert(&mut self, mut draft: Draft<'_>) -> Value {
        if let Some(manager) = draft.manager {
            // What a namespace gets from the server is nobody's.
            let given = (&*draft.kind.storage == "namespaces.").then(|| {
                ["spec", "status"].map(|field| draft.new.as_object_mut().and_then(|fields| fields.remove(field)).unwrap_or_default())
            });
            self.manage(draft.kind, None, &mut draft.new, manager, "");
            if let Some([spec, status]) = given {
                (draft.new["spec"], draft.new["status"]) = (spec, status);
            }
        }
        let uid = self.dice.uid();
        let stamp = self.stamp();
        let metadata = &mut draft.new["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = stamp.into();
        if has_generation(draft.kind) {
            metadata["generation"] = 1.into();
        }
        metadata["annotations"][CLUSTER] = (&*draft.place.workspace).into();
        self.unmarked.insert((draft.kind.storage.clone(), draft.place.clone()));
        // After the managed fields: nobody manages the labels of claims.
        self.label(draft.kind, &draft.place, &mut draft.new);
        self.store(draft.kind, &draft.place, draft.new)
    }

    /// Stores a changed object and returns it; nothing is stored where nothing changed. An object that is being deleted and has lost its last
    /// finalizer is gone then.
    pub(crate) fn replace(&mut self, mut draft: Draft<'_>) -> Value {
        let old = draft.old.take().unwrap_or_default();
        // The annotation of the logical cluster is shown always, but stored only when it was sent, which makes another version of its own.
        let key = (draft.kind.storage.clone(), draft.place.clone());
        let is_marked = draft.new["metadata"]["annotations"][CLUSTER].is_string();
        let was_marked = if is_marked { !self.unmarked.remove(&key) } else { self.unmarked.insert(key) };
        draft.new["metadata"]["annotations"][CLUSTER] = (&*draft.place.workspace).into();
        count(draft.kind, draft.subresource, &old, &mut draft.new);
        if let Some(manager) = draft.manager {
            self.manage(draft.kind, Some(&old), &mut draft.new, manager, draft.subresource);
        }
        self.label(draft.kind, &draft.place, &mut draft.new);
        // What is sent without the annotation is never what was read, which has it.
        if draft.new == old && is_marked && was_marked {
            return old;
        }
        if old["metadata"]["ownerReferences"] != draft.new["metadata"]["ownerReferences"] {
            self.changes_owners(draft.kind, &draft.place, &old, &draft.new);
        }
        if is_released(draft.kind, &draft.new) {
            // The answer is what was to be stored, and has the version before.
            let answer = if is_marked { draft.new } else { unmarked(draft.new) };
            // Watches are told what was stored last, with what kept it.
            self.remove(draft.kind, &draft.place, old);
            return answer;
        }
        self.store(draft.kind, &draft.place, draft.new)
    }

    /// Takes an object away; `last` is what it was at the end.
    pub(crate) fn remove(&mut self, kind: &Arc<Served>, place: &Place, mut last: Value) -> Value {
        let Some(shard) = self.shard_of(&place.workspace) else { return last };
        self.unmarked.remove(&(kind.storage.clone(), place.clone()));
        let change = self.shards[shard].store.put(&kind.storage, place.clone(), None, Some(&mut last));
        self.note(kind, &change);
        self.gone(kind, place, &last);
        last
    }

    /// Marks an object as being deleted, or takes it away when no finalizer keeps it. Returns it, and whether it is gone.
    ///
    /// Without a propagation an earlier one holds, and without that it is in the background.
    pub(crate) fn delete(&mut self, kind: &Arc<Served>, place: &Place, propagation: Option<Propagation>) -> Option<(Value, bool)> {
        let old = self.stored(kind, place)?.value();
        let Some(new) = self.deleted(kind, &old, propagation) else { return Some((self.remove(kind, place, old), true)) };
        // It is written as it was read, with the annotation.
        if !self.unmarked.remove(&(kind.storage.clone(), place.clone())) && new == old {
            return Some((new, false));
        }
        Some((self.store(kind, place, new), false))
    }

    /// What a deletion leaves of an object, which is nothing when no finalizer keeps it.
    pub(crate) fn deleted(&self, kind: &Served, old: &Value, propagation: Option<Propagation>) -> Option<Value> {
        let mut new = old.clone();
        if let Some(propagation) = propagation {
            let finalizers = propagation.finalizers(&new["metadata"]["finalizers"]);
            set(&mut new["metadata"], "finalizers", finalizers);
        }
        if is_definition(kind) && old["metadata"]["deletionTimestamp"].is_null() {
            let mut finalizers = new["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            if finalizers.iter().all(|there| there != DEFINITION_FINALIZER) {
                finalizers.push(DEFINITION_FINALIZER.into());
            }
            new["metadata"]["finalizers"] = finalizers.into();
        }
        if !is_kept(kind, &new) {
            return None;
        }
        if new["metadata"]["deletionTimestamp"].is_null() {
            new["metadata"]["deletionTimestamp"] = self.stamp().into();
            new["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            if let Some(generation) = new["metadata"]["generation"].as_i64() {
                new["metadata"]["generation"] = (generation + 1).into();
            }
            if &*kind.names.plural == "namespaces" {
                new["status"]["phase"] = "Terminating".into();
                new["metadata"].as_object_mut().map(|metadata| metadata.remove("deletionGracePeriodSeconds"));
            }
        }
        Some(new)
    }

    /// Writes down who manages what.
    pub(crate) fn manage(&self, kind: &Served, old: Option<&Value>, new: &mut Value, manager: &str, subresource: &str) {
        let (api_version, stamp) = (kind.api_version(), self.stamp());
        let writer = Writer { manager, operation: Operation::Update, api_version: &api_version, subresource, time: &stamp };
        managed::update(kind.schema.root(), old, new, &writer, reset(kind, subresource));
    }

    fn store(&mut self, kind: &Arc<Served>, place: &Place, mut object: Value) -> Value {
        let Some(shard) = self.shard_of(&place.workspace) else { return object };
        let change = self.shards[shard].store.put(&kind.storage, place.clone(), Some(&mut object), None);
        self.note(kind, &change);
        self.there(kind, place, &object);
        object
    }

    /// Keeps a change for whoever observes.
    fn note(&mut self, kind: &Served, change: &Change) {
        let now = self.now;
        if let Some(changes) = &mut self.changes {
            changes.push(Event::change(kind, now, change));
        }
    }

    /// Asks for a task at once, or after what the server takes for it.
    pub(crate) fn ask(&mut self, delay: std::time::Duration, task: Task) {
        self.tasks.ask(self.now, delay, task);
    }
}

/// Sets a field; `null` takes it away.
pub(crate) fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value.into() {
        Value::Null => drop(fields.remove(field)),
        value => drop(fields.insert(field.to_owned(), value)),
    }
}

/// A list as a field has it: `null` for none.
pub(crate) fn some(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { list.into() }
}

/// What nobody can own through an endpoint, since the endpoint does not write it.
pub(crate) fn reset(kind: &Served, subresource: &str) -> Reset {
    match (kind.status, subresource) {
        (true, "status") => Reset::AllButStatus,
        (true, _) => Reset::Status,
        (false, _) => Reset::None,
    }
}

/// An object as it was sent: it was not read back, which would have brought the annotation.
fn unmarked(mut object: Value) -> Value {
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove(CLUSTER);
        if annotations.is_empty() {
            set(&mut object["metadata"], "annotations", Value::Null);
        }
    }
    object
}

/// Counts the changes of what an object asks for.
pub(crate) fn count(kind: &Served, subresource: &str, old: &Value, new: &mut Value) {
    if has_generation(kind) && subresource.is_empty() && differ(kind, old, new) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Whether objects of the kind count the changes of what they ask for.
pub(crate) fn has_generation(kind: &Served) -> bool {
    kind.origin != Origin::BuiltIn || is_definition(kind)
}

fn is_definition(kind: &Served) -> bool {
    kind.origin == Origin::BuiltIn && &*kind.names.plural == "customresourcedefinitions"
}

/// Whether anything besides metadata differs, and besides the status where it has an endpoint of its own.
fn differ(kind: &Served, old: &Value, new: &Value) -> bool {
    let relevant = |object: &Value| {
        let mut object = object.as_object().cloned().unwrap_or_default();
        object.remove("metadata");
        if kind.status {
            object.remove("status");
        }
        object
    };
    relevant(old) != relevant(new)
}

/// Whether something keeps a deleted object: finalizers, and a namespace's own.
pub(crate) fn is_kept(kind: &Served, object: &Value) -> bool {
    let any = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    any(&object["metadata"]["finalizers"]) || (&*kind.names.plural == "namespaces" && any(&object["spec"]["finalizers"]))
}

fn is_released(kind: &Served, object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string() && !is_kept(kind, object)
}

/// Sets or replaces a condition as kcp's controllers do: the time changes with the status.
pub(crate) fn set_condition(object: &mut Value, type_: &str, status: &str, rest: &Value, now: &str) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().find(|condition| condition["type"] == type_);
    let mut condition = json!({"type": type_, "status": status, "lastTransitionTime": now});
    if let (Some(condition), Value::Object(rest)) = (condition.as_object_mut(), rest) {
        condition.extend(rest.clone());
    }
    if let Some(before) = before.filter(|before| before["status"] == status && before["reason"] == condition["reason"]) {
        condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
    }
    let mut all: Vec<Value> = conditions.into_iter().filter(|condition| condition["type"] != type_).chain([condition]).collect();
    // Ready first, then by name: cluster-api's order, which kcp uses.
    all.sort_by_key(|condition| (condition["type"] != "Ready", condition["type"].as_str().unwrap_or_default().to_owned()));
    object["status"]["conditions"] = all.into();
}
