//! The end of a binding: its objects are deleted, and it waits for those that somebody keeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{is_going, release};
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::Place;
use crate::embedded::world::objects::set_condition;
use crate::embedded::world::workspaces::{bindings, definitions};
use crate::embedded::world::{Task, World};

/// What keeps a binding until its objects are gone.
pub(crate) const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";

impl World {
    pub(super) fn do_unbind(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let kinds = self.bound_by(workspace, name);
        let mut kept: BTreeMap<String, usize> = BTreeMap::new();
        for kind in &kinds {
            for object in self.all(kind, workspace) {
                let place = Place::of(workspace, &object);
                if !is_going(&object) {
                    self.delete(kind, &place, None);
                }
                if let Some(stored) = self.stored(kind, &place) {
                    for finalizer in stored.value()["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                        *kept.entry(finalizer.to_owned()).or_default() += 1;
                    }
                }
            }
        }
        if kept.is_empty() {
            self.edit(bindings(), workspace, "", name, "", |binding| release(binding, FINALIZER));
            return;
        }
        let each: Vec<String> = kept.iter().map(|(finalizer, count)| format!("{finalizer} in {count} resource instances")).collect();
        let message = format!("Some content in the workspace has finalizers remaining: {}", each.join(", "));
        let rest = json!({"reason": "SomeFinalizersRemain", "severity": "Error", "message": message});
        let now = self.stamp();
        self.status_of(workspace, name, |binding| set_condition(binding, "BindingResourceDeleteSuccess", "False", &rest, &now));
    }

    /// One version of each kind that a binding brought.
    pub(super) fn bound_by(&self, workspace: &str, name: &str) -> Vec<Arc<Served>> {
        let of_it = |kind: &Arc<Served>| matches!(&kind.origin, Origin::Bound { binding, .. } if &**binding == name);
        self.stored_kinds(workspace).into_iter().filter(of_it).collect()
    }

    /// Whether the binding or the definition that brought a kind is being deleted.
    pub(crate) fn is_leaving(&self, workspace: &Arc<str>, kind: &Served) -> bool {
        match &kind.origin {
            Origin::Bound { binding, .. } => self.workspaces.get(workspace).is_some_and(|found| found.leaving.contains(binding)),
            Origin::Definition => {
                self.parsed(definitions(), &Place::new(workspace, "", &kind.storage)).is_some_and(|found| is_going(&found))
            }
            _ => false,
        }
    }

    pub(super) fn binding_is_gone(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        if let Some(found) = self.workspaces.get_mut(workspace) {
            found.leaving.remove(name);
        }
        let of_it = |kind: &Arc<Served>| matches!(&kind.origin, Origin::Bound { binding, .. } if binding == name);
        self.set_custom(workspace, |custom| custom.into_iter().filter(|kind| !of_it(kind)).collect());
        self.binds_no_more(workspace, name);
        self.unlock(workspace, name);
        self.ask(Duration::ZERO, Task::Claims(workspace.clone()));
        // Another binding that waited for the same kinds has its turn.
        self.look_at_bindings_in(workspace);
    }

    /// Every binding of a workspace may be concerned by what became free there.
    pub(super) fn look_at_bindings_in(&mut self, workspace: &Arc<str>) {
        for binding in self.all(bindings(), workspace) {
            self.ask(Duration::ZERO, Task::Binding(workspace.clone(), Place::of(workspace, &binding).name));
        }
    }
}
