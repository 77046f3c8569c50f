//! Pure: which object counts where only one of its kind does: the oldest of each workspace.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::runtime::raw::Raw;

/// By age: when it was made, as the server writes it, which sorts as text, then the uid.
type Age = (Box<str>, Box<str>, ObjectName);

/// The objects of one reconciler by workspace and age; as many as the cache has.
#[derive(Debug, Default)]
pub(super) struct Singles {
    by_workspace: BTreeMap<LogicalCluster, BTreeSet<Age>>,
    by_key: BTreeMap<ObjectKey, Age>,
}

impl Singles {
    /// Takes an object in; whether another one counts now than before.
    pub(super) fn insert(&mut self, key: &ObjectKey, raw: &Raw) -> bool {
        let age = (created(raw), raw.uid.clone(), key.name.clone());
        if self.by_key.get(key) == Some(&age) {
            return false;
        }
        let before = self.first(&key.workspace).cloned();
        self.take(key);
        self.by_workspace.entry(key.workspace.clone()).or_default().insert(age.clone());
        self.by_key.insert(key.clone(), age);
        self.first(&key.workspace) != before.as_ref()
    }

    /// Takes an object out; whether another one counts now than before.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        let before = self.first(&key.workspace).cloned();
        self.take(key);
        before.is_some() && self.first(&key.workspace) != before.as_ref()
    }

    fn take(&mut self, key: &ObjectKey) {
        let Some(age) = self.by_key.remove(key) else { return };
        if let Some(ages) = self.by_workspace.get_mut(&key.workspace) {
            ages.remove(&age);
            if ages.is_empty() {
                self.by_workspace.remove(&key.workspace);
            }
        }
    }

    fn first(&self, workspace: &LogicalCluster) -> Option<&Age> {
        self.by_workspace.get(workspace)?.first()
    }

    /// The object that counts in place of this one; `None` when this one does.
    pub(super) fn instead_of(&self, key: &ObjectKey) -> Option<&ObjectName> {
        self.first(&key.workspace).map(|(_, _, name)| name).filter(|name| **name != key.name)
    }

    /// Everybody of a workspace, the oldest first.
    pub(super) fn of(&self, workspace: &LogicalCluster) -> Vec<ObjectKey> {
        let names = self.by_workspace.get(workspace).into_iter().flatten();
        names.map(|(_, _, name)| ObjectKey::new(workspace.clone(), name.clone())).collect()
    }
}

/// When the server made it; without a time it counts as the oldest, so that nothing that cannot be read pushes another aside.
fn created(raw: &Raw) -> Box<str> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        creation_timestamp: Option<Box<str>>,
    }
    let made = serde_json::from_str::<Object>(&raw.body).ok().and_then(|object| object.metadata.creation_timestamp);
    made.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::raw::Keep;

    fn toy(name: &str, uid: &str, made: &str) -> (ObjectKey, Raw) {
        let text = json!({"metadata": {"name": name, "uid": uid, "creationTimestamp": made}}).to_string();
        (ObjectKey::new(LogicalCluster::new("1abc"), ObjectName::cluster_scoped(name)), Raw::read(&text, Keep::Body).unwrap())
    }

    #[test]
    fn the_oldest_counts_then_the_lowest_uid_and_whoever_is_next_when_it_goes() {
        let mut singles = Singles::default();
        let toys = [toy("b", "u3", "2026-01-01T00:00:01Z"), toy("c", "u2", "2026-01-01T00:00:01Z"), toy("a", "u1", "2026-01-01T00:00:02Z")];
        let changed: Vec<bool> = toys.iter().map(|(key, raw)| singles.insert(key, raw)).collect();
        assert_eq!(changed, [true, true, false], "c was made with b, and has the lower uid");
        let instead = |singles: &Singles| toys.each_ref().map(|(key, _)| singles.instead_of(key).map(|name| name.name.to_string()));
        assert_eq!(instead(&singles), [Some("c".into()), None, Some("c".into())]);
        assert!(!singles.insert(&toys[0].0, &toys[0].1), "it was there");
        assert!(!singles.remove(&toys[2].0), "it did not count");
        assert!(singles.remove(&toys[1].0));
        assert_eq!(instead(&singles)[0], None);
        assert!(singles.remove(&toys[0].0) && singles.by_workspace.is_empty() && singles.by_key.is_empty());
    }
}
