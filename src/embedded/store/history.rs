//! What was: the changes after a version, and the objects as they were at one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, Compacted, Place, Scope, Store, Stored};

impl Store {
    /// The changes of a kind after `revision` within the scope, oldest first.
    pub(crate) fn since(&self, kind: &str, scope: &Scope, revision: u64) -> Result<Vec<Change>, Compacted> {
        let Some(kind) = self.kinds.get(kind) else { return Ok(Vec::new()) };
        if revision < kind.compacted {
            return Err(Compacted { oldest: kind.compacted });
        }
        let first = kind.changes.partition_point(|change| change.revision <= revision);
        Ok(kind.changes.range(first..).filter(|change| scope.holds(&change.place)).cloned().collect())
    }

    /// The objects of a scope as they were at `revision`.
    pub(crate) fn list_at(&self, kind: &str, scope: &Scope, revision: u64) -> Result<Vec<(Place, Arc<Stored>)>, Compacted> {
        let later = self.since(kind, scope, revision)?;
        let mut objects: BTreeMap<Place, Arc<Stored>> =
            self.list(kind, scope).map(|(place, stored)| (place.clone(), stored.clone())).collect();
        for change in later.into_iter().rev() {
            match change.before {
                Some(before) => objects.insert(change.place, before),
                None => objects.remove(&change.place),
            };
        }
        Ok(objects.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::WINDOW;
    use super::*;
    use serde_json::json;

    fn put(store: &mut Store, workspace: &str, name: &str, value: Option<i32>) -> u64 {
        let place = Place::new(&workspace.into(), "default", name);
        let mut object = value.map(|value| json!({"metadata": {"name": name}, "value": value}));
        store.put(&"toys".into(), place, object.as_mut(), None).revision
    }

    fn shown(objects: Vec<(Place, Arc<Stored>)>) -> Vec<String> {
        objects.into_iter().map(|(place, stored)| format!("{}/{}={}", place.workspace, place.name, stored.value()["value"])).collect()
    }

    const ALL: Scope = Scope { workspace: None, namespace: None };

    #[test]
    fn an_earlier_state_is_seen_as_it_was() {
        let mut store = Store::default();
        put(&mut store, "b", "x", Some(1));
        let then = put(&mut store, "a", "y", Some(2));
        put(&mut store, "a", "y", Some(3));
        put(&mut store, "b", "x", None);
        put(&mut store, "b", "z", Some(4));
        assert_eq!(shown(store.list_at("toys", &ALL, then).unwrap()), ["a/y=2", "b/x=1"]);
        let now = store.revision();
        assert_eq!(shown(store.list_at("toys", &ALL, now).unwrap()), ["a/y=3", "b/z=4"]);
        let one = Scope { workspace: Some("a".into()), namespace: Some("default".into()) };
        assert_eq!(shown(store.list_at("toys", &one, then).unwrap()), ["a/y=2"]);
    }

    #[test]
    fn changes_older_than_the_window_are_compacted() {
        let mut store = Store::default();
        let first = put(&mut store, "a", "x", Some(0));
        for at in 0..WINDOW {
            put(&mut store, "a", "x", Some(i32::try_from(at).unwrap()));
        }
        assert_eq!(store.since("toys", &ALL, first).unwrap().len(), WINDOW);
        assert_eq!(store.since("toys", &ALL, first - 1).unwrap_err(), Compacted { oldest: first });
        store.compact();
        assert_eq!(store.since("toys", &ALL, store.revision() - 1).unwrap_err(), Compacted { oldest: store.revision() });
        assert!(store.since("toys", &ALL, store.revision()).unwrap().is_empty());
    }
}
