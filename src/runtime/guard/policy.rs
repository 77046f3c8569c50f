//! What the guard of a workspace should be, and the objects it is made of.
//!
//! Pure: from what the heart sees to a policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::manifest::export::{GUARD_GROUP, GUARD_RESOURCES, GUARD_VERBS, guard_name};
use crate::api::meta::KindRef;
use crate::api::names::LogicalCluster;

/// The policy.
pub(in crate::runtime) const POLICY: KindRef =
    KindRef { group: GUARD_GROUP, version: "v1", kind: "ValidatingAdmissionPolicy", plural: GUARD_RESOURCES[0], namespaced: false };

/// What puts it in force.
pub(in crate::runtime) const BINDING: KindRef =
    KindRef { group: GUARD_GROUP, version: "v1", kind: "ValidatingAdmissionPolicyBinding", plural: GUARD_RESOURCES[1], namespaced: false };

/// A workspace whose binding accepts the guard's claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct Place {
    /// The endpoint it is behind.
    pub(in crate::runtime) endpoint: Arc<str>,
    /// The bindings of the export that accept, by name, and whether each is being deleted.
    pub(in crate::runtime) bindings: BTreeMap<Arc<str>, bool>,
    /// Whether service objects live there; `None` while that is not known for sure.
    pub(in crate::runtime) live: Option<bool>,
}

/// All of them.
pub(in crate::runtime) type Places = BTreeMap<LogicalCluster, Place>;

/// What a workspace's guard should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Want {
    /// It refuses to delete these bindings.
    Guarded(BTreeSet<Arc<str>>),
    /// There is none.
    Free,
}

