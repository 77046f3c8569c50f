//! What follows from a change: kcp's controllers, each a function that looks at what is there and brings it one step further.

mod accounts;
mod binding;
mod claims;
mod definition;
mod export;
mod garbage;
mod namespace;
mod replicate;
mod slice;
mod unbind;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::served::{Origin, Served};
use super::store::Place;
use super::world::{Task, World};

pub(crate) use binding::export_of;
pub(crate) use claims::{export_label, label, own_label};
pub(crate) use definition::FINALIZER as DEFINITION_FINALIZER;
pub(crate) use garbage::Propagation;
pub(crate) use unbind::FINALIZER as BINDING_FINALIZER;
pub(crate) use workspace::OWNER;

impl World {
    /// An object was made or changed.
    pub(crate) fn there(&mut self, kind: &Served, place: &Place, object: &Value) {
        self.note_owners(kind, place, object);
        let (workspace, name) = (place.workspace.clone(), place.name.clone());
        match (&*kind.names.group, &*kind.names.plural) {
            _ if matches!(kind.origin, Origin::Definition | Origin::Bound { .. }) => {}
            ("tenancy.kcp.io", "workspaces") => self.ask(Duration::ZERO, Task::Workspace(workspace, name)),
            ("core.kcp.io", "logicalclusters") if is_going(object) => self.ask(Duration::ZERO, Task::Emptying(workspace)),
            ("apis.kcp.io", "apiexports") => self.ask(Duration::ZERO, Task::Export(workspace, name)),
            ("apis.kcp.io", "apiresourceschemas") => self.look_at_exports(&workspace),
            ("apis.kcp.io", "apiexportendpointslices") => self.ask(Duration::ZERO, Task::Slice(workspace, name)),
            ("apis.kcp.io", "apibindings") => self.binding_is_there(&workspace, &name, object),
            ("apiextensions.k8s.io", "customresourcedefinitions") => self.ask(Duration::ZERO, Task::Definition(workspace, name)),
            ("", "namespaces") => self.ask(Duration::ZERO, Task::Namespace(workspace, name)),
            ("", "secrets") => {
                self.ask_for_token(&workspace, place, object);
                self.look_at_identity(place);
            }
            ("rbac.authorization.k8s.io", "clusterroles" | "clusterrolebindings") => self.ask(Duration::ZERO, Task::Replicate(workspace)),
            _ => {}
        }
        self.proceed(place, object);
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, kind: &Served, place: &Place, last: &Value) {
        let workspace = place.workspace.clone();
        self.disown(kind, place, last);
        match (&*kind.names.group, &*kind.names.plural) {
            _ if matches!(kind.origin, Origin::Definition) => self.look_at_definitions(&workspace),
            _ if matches!(kind.origin, Origin::Bound { .. }) => {}
            ("core.kcp.io", "logicalclusters") => self.emptied(&workspace),
            ("apis.kcp.io", "apiexports") => self.look_at_bindings(&workspace, &place.name),
            ("apis.kcp.io", "apibindings") => self.binding_is_gone(&workspace, &place.name),
            ("apiextensions.k8s.io", "customresourcedefinitions") => self.serve_no_more(&workspace, &place.name),
            ("", "namespaces") => self.namespace_is_gone(place),
            ("", "serviceaccounts") => self.account_is_gone(&workspace, place, last),
            ("", "configmaps") if &*place.name == namespace::AUTHORITY => self.look_at_namespace(place),
            _ => {}
        }
        self.proceed_without(place);
    }

    /// Does one task.
    pub(crate) fn perform(&mut self, task: &Task) {
        match task {
            Task::Workspace(workspace, name) => self.do_workspace(workspace, name),
            Task::Initialise(workspace, name) => self.do_initialise(workspace, name),
            Task::Emptying(workspace) => self.do_empty(workspace),
            Task::Export(workspace, name) => self.do_export(workspace, name),
            Task::Slice(workspace, name) => self.do_slice(workspace, name),
            Task::Binding(workspace, name) => self.do_binding(workspace, name),
            Task::Bind(workspace, name) => self.do_bind(workspace, name),
            Task::Definition(workspace, name) => self.do_definition(workspace, name),
            Task::Namespace(workspace, name) => self.do_namespace(workspace, name),
            Task::Token(workspace, namespace, name) => self.do_token(workspace, namespace, name),
            Task::Orphans(workspace, owner) => self.do_orphans(workspace, owner),
            Task::Foreground(storage, workspace, namespace, name) => self.do_foreground(storage, workspace, namespace, name),
            Task::Claims(workspace) => self.do_claims(workspace),
            Task::Replicate(workspace) => self.do_replicate(workspace),
        }
    }

    /// A change in a workspace or namespace that is being emptied may let its emptying go on.
    fn proceed(&mut self, place: &Place, object: &Value) {
        if is_going(object) {
            self.proceed_without(place);
        }
    }

    fn proceed_without(&mut self, place: &Place) {
        if self.workspaces.get(&place.workspace).is_some_and(|workspace| workspace.going) {
            self.ask(self.options.timing.collect, Task::Emptying(place.workspace.clone()));
        }
        if !place.namespace.is_empty() && self.is_terminating(&place.workspace, &place.namespace) {
            self.ask(self.options.timing.collect, Task::Namespace(place.workspace.clone(), place.namespace.clone()));
        }
        let waiting: Vec<Arc<str>> =
            self.workspaces.get(&place.workspace).map(|found| found.leaving.iter().cloned().collect()).unwrap_or_default();
        for binding in waiting {
            self.ask(self.options.timing.collect, Task::Binding(place.workspace.clone(), binding));
        }
    }
}

/// Whether an object is being deleted.
pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Takes a finalizer out of an object.
pub(crate) fn release(object: &mut Value, finalizer: &str) {
    let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() else { return };
    finalizers.retain(|there| there != finalizer);
    if finalizers.is_empty() {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("finalizers"));
    }
}
