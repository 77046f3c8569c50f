//! The kinds of an export, made once for each of its states: every request through a virtual workspace and every binding asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::World;
use crate::embedded::errors::Cause;
use crate::embedded::served::{Origin, Served, versions};
use crate::embedded::store::Place;
use crate::embedded::world::workspaces::{exports, schemas};

/// Entries at most; at the limit all are dropped and made anew.
const BOUND: usize = 4096;

/// By the export's logical cluster and name, and the binding's name.
type Key = (Arc<str>, Arc<str>, Arc<str>);
/// The versions of the export and of its schemas.
type State = (u64, Vec<u64>);

/// What was made of a state.
type Made = (State, Vec<Arc<Served>>);

#[derive(Debug, Default)]
pub(super) struct Exported(Mutex<BTreeMap<Key, Made>>);

impl Clone for Exported {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }
}

/// Why an export's kinds cannot be served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unusable {
    /// There is no such export.
    NoExport,
    /// There is no schema of this name.
    NoSchema(String),
    /// The schema of this name cannot be compiled.
    Schema(String, Vec<Cause>),
}

impl World {
    /// The kinds of an export with its present schemas, as the binding `binding` brings them; `""` for the virtual workspace's own.
    pub(crate) fn exported(&self, provider: &Arc<str>, export: &str, binding: &str) -> Result<Vec<Arc<Served>>, Unusable> {
        let place = Place::new(provider, "", export);
        let object = self.parsed(exports(), &place).ok_or(Unusable::NoExport)?;
        let names: Vec<&str> = wanted(&object).collect();
        let revision = |kind: &Served, place: &Place| self.stored(kind, place).map_or(0, |stored| stored.revision);
        let each = names.iter().map(|name| revision(schemas(), &Place::new(provider, "", name))).collect();
        let state: State = (revision(exports(), &place), each);
        let key: Key = (provider.clone(), export.into(), binding.into());
        if let Some((known, kinds)) = self.exported.0.lock().get(&key)
            && *known == state
        {
            return Ok(kinds.clone());
        }
        let identity = object["status"]["identityHash"].as_str().unwrap_or_default();
        let origin =
            Origin::Bound { provider: provider.clone(), export: export.into(), identity: identity.into(), binding: binding.into() };
        let mut kinds = Vec::new();
        for name in names {
            let schema = self.parsed(schemas(), &Place::new(provider, "", name)).ok_or_else(|| Unusable::NoSchema(name.to_owned()))?;
            kinds.extend(kinds_of(&schema, identity, &origin).map_err(|causes| Unusable::Schema(name.to_owned(), causes))?);
        }
        let mut cache = self.exported.0.lock();
        if cache.len() >= BOUND {
            cache.clear();
        }
        cache.insert(key, (state, kinds.clone()));
        Ok(kinds)
    }
}

/// The names of an export's schemas, in its order.
pub(crate) fn wanted(export: &Value) -> impl Iterator<Item = &str> {
    export["spec"]["resources"].as_array().into_iter().flatten().filter_map(|resource| resource["schema"].as_str())
}

/// The kinds of a schema, with the storage that all bindings with this identity share.
fn kinds_of(schema: &Value, identity: &str, origin: &Origin) -> Result<Vec<Arc<Served>>, Vec<Cause>> {
    let spec = &schema["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let storage: Arc<str> = format!("{}.{}:{identity}", text(&spec["names"]["plural"]), text(&spec["group"])).into();
    versions(spec, &storage, origin)
}
