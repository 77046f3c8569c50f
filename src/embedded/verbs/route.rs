//! Which kind a request is about, and with whose rights it may be asked for.

use std::sync::Arc;

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::embedded::access::{BoundKind, Roles, User};
use crate::embedded::base64;
use crate::embedded::errors::Refusal;
use crate::embedded::kinds::built_in;
use crate::embedded::reconcile::{export_of, label, own_label};
use crate::embedded::request::{Request, Target};
use crate::embedded::served::{Origin, Served};
use crate::embedded::store::Place;
use crate::embedded::world::workspaces::{
    UNIVERSAL, accounts, bindings, cluster_role_bindings, cluster_roles, exports, logical_clusters, role_bindings, roles, secrets,
};
use crate::embedded::world::{ROOT, World};

/// The key and the value of a label.
pub(crate) type Label = (String, String);

/// Which way a request came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the workspace's own URL.
    Direct,
    /// Through an export.
    Virtual {
        /// The export's logical cluster.
        provider: Arc<str>,
        /// Its name.
        export: Arc<str>,
        /// What objects of a claimed kind must carry to be seen.
        label: Option<Label>,
    },
}

/// The same of a subresource that a native kind does not have.
pub(super) fn unknown_below(group: &str) -> Refusal {
    if group.is_empty() {
        return Refusal { details: json!({}), ..Refusal::no_such_resource() };
    }
    Refusal::plain(404, "404 page not found\n")
}

/// The answer to a kind that a workspace does not serve: core kinds get a status, others the plain text of whoever knows no such path.
pub(super) fn unknown(target: &Target) -> Refusal {
    if target.group.is_empty() && target.version == "v1" {
        return Refusal { details: json!({}), ..Refusal::no_such_resource() };
    }
    Refusal::plain(404, "404 page not found\n")
}

impl World {
    /// Who asks: 401 for a token that is not taken.
    pub(in crate::embedded) fn authenticate(&self, request: &Request) -> Result<User, Refusal> {
        let Some(bearer) = request.bearer.as_ref().map(ExposeSecret::expose_secret) else { return Ok(User::anonymous()) };
        let exists = |workspace: &str, namespace: &str, name: &str, uid: &str| {
            let account = self.resolve(workspace).and_then(|workspace| self.read(accounts(), &workspace, namespace, name));
            account.is_some_and(|account| account["metadata"]["uid"] == uid)
        };
        let user = self.tokens.authenticate(bearer, self.now.as_second(), &exists).ok_or_else(Refusal::unauthorized)?;
        let account = self.tokens.account(bearer).filter(|account| account.secret.is_some());
        let kept = account.is_none_or(|account| {
            let secret = self.resolve(&account.workspace).zip(account.secret.as_ref());
            let secret = secret.and_then(|(workspace, name)| self.read(secrets(), &workspace, &account.namespace, name));
            secret.is_some_and(|secret| secret["data"]["token"] == base64::encode(bearer.as_bytes()))
        });
        if kept { Ok(user) } else { Err(Refusal::unauthorized()) }
    }

    /// The export that a kind is bound from in a workspace.
    pub(super) fn bound_kind(&self, workspace: &str, group: &str, resource: &str) -> Option<BoundKind> {
        // Built in here, and bound from root in kcp.
        if let Some((export, _)) = UNIVERSAL.iter().find(|(export, resources)| *export == group && resources.contains(&resource)) {
            return Some(BoundKind { provider: ROOT.to_owned(), export: (*export).to_owned(), policy: true });
        }
        let found = self.workspaces.get(workspace)?;
        let kind = found.custom.iter().find(|kind| &*kind.names.group == group && &*kind.names.plural == resource)?;
        let Origin::Bound { provider, export, .. } = &kind.origin else { return None };
        Some(self.with_policy(provider, export))
    }

    fn with_policy(&self, provider: &Arc<str>, export: &str) -> BoundKind {
        let object = self.parsed(exports(), &Place::new(provider, "", export));
        let policy = object.is_some_and(|object| object["spec"]["maximalPermissionPolicy"]["local"].is_object());
        BoundKind { provider: provider.to_string(), export: export.to_owned(), policy }
    }

    /// The binding of a workspace to an export.
    pub(super) fn binding_to(&self, workspace: &Arc<str>, provider: &str, export: &str) -> Option<Arc<Value>> {
        let of_it = |binding: &Arc<Value>| {
            export_of(binding).is_some_and(|(_, name)| name == export) && binding["status"]["apiExportClusterName"] == provider
        };
        self.parsed_all(bindings(), workspace, None).into_iter().find(of_it)
    }

