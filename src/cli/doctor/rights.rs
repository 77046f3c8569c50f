//! Whether the identity behind an export may do what its role says, by the server's own word.

use serde_json::{Value, json};

use super::Patient;
use super::checks::Report;
use crate::api::manifest::rbac;
use crate::cli::kcp_admin::{AdminClient, AdminError, Resource};

const REVIEWS: Resource = Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews");
const OWN_REVIEWS: Resource = Resource::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts");
const ROLE_BINDINGS: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "rolebindings");

/// Whose rights are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The account that `kcm init` issues.
    Account,
    /// Whoever looks: a user who may not ask for others, such as the manager itself.
    Oneself,
}

/// Asks for each right of the role, and of each opt-in role that the identity was given, one request each: about twenty. Where this user may not
/// ask for another, it asks for itself.
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
    let mut needed = vec![("kcm init grants its role".to_owned(), asked(&rules, ""))];
    for role in opted(client, patient, report).await {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        needed.push((format!("config/rbac/{name}.yaml has the role"), asked(&role["rules"], rbac::MANAGER_NAMESPACE)));
    }
    let (mut lacking, mut count, mut own) = (Vec::new(), 0, false);
    for (remedy, all) in needed {
        let mut refused = Vec::new();
        for attributes in all {
            match may(client, patient, &attributes, &mut own).await {
                Ok(true) => {}
                Ok(false) => refused.push(words(&attributes)),
                Err(error) => {
                    report.action("rights", None, format!("cannot ask what {user} may do: {error}"));
                    return Who::Account;
                }
            }
            count += 1;
        }
        if !refused.is_empty() {
            lacking.push((refused.join("; "), remedy));
        }
    }
    let who = if own { "this user".to_owned() } else { user };
    if lacking.is_empty() {
        report.fine("rights", format!("{who} may do all {count} things that it has to"));
    }
    for (refused, remedy) in lacking {
        report.action("rights", None, format!("{who} may not {refused}: {remedy}"));
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

/// The opt-in roles that the identity was given, as they should be.
async fn opted(client: &AdminClient, patient: &Patient, report: &mut Report) -> Vec<Value> {
    let account = (patient.namespace.as_str(), patient.account);
    let mut found = Vec::new();
    for [role, wanted] in [rbac::workloads(rbac::MANAGER_NAMESPACE, account), rbac::secured(rbac::MANAGER_NAMESPACE, account)] {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let live = match client.find(&ROLE_BINDINGS, rbac::MANAGER_NAMESPACE, name).await {
            Ok(live) => live,
            Err(error) => {
                report.note("rights", None, format!("whether it was given the role {name} cannot be read: {error}"));
                continue;
            }
        };
        let names_it = |subject: &Value| ["kind", "namespace", "name"].iter().all(|field| subject[field] == wanted["subjects"][0][field]);
        if live.is_some_and(|live| live["subjects"].as_array().into_iter().flatten().any(names_it)) {
            found.push(role);
        }
    }
    found
}

/// What is asked for all rules of a role, in one namespace or in none.
fn asked(rules: &Value, namespace: &str) -> Vec<Value> {
    rules.as_array().into_iter().flatten().flat_map(|rule| attributes(rule, namespace)).collect()
}

/// Each verb on each resource of a rule, by name where the rule has names.
fn attributes(rule: &Value, namespace: &str) -> Vec<Value> {
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
            let mut asked = json!({ "group": group, "resource": resource, "subresource": subresource, "name": name, "verb": verb });
            if !namespace.is_empty() {
                asked["namespace"] = namespace.into();
            }
            found.push(asked);
        }
    }
    found
}

fn words(attributes: &Value) -> String {
    let word = |field: &str| attributes[field].as_str().unwrap_or_default();
    let part = |separator: &str, field: &str| if word(field).is_empty() { String::new() } else { format!("{separator}{}", word(field)) };
    let object = format!("{}{}{}{}", word("resource"), part(".", "group"), part("/", "subresource"), part(" ", "name"));
    format!("{} {object}{}", word("verb"), part(" in ", "namespace"))
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
        let asked: Vec<String> = attributes(&rule, "").iter().map(words).collect();
        assert_eq!(asked, ["get apiexports.apis.kcp.io/content e", "list apiexports.apis.kcp.io/content e"]);
        let plain = json!({ "apiGroups": [""], "resources": ["a", "b"], "verbs": ["get"] });
        assert_eq!(attributes(&plain, "").iter().map(words).collect::<Vec<_>>(), ["get a", "get b"]);
        assert_eq!(attributes(&plain, "kcm-system").iter().map(words).collect::<Vec<_>>(), ["get a in kcm-system", "get b in kcm-system"]);
    }
}
