//! A provider's door: an export of claims only, through which one provider's controller sees the projections.
//!
//! Pure: from a provider's name to JSON. On kcp v0.28 a claim matches every object: each provider sees every accepting tenant's
//! projections, may report on them and change them, and may read the tenant's Secrets.

use serde_json::{Value, json};

use super::export::Claim;
use super::rbac::{
    POLICY_PREFIX, bind_rules, export_user_rules, granted, group, namespace, service_account, service_account_subject, user,
};
use crate::api::{projection, provider};

/// The `ServiceAccount` of a provider's controller, in the provider's own namespace.
pub const CONTROLLER: &str = "controller";

/// What `apiexports/content` grants through the door: the union of the claims' verbs. A verb alone gives nothing: kcp asks for the claim besides.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "update", "patch"];
/// What a provider does with projections: it makes none and deletes none.
const OF_PROJECTIONS: [&str; 5] = ["get", "list", "watch", "update", "patch"];

/// A provider's door. The name is the Provider's name: a DNS label of at most 40 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    provider: String,
    identity_hash: String,
}

impl Door {
    /// A door for `provider` to the kinds of the export with this identity; refuses what is no DNS label.
    pub fn new(provider: &str, identity_hash: &str) -> Result<Self, String> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=40).contains(&provider.len()) && provider.bytes().all(inner);
        if !fits || provider.starts_with('-') || provider.ends_with('-') {
            return Err(format!(
                "{provider:?} is not a provider's name: lower-case letters, digits and inner dashes, at most 40 characters"
            ));
        }
        Ok(Self { provider: provider.to_owned(), identity_hash: identity_hash.to_owned() })
    }

    /// `<provider>.provider.kubernetes.edge-connect.eu`.
    pub fn export_name(&self) -> String {
        format!("{}.{}", self.provider, projection::GROUP)
    }

    /// The namespace of the provider's identity in the provider workspace: `provider-<provider>`.
    pub fn namespace(&self) -> String {
        format!("provider-{}", self.provider)
    }

    /// The claims: projections and their status, `Provider`, Secrets by name, and to write events.
    ///
    /// Events are claimed from the start, since a claim that is added later enters no workspace by itself. Whoever rejects that one is served as
    /// before, and reads conditions instead.
    pub fn claims(&self) -> Vec<Claim> {
        let hash = Some(self.identity_hash.clone());
        vec![
            Claim { group: projection::GROUP, resource: "kubernetesclusters", verbs: &OF_PROJECTIONS, identity_hash: hash.clone() },
            Claim { group: provider::GROUP, resource: "providers", verbs: &["get", "list", "watch"], identity_hash: hash },
            Claim { group: "", resource: "secrets", verbs: &["get"], identity_hash: None },
            Claim { group: "", resource: "events", verbs: &["create", "patch"], identity_hash: None },
        ]
    }

    /// The `APIExport`.
    pub fn export(&self) -> Value {
        json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIExport",
            "metadata": { "name": self.export_name() },
            "spec": { "permissionClaims": self.claims().iter().map(Claim::to_value).collect::<Vec<_>>() },
        })
    }

    /// The provider's namespace and `ServiceAccount`.
    pub fn identity(&self) -> [Value; 2] {
        [namespace(&self.namespace()), service_account(&self.namespace(), CONTROLLER)]
    }

    /// Roles: the controller's own, the tenants' right to bind, and the grant under the main export's maximal permission policy, which
    /// binds claimants too. They are made for any library: some write a status by PUT after a GET, some set a finalizer by PATCH.
    pub fn roles(&self) -> Vec<Value> {
        let Self { provider, .. } = self;
        let account = self.namespace();
        let controller = export_user_rules(&self.export_name(), &VERBS);
        let policy = json!([
            { "apiGroups": [projection::GROUP], "resources": ["kubernetesclusters"], "verbs": ["update", "patch"] },
            { "apiGroups": [projection::GROUP], "resources": ["kubernetesclusters/status"], "verbs": ["get", "update", "patch"] },
        ]);
        let claimant = user(&format!("{POLICY_PREFIX}system:serviceaccount:{account}:{CONTROLLER}"));
        [
            granted(&format!("provider-{provider}"), &controller.into(), &service_account_subject(&account, CONTROLLER)),
            granted(&format!("provider-{provider}:policy"), &policy, &claimant),
            granted(&format!("provider-{provider}:bind"), &bind_rules(&self.export_name(), false), &group("system:authenticated")),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_dns_label_is_refused() {
        for odd in ["", "-a", "a-", "A", "a.b", "a:b", &"a".repeat(41)] {
            assert!(Door::new(odd, "hash").is_err(), "{odd:?}");
        }
        assert_eq!(Door::new("otc", "hash").unwrap().export_name(), "otc.provider.kubernetes.edge-connect.eu");
    }

    #[test]
    fn the_content_grant_covers_every_claimed_verb_and_no_other() {
        let claims = Door::new("otc", "hash").unwrap().claims();
        for claim in &claims {
            assert!(claim.verbs.iter().all(|verb| VERBS.contains(verb)), "{claim:?}");
        }
        assert!(VERBS.iter().all(|verb| claims.iter().any(|claim| claim.verbs.contains(verb))), "{VERBS:?}");
    }

    #[test]
    fn a_provider_writes_events_and_makes_nothing_else() {
        let creates = |claim: &&Claim| claim.verbs.contains(&"create") || claim.verbs.contains(&"delete");
        let found: Vec<Claim> = Door::new("otc", "hash").unwrap().claims().iter().filter(creates).cloned().collect();
        assert_eq!(found, [Claim { group: "", resource: "events", verbs: &["create", "patch"], identity_hash: None }]);
    }
}
