//! How kubeconfigs of tenants' workspaces are come by: whether the export asks for what they take, and which way its identity has to their tokens.
//!
//! Pure: from claims, bindings and the server's answers to checks. Nothing is tried, since whoever tries has a token.

use serde_json::Value;

use super::checks::{Check, Status};
use super::claims::{Answer, answer, lacks, title, verbs};
use crate::api::manifest::export::{Claim, access_claims};
use crate::cli::virtual_workspaces::workspace_of;

const CHECK: &str = "access";

/// What an export asks of the claims that kubeconfigs of workspaces take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// None by which anything could be made.
    Nothing,
    /// Not these.
    Part(Vec<String>),
    /// All.
    Whole,
}

/// What these claims offer.
pub fn offer(claimed: &[Value]) -> Offer {
    let wanted: Vec<Value> = access_claims().iter().map(Claim::to_value).collect();
    let missing: Vec<&Value> = wanted.iter().filter(|claim| lacks(claimed, claim)).collect();
    if missing.is_empty() {
        return Offer::Whole;
    }
    // To read a Secret by name, as a provider's door does, is not meant for that.
    let of_access = |own: &&Value| {
        let group = own["group"].as_str().unwrap_or_default();
        access_claims().iter().any(|claim| group == claim.group && own["resource"] == claim.resource)
    };
    let begun = claimed.iter().filter(of_access).any(|own| verbs(own).any(|verb| verb == "create"));
    if begun { Offer::Part(missing.into_iter().map(title).collect()) } else { Offer::Nothing }
}

/// The export's claims as a binding shows them: for who may not read the export itself.
pub fn shown(bindings: &[Value]) -> Option<Vec<Value>> {
    bindings.iter().find_map(|binding| binding["status"]["exportPermissionClaims"].as_array().cloned())
}

/// What is said of the export.
pub fn of_export(export: &str, claimed: Option<&[Value]>) -> Check {
    let check = |status, message| Check { check: CHECK, status, workspace: None, message };
    let Some(claimed) = claimed else {
        return check(
            Status::Note,
            format!("cannot tell whether export {export} offers access: this user may not read it, and no binding shows its claims"),
        );
    };
    match offer(claimed) {
        Offer::Nothing => check(
            Status::Ok,
            format!(
                "way 1: export {export} offers no claims for access; its virtual workspace is the one way into workspaces, without tokens"
            ),
        ),
        Offer::Part(missing) => check(
            Status::Action,
            format!("export {export} offers access in part, so that none can be made; it lacks {}", missing.join(", ")),
        ),
        Offer::Whole => check(
            Status::Ok,
            format!("export {export} offers the claims for access; which way tokens come is asked for each workspace that accepts them"),
        ),
    }
}

/// Whether accounts can be made in the workspace of this binding.
pub fn admits(binding: &Value) -> bool {
    let going = binding["metadata"]["deletionTimestamp"].is_string();
    !going && access_claims().iter().all(|claim| answer(&claim.to_value(), binding) == Answer::InForce)
}

/// What is said of one workspace: whether `who` may ask for tokens there, or why that is not known.
pub fn of_workspace(binding: &Value, who: &str, may: Result<bool, String>) -> Check {
    let (status, message) = match may {
        Ok(true) => (Status::Ok, format!("way 3: {who} may create serviceaccounts/token there, and asks for tokens directly")),
        Ok(false) => (
            Status::Ok,
            format!("way 2: {who} may not create serviceaccounts/token there; an account of its own asks, with the token of its Secret"),
        ),
        Err(problem) => (Status::Note, format!("way 2 or 3: what {who} may do there cannot be known by this user: {problem}")),
    };
    Check { check: CHECK, status, workspace: Some(workspace_of(binding).to_owned()), message }
}

/// That some were not asked about.
pub fn of_others(asked: usize, all: usize) -> Option<Check> {
    let message = format!("{asked} of {all} workspaces that accept access were asked about, those of the first bindings");
    (asked < all).then_some(Check { check: CHECK, status: Status::Note, workspace: None, message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::manifest::door::Door;
    use crate::api::manifest::export::claims;

    fn values(claims: &[Claim]) -> Vec<Value> {
        claims.iter().map(Claim::to_value).collect()
    }

    #[test]
    fn an_export_offers_access_with_all_of_its_claims_and_a_door_does_not_mean_to() {
        assert_eq!(offer(&values(&claims())), Offer::Nothing);
        assert_eq!(offer(&values(&Door::new("otc", "hash").unwrap().claims())), Offer::Nothing);
        assert_eq!(offer(&values(&[claims(), access_claims()].concat())), Offer::Whole);
        let mut part = values(&access_claims());
        part.remove(3);
        part[1]["verbs"] = json!(["get", "create"]);
        let Offer::Part(missing) = offer(&part) else { panic!("a part") };
        assert_eq!(
            missing,
            ["claim secrets (get, create, delete)", "claim clusterrolebindings.rbac.authorization.k8s.io (get, create, delete)"]
        );
        let check = of_export("e", Some(&part));
        assert!(check.status == Status::Action && check.message.contains("it lacks claim secrets"), "{check}");
    }

    #[test]
    fn what_cannot_be_known_is_said_to_be_so() {
        let check = of_export("e", None);
        assert!(check.status == Status::Note && check.message.contains("cannot tell"), "{check}");
        let binding = json!({ "metadata": { "annotations": { "kcp.io/cluster": "a" } } });
        let told = |may| of_workspace(&binding, "kcm", may);
        assert!(told(Ok(true)).message.starts_with("way 3: ") && told(Ok(false)).message.starts_with("way 2: "));
        let unknown = told(Err("403".into()));
        assert_eq!((unknown.status, unknown.workspace.as_deref()), (Status::Note, Some("a")));
        assert!(unknown.message.contains("cannot be known by this user: 403"), "{unknown}");
        assert_eq!(of_others(2, 2), None);
        assert!(of_others(8, 9).unwrap().message.starts_with("8 of 9 "));
    }

    #[test]
    fn a_binding_admits_once_every_claim_is_in_force() {
        let accepted: Vec<Value> = values(&access_claims())
            .into_iter()
            .map(|mut claim| {
                claim["state"] = json!("Accepted");
                claim
            })
            .collect();
        let mut binding =
            json!({ "metadata": {}, "spec": { "permissionClaims": accepted }, "status": { "appliedPermissionClaims": accepted } });
        assert!(admits(&binding));
        binding["status"]["appliedPermissionClaims"].as_array_mut().unwrap().pop();
        assert!(!admits(&binding), "one is not in force yet");
        binding["status"]["appliedPermissionClaims"] = json!(accepted);
        binding["metadata"]["deletionTimestamp"] = json!("t");
        assert!(!admits(&binding), "nothing is made under a binding that is going");
        assert_eq!(shown(&[json!({}), json!({ "status": { "exportPermissionClaims": accepted } })]), Some(accepted));
    }
}
