//! Roles and bindings that grant more than their author has.
//!
//! Pure: an object and its author in, the refusal out. The rules are those of `pkg/registry/rbac`; the author's own rights are read from the
//! objects of the workspace alone, as kcp does it: what applies everywhere (`view`, `cluster-admin`) neither counts nor can be bound without
//! the verb `bind`, and answers 404 there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rbac::{self, path_matches, texts};
use super::{Attributes, MASTERS, RBAC, Roles, User, decide};
use crate::embedded::errors::{About, Refusal};

/// Why a user may not write this `ClusterRole`, `Role`, `ClusterRoleBinding` or `RoleBinding`; `None` if it may, and for other kinds.
///
/// `update` says that there is an object of this name, which matters to the verb `escalate` on a name. Updates that change only owner
/// references and finalizers are not asked for.
pub fn escalates(roles: &dyn Roles, workspace: &str, user: &User, object: &Value, update: bool) -> Option<Refusal> {
    if user.is_in(MASTERS) {
        return None;
    }
    let author = Author { roles, workspace, namespace: rbac::namespace_of(object), user };
    match object["kind"].as_str()? {
        "ClusterRole" => author.role(object, "clusterroles", update),
        "Role" => author.role(object, "roles", update),
        "ClusterRoleBinding" => author.binding(object, "clusterrolebindings"),
        "RoleBinding" => author.binding(object, "rolebindings"),
        _ => None,
    }
}

struct Author<'a> {
    roles: &'a dyn Roles,
    workspace: &'a str,
    namespace: &'a str,
    user: &'a User,
}

impl Author<'_> {
    fn role(&self, role: &Value, resource: &str, update: bool) -> Option<Refusal> {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        if self.may("escalate", resource, if update { name } else { "" }) {
            return None;
        }
        let about = About { group: RBAC, kind: resource, name };
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(why) = self.lacks(rules, resource) {
            return Some(Refusal::forbidden(about, &why));
        }
        let everything =
            [json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), json!({"verbs": ["*"], "nonResourceURLs": ["*"]})];
        let aggregates = role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|list| !list.is_empty());
        let refused = aggregates && self.lacks(&everything, resource).is_some();
        refused.then(|| Refusal::forbidden(about, "must have cluster-admin privileges to use the aggregationRule"))
    }

    fn binding(&self, binding: &Value, resource: &str) -> Option<Refusal> {
        let name = binding["metadata"]["name"].as_str().unwrap_or_default();
        let bound = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let kind = if binding["roleRef"]["kind"] == "ClusterRole" { "clusterroles" } else { "roles" };
        if self.may("bind", kind, bound) {
            return None;
        }
        let Some(role) = rbac::role_of(self.roles, self.workspace, binding) else {
            return Some(Refusal::not_found(About { group: RBAC, kind: resource, name: bound }));
        };
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.lacks(rules, resource).map(|why| Refusal::forbidden(About { group: RBAC, kind: resource, name }, &why))
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let attributes = Attributes { verb, group: RBAC, version: "*", resource, namespace: self.namespace, name, ..Attributes::default() };
        decide(self.roles, self.workspace, self.user, &attributes, None).allows()
    }

    /// What of these rules the author does not have, in the server's words.
    fn lacks(&self, rules: &[Value], resource: &str) -> Option<String> {
        let effective = self.user.in_workspace(self.workspace);
        let (mut own, mut unresolved) = (Vec::new(), Vec::new());
        for binding in rbac::bindings(self.roles, self.workspace, self.namespace) {
            if !rbac::applies(&binding, &effective, rbac::namespace_of(&binding)) {
                continue;
            }
            match rbac::role_of(self.roles, self.workspace, &binding) {
                Some(role) => own.extend(role["rules"].as_array().cloned().unwrap_or_default()),
                None => unresolved.push(binding["roleRef"]["name"].as_str().unwrap_or_default().to_owned()),
            }
        }
        let missing: Vec<Atom> = rules.iter().flat_map(atoms).filter(|atom| !own.iter().any(|rule| covers(rule, atom))).collect();
        if missing.is_empty() {
            return None;
        }
        let User { name, groups, .. } = self.user;
        let groups = quoted(groups.iter().map(String::as_str));
        let mut why = format!("user {name:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n");
        why.push_str(&described(missing).join("\n"));
        if !unresolved.is_empty() {
            why.push_str(&unresolved_roles(&unresolved, resource));
        }
        Some(why)
    }
}

/// The server names the kind of the request, not that of the role.
fn unresolved_roles(names: &[String], resource: &str) -> String {
    let mut each: Vec<String> = Vec::new();
    for name in names {
        let error = format!("{resource}.{RBAC} {name:?} not found");
        if !each.contains(&error) {
            each.push(error);
        }
    }
    match each.as_slice() {
        [one] => format!("; resolution errors: [{one}]"),
        several => format!("; resolution errors: [[{}]]", several.join(", ")),
    }
}

/// The smallest part of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target<'a> {
    Kind { group: &'a str, resource: &'a str, name: Option<&'a str> },
    Path(&'a str),
}

type Atom<'a> = (Target<'a>, &'a str);

fn atoms(rule: &Value) -> Vec<Atom<'_>> {
    let mut atoms = Vec::new();
    let names: Vec<Option<&str>> = texts(rule, "resourceNames").map(Some).collect();
    let names = if names.is_empty() { vec![None] } else { names };
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                atoms.extend(names.iter().map(|name| (Target::Kind { group, resource, name: *name }, verb)));
            }
        }
    }
    for path in texts(rule, "nonResourceURLs") {
        atoms.extend(texts(rule, "verbs").map(|verb| (Target::Path(path), verb)));
    }
    atoms
}

fn covers(rule: &Value, (target, verb): &Atom<'_>) -> bool {
    let has = |field: &str, wanted: &str| texts(rule, field).any(|text| text == "*" || text == wanted);
    let covered = match target {
        Target::Path(path) => texts(rule, "nonResourceURLs").any(|own| path_matches(own, path)),
        Target::Kind { group, resource, name } => {
            let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
            let any_kind = |text: &str| subresource.is_some() && text.strip_prefix("*/") == subresource;
            let mut names = texts(rule, "resourceNames").peekable();
            has("apiGroups", group)
                && texts(rule, "resources").any(|text| text == "*" || text == *resource || any_kind(text))
                && (names.peek().is_none() || name.is_some_and(|name| names.any(|own| own == name)))
        }
    };
    covered && has("verbs", verb)
}

/// One line for each kind with its verbs, and one for each path and verb.
fn described(missing: Vec<Atom<'_>>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut kinds: BTreeMap<Target<'_>, Vec<&str>> = BTreeMap::new();
    for (target, verb) in missing {
        match target {
            Target::Path(path) => lines.push(format!("{{NonResourceURLs:[{path:?}], Verbs:[{verb:?}]}}")),
            kind @ Target::Kind { .. } => kinds.entry(kind).or_default().push(verb),
        }
    }
    for (target, verbs) in kinds {
        if let Target::Kind { group, resource, name } = target {
            let names = name.map(|name| format!(", ResourceNames:[{name:?}]")).unwrap_or_default();
            let verbs = quoted(verbs.into_iter());
            lines.push(format!("{{APIGroups:[{group:?}], Resources:[{resource:?}]{names}, Verbs:{verbs}}}"));
        }
    }
    lines.sort();
    lines.dedup();
    lines
}

/// `["a" "b"]`.
fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" "))
}
