//! A user, and what is left of one in a workspace.
//!
//! Pure: values. The rules are those of kcp's fork of Kubernetes, `pkg/registry/rbac/validation/kcp.go`.

use std::collections::BTreeMap;

use super::{ANONYMOUS, AUTHENTICATED, CLUSTER_NAME, SCOPES, UNAUTHENTICATED};
use crate::api::manifest::rbac::POLICY_PREFIX;

const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Whom a request is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `alice`, `system:serviceaccount:<namespace>:<name>`.
    pub name: String,
    /// Empty for users that have none.
    pub uid: String,
    /// With `system:authenticated` for everybody who has logged in.
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody who has logged in, with groups besides `system:authenticated`.
    pub fn named(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// A request without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// A `ServiceAccount` of a workspace, logged in.
    pub fn service_account(workspace: &str, namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("{ACCOUNT_PREFIX}{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: account_groups(namespace).into_iter().chain([AUTHENTICATED.to_owned()]).collect(),
            extra: BTreeMap::from([(CLUSTER_NAME.to_owned(), vec![workspace.to_owned()])]),
        }
    }

    /// Whether the user is a member of a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the name is one of a `ServiceAccount`.
    pub fn is_service_account(&self) -> bool {
        self.name.starts_with(ACCOUNT_PREFIX)
    }

    /// Namespace and name of a `ServiceAccount`.
    pub(super) fn account(name: &str) -> Option<(&str, &str)> {
        let (namespace, name) = name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
        let plain = |text: &str, dots: bool| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (dots && c == '.'))
        };
        (plain(namespace, false) && plain(name, true)).then_some((namespace, name))
    }

    /// The user in one workspace: a `ServiceAccount` of another one, or a user scoped to others, is nobody who has logged in.
    pub(super) fn in_workspace(&self, workspace: &str) -> Self {
        if self.belongs_to(workspace) {
            return self.clone();
        }
        self.nobody()
    }

    /// The user as later versions of kcp see it in a workspace (`GlobalServiceAccount`, on by default since v0.31): an account of another
    /// workspace has a name of its own, which can be given rights.
    #[must_use]
    pub fn global(self, workspace: &str) -> Self {
        let Some([cluster]) = self.extra.get(CLUSTER_NAME).map(Vec::as_slice) else { return self };
        match self.name.strip_prefix(ACCOUNT_PREFIX).filter(|_| cluster != workspace) {
            Some(account) => {
                let name = format!("system:kcp:serviceaccount:{cluster}:{account}");
                Self { name, groups: vec![AUTHENTICATED.into()], ..Self::default() }
            }
            None => self,
        }
    }

    /// What is left of a user who does not belong somewhere: that it has logged in.
    fn nobody(&self) -> Self {
        let group = if self.is_in(AUTHENTICATED) { AUTHENTICATED } else { UNAUTHENTICATED };
        Self { name: ANONYMOUS.into(), groups: vec![group.into()], ..Self::default() }
    }

    /// An account that does not say its cluster is a local one: somebody reviews an account by its name.
    fn belongs_to(&self, workspace: &str) -> bool {
        let of = |key| self.extra.get(key).map(Vec::as_slice).unwrap_or_default();
        let clusters = of(CLUSTER_NAME);
        let foreign = self.is_service_account() && !clusters.is_empty() && (clusters.len() != 1 || clusters[0] != workspace);
        let in_scope = |scopes: &String| scopes.split(',').any(|scope| scope.strip_prefix("cluster:") == Some(workspace));
        !foreign && of(SCOPES).iter().all(in_scope)
    }

    /// Name and groups with the prefix of a maximal permission policy.
    pub(super) fn prefixed(&self) -> Self {
        Self {
            name: format!("{POLICY_PREFIX}{}", self.name),
            groups: self.groups.iter().map(|group| format!("{POLICY_PREFIX}{group}")).collect(),
            ..self.clone()
        }
    }

    /// Like [`User::prefixed`], with a `ServiceAccount` named by its one logical cluster, or nobody without it.
    pub(super) fn bound(&self) -> Self {
        let Some(account) = self.name.strip_prefix(ACCOUNT_PREFIX) else { return self.prefixed() };
        if let Some([cluster]) = self.extra.get(CLUSTER_NAME).map(Vec::as_slice) {
            return Self { name: format!("{POLICY_PREFIX}system:kcp:serviceaccount:{cluster}:{account}"), ..self.prefixed() };
        }
        self.nobody().prefixed()
    }
}

/// The groups of a `ServiceAccount`, without `system:authenticated`.
pub(super) fn account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}
