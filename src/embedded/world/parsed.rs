//! Parsed copies of the objects that every request asks for: roles and their bindings. They are few, and read far more often than written.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::World;
use crate::embedded::served::Served;
use crate::embedded::store::{Place, Scope};

/// Entries at most; at the limit all are dropped, which costs one parse each.
const BOUND: usize = 2_048;

/// Stored kind and place.
type Key = (Arc<str>, Place);

/// The resourceVersion, and the object.
#[derive(Debug, Default)]
pub(super) struct Parsed(Mutex<BTreeMap<Key, (u64, Arc<Value>)>>);

impl Clone for Parsed {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }
}

impl World {
    /// An object, parsed once for each of its versions.
    pub(crate) fn parsed(&self, kind: &Served, place: &Place) -> Option<Arc<Value>> {
        let stored = self.stored(kind, place)?;
        let key = (kind.storage.clone(), place.clone());
        let mut cache = self.parsed.0.lock();
        if let Some((revision, value)) = cache.get(&key)
            && *revision == stored.revision
        {
            return Some(value.clone());
        }
        let value = Arc::new(stored.value());
        if cache.len() >= BOUND {
            cache.clear();
        }
        cache.insert(key, (stored.revision, value.clone()));
        Some(value)
    }

    pub(crate) fn parsed_named(&self, kind: &Served, workspace: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let workspace = self.resolve(workspace)?;
        self.parsed(kind, &Place::new(&workspace, namespace, name))
    }

    pub(crate) fn parsed_all(&self, kind: &Served, workspace: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let Some((workspace, shard)) = self.resolve(workspace).and_then(|name| Some((name.clone(), self.shard_of(&name)?))) else {
            return Vec::new();
        };
        let scope = Scope { workspace: Some(workspace), namespace: namespace.map(Into::into) };
        let places: Vec<Place> = self.shards[shard].store.list(&kind.storage, &scope).map(|(place, _)| place.clone()).collect();
        places.iter().filter_map(|place| self.parsed(kind, place)).collect()
    }
}
