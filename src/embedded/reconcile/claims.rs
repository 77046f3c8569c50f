//! Permission claims: which are accepted, and the labels that claimed objects carry so that a virtual workspace finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha224};

use crate::embedded::served::Served;
use crate::embedded::store::Place;
use crate::embedded::world::objects::{set, set_condition, some};
use crate::embedded::world::workspaces::bindings;
use crate::embedded::world::{Claim, Task, World};

/// The start of a label's key on a claimed object.
const CLAIMED: &str = "claimed.internal.apis.kcp.io/";

/// The key and the value of the label that objects carry for an export's claim.
pub(crate) fn label(provider: &str, export: &str, claim: &Value) -> (String, String) {
    // The claim as Go writes it: an empty group and an empty identity are left out, and verbs do not count.
    let text = |field: &str| claim[field].as_str().filter(|text| !text.is_empty());
    let pair = |field: &str, end: &str| text(field).map(|text| format!("{}:{}{end}", json!(field), json!(text))).unwrap_or_default();
    let identity = text("identityHash").map(|text| format!(",\"identityHash\":{}", json!(text))).unwrap_or_default();
    let written = format!("{{{}{},\"verbs\":null{identity}}}", pair("group", ","), pair("resource", ""));
    (format!("{CLAIMED}{}", export_label(provider, export)), base_62(&Sha224::digest(written)))
}

/// The same of the bindings to the export itself, which it always sees.
pub(crate) fn own_label(provider: &str, export: &str) -> (String, String) {
    // A constant of kcp's: the digits from 0 to 9, again and again.
    let constant: Vec<u8> = (0..10).cycle().take(28).collect();
    (format!("{CLAIMED}{}", export_label(provider, export)), base_62(&constant))
}

/// A name for the export in the label `internal.apis.kcp.io/export`.
pub(crate) fn export_label(provider: &str, export: &str) -> String {
    base_62(&Sha224::digest(format!("{provider}:{export}")))
}

/// Go's `big.Int.Text(62)` of bytes.
fn base_62(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = bytes.to_vec();
    let mut text = String::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest: u16 = 0;
        for byte in &mut number {
            let value = rest * 256 + u16::from(*byte);
            // Less than 62 × 256 divided by 62.
            *byte = u8::try_from(value / 62).unwrap_or_default();
            rest = value % 62;
        }
        text.insert(0, char::from(DIGITS[usize::from(rest)]));
    }
    text
}

impl World {
    /// Sets the labels of accepted claims on an object that is about to be stored, and takes those away that hold no more.
    pub(crate) fn label(&self, kind: &Served, place: &Place, object: &mut Value) {
        let Some(found) = self.workspaces.get(&place.workspace) else { return };
        let own = self.own_label(kind, place, object);
        let of_kind = |claim: &&Claim| claim.group == kind.names.group && claim.resource == kind.names.plural;
        let claims = found.claims.iter().filter(of_kind).map(|claim| (claim.key.to_string(), claim.value.to_string()));
        let wanted: BTreeMap<String, String> = own.into_iter().chain(claims).collect();
        let there = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        if wanted.is_empty() && !there.keys().any(|key| key.starts_with(CLAIMED)) {
            return;
        }
        let mut labels: BTreeMap<String, Value> = there.into_iter().filter(|(key, _)| !key.starts_with(CLAIMED)).collect();
        labels.extend(wanted.into_iter().map(|(key, value)| (key, value.into())));
        let labels = if labels.is_empty() { Value::Null } else { json!(labels) };
        set(&mut object["metadata"], "labels", labels);
    }

    fn own_label(&self, kind: &Served, place: &Place, object: &Value) -> Option<(String, String)> {
        if kind.storage != bindings().storage || object["status"]["phase"].is_null() {
            return None;
        }
        let (provider, export) = self.export_key(&place.workspace, object)?;
        Some(own_label(&provider, &export))
    }