    /// The exports behind a claimed kind that has an identity.
    pub(super) fn claimed_kinds(&self, export: &Value, target: &Target) -> Vec<BoundKind> {
        let Some(identity) = claim_of(export, target).and_then(|claim| claim["identityHash"].as_str().filter(|hash| !hash.is_empty()))
        else {
            return Vec::new();
        };
        let same = |(provider, name): &(Arc<str>, Arc<str>)| {
            self.parsed(exports(), &Place::new(provider, "", name)).is_some_and(|export| export["status"]["identityHash"] == identity)
        };
        self.bindings.keys().filter(|key| same(key)).map(|(provider, name)| self.with_policy(provider, name)).collect()
    }

    /// A kind as an export's virtual workspace serves it, and the label that claimed objects must carry.
    pub(super) fn virtual_kind(&self, provider: &Arc<str>, export: &Value, target: &Target) -> Option<(Arc<Served>, Option<Label>)> {
        let same = |kind: &&Arc<Served>| {
            *kind.names.group == *target.group && *kind.version == *target.version && *kind.names.plural == *target.resource
        };
        let name = export["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(kind) = self.exported(provider, name, "").unwrap_or_default().iter().find(same) {
            return Some((kind.clone(), None));
        }
        if target.group == "apis.kcp.io" && target.resource == "apibindings" {
            let kind = built_in().0.iter().find(same)?;
            // A claim on bindings shows those to other exports too.
            let label = claim_of(export, target).map_or_else(|| own_label(provider, name), |claim| label(provider, name, claim));
            return Some((kind.clone(), Some(label)));
        }
        let claim = claim_of(export, target)?;
        let label = Some(label(provider, name, claim));
        match claim["identityHash"].as_str().filter(|hash| !hash.is_empty()) {
            None => built_in().0.iter().find(same).map(|kind| (kind.clone(), label)),
            Some(identity) => self.by_identity(identity, &same).map(|kind| (kind, label)),
        }
    }

    /// Every kind of an export's virtual workspace, for discovery.
    pub(super) fn virtual_kinds(&self, provider: &Arc<str>, export: &Value) -> Vec<Arc<Served>> {
        let name = export["metadata"]["name"].as_str().unwrap_or_default();
        let mut kinds = self.exported(provider, name, "").unwrap_or_default();
        let claims = export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        for claim in claims {
            let text = |field: &str| claim[field].as_str().unwrap_or_default();
            let same = |kind: &&Arc<Served>| *kind.names.group == *text("group") && *kind.names.plural == *text("resource");
            match text("identityHash") {
                "" => kinds.extend(built_in().0.iter().filter(same).cloned()),
                identity => kinds.extend(self.by_identity(identity, &same)),
            }
        }
        kinds.extend(built_in().0.iter().filter(|kind| &*kind.names.plural == "apibindings").cloned());
        kinds
    }

    /// A kind of whichever export has this identity.
    fn by_identity(&self, identity: &str, same: &dyn Fn(&&Arc<Served>) -> bool) -> Option<Arc<Served>> {
        self.bindings.keys().find_map(|(provider, name)| {
            self.parsed(exports(), &Place::new(provider, "", name)).filter(|export| export["status"]["identityHash"] == identity)?;
            self.exported(provider, name, "").ok()?.iter().find(same).cloned()
        })
    }

    /// Whether any workspace of a shard has a kind, without which its wildcard is not served.
    pub(super) fn is_served_on(&self, shard: usize, kind: &Served) -> bool {
        let Origin::Bound { .. } = &kind.origin else { return true };
        self.shards[shard].served.get(&kind.storage).is_some_and(|count| *count > 0)
    }
}

fn claim_of<'a>(export: &'a Value, target: &Target) -> Option<&'a Value> {
    let claims = export["spec"]["permissionClaims"].as_array()?;
    claims.iter().find(|claim| claim["group"].as_str().unwrap_or_default() == target.group && claim["resource"] == *target.resource)
}

impl Roles for World {
    fn cluster_role(&self, workspace: &str, name: &str) -> Option<Arc<Value>> {
        self.parsed_named(cluster_roles(), workspace, "", name)
    }

    fn cluster_role_bindings(&self, workspace: &str) -> Vec<Arc<Value>> {
        self.parsed_all(cluster_role_bindings(), workspace, None)
    }

    fn role(&self, workspace: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.parsed_named(roles(), workspace, namespace, name)
    }

    fn role_bindings(&self, workspace: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.parsed_all(role_bindings(), workspace, Some(namespace))
    }

    fn bound(&self, workspace: &str, group: &str, resource: &str) -> Option<BoundKind> {
        self.bound_kind(workspace, group, resource)
    }

    fn required_groups(&self, workspace: &str) -> Option<String> {
        let workspace = self.resolve(workspace)?;
        let logical = self.parsed(logical_clusters(), &Place::new(&workspace, "", "cluster"))?;
        logical["metadata"]["annotations"][crate::embedded::access::REQUIRED_GROUPS].as_str().map(ToOwned::to_owned)
    }

    fn exists(&self, workspace: &str) -> bool {
        self.resolve(workspace).is_some()
    }
}
