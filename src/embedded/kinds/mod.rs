//! The kinds that every workspace has, in a short form of ours: `core.yaml` the ones Kubernetes compiles in, `kcp.yaml` kcp's own.

mod shape;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::schema::Schema;
use super::served::{CUSTOM_VERBS, Names, Origin, Served, columns};

const NATIVE_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE_ONLY: &[&str] = &["create"];

/// By group, version and plural.
pub(crate) type Kinds = BTreeMap<(Arc<str>, Arc<str>, Arc<str>), Arc<Served>>;

/// All of them, made once per process.
pub(crate) fn built_in() -> &'static (Vec<Arc<Served>>, Kinds) {
    static KINDS: OnceLock<(Vec<Arc<Served>>, Kinds)> = OnceLock::new();
    KINDS.get_or_init(|| {
        let native = read(include_str!("core.yaml"), &Origin::BuiltIn);
        let all: Vec<_> = native.into_iter().chain(read(include_str!("kcp.yaml"), &Origin::System)).collect();
        let key = |kind: &Arc<Served>| (kind.names.group.clone(), kind.version.clone(), kind.names.plural.clone());
        let by_name = all.iter().map(|kind| (key(kind), kind.clone())).collect();
        (all, by_name)
    })
}

/// One of them that the server itself reads or writes.
///
/// # Panics
/// When there is no such kind: a defect that every test sees.
pub(crate) fn kind(group: &str, version: &str, plural: &str) -> &'static Arc<Served> {
    let key = (group.into(), version.into(), plural.into());
    built_in().1.get(&key).unwrap_or_else(|| panic!("{plural}.{group}/{version} is no built-in kind"))
}

fn read(text: &str, origin: &Origin) -> Vec<Arc<Served>> {
    let entries: Vec<Value> = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("the built-in kinds cannot be read: {error}"));
    entries.iter().map(|entry| Arc::new(served(entry, origin))).collect()
}

fn served(entry: &Value, origin: &Origin) -> Served {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let list = |name: &str| entry[name].as_array().into_iter().flatten().filter_map(|text| text.as_str().map(Into::into)).collect();
    let (group, kind, plural) = (text("group"), text("kind"), text("plural"));
    let open_api = shape::open_api(&entry["shape"]);
    let schema = Schema::compile(&open_api).unwrap_or_else(|causes| panic!("{kind}: {causes:?}"));
    let verbs = match (text("verbs"), origin) {
        ("create", _) => CREATE_ONLY,
        (_, Origin::System) => CUSTOM_VERBS,
        _ if plural == "namespaces" => NAMESPACE_VERBS,
        _ => NATIVE_VERBS,
    };
    Served {
        names: Names {
            group: group.into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            short: list("short"),
            categories: list("categories"),
        },
        version: text("version").into(),
        namespaced: entry["namespaced"] == true,
        verbs,
        status: entry["status"] == true,
        columns: columns(&entry["columns"]),
        schema: Arc::new(schema),
        open_api: Arc::new(open_api),
        storage: entry["storage"].as_str().map_or_else(|| format!("{plural}.{group}").into(), Arc::from),
        origin: origin.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_can_be_read_and_names_are_unique() {
        let (all, by_name) = built_in();
        assert_eq!(all.len(), by_name.len());
        assert!(kind("", "v1", "secrets").namespaced && !kind("apis.kcp.io", "v1alpha2", "apiexports").namespaced);
    }
}
