//! A way into a tenant's workspace for what runs elsewhere: rights that a provider declares, and the kubeconfig that it gets.

use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

/// Some rights in a workspace, as a rule of RBAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessRule {
    /// API groups; `""` is the core group.
    pub api_groups: Vec<&'static str>,
    /// Plurals, with `/status` for a part.
    pub resources: Vec<&'static str>,
    /// Words such as `get`.
    pub verbs: Vec<&'static str>,
}

impl AccessRule {
    /// These verbs on these resources of one group.
    ///
    /// # Panics
    /// With `*` anywhere: whoever holds the kubeconfig could do everything in every tenant's workspace.
    pub fn new(group: &'static str, resources: &[&'static str], verbs: &[&'static str]) -> Self {
        let rule = Self { api_groups: vec![group], resources: resources.to_vec(), verbs: verbs.to_vec() };
        let words = [&rule.api_groups, &rule.resources, &rule.verbs];
        assert!(!words.into_iter().flatten().any(|word| word.contains('*')), "access to a workspace names what it is for, never *");
        rule
    }
}

/// A kubeconfig whose one context leads to one workspace, as one account with the declared rights. It holds a token: whoever has the text has the
/// rights. `Debug` does not show it.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    text: SecretString,
    expires: jiff::Timestamp,
}

impl Kubeconfig {
    pub(crate) const fn new(text: SecretString, expires: jiff::Timestamp) -> Self {
        Self { text, expires }
    }

    /// The YAML, for the Secret that the worker reads. The runtime calls the reconciler again when it is another one.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// When its token ends, by this process's clock. It is replaced when four fifths of its time are over.
    pub const fn expires(&self) -> jiff::Timestamp {
        self.expires
    }
}
