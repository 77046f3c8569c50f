//! What the export claims, beside what each binding answers.
//!
//! Pure: verbs are compared word by word, as kcp does it: `*` in a binding meets only `*` in the export.

use serde_json::Value;

use super::checks::{Check, Status};
use crate::api::manifest::export::{Claim, GUARD_GROUP};
use crate::cli::virtual_workspaces::workspace_of;

/// How a binding answers one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepted with every verb, and in force.
    InForce,
    /// Accepted with every verb, not in force yet.
    Accepted,
    /// Accepted without these verbs.
    Narrower(Vec<String>),
    /// Rejected.
    Rejected,
    /// Neither accepted nor rejected.
    Missing,
}

/// The answer of a binding to a claim as it stands in the export.
pub fn answer(claim: &Value, binding: &Value) -> Answer {
    let all = |at: &str| binding.pointer(at).and_then(Value::as_array).into_iter().flatten();
    let Some(own) = all("/spec/permissionClaims").find(|own| same(claim, own)) else { return Answer::Missing };
    if own["state"] != "Accepted" {
        return Answer::Rejected;
    }
    let accepted: Vec<&str> = verbs(own).collect();
    let lacking: Vec<String> = verbs(claim).filter(|verb| !accepted.contains(verb)).map(ToOwned::to_owned).collect();
    if !lacking.is_empty() {
        return Answer::Narrower(lacking);
    }
    if all("/status/appliedPermissionClaims").any(|applied| same(claim, applied)) { Answer::InForce } else { Answer::Accepted }
}

fn same(a: &Value, b: &Value) -> bool {
    // The server writes an empty group and an empty identity, people leave them out.
    let field = |claim: &Value, name: &str| claim[name].as_str().unwrap_or_default().to_owned();
    ["group", "resource", "identityHash"].iter().all(|name| field(a, name) == field(b, name))
}