    /// Compares what a binding accepts with what its export asks for, and says so in its status.
    pub(super) fn apply_claims(&mut self, workspace: &Arc<str>, name: &str, binding: &Value, provider: &str, export: &Value) {
        let key = |claim: &Value| {
            let text = |field: &str| claim[field].as_str().unwrap_or_default().to_owned();
            (text("resource"), text("group"), text("identityHash"))
        };
        let asked: BTreeSet<_> = export["spec"]["permissionClaims"].as_array().into_iter().flatten().map(key).collect();
        let accepted = binding["spec"]["permissionClaims"].as_array().into_iter().flatten().filter(|claim| claim["state"] == "Accepted");
        let accepted: BTreeMap<_, Value> = accepted.map(|claim| (key(claim), claim.clone())).collect();
        let applied: Vec<Value> = accepted.iter().filter(|(key, _)| asked.contains(*key)).map(|(_, claim)| without_state(claim)).collect();
        let unexpected: Vec<String> = accepted
            .keys()
            .filter(|key| !asked.contains(*key))
            .map(|(resource, group, identity)| format!("unexpected/invalid claim for {resource}.{group} (identity {identity:?})"))
            .collect();
        let now = self.stamp();
        let exported = export["spec"]["permissionClaims"].clone();
        self.status_of(workspace, name, |binding| {
            let status = &mut binding["status"];
            status["apiExportClusterName"] = provider.into();
            for (field, value) in [("exportPermissionClaims", exported), ("appliedPermissionClaims", applied.into())] {
                set(status, field, some(value.as_array().cloned().unwrap_or_default()));
            }
            set_condition(binding, "PermissionClaimsApplied", "True", &Value::Null, &now);
            if unexpected.is_empty() {
                set_condition(binding, "PermissionClaimsValid", "True", &Value::Null, &now);
                return;
            }
            let shown = &unexpected[..unexpected.len().min(10)];
            let list = if let [one] = shown { one.clone() } else { format!("[{}]", shown.join(", ")) };
            let message =
                format!("{} unexpected and/or invalid permission claims (showing first {}): {list}", unexpected.len(), shown.len());
            let rest = json!({"reason": "InvalidPermissionClaims", "severity": "Error", "message": message});
            set_condition(binding, "PermissionClaimsValid", "False", &rest, &now);
        });
        self.ask(Duration::ZERO, Task::Claims(workspace.clone()));
    }

    /// Brings the labels of all claimed objects of a workspace up to date. Those of an export that is no longer bound stay until the object is
    /// written again, as they do in kcp: a list over all workspaces still shows such an object.
    pub(super) fn do_claims(&mut self, workspace: &Arc<str>) {
        let mut claims = BTreeSet::new();
        let mut bound = BTreeSet::new();
        for binding in self.all(bindings(), workspace) {
            let Some((provider, export)) = self.export_key(workspace, &binding) else { continue };
            bound.insert(own_label(&provider, &export).0);
            for claim in binding["status"]["appliedPermissionClaims"].as_array().into_iter().flatten() {
                let (key, value) = label(&provider, &export, claim);
                let text = |field: &str| Arc::from(claim[field].as_str().unwrap_or_default());
                claims.insert(Claim { group: text("group"), resource: text("resource"), key: key.into(), value: value.into() });
            }
        }
        let Some(found) = self.workspaces.get_mut(workspace) else { return };
        let claims: Vec<Claim> = claims.into_iter().collect();
        if found.claims == claims {
            return;
        }
        let changed = |claim: &Claim, other: &[Claim]| !other.contains(claim);
        let before = std::mem::replace(&mut found.claims, claims.clone());
        let touched: BTreeSet<(Arc<str>, Arc<str>)> = before
            .iter()
            .filter(|claim| changed(claim, &claims) && bound.contains(&*claim.key))
            .chain(claims.iter().filter(|claim| changed(claim, &before)))
            .map(|claim| (claim.group.clone(), claim.resource.clone()))
            .collect();
        for kind in self.stored_kinds(workspace) {
            if !touched.contains(&(kind.names.group.clone(), kind.names.plural.clone())) {
                continue;
            }
            for object in self.all(&kind, workspace) {
                let Place { namespace, name, .. } = Place::of(workspace, &object);
                self.edit(&kind, workspace, &namespace, &name, "", |_| {});
            }
        }
    }
}

fn without_state(claim: &Value) -> Value {
    let mut claim = claim.clone();
    if let Some(fields) = claim.as_object_mut() {
        fields.remove("state");
    }
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_kcp() {
        // Seen on kcp v0.28.0.
        let (provider, export) = ("19ctilck6a6bn89n", "lab");
        let key = "claimed.internal.apis.kcp.io/7RBQE7dgZPyOhhWgITiCNFQBYOLQeN98dxrnU7";
        let secrets = json!({"group": "", "resource": "secrets", "verbs": ["get"], "identityHash": ""});
        assert_eq!(label(provider, export, &secrets), (key.into(), "ctwrJRvMX7cX8wwk40Lz00UjJhYxPWE3TpN1lu".into()));
        assert_eq!(own_label(provider, export), (key.into(), "LstvmbbzVDDOn90ZbhzSQO5U3DMCf88h1pZ".into()));
    }
}
