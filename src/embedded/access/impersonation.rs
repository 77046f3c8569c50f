//! `Impersonate-*` headers: a user who acts as another one.
//!
//! Pure: a user and headers in, a user out. The rules are those of the apiserver's `filters/impersonation.go` and of the gatekeeper that kcp
//! puts before it.

use super::user::account_groups;
use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, EXTERNAL_LOGICAL_CLUSTER_ADMIN, KCP_ADMIN, LOGICAL_CLUSTER_ADMIN, MASTERS, Roles, SCOPES,
    UNAUTHENTICATED, User, WORKSPACE_BOOTSTRAPPER, direct,
};
use crate::embedded::errors::{About, Refusal};

const EXTRA: &str = "impersonate-extra-";
/// Groups that only their members may act as.
const SPECIAL: [&str; 5] = [LOGICAL_CLUSTER_ADMIN, EXTERNAL_LOGICAL_CLUSTER_ADMIN, WORKSPACE_BOOTSTRAPPER, KCP_ADMIN, AUTHENTICATED];
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user that a request acts as: `user` itself without such headers. Header names are compared without case.
///
/// Each of user, groups, extras and UID needs the verb `impersonate` in the workspace. Whom anybody but [`MASTERS`] acts as is a user of this
/// workspace only. 403 for what is not allowed; 500 in plain text for a group, extra or UID without a user (the real server's text also
/// has the URI of the request).
pub fn impersonate(roles: &dyn Roles, workspace: &str, user: &User, headers: &[(String, String)]) -> Result<User, Refusal> {
    let asked = Asked::read(headers);
    if asked.is_empty() {
        return Ok(user.clone());
    }
    let is_special = |group: &String| group == MASTERS || SPECIAL.contains(&group.as_str());
    if !user.is_in(MASTERS) && asked.groups.iter().any(|group| is_special(group) && !user.is_in(group)) {
        let nothing = About { group: "", kind: "", name: "" };
        return Err(Refusal::forbidden(nothing, "impersonation is not allowed for the requestor"));
    }
    let Some(name) = &asked.name else {
        let message = format!("Internal Server Error: requested [{}] without impersonating a user\n", asked.references().join(" "));
        return Err(Refusal::plain(500, message));
    };
    let account = User::account(name);
    for attributes in asked.attributes(name, account) {
        direct(roles, workspace, user, &attributes, None)?;
    }
    let mut groups = match account {
        Some((namespace, _)) if asked.groups.is_empty() => account_groups(namespace).to_vec(),
        _ => asked.groups.clone(),
    };
    let (added, unless) =
        if name == ANONYMOUS { (UNAUTHENTICATED, [UNAUTHENTICATED; 2]) } else { (AUTHENTICATED, [AUTHENTICATED, UNAUTHENTICATED]) };
    if !groups.iter().any(|group| unless.contains(&group.as_str())) {
        groups.push(added.to_owned());
    }
    let mut acting = User { name: name.clone(), uid: asked.uid.clone(), groups, ..User::default() };
    for (key, value) in asked.extra {
        acting.extra.entry(key).or_default().push(value);
    }
    if !user.is_in(MASTERS) {
        acting.extra.entry(SCOPES.to_owned()).or_default().push(format!("cluster:{workspace}"));
    }
    Ok(acting)
}

#[derive(Default)]
struct Asked {
    name: Option<String>,
    uid: String,
    groups: Vec<String>,
    extra: Vec<(String, String)>,
}

impl Asked {
    fn read(headers: &[(String, String)]) -> Self {
        let mut asked = Self::default();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "impersonate-user" if !value.is_empty() && asked.name.is_none() => asked.name = Some(value.clone()),
                "impersonate-uid" if asked.uid.is_empty() => asked.uid.clone_from(value),
                "impersonate-group" => asked.groups.push(value.clone()),
                _ => asked.extra.extend(name.strip_prefix(EXTRA).map(|key| (unescaped(key), value.clone()))),
            }
        }
        asked
    }

    fn is_empty(&self) -> bool {
        self.name.is_none() && self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    fn attributes<'a>(&'a self, name: &'a str, account: Option<(&'a str, &'a str)>) -> Vec<Attributes<'a>> {
        let of = |resource, name| Attributes { verb: "impersonate", resource, name, ..Attributes::default() };
        let of_authentication = |resource, name| Attributes { group: AUTHENTICATION, version: "v1", ..of(resource, name) };
        let user = match account {
            Some((namespace, name)) => Attributes { namespace, ..of("serviceaccounts", name) },
            None => of("users", name),
        };
        let groups = self.groups.iter().map(|group| of("groups", group));
        let extra = self.extra.iter().map(|(key, value)| Attributes { subresource: key, ..of_authentication("userextras", value) });
        let uid = (!self.uid.is_empty()).then(|| of_authentication("uids", &self.uid));
        [user].into_iter().chain(groups).chain(extra).chain(uid).collect()
    }

    /// The object references as Go prints them: kind, namespace, name, UID, version, resourceVersion and field path.
    fn references(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().map(|(key, value)| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"));
        let uid = (!self.uid.is_empty()).then(|| format!("{{UID  {}  {AUTHENTICATION}/v1  }}", self.uid));
        groups.chain(extra).chain(uid).collect()
    }
}

/// `%2f` is `/`; a key with a wrong escape is taken as it is.
fn unescaped(key: &str) -> String {
    let mut parts = key.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let Some(byte) = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) else { return key.to_owned() };
        bytes.push(byte);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}
