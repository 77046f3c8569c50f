//! Exports: an identity, an endpoint slice, and bindings that follow their schemas.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::is_going;
use crate::embedded::base64;
use crate::embedded::store::Place;
use crate::embedded::world::objects::set_condition;
use crate::embedded::world::workspaces::{exports, namespaces, secrets, slices, typed};
use crate::embedded::world::{Task, World};

/// Where the keys of identities are.
const SYSTEM: &str = "kcp-system";
/// Tells that an export wants no slice.
const NO_SLICE: &str = "apiexports.apis.kcp.io/skip-endpointslice";

impl World {
    /// An export by the path of its workspace: its logical cluster and itself.
    pub(crate) fn export_at(&self, path: &str, name: &str) -> Option<(Arc<str>, Value)> {
        let workspace = self.resolve(path)?;
        let object = self.read(exports(), &workspace, "", name)?;
        Some((workspace, object))
    }

    /// Schemas came or went: every export of the workspace may be concerned.
    pub(super) fn look_at_exports(&mut self, workspace: &Arc<str>) {
        for object in self.all(exports(), workspace) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            self.ask(Duration::ZERO, Task::Export(workspace.clone(), name.into()));
        }
    }

    pub(super) fn do_export(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(object) = self.read(exports(), workspace, "", name).filter(|object| !is_going(object)) else { return };
        let Some(hash) = self.identity(workspace, name, &object) else { return };
        let now = self.stamp();
        self.edit(exports(), workspace, "", name, "status", |object| {
            object["status"]["identityHash"] = hash.into();
            set_condition(object, "IdentityValid", "True", Value::Null, &now);
        });
        let wanted = object["metadata"]["annotations"][NO_SLICE].is_null();
        if wanted && self.read(slices(), workspace, "", name).is_none() {
            let owner =
                json!([{"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "name": &**name, "uid": object["metadata"]["uid"]}]);
            let spec = json!({"export": {"name": &**name, "path": self.path(workspace)}});
            let slice = typed(slices(), json!({"metadata": {"ownerReferences": owner}, "spec": spec}));
            self.make(slices(), workspace, "", name, slice);
        }
        self.look_at_bindings(workspace, name);
    }

    /// The hash of the identity's key, which is made where there is none.
    fn identity(&mut self, workspace: &Arc<str>, name: &str, object: &Value) -> Option<String> {
        if object["spec"]["identity"]["secretRef"].is_null() {
            if self.read(namespaces(), workspace, "", SYSTEM).is_none() {
                let system = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": SYSTEM}}, "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"}});
                self.make(namespaces(), workspace, "", SYSTEM, typed(namespaces(), system));
            }
            if self.read(secrets(), workspace, SYSTEM, name).is_none() {
                let key = format!("{}{}", self.dice.uid(), self.dice.uid());
                let secret = json!({"type": "Opaque", "data": {"key": base64::encode(key.as_bytes())}});
                self.make(secrets(), workspace, SYSTEM, name, typed(secrets(), secret));
            }
            let reference = json!({"secretRef": {"namespace": SYSTEM, "name": name}});
            self.edit(exports(), workspace, "", name, "", |object| object["spec"]["identity"] = reference);
        }
        let object = self.read(exports(), workspace, "", name)?;
        let text = |field: &str| object["spec"]["identity"]["secretRef"][field].as_str().unwrap_or_default();
        let secret = self.read(secrets(), workspace, text("namespace"), text("name"))?;
        let key = base64::decode(secret["data"]["key"].as_str().unwrap_or_default())?;
        Some(Sha256::digest(&key).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
    }

    pub(super) fn export_is_gone(&mut self, workspace: &Arc<str>, name: &str) {
        self.look_at_bindings(workspace, name);
        self.delete(slices(), &Place::new(workspace, "", name), None);
    }

    fn look_at_bindings(&mut self, workspace: &Arc<str>, name: &str) {
        let by_shard = self.bindings.get(&(workspace.clone(), name.into())).cloned().unwrap_or_default();
        for (workspace, name) in by_shard.into_values().flatten() {
            self.ask(Duration::ZERO, Task::Binding(workspace, name));
        }
    }
}