pub(super) fn verbs(claim: &Value) -> impl Iterator<Item = &str> {
    claim["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

pub(super) fn title(claim: &Value) -> String {
    let group = claim["group"].as_str().filter(|group| !group.is_empty()).map(|group| format!(".{group}")).unwrap_or_default();
    format!("claim {}{group} ({})", claim["resource"].as_str().unwrap_or_default(), verbs(claim).collect::<Vec<_>>().join(", "))
}

/// One check for each claim that a binding does not have in force, or one for all of them.
pub fn answered(claimed: &[Value], binding: &Value) -> Vec<Check> {
    let check = |status, message| Check { check: "claims", status, workspace: Some(workspace_of(binding).to_owned()), message };
    if binding["metadata"]["deletionTimestamp"].is_string() || claimed.is_empty() {
        return Vec::new();
    }
    let found = claimed.iter().filter_map(|claim| {
        let title = title(claim);
        // The guard is offered to tenants: who does not take it has none.
        let lack = if claim["group"] == GUARD_GROUP { Status::Note } else { Status::Action };
        match answer(claim, binding) {
            Answer::InForce => None,
            Answer::Accepted => Some(check(Status::Note, format!("{title} is accepted and not in force yet: kcp takes some seconds"))),
            Answer::Rejected => Some(check(Status::Note, format!("{title} is rejected by the tenant"))),
            Answer::Missing => Some(check(lack, format!("{title} is missing in the binding: the tenant applies what kcm bind prints"))),
            Answer::Narrower(lacking) => {
                Some(check(lack, format!("{title} is accepted without {}: the tenant applies what kcm bind prints", lacking.join(", "))))
            }
        }
    });
    let found: Vec<Check> = found.collect();
    if found.is_empty() { vec![check(Status::Ok, format!("all {} claims are in force", claimed.len()))] } else { found }
}

/// Whether a claim, or a verb of it, is not among these.
pub(super) fn lacks(claimed: &[Value], claim: &Value) -> bool {
    let own = claimed.iter().find(|own| same(claim, own));
    own.is_none_or(|own| verbs(claim).any(|verb| !verbs(own).any(|own| own == verb)))
}

/// Whether the export claims what this version's would, which is `wanted`.
pub fn offered(claimed: &[Value], wanted: &[Claim]) -> Vec<Check> {
    let wanted = wanted.iter().map(Claim::to_value).filter(|claim| lacks(claimed, claim));
    let found = wanted.map(|claim| Check {
        check: "claims",
        status: Status::Action,
        workspace: None,
        message: format!("{} is not in the export: kcm init adds it", title(&claim)),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::manifest::export::claims;

    fn claim() -> Value {
        json!({ "group": "", "resource": "events", "verbs": ["create", "patch"] })
    }

    fn binding(state: &str, verbs: &Value, applied: bool) -> Value {
        let own = json!({ "resource": "events", "verbs": verbs, "state": state });
        let applied = if applied { json!([{ "group": "", "resource": "events", "identityHash": "" }]) } else { json!([]) };
        json!({ "metadata": { "annotations": { "kcp.io/cluster": "a" } }, "spec": { "permissionClaims": [own] },
            "status": { "appliedPermissionClaims": applied } })
    }

    #[test]
    fn verbs_are_compared_word_by_word() {
        let whole = json!(["patch", "create", "get"]);
        for (why, binding, expected) in [
            ("more verbs than asked", binding("Accepted", &whole, true), Answer::InForce),
            ("just accepted", binding("Accepted", &whole, false), Answer::Accepted),
            ("a star meets only a star", binding("Accepted", &json!(["*"]), true), Answer::Narrower(vec!["create".into(), "patch".into()])),
            ("one verb less", binding("Accepted", &json!(["create"]), true), Answer::Narrower(vec!["patch".into()])),
            ("rejected", binding("Rejected", &whole, false), Answer::Rejected),
            ("no answer", json!({}), Answer::Missing),
        ] {
            assert_eq!(answer(&claim(), &binding), expected, "{why}");
        }
        let mut of_an_export = claim();
        of_an_export["identityHash"] = json!("hash");
        assert_eq!(
            answer(&of_an_export, &binding("Accepted", &whole, true)),
            Answer::Missing,
            "a claim of another export is another claim"
        );
    }

    #[test]
    fn the_missing_claim_is_named_with_its_workspace_and_a_rejected_one_is_noted() {
        let [missing] = answered(&[claim()], &json!({ "metadata": { "annotations": { "kcp.io/cluster": "a" } } })).try_into().unwrap();
        assert_eq!((missing.status, missing.workspace.as_deref()), (Status::Action, Some("a")));
        assert!(missing.message.contains("claim events (create, patch) is missing"), "{missing}");
        let [rejected] = answered(&[claim()], &binding("Rejected", &json!(["create", "patch"]), false)).try_into().unwrap();
        assert_eq!(rejected.status, Status::Note);
        let [fine] = answered(&[claim()], &binding("Accepted", &json!(["create", "patch"]), true)).try_into().unwrap();
        assert_eq!(fine.status, Status::Ok);
    }

    #[test]
    fn the_guard_is_offered_and_not_demanded() {
        let guard: Vec<Value> = crate::api::manifest::export::guard_claims().iter().map(Claim::to_value).collect();
        let found = answered(&guard, &json!({ "metadata": {} }));
        assert!(found.len() == 2 && found.iter().all(|check| check.status == Status::Note), "{found:?}");
    }

    #[test]
    fn an_export_that_lost_a_claim_or_a_verb_needs_action() {
        let mut own: Vec<Value> = claims().iter().map(Claim::to_value).collect();
        assert_eq!(offered(&own, &claims()), []);
        own[0]["verbs"] = json!(["create"]);
        assert_eq!(offered(&own, &claims()).len(), 1);
        assert_eq!(offered(&[], &claims()).len(), own.len());
    }
}
