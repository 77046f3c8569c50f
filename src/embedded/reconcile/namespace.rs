//! Namespaces: each has an account and the server's certificates, and is emptied when it is deleted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::is_going;
use crate::embedded::store::{Place, Scope};
use crate::embedded::world::workspaces::{accounts, config_maps, namespaces, typed};
use crate::embedded::world::{Task, World};

/// The `ConfigMap` with the server's certificates.
pub(super) const AUTHORITY: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal \
     service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

impl World {
    pub(super) fn is_terminating(&self, workspace: &str, namespace: &str) -> bool {
        self.workspaces.get(workspace).is_some_and(|found| found.terminating.contains(namespace))
    }

    pub(super) fn look_at_namespace(&mut self, place: &Place) {
        self.ask(Duration::ZERO, Task::Namespace(place.workspace.clone(), place.namespace.clone()));
    }

    pub(super) fn do_namespace(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(namespace) = self.read(namespaces(), workspace, "", name) else { return };
        let Some(found) = self.workspaces.get_mut(workspace) else { return };
        if is_going(&namespace) {
            found.terminating.insert(name.clone());
            self.empty_namespace(workspace, name);
        } else if !found.going {
            self.furnish(workspace, name);
        }
    }

    fn furnish(&mut self, workspace: &Arc<str>, name: &str) {
        if self.read(accounts(), workspace, name, "default").is_none() {
            self.make(accounts(), workspace, name, "default", typed(accounts(), json!({})));
        }
        if self.read(config_maps(), workspace, name, AUTHORITY).is_none() {
            let authority = json!({"metadata": {"annotations": {"kubernetes.io/description": DESCRIPTION}},
                "data": {"ca.crt": self.options.authority}});
            self.make(config_maps(), workspace, name, AUTHORITY, typed(config_maps(), authority));
        }
    }

    fn empty_namespace(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let mut left = false;
        let Some(shard) = self.shard_of(workspace) else { return };
        for kind in self.stored_kinds(workspace).into_iter().filter(|kind| kind.namespaced) {
            let scope = Scope { workspace: Some(workspace.clone()), namespace: Some(name.clone()) };
            let places: Vec<Place> = self.shards[shard].store.list(&kind.storage, &scope).map(|(place, _)| place.clone()).collect();
            for place in places {
                let going = self.stored(&kind, &place).is_some_and(|stored| is_going(&stored.value()));
                if !going {
                    self.delete(&kind, &place, None);
                }
                left |= self.stored(&kind, &place).is_some();
            }
        }
        if !left {
            self.edit(namespaces(), workspace, "", name, "", |namespace| namespace["spec"] = json!({}));
        }
    }

    pub(super) fn namespace_is_gone(&mut self, place: &Place) {
        if let Some(found) = self.workspaces.get_mut(&place.workspace) {
            found.terminating.remove(&place.name);
        }
    }

    /// Whether objects can be made in a namespace: `None` when there is no such namespace, else whether it is open.
    pub(crate) fn namespace_is_open(&self, workspace: &Arc<str>, name: &str) -> Option<bool> {
        self.read(namespaces(), workspace, "", name).map(|namespace: Value| !is_going(&namespace))
    }
}
