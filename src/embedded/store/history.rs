//! What was: the changes after a version, and the objects as they were at one.

use std::collections::{BTreeMap, BTreeSet};
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

    /// What is not as it was in an earlier state of this store: stored kind, place, and both states.
    pub(crate) fn differences<'a>(&'a self, earlier: &'a Self) -> Vec<Difference<'a>> {
        let mut found = Vec::new();
        let names: BTreeSet<&Arc<str>> = self.kinds.keys().chain(earlier.kinds.keys()).collect();
        for name in names {
            let objects = |store: &'a Self| store.kinds.get(name).map(|kind| &kind.objects);
            let (now, then) = (objects(self), objects(earlier));
            for (place, stored) in now.into_iter().flatten() {
                let before = then.and_then(|then| then.get(place));
                if before.is_none_or(|before| !Arc::ptr_eq(before, stored)) {
                    found.push(Difference { kind: name, place, before, after: Some(stored) });
                }
            }
            let gone = then.into_iter().flatten().filter(|(place, _)| now.is_none_or(|now| !now.contains_key(place)));
            found.extend(gone.map(|(place, stored)| Difference { kind: name, place, before: Some(stored), after: None }));
        }
        found
    }
}

/// An object that is not as it was.
#[derive(Debug)]
pub(crate) struct Difference<'a> {
    pub(crate) kind: &'a Arc<str>,
    pub(crate) place: &'a Place,
    pub(crate) before: Option<&'a Arc<Stored>>,
    pub(crate) after: Option<&'a Arc<Stored>>,
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
