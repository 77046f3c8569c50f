//! Exports: an identity, an endpoint slice, and bindings that follow their schemas.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::is_going;
use crate::embedded::base64;
use crate::embedded::store::Place;
use crate::embedded::world::objects::set_condition;
use crate::embedded::world::workspaces::{exports, namespaces, secrets, slices, typed};
use crate::embedded::world::{ExportKey, Task, World};

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
            self.ask(Duration::ZERO, Task::Export(workspace.clone(), Place::of(workspace, &object).name));
        }
    }

    /// A Secret came or changed: it may be the identity of an export.
    pub(super) fn look_at_identity(&mut self, secret: &Place) {
        for object in self.all(exports(), &secret.workspace) {
            let reference = &object["spec"]["identity"]["secretRef"];
            if reference["namespace"] == *secret.namespace && reference["name"] == *secret.name {
                self.ask(Duration::ZERO, Task::Export(secret.workspace.clone(), Place::of(&secret.workspace, &object).name));
            }
        }
    }

    pub(super) fn do_export(&mut self, workspace: &Arc<str>, name: &Arc<str>) {
        let Some(object) = self.read(exports(), workspace, "", name).filter(|object| !is_going(object)) else { return };
        let identity = self.identity(workspace, name, &object);
        let now = self.stamp();
        self.edit(exports(), workspace, "", name, "status", |object| {
            // An identity is for ever: another key does not change it.
            let there = object["status"]["identityHash"].as_str().filter(|there| !there.is_empty()).map(ToOwned::to_owned);
            let why = match (identity, there) {
                (Ok(hash), None) => {
                    object["status"]["identityHash"] = hash.into();
                    None
                }
                (Ok(hash), Some(there)) => (hash != there)
                    .then(|| format!("hash mismatch: identity secret hash {hash:?} must match status.identityHash {there:?}")),
                (Err(why), _) => Some(why),
            };
            let rest = why.as_ref().map(|why| json!({"reason": "IdentityVerificationFailed", "severity": "Error", "message": why}));
            let status = if why.is_none() { "True" } else { "False" };
            set_condition(object, "IdentityValid", status, &rest.unwrap_or_default(), &now);
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

    /// The hash of the identity's key, which is made where there is none; else why there is no hash.
    fn identity(&mut self, workspace: &Arc<str>, name: &str, object: &Value) -> Result<String, String> {
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
        let object = self.read(exports(), workspace, "", name).unwrap_or_default();
        let text = |field: &str| object["spec"]["identity"]["secretRef"][field].as_str().unwrap_or_default();
        let (namespace, secret) = (text("namespace"), text("name"));
        let found = self.read(secrets(), workspace, namespace, secret).ok_or_else(|| format!("secret {secret:?} not found"))?;
        let key = base64::decode(found["data"]["key"].as_str().unwrap_or_default()).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| format!("secret {namespace}/{secret} is missing data.key"))?;
        Ok(Sha256::digest(&key).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
    }

    /// Bindings to an export may be concerned, and those to one of its name in a workspace that is gone: they refer to it by path.
    pub(super) fn look_at_bindings(&mut self, workspace: &Arc<str>, name: &str) {
        let meant =
            |(provider, export): &&ExportKey| &**export == name && (provider == workspace || !self.workspaces.contains_key(provider));
        let keys: Vec<ExportKey> = self.bindings.keys().filter(meant).cloned().collect();
        for (workspace, name) in
            keys.iter().filter_map(|key| self.bindings.get(key)).flat_map(BTreeMap::values).flatten().cloned().collect::<Vec<_>>()
        {
            self.ask(Duration::ZERO, Task::Binding(workspace, name));
        }
        self.ask_for_slice(workspace, &name.into());
    }
}
