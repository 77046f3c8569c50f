//! The kinds that answer who may do what: access reviews, the rules of a user, and who the user is.
//!
//! Pure: a posted object in, the answered one out. Nothing of it is stored.

use std::ops::ControlFlow;

use serde_json::{Map, Value, json};

use super::{Attributes, Decision, Roles, User, decide, rbac};
use crate::embedded::errors::{About, Cause, Refusal};

const GROUP: &str = "authorization.k8s.io";

/// What is wrong with a posted review, before it is answered: 422, whose words name no kind since the real server's do not.
/// `namespace` is that of the URL for a `LocalSubjectAccessReview`, else `""`.
pub fn reviewable(kind: &str, namespace: &str, body: &Value) -> Result<(), Refusal> {
    let spec = &body["spec"];
    let invalid = |field: &str, shown: &str, why: &str| Cause::new("FieldValueInvalid", field, format!("Invalid value: {shown}: {why}"));
    let mut causes = Vec::new();
    match (spec["resourceAttributes"].is_object(), spec["nonResourceAttributes"].is_object()) {
        (true, true) => {
            let field = |name: &str| spec["nonResourceAttributes"][name].as_str().unwrap_or_default();
            let shown = format!("authorization.NonResourceAttributes{{Path:{:?}, Verb:{:?}}}", field("path"), field("verb"));
            causes.push(invalid("spec.nonResourceAttributes", &shown, "cannot be specified in combination with resourceAttributes"));
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(invalid("spec.resourceAttributes", "\"null\"", why));
        }
        _ => {}
    }
    let is_self = kind == "SelfSubjectAccessReview";
    let has_groups = spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
    if !is_self && spec["user"].as_str().unwrap_or_default().is_empty() && !has_groups {
        causes.push(invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    if kind == "LocalSubjectAccessReview" {
        let asked = spec["resourceAttributes"]["namespace"].as_str().unwrap_or_default();
        if spec["resourceAttributes"].is_object() && asked != namespace {
            causes.push(invalid("spec.resourceAttributes.namespace", &format!("{asked:?}"), "must match metadata.namespace"));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(About { group: GROUP, kind: "", name: "" }, &causes)) }
}

/// A `SubjectAccessReview`, `SelfSubjectAccessReview` or `LocalSubjectAccessReview` with its `status`; `user` is who posts it, which only a
/// review of oneself asks for. The answer is that of the whole chain, with [`Roles::bound`] for the kind.
pub fn review(roles: &dyn Roles, workspace: &str, kind: &str, user: &User, body: &Value) -> Value {
    let spec = &body["spec"];
    let asked = if kind == "SelfSubjectAccessReview" { user.clone() } else { reviewed(spec) };
    let of = |attributes: &'static str, name: &str| spec[attributes][name].as_str().unwrap_or_default();
    let resource = |name| of("resourceAttributes", name);
    let attributes = if spec["resourceAttributes"].is_object() {
        Attributes {
            verb: resource("verb"),
            group: resource("group"),
            version: Some(resource("version")).filter(|version| !version.is_empty()).unwrap_or("*"),
            resource: resource("resource"),
            subresource: resource("subresource"),
            namespace: resource("namespace"),
            name: resource("name"),
            path: "",
        }
    } else {
        Attributes::of_path(of("nonResourceAttributes", "verb"), of("nonResourceAttributes", "path"))
    };
    let bound = roles.bound(workspace, attributes.group, attributes.resource);
    let decision = decide(roles, workspace, &asked, &attributes, bound.as_ref());
    let mut status = json!({"allowed": decision.allows()});
    match decision {
        Decision::Privileged => {}
        Decision::Granted => status["reason"] = "access granted".into(),
        Decision::NoOpinion => status["reason"] = "access denied".into(),
        Decision::Denied => {
            status["denied"] = true.into();
            status["reason"] = "access denied".into();
        }
    }
    let mut metadata = json!({"creationTimestamp": null});
    if let Some(namespace) = body["metadata"]["namespace"].as_str() {
        metadata["namespace"] = namespace.into();
    }
    json!({"kind": kind, "apiVersion": format!("{GROUP}/v1"), "metadata": metadata, "spec": spec, "status": status})
}

/// The user of a review, as it says: no group is added.
fn reviewed(spec: &Value) -> User {
    let texts = |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let extra = spec["extra"].as_object().into_iter().flatten().map(|(key, values)| (key.clone(), texts(values)));
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    User { name: text("user"), uid: text("uid"), groups: texts(&spec["groups"]), extra: extra.collect() }
}

/// A `SelfSubjectRulesReview`: the user's rules in `spec.namespace`, without what a policy or a closed workspace takes away.
pub fn rules_review(roles: &dyn Roles, workspace: &str, user: &User, body: &Value) -> Value {
    let namespace = body["spec"]["namespace"].as_str().unwrap_or_default();
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    let user = user.in_workspace(workspace);
    let _ = rbac::visit(roles, workspace, namespace, &user, &mut |rule| {
        let has = |field: &str| rule[field].as_array().is_some_and(|list| !list.is_empty());
        if has("resources") {
            resources.push(only(rule, &["verbs", "apiGroups", "resources", "resourceNames"]));
        }
        if has("nonResourceURLs") {
            paths.push(only(rule, &["verbs", "nonResourceURLs"]));
        }
        ControlFlow::Continue(())
    });
    json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": format!("{GROUP}/v1"),
        "metadata": {"creationTimestamp": null},
        "spec": {},
        "status": {"resourceRules": resources, "nonResourceRules": paths, "incomplete": false},
    })
}

fn only(rule: &Value, fields: &[&str]) -> Value {
    let present = fields.iter().filter(|field| !rule[**field].is_null());
    Value::Object(present.map(|field| ((*field).to_owned(), rule[*field].clone())).collect::<Map<_, _>>())
}

/// A `SelfSubjectReview` of `authentication.k8s.io/v1`, made at `created` (RFC 3339).
pub fn who_am_i(user: &User, created: &str) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": created},
        "status": {"userInfo": info},
    })
}
