//! Who a request is from and whether it may: the authorizers of kcp v0.28 (`pkg/authorization`) in their order.
//!
//! Pure: users, attributes and the RBAC objects that a [`Roles`] reads, in; a decision, out.
//!
//! Left out, since nothing that speaks to an embedded control plane can bring them: warrants (a virtual workspace reads the store itself
//! instead of impersonating), webhooks, and global `ServiceAccount`s (off by default in v0.28).

mod bootstrap;
mod escalation;
mod impersonation;
mod rbac;
mod review;
#[cfg(test)]
mod tests;
pub mod tokens;
mod user;
mod virtual_workspace;

use std::sync::Arc;

use serde_json::Value;

use super::errors::{About, Refusal};

pub use bootstrap::{WORKSPACE_ADMIN, bootstrap, in_root, workspace_admin};
pub use escalation::escalates;
pub use impersonation::impersonate;
pub use review::{review, reviewable, rules_review, who_am_i};
pub use user::User;
pub use virtual_workspace::{content, invited, through};

/// Members may do everything everywhere, even where there is no workspace.
pub const MASTERS: &str = "system:masters";
/// Members are administrators of every workspace.
pub const KCP_ADMIN: &str = "system:kcp:admin";
/// Everybody who has logged in.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody who has not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of a request without credentials, and what is left of one in a workspace that it does not belong to.
pub const ANONYMOUS: &str = "system:anonymous";
/// In a user's `extra`: the logical cluster of a `ServiceAccount`. The rule is in kcp's fork, `apiserver/…/serviceaccount/util.go`.
pub const CLUSTER_NAME: &str = "authentication.kubernetes.io/cluster-name";
/// In a user's `extra`: `cluster:<name>`, the logical clusters that the user is anything in.
pub const SCOPES: &str = "authentication.kcp.io/scopes";
/// The annotation of a `LogicalCluster` that [`Roles::required_groups`] reads.
pub const REQUIRED_GROUPS: &str = "authorization.kcp.io/required-groups";

pub(super) const WORKSPACE_BOOTSTRAPPER: &str = "system:kcp:tenancy:workspace-bootstrapper";
pub(super) const LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:logical-cluster-admin";
pub(super) const EXTERNAL_LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:external-logical-cluster-admin";
const RBAC: &str = "rbac.authorization.k8s.io";

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `deletecollection`, …; the lower-case method of a request that is for no resource.
    pub verb: &'a str,
    /// API group, `""` for core.
    pub group: &'a str,
    /// `v1`; `*` in reviews.
    pub version: &'a str,
    /// The plural; `""` says that the request is for a path.
    pub resource: &'a str,
    /// `status`, or `""`.
    pub subresource: &'a str,
    /// `""` for kinds without and for all namespaces.
    pub namespace: &'a str,
    /// `""` for lists and creation.
    pub name: &'a str,
    /// The path, without `/clusters/<name>`, when `resource` is empty.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// A request for a path that is no resource: `/api`.
    pub fn of_path(verb: &'a str, path: &'a str) -> Self {
        Self { verb, path, ..Self::default() }
    }
}

/// Where the RBAC objects of a logical cluster are read from, and what else decides of it.
pub trait Roles {
    /// A `ClusterRole`.
    fn cluster_role(&self, workspace: &str, name: &str) -> Option<Arc<Value>>;
    /// All `ClusterRoleBinding`s.
    fn cluster_role_bindings(&self, workspace: &str) -> Vec<Arc<Value>>;
    /// A `Role`.
    fn role(&self, workspace: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All `RoleBinding`s of a namespace.
    fn role_bindings(&self, workspace: &str, namespace: &str) -> Vec<Arc<Value>>;
    /// The export that a kind is bound from in a workspace; only [`review`] asks for it.
    fn bound(&self, _workspace: &str, _group: &str, _resource: &str) -> Option<BoundKind> {
        None
    }
    /// The value of [`REQUIRED_GROUPS`] on the workspace's `LogicalCluster`: `a,b;c` is both of a and b, or c.
    fn required_groups(&self, _workspace: &str) -> Option<String> {
        None
    }
    /// Whether there is such a logical cluster.
    fn exists(&self, _workspace: &str) -> bool {
        true
    }
}

/// A kind that comes from an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundKind {
    /// The logical cluster of the export.
    pub provider: String,
    /// The export's name.
    pub export: String,
    /// Whether `spec.maximalPermissionPolicy.local` is set.
    pub policy: bool,
}

/// What an authorizer says. `Privileged` gives no reason, the others one of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Privileged,
    Granted,
    NoOpinion,
    Denied,
}

impl Decision {
    fn allows(self) -> bool {
        matches!(self, Self::Privileged | Self::Granted)
    }
}