/// `None`: whatever is there stays.
///
/// A binding that is being deleted already is not guarded: nothing is created in a workspace that is about to leave.
pub(in crate::runtime) fn want(place: &Place) -> Option<Want> {
    let staying: BTreeSet<Arc<str>> = place.bindings.iter().filter(|(_, going)| !**going).map(|(name, _)| name.clone()).collect();
    match place.live? {
        true if staying.is_empty() => None,
        true => Some(Want::Guarded(staying)),
        false => Some(Want::Free),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Claims {
    metadata: Head,
    status: Applied,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Head {
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Applied {
    applied_permission_claims: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    #[serde(default)]
    group: String,
    resource: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Whether a binding accepts the guard, given its JSON: `None` when not, else whether it is being deleted. kcp compares verbs word by word, and so
/// does this.
pub(in crate::runtime) fn accepts(binding: &str) -> Option<bool> {
    // Most bindings name neither kind; reading every one of them twice would be for nothing.
    if !binding.contains(GUARD_GROUP) {
        return None;
    }
    let Claims { metadata, status } = serde_json::from_str(binding).ok()?;
    let in_force = |resource: &&str| {
        let of = |claim: &&Claim| claim.group == GUARD_GROUP && claim.resource == **resource;
        let claim = status.applied_permission_claims.iter().find(of);
        claim.is_some_and(|claim| GUARD_VERBS.iter().all(|verb| claim.verbs.iter().any(|own| own == verb)))
    };
    GUARD_RESOURCES.iter().all(in_force).then_some(metadata.deletion_timestamp.is_some())
}

/// The policy and what puts it in force, in the order they are made.
///
/// A binding is known by its name: kcp shows an export only its own. A `deletecollection` carries no name of its own, which is why the rule looks at
/// the object. Whoever deletes a whole workspace is let through: on kcp that is the server itself, a user that no token and no impersonation gives.
pub(in crate::runtime) fn objects(export: &str, bindings: &BTreeSet<Arc<str>>) -> [(KindRef, Value); 2] {
    let name = guard_name(export);
    let metadata = json!({ "name": name, "labels": { "app.kubernetes.io/managed-by": "kcp-provider-runtime" } });
    let listed: Vec<String> = bindings.iter().map(|binding| format!("'{binding}'")).collect();
    let message = format!(
        "service objects of the export {export} live in this workspace: delete them and wait until they are gone, then unbind. \
         To leave without that, delete the ValidatingAdmissionPolicyBinding {name}: the binding then waits for their finalizers"
    );
    let policy = json!({
        "apiVersion": POLICY.api_version(),
        "kind": POLICY.kind,
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [
                { "apiGroups": ["apis.kcp.io"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["apibindings"], "scope": "*" },
            ] },
            "matchConditions": [
                {
                    "name": "not-the-server",
                    "expression": "!(request.userInfo.username == 'system:apiserver' && has(request.userInfo.groups) && \
                                   'system:masters' in request.userInfo.groups)",
                },
                { "name": "this-binding", "expression": format!("oldObject.metadata.name in [{}]", listed.join(", ")) },
            ],
            "validations": [{ "expression": "false", "message": message, "reason": "Forbidden" }],
        },
    });
    let binding = json!({
        "apiVersion": BINDING.api_version(),
        "kind": BINDING.kind,
        "metadata": metadata,
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [(POLICY, policy), (BINDING, binding)]
}

/// Whether everything that `desired` says is so in `live`, which may say more: the server fills in defaults.
pub(in crate::runtime) fn holds(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().all(|(name, value)| live.get(name).is_some_and(|live| holds(value, live)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len() && desired.iter().zip(live).all(|(desired, live)| holds(desired, live))
        }
        _ => desired == live,
    }
}

/// The live object with our spec, for a PUT that holds only while it is that one.
pub(in crate::runtime) fn replaced(desired: &Value, live: &Value) -> Value {
    let mut replaced = live.clone();
    replaced["spec"] = desired["spec"].clone();
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(bindings: &[(&str, bool)], live: Option<bool>) -> Place {
        let bindings = bindings.iter().map(|(name, going)| (Arc::from(*name), *going)).collect();
        Place { endpoint: "https://h".into(), bindings, live }
    }

    #[test]
    fn a_workspace_is_guarded_exactly_while_objects_live_there() {
        let guarded = |names: &[&str]| Some(Want::Guarded(names.iter().map(|name| Arc::from(*name)).collect()));
        for (why, place, expected) in [
            ("objects live", place(&[("e", false)], Some(true)), guarded(&["e"])),
            ("the last one is gone", place(&[("e", false)], Some(false)), Some(Want::Free)),
            ("nobody knows yet", place(&[("e", false)], None), None),
            ("it is leaving already", place(&[("e", true)], Some(true)), None),
            ("one of two leaves", place(&[("e", true), ("f", false)], Some(true)), guarded(&["f"])),
            ("it has left in all but name", place(&[("e", true)], Some(false)), Some(Want::Free)),
        ] {
            assert_eq!(want(&place), expected, "{why}");
        }
    }

    #[test]
    fn a_binding_accepts_the_guard_with_both_kinds_and_every_verb() {
        let claim = |resource: &str, verbs: &[&str]| json!({ "group": GUARD_GROUP, "resource": resource, "verbs": verbs });
        let [policies, bindings] = GUARD_RESOURCES;
        for (why, claims, expected) in [
            ("both", vec![claim(policies, &GUARD_VERBS), claim(bindings, &GUARD_VERBS)], Some(false)),
            ("one of them", vec![claim(policies, &GUARD_VERBS)], None),
            ("a star is a word of its own", vec![claim(policies, &["*"]), claim(bindings, &GUARD_VERBS)], None),
            ("one verb less", vec![claim(policies, &GUARD_VERBS), claim(bindings, &GUARD_VERBS[1..])], None),
            ("none", vec![], None),
        ] {
            let mut binding = json!({ "metadata": { "name": "e" }, "status": { "appliedPermissionClaims": claims } });
            assert_eq!(accepts(&binding.to_string()), expected, "{why}");
            binding["metadata"]["deletionTimestamp"] = json!("t");
            assert_eq!(accepts(&binding.to_string()), expected.map(|_| true), "{why}, and it is being deleted");
        }
    }

    #[test]
    fn what_the_server_fills_in_is_no_difference_and_a_changed_rule_is() {
        let names: BTreeSet<Arc<str>> = [Arc::from("e")].into();
        for (_, desired) in objects("example.org", &names) {
            let mut live = desired.clone();
            live["metadata"]["uid"] = json!("u");
            live["spec"]["paramKind"] = json!(null);
            assert!(holds(&desired, &live));
        }
        let [(_, one), _] = objects("example.org", &names);
        let [(_, two), _] = objects("example.org", &[Arc::from("e"), Arc::from("f")].into());
        assert!(!holds(&two, &one) && holds(&two, &replaced(&two, &one)));
        assert!(two["spec"]["matchConditions"][1]["expression"] == "oldObject.metadata.name in ['e', 'f']");
    }
}
