//! Definitions: kinds that a workspace makes for itself.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{is_going, release};
use crate::embedded::served::{Origin, Served, versions};
use crate::embedded::store::Place;
use crate::embedded::world::workspaces::definitions;
use crate::embedded::world::{Task, World};

/// What keeps a definition until its objects are gone. It is there from the deletion on.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

impl World {
    pub(super) fn do_definition(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(definition) = self.read(definitions(), workspace, "", name) else { return };
        if is_going(&definition) {
            self.empty_definition(workspace, name);
            return;
        }
        let now = self.stamp();
        self.edit(definitions(), workspace, "", name, "status", |definition| {
            let stored = definition["spec"]["versions"].as_array().into_iter().flatten().find(|version| version["storage"] == true);
            let stored = stored.map(|version| version["name"].clone()).unwrap_or_default();
            let status = &mut definition["status"];
            if !status["storedVersions"].as_array().is_some_and(|list| list.contains(&stored)) {
                let mut list = status["storedVersions"].as_array().cloned().unwrap_or_default();
                list.push(stored);
                status["storedVersions"] = list.into();
            }
            if status["conditions"].as_array().is_none_or(Vec::is_empty) {
                let condition = |type_: &str, reason: &str, message: &str| {
                    json!({"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now})
                };
                status["conditions"] = json!([
                    condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                    condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                ]);
            }
            let names = definition["spec"]["names"].clone();
            definition["status"]["acceptedNames"] = names;
        });
        self.serve(workspace, name);
    }

    fn serve(&mut self, workspace: &Arc<str>, name: &str) {
        let Some(definition) = self.read(definitions(), workspace, "", name) else { return };
        // It was compiled at admission; one that cannot be any more is not served.
        let Ok(kinds) = versions(&definition["spec"], &name.into(), &Origin::Definition) else { return };
        let Some(found) = self.workspaces.get(workspace) else { return };
        let mine = |kind: &Arc<Served>| kind.origin == Origin::Definition && &*kind.storage == name;
        let before: Vec<_> = found.custom.iter().filter(|kind| mine(kind)).cloned().collect();
        let changed = before.iter().any(|old| kinds.iter().all(|new| new.open_api != old.open_api || new.version != old.version));
        self.set_custom(workspace, |custom| custom.into_iter().filter(|kind| !mine(kind)).chain(kinds).collect());
        if changed {
            self.rolled(workspace, &name.into());
        }
    }

    fn empty_definition(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let kind = self.stored_kinds(workspace).into_iter().find(|kind| kind.origin == Origin::Definition && kind.storage == *name);
        let mut left = 0;
        if let Some(kind) = kind {
            for object in self.all(&kind, workspace) {
                let place = Place::of(workspace, &object);
                if !is_going(&object) {
                    self.delete(&kind, &place, None);
                }
                left += usize::from(self.stored(&kind, &place).is_some());
            }
        }
        if left == 0 {
            self.edit(definitions(), workspace, "", name, "", |definition: &mut Value| release(definition, FINALIZER));
        }
    }

    /// An object of a definition went; the definition may wait for that.
    pub(super) fn look_at_definitions(&mut self, workspace: &Arc<str>) {
        for definition in self.all(definitions(), workspace).into_iter().filter(is_going) {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            self.ask(Duration::ZERO, Task::Definition(workspace.clone(), name.into()));
        }
    }

    pub(super) fn serve_no_more(&mut self, workspace: &Arc<str>, name: &str) {
        let mine = |kind: &Arc<Served>| kind.origin == Origin::Definition && &*kind.storage == name;
        self.set_custom(workspace, |custom| custom.into_iter().filter(|kind| !mine(kind)).collect());
        self.rolled(workspace, &name.into());
        // A binding that waited for the same kind has its turn.
        self.look_at_bindings_in(workspace);
    }
}
