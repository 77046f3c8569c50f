//! Which workspaces a provider serves: the rules of `allowedWorkspaces`.
//!
//! Pure: a rule is a logical cluster's name, or a path of which segments may be `*`.
//!
//! A name needs no rights. A path is resolved with the manager's identity, which needs `list` and `watch` on `workspaces.tenancy.kcp.io` in
//! every parent that the rule leads through. A `ServiceAccount` of the provider workspace can have that from kcp v0.31 on, as the user
//! `system:kcp:serviceaccount:<logical cluster>:<namespace>:<name>` of a `ClusterRoleBinding` in the parent; on earlier versions it cannot: use
//! names, or run the manager as another user.

/// One rule of `allowedWorkspaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A logical cluster, by name.
    Name(String),
    /// A path of segments; `None` stands for `*`, exactly one segment.
    Path(Vec<Option<String>>),
}

impl Rule {
    /// Reads `2hx7k1zvvxv5hcw0`, `root:orgs:acme` or `root:orgs:*`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.contains(':') {
            if text.contains('*') {
                return Err(format!("{text:?} is neither a logical cluster's name nor a path; to serve everybody, leave the list empty"));
            }
            return Ok(Self::Name(text.to_owned()));
        }
        let segments: Vec<&str> = text.split(':').collect();
        if segments.iter().any(|s| s.is_empty() || (s.contains('*') && *s != "*")) {
            return Err(format!("{text:?} has an empty segment, or a * that is not a whole segment"));
        }
        if segments[0] == "*" {
            return Err(format!("{text:?} must start with a name, such as root"));
        }
        Ok(Self::Path(segments.into_iter().map(|s| (s != "*").then(|| s.to_owned())).collect()))
    }

    /// Whether a workspace with this path falls under the rule. A name rule never matches a path.
    pub fn matches_path(&self, path: &str) -> bool {
        let Self::Path(segments) = self else { return false };
        let mut given = path.split(':');
        segments.iter().all(|want| given.next().is_some_and(|have| want.as_deref().is_none_or(|want| want == have)))
            && given.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_exactly_one_segment() {
        let rule = Rule::parse("root:orgs:*").unwrap();
        assert!(rule.matches_path("root:orgs:acme"));
        assert!(!rule.matches_path("root:orgs"));
        assert!(!rule.matches_path("root:orgs:acme:team"));
        assert!(!rule.matches_path("root:other:acme"));
    }

    #[test]
    fn odd_rules_are_refused() {
        for odd in ["*", "*:x", "root::x", "root:a*", ""] {
            assert!(odd.is_empty() || Rule::parse(odd).is_err(), "{odd:?}");
        }
    }
}
