//! Discovery: which groups, versions and resources a workspace serves.
//!
//! Pure: from kinds to JSON. The shapes are `APIVersions`, `APIGroupList`, `APIGroup` and `APIResourceList` of
//! `k8s.io/apimachinery/pkg/apis/meta/v1`. The documents of aggregated discovery are not made: a client that prefers them takes the plain
//! ones when the content type says so.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::embedded::served::{Origin, Served, api_version};

/// The groups that kcp compiles in, in its order. Groups of definitions follow; kcp shows those in the order of a Go map, we by name.
const FIRST: [&str; 8] = [
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
    "admissionregistration.k8s.io",
    "events.k8s.io",
    "apiextensions.k8s.io",
];

/// Verbs of a status subresource.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// `GET /api`.
pub fn api_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses()})
}

/// `GET /apis`.
pub fn api_groups(kinds: &[Arc<Served>]) -> Value {
    let mut groups: Vec<&str> = kinds.iter().map(|served| &*served.names.group).filter(|group| !group.is_empty()).collect();
    groups.sort_unstable_by_key(|group| (FIRST.iter().position(|first| first == group).unwrap_or(FIRST.len()), *group));
    groups.dedup();
    let groups: Vec<Value> = groups
        .into_iter()
        .filter_map(|group| {
            let mut entry = group_entry(kinds, group)?;
            entry["serverAddressByClientCIDRs"] = addresses();
            Some(entry)
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/<group>`; `None` is a 404 in plain text.
pub fn api_group(kinds: &[Arc<Served>], group: &str) -> Option<Value> {
    let mut entry = group_entry(kinds, group)?;
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

/// `GET /api/v1`, `GET /apis/<group>/<version>`. As kcp does, a version of a named group that is not there is an empty list; only a
/// version of the core group that is not there is `None`, a 404.
pub fn resources(kinds: &[Arc<Served>], group: &str, version: &str) -> Option<Value> {
    let mut here: Vec<&Arc<Served>> = of(kinds, group, version).collect();
    here.sort_by_key(|served| served.names.plural.clone());
    if group.is_empty() && here.is_empty() {
        return None;
    }
    let list: Vec<Value> = here.iter().flat_map(|served| entries(kinds, served)).collect();
    let mut answer = json!({"kind": "APIResourceList", "groupVersion": api_version(group, version), "resources": list});
    if !group.is_empty() {
        answer["apiVersion"] = "v1".into();
    }
    Some(answer)
}

/// The kinds of a group in a version.
pub(super) fn of<'a>(kinds: &'a [Arc<Served>], group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Arc<Served>> {
    kinds.iter().filter(move |served| &*served.names.group == group && &*served.version == version)
}

/// All pairs of group and version, each once, by name.
pub(super) fn group_versions(kinds: &[Arc<Served>]) -> BTreeSet<(&str, &str)> {
    kinds.iter().map(|served| (&*served.names.group, &*served.version)).collect()
}

fn addresses() -> Value {
    json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}])
}

/// Says where the server is, and of groups that definitions make nothing.
pub fn address(document: &mut Value, host: &str) {
    let here = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]);
    if let Some(addresses) = document.get_mut("serverAddressByClientCIDRs") {
        addresses.clone_from(&here);
    }
    let Some(groups) = document.get_mut("groups").and_then(Value::as_array_mut) else { return };
    for group in groups {
        let is_native = FIRST.iter().any(|first| group["name"] == *first);
        match group.as_object_mut() {
            Some(group) if is_native => drop(group.insert("serverAddressByClientCIDRs".into(), here.clone())),
            Some(group) => drop(group.remove("serverAddressByClientCIDRs")),
            None => {}
        }
    }
}

/// Eight bytes of a hash, as storage versions are shown.
pub fn hash(text: &str) -> String {
    super::base64(&Sha256::digest(text)[..8])
}

fn group_entry(kinds: &[Arc<Served>], group: &str) -> Option<Value> {
    let versions = preferred(kinds, group);
    let entry = |version: &&str| json!({"groupVersion": api_version(group, version), "version": version});
    let versions: Vec<Value> = versions.iter().map(entry).collect();
    let first = versions.first().filter(|_| !group.is_empty())?.clone();
    Some(json!({"name": group, "versions": versions, "preferredVersion": first}))
}

/// The versions of a group, the preferred one first.
fn preferred<'a>(kinds: &'a [Arc<Served>], group: &str) -> Vec<&'a str> {
    let names: BTreeSet<&str> = kinds.iter().filter(|served| &*served.names.group == group).map(|served| &*served.version).collect();
    let mut versions: Vec<&str> = names.into_iter().collect();
    versions.sort_by_key(|version| precedence(version));
    versions
}

/// Kubernetes' order of versions: `v2`, `v1`, `v1beta2`, `v1alpha1`, then all other names by letter.
fn precedence(version: &str) -> (Reverse<(u8, u64, u64)>, &str) {
    parsed(version).map_or((Reverse((0, 0, 0)), version), |parts| (Reverse(parts), ""))
}

/// Maturity, major and minor of `v1`, `v1beta2`, `v1alpha1`.
fn parsed(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..digits])?;
    let suffix = &rest[digits..];
    if suffix.is_empty() {
        return Some((3, major, 0));
    }
    let (maturity, minor) =
        suffix.strip_prefix("beta").map(|minor| (2, minor)).or_else(|| suffix.strip_prefix("alpha").map(|minor| (1, minor)))?;
    Some((maturity, major, number(minor)?))
}

fn number(digits: &str) -> Option<u64> {
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) { None } else { digits.parse().ok() }
}

/// A kind and its subresources.
fn entries(kinds: &[Arc<Served>], served: &Served) -> Vec<Value> {
    let names = &served.names;
    let mut main = json!({
        "name": names.plural, "singularName": names.singular, "namespaced": served.namespaced, "kind": names.kind, "verbs": served.verbs,
    });
    if !names.short.is_empty() {
        main["shortNames"] = json!(names.short);
    }
    if !names.categories.is_empty() {
        main["categories"] = json!(names.categories);
    }
    if served.verbs.contains(&"get") {
        main["storageVersionHash"] = storage_version_hash(kinds, served).into();
    }
    let mut entries = vec![main];
    let mut subresource = |name: &str, verbs: &[&str]| {
        entries.push(json!({
            "name": format!("{}/{name}", names.plural), "singularName": "", "namespaced": served.namespaced,
            "kind": names.kind, "verbs": verbs,
        }));
    };
    match (&*names.group, &*names.plural) {
        ("", "namespaces") => subresource("finalize", &["update"]),
        ("certificates.k8s.io", "certificatesigningrequests") => subresource("approval", &STATUS_VERBS),
        _ => {}
    }
    if served.status {
        subresource("status", &STATUS_VERBS);
    }
    if (&*names.group, &*names.plural) == ("", "serviceaccounts") {
        entries.push(json!({
            "name": "serviceaccounts/token", "singularName": "", "namespaced": true,
            "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"],
        }));
    }
    entries
}

/// Eight bytes that change with the version objects are stored in. Definitions do not tell us theirs, so the preferred version stands for
/// it.
///
/// For a kind of a definition kcp hashes the version twice and puts the logical cluster of the definition first, which for a bound one is
/// `system:bound-crds`.
fn storage_version_hash(kinds: &[Arc<Served>], served: &Served) -> String {
    let names = &served.names;
    let same = kinds.iter().filter(|other| other.names.group == names.group && other.names.kind == names.kind);
    let version = same.map(|other| &*other.version).min_by_key(|version| precedence(version)).unwrap_or(&served.version);
    let kind = &names.kind;
    let group = match &*names.group {
        // Both groups of events are stored as the core one.
        "events.k8s.io" => "",
        group => group,
    };
    let defined = match served.origin {
        Origin::BuiltIn if matches!(group, "tenancy.kcp.io" | "topology.kcp.io") => Some("system:bound-crds"),
        Origin::BuiltIn if group.ends_with(".kcp.io") => Some("system:system-crds"),
        Origin::BuiltIn | Origin::System => None,
        Origin::Definition => Some(""),
        Origin::Bound { .. } => Some("system:bound-crds"),
    };
    let text = match defined {
        Some(logical_cluster) => format!("{logical_cluster}/{group}/{version}/{version}/{kind}"),
        None => format!("/{group}/{version}/{kind}"),
    };
    super::base64(&Sha256::digest(text)[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::front::tests::{built_in, custom};

    fn kinds() -> Vec<Arc<Served>> {
        let two = |version| custom("apis.kcp.io", version, "APIExport", Origin::BuiltIn);
        vec![
            custom("z.example", "v1", "Z", Origin::Definition),
            two("v1alpha1"),
            two("v1alpha2"),
            built_in("rbac.authorization.k8s.io", "Role"),
            built_in("authentication.k8s.io", "TokenReview"),
            built_in("", "ConfigMap"),
            built_in("", "ServiceAccount"),
        ]
    }

    #[test]
    fn groups_are_the_compiled_ones_and_then_by_name() {
        let list = api_groups(&kinds());
        let names: Vec<_> = list["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["authentication.k8s.io", "rbac.authorization.k8s.io", "apis.kcp.io", "z.example"]);
        assert_eq!(list["groups"][2]["preferredVersion"]["version"], "v1alpha2");
        assert_eq!(api_group(&kinds(), "apis.kcp.io").unwrap()["versions"].as_array().unwrap().len(), 2);
        assert_eq!(api_group(&kinds(), "apis.kcp.io").unwrap().get("serverAddressByClientCIDRs"), None);
        assert_eq!(api_group(&kinds(), "nope.example"), None);
    }

    #[test]
    fn versions_are_in_the_order_of_kubernetes() {
        let mut versions = ["foo10", "v1beta1", "v2alpha1", "v10", "v1", "v11beta2", "v01", "v2", "foo1", "v3beta1", "v10beta3"];
        versions.sort_by_key(|version| precedence(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v1beta1", "v2alpha1", "foo1", "foo10", "v01"]);
    }

    #[test]
    fn hashes_of_storage_versions_are_those_of_kcp() {
        for (group, version, name, hash) in [
            ("", "v1", "configmaps", "BcsYVNKF43M="),
            ("rbac.authorization.k8s.io", "v1", "roles", "dL2xUOdnrqs="),
            ("apis.kcp.io", "v1alpha1", "apiexports", "NKCfL4yZ0MU="),
        ] {
            let list = resources(&kinds(), group, version).unwrap();
            let entry = list["resources"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap();
            assert_eq!(entry["storageVersionHash"], hash, "{entry}");
        }
    }

    #[test]
    fn a_version_that_is_not_there_is_an_empty_list_but_for_the_core_group() {
        assert_eq!(resources(&kinds(), "nope.example", "v9").unwrap()["resources"], json!([]));
        assert_eq!(resources(&kinds(), "", "v2"), None);
        assert_eq!(resources(&kinds(), "", "v1").unwrap().get("apiVersion"), None, "kcp leaves it out for the core group");
    }

    #[test]
    fn tokens_are_a_subresource_of_another_group() {
        let list = resources(&kinds(), "", "v1").unwrap();
        let token = list["resources"].as_array().unwrap().last().unwrap();
        assert_eq!((token["name"].as_str(), token["kind"].as_str()), (Some("serviceaccounts/token"), Some("TokenRequest")));
    }
}
