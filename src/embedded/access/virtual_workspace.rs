//! The virtual workspace of an export: whether the tenant has let the export in, and whether the user may use the export.
//!
//! Pure: objects, users and attributes in, a decision out. The authorizers are those of `pkg/virtual/apiexport/authorizer`.

use serde_json::Value;

use super::rbac::texts;
use super::{Attributes, BoundKind, MASTERS, Roles, User, decide, denied, policy};
use crate::embedded::errors::Refusal;

/// Whether the user has `apiexports/content` of the export in the provider workspace, for the verb of the request.
///
/// The refusal speaks of `apiexports/content`; a request through the virtual workspace is refused in the words of [`through`].
pub fn content(roles: &dyn Roles, provider: &str, export: &str, user: &User, verb: &str) -> Result<(), Refusal> {
    let attributes = content_attributes(export, verb);
    if decide(roles, provider, user, &attributes, None).allows() { Ok(()) } else { Err(denied(user, &attributes)) }
}

fn content_attributes<'a>(export: &'a str, verb: &'a str) -> Attributes<'a> {
    let version = "v1alpha1";
    Attributes {
        verb,
        group: "apis.kcp.io",
        version,
        resource: "apiexports",
        subresource: "content",
        name: export,
        ..Attributes::default()
    }
}

/// A request through a virtual workspace, once [`invited`] has let it pass: [`content`], then the maximal permission policies of the exports
/// that a claimed kind with an identity comes from (all that share the identity; none for the export's own and for built-in kinds).
pub fn through(
    roles: &dyn Roles,
    provider: &str,
    export: &str,
    user: &User,
    attributes: &Attributes<'_>,
    claimed: &[BoundKind],
) -> Result<(), Refusal> {
    let is_content = || decide(roles, provider, user, &content_attributes(export, attributes.verb), None).allows();
    let within_policies = || claimed.iter().all(|bound| policy(roles, bound, user, attributes, true));
    if user.is_in(MASTERS) || (is_content() && within_policies()) { Ok(()) } else { Err(denied(user, attributes)) }
}

/// Whether a tenant has let the export in for a verb on a kind, by its `APIBinding` to it: the kind is bound, or an accepted claim has the
/// verb. Verbs are compared as words, `*` too: an export's `*` with a binding's `get` is nothing.
///
/// Requests for all workspaces and for paths are not asked. Without any binding the answer is no; the caller refuses with [`denied`].
pub fn invited(export: &Value, binding: &Value, attributes: &Attributes<'_>) -> bool {
    let is_kind = |item: &&Value| text(item, "group") == attributes.group && text(item, "resource") == attributes.resource;
    let list = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    if list(&binding["status"]["boundResources"]).iter().any(|bound| is_kind(&bound)) {
        return true;
    }
    let claims = list(&export["spec"]["permissionClaims"]);
    let accepted = list(&binding["spec"]["permissionClaims"]);
    let by_claim = accepted.iter().filter(|claim| claim["state"] == "Accepted").filter(is_kind).any(|accepted| {
        let same = |claim: &&Value| ["group", "resource", "identityHash"].iter().all(|field| text(claim, field) == text(accepted, field));
        let claimed = claims.iter().find(same);
        let has = |verb: &str| {
            let in_export = claimed.is_some_and(|claim| texts(claim, "verbs").any(|own| own == verb));
            in_export && texts(accepted, "verbs").any(|own| own == verb)
        };
        has(attributes.verb) || has("*")
    });
    let is_roster = attributes.group == "apis.kcp.io" && attributes.resource == "apibindings";
    by_claim || (is_roster && ["get", "list", "watch"].contains(&attributes.verb))
}

fn text<'a>(item: &'a Value, field: &str) -> &'a str {
    item[field].as_str().unwrap_or_default()
}