/// Whether a user may do this in a workspace by its own URL, `/clusters/<workspace>/…`. `bound` is the export that the kind comes from.
///
/// A workspace that does not exist is refused like one that is closed; a request for all workspaces (`/clusters/*`) or for none has the
/// `workspace` `""`, which only [`MASTERS`] may.
pub fn direct(
    roles: &dyn Roles,
    workspace: &str,
    user: &User,
    attributes: &Attributes<'_>,
    bound: Option<&BoundKind>,
) -> Result<(), Refusal> {
    if decide(roles, workspace, user, attributes, bound).allows() { Ok(()) } else { Err(denied(user, attributes)) }
}

/// Whether RBAC alone allows a user this in a workspace, by the rules of a deep `SubjectAccessReview`: nobody asks for required groups, for
/// access to the workspace, or for a maximal permission policy. kcp's admission asks so whether somebody may bind an export or use a type
/// of a workspace that is closed to them.
pub fn deep(roles: &dyn Roles, workspace: &str, user: &User, attributes: &Attributes<'_>) -> bool {
    let is_workspace = !workspace.is_empty() && !workspace.starts_with("system:");
    user.is_in(MASTERS) || (is_workspace && rbac::allows(roles, workspace, &user.in_workspace(workspace), attributes))
}

/// The 403 of every authorizer of kcp: who may not do what, and no more of the reason than that access is denied.
pub fn denied(user: &User, attributes: &Attributes<'_>) -> Refusal {
    let Attributes { verb, group, namespace, name, path, .. } = *attributes;
    let who = &user.name;
    let what = match (attributes.resource, namespace) {
        ("", _) => format!("User {who:?} cannot {verb} path {path:?}"),
        (_, "") => format!("User {who:?} cannot {verb} resource {:?} in API group {group:?} at the cluster scope", combined(attributes)),
        _ => {
            let resource = combined(attributes);
            format!("User {who:?} cannot {verb} resource {resource:?} in API group {group:?} in the namespace {namespace:?}")
        }
    };
    let sanitized = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Refusal::forbidden(About { group, kind: attributes.resource, name }, &format!("{sanitized}: access denied"))
}

fn combined(attributes: &Attributes<'_>) -> String {
    match attributes.subresource {
        "" => attributes.resource.to_owned(),
        subresource => format!("{}/{subresource}", attributes.resource),
    }
}

/// The maximal permission policy of the export that a kind is bound or claimed from. RBAC in the provider workspace grants it to user and
/// groups with the prefix `apis.kcp.io:binding:`. True where the export has no policy.
///
/// On a direct request a `ServiceAccount` is named with its logical cluster, and one whose cluster is not known is nobody: a tenant's account
/// of the provider's name gains nothing. Through a virtual workspace, where it is the provider's own, it has its plain name.
pub fn policy(roles: &dyn Roles, bound: &BoundKind, user: &User, attributes: &Attributes<'_>, through_virtual_workspace: bool) -> bool {
    let asked = if through_virtual_workspace { user.prefixed().in_workspace(&bound.provider) } else { user.bound() };
    !bound.policy || rbac::allows(roles, &bound.provider, &asked, attributes)
}

fn decide(roles: &dyn Roles, workspace: &str, user: &User, attributes: &Attributes<'_>, bound: Option<&BoundKind>) -> Decision {
    let is_health = attributes.resource.is_empty() && ["/healthz", "/readyz", "/livez"].contains(&attributes.path);
    if user.is_in(MASTERS) || is_health {
        return Decision::Privileged;
    }
    if workspace.is_empty() || workspace.starts_with("system:") || !roles.exists(workspace) {
        return Decision::NoOpinion;
    }
    let effective = user.in_workspace(workspace);
    // Accounts need no group, also those of another workspace, which are nobody here.
    if !user.is_service_account() && !has_required_groups(roles, workspace, &effective) {
        return Decision::Denied;
    }
    let is_local_account = effective.is_service_account();
    let is_let_in = is_local_account || effective.is_in(LOGICAL_CLUSTER_ADMIN);
    if !is_let_in && !rbac::allows(roles, workspace, &effective, &Attributes::of_path("access", "/")) {
        return Decision::NoOpinion;
    }
    if attributes.group == "apis.kcp.io"
        && attributes.subresource == "status"
        && ["apibindings", "apiexports"].contains(&attributes.resource)
    {
        return Decision::Denied;
    }
    let within_policy =
        |bound: &BoundKind| !bound.policy || rbac::allows(roles, &bound.provider, &user.bound().in_workspace(workspace), attributes);
    if !bound.is_none_or(within_policy) {
        return Decision::NoOpinion;
    }
    if rbac::allows(roles, workspace, &effective, attributes) { Decision::Granted } else { Decision::NoOpinion }
}

/// Whether a user is in one of the sets of groups that a workspace asks for, or above that.
fn has_required_groups(roles: &dyn Roles, workspace: &str, user: &User) -> bool {
    let Some(required) = roles.required_groups(workspace) else { return true };
    let exempt = [LOGICAL_CLUSTER_ADMIN, EXTERNAL_LOGICAL_CLUSTER_ADMIN, KCP_ADMIN, WORKSPACE_BOOTSTRAPPER];
    exempt.iter().any(|group| user.is_in(group)) || required.split(';').any(|all| all.split(',').all(|group| user.is_in(group)))
}
