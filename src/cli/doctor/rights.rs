//! Whether the identity behind an export may do what its role says, by the server's own word.

use serde_json::{Value, json};

use super::Patient;
use super::checks::Report;
use crate::api::manifest::rbac;
use crate::cli::kcp_admin::{AdminClient, AdminError, Resource};

const REVIEWS: Resource = Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews");
const OWN_REVIEWS: Resource = Resource::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts");

/// Whose rights are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The account that `kcm init` issues.
    Account,
    /// Whoever looks: a user who may not ask for others, such as the manager itself.
    Oneself,
}

/// Asks for each right of the role, one request each: about twenty. Where this user may not ask for another, it asks for itself.
pub(super) async fn check(client: &AdminClient, patient: &Patient, manages: bool, report: &mut Report) -> Who {
    let Patient { namespace, account, .. } = patient;
    let user = patient.user();
    if matches!(client.find(&ACCOUNTS, namespace, account).await, Ok(None)) {
        report.action("rights", None, format!("there is no ServiceAccount {namespace}/{account}: kcm init makes it"));
    }
    let mut rules = patient.role["rules"].clone();
    if manages {
        let [role, _] = rbac::manager_exports();
        if let (Some(rules), Some(more)) = (rules.as_array_mut(), role["rules"].as_array()) {
            rules.extend(more.iter().cloned());
        }
    }
    let (mut lacking, mut asked, mut own) = (Vec::new(), 0, false);
    for attributes in rules.as_array().into_iter().flatten().flat_map(attributes) {
        match may(client, patient, &attributes, &mut own).await {
            Ok(true) => {}
            Ok(false) => lacking.push(words(&attributes)),
            Err(error) => {
                report.action("rights", None, format!("cannot ask what {user} may do: {error}"));
                return Who::Account;
            }
        }
        asked += 1;
    }
    let who = if own { "this user".to_owned() } else { user };
    if lacking.is_empty() {
        report.fine("rights", format!("{who} may do all {asked} things that it has to"));
    } else {
        report.action("rights", None, format!("{who} may not {}: kcm init grants its role", lacking.join("; ")));
    }
    if own { Who::Oneself } else { Who::Account }
}

/// Whether who is looked at may ask for accounts' tokens in a tenant's workspace. It is a question, and makes none.
///
/// # Errors
/// When this user may not ask that of the account, or there is no answer.
pub(super) async fn may_ask_for_tokens(tenant: &AdminClient, patient: &Patient, home: &str, who: Who) -> Result<bool, AdminError> {
    let attributes =
        json!({ "group": "", "resource": "serviceaccounts", "subresource": "token", "namespace": "default", "verb": "create" });
    if who == Who::Oneself {
        return match review(tenant, &OWN_REVIEWS, "SelfSubjectAccessReview", &json!({ "resourceAttributes": attributes })).await {
            // Who may not even ask is not let into the workspace, and gets no token there either.
            Err(error) if matches!(error.code(), Some(401 | 403 | 404)) => Ok(false),
            answer => answer,
        };
    }
    // Without saying where it is from, a tenant's own account of that name would be meant.
    let extra = json!({ "authentication.kubernetes.io/cluster-name": [home] });
    let spec = json!({ "user": patient.user(), "groups": patient.groups(), "extra": extra, "resourceAttributes": attributes });
    review(tenant, &REVIEWS, "SubjectAccessReview", &spec).await
}

/// Each verb on each resource of a rule, by name where the rule has names.
fn attributes(rule: &Value) -> Vec<Value> {
    let words = |field: &str| -> Vec<String> {
        let all = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>();
        if all.is_empty() { vec![String::new()] } else { all }
    };
    let mut found = Vec::new();
    for (group, resource, name) in
        words("apiGroups").iter().flat_map(|g| words("resources").into_iter().map(move |r| (g.clone(), r))).flat_map(|(g, r)| {
            let named = words("resourceNames");
            named.into_iter().map(move |n| (g.clone(), r.clone(), n))
        })
    {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource.as_str(), ""));
        for verb in words("verbs") {
            let asked = json!({ "group": group, "resource": resource, "subresource": subresource, "name": name, "verb": verb });
            found.push(asked);
        }
    }
    found
}

fn words(attributes: &Value) -> String {
    let word = |field: &str| attributes[field].as_str().unwrap_or_default();
    let part = |separator: &str, field: &str| if word(field).is_empty() { String::new() } else { format!("{separator}{}", word(field)) };
    format!("{} {}{}{}{}", word("verb"), word("resource"), part(".", "group"), part("/", "subresource"), part(" ", "name"))
}

async fn may(client: &AdminClient, patient: &Patient, attributes: &Value, own: &mut bool) -> Result<bool, AdminError> {
    if !*own {
        let spec = json!({ "user": patient.user(), "groups": patient.groups(), "resourceAttributes": attributes });
        match review(client, &REVIEWS, "SubjectAccessReview", &spec).await {
            Err(error) if error.is_forbidden() => *own = true,
            answer => return answer,
        }
    }
    review(client, &OWN_REVIEWS, "SelfSubjectAccessReview", &json!({ "resourceAttributes": attributes })).await
}

async fn review(client: &AdminClient, kind: &Resource, title: &str, spec: &Value) -> Result<bool, AdminError> {
    let body = json!({ "apiVersion": kind.api_version(), "kind": title, "spec": spec });
    Ok(client.create(kind, "", &body).await?["status"]["allowed"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_asked_for_verb_by_verb_and_name_by_name() {
        let rule =
            json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": ["e"], "verbs": ["get", "list"] });
        let asked: Vec<String> = attributes(&rule).iter().map(words).collect();
        assert_eq!(asked, ["get apiexports.apis.kcp.io/content e", "list apiexports.apis.kcp.io/content e"]);
        let plain = json!({ "apiGroups": [""], "resources": ["a", "b"], "verbs": ["get"] });
        assert_eq!(attributes(&plain).iter().map(words).collect::<Vec<_>>(), ["get a", "get b"]);
    }
}
