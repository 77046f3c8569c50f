//! Pure: who listens to which topic, so that a change finds exactly the objects it concerns without looking at the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::runtime::served::{Concerned, Feed, Subscription};

/// The subscriptions of one reconciler's objects.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_topic: BTreeMap<Subscription, BTreeSet<ObjectKey>>,
    by_key: BTreeMap<ObjectKey, BTreeSet<Subscription>>,
}

impl Index {
    /// Replaces what an object listens to; `None` when it is not this reconciler's.
    pub(super) fn subscribe(&mut self, key: &ObjectKey, topics: Option<BTreeSet<Subscription>>) {
        if self.by_key.get(key) == topics.as_ref() {
            return;
        }
        self.unsubscribe(key);
        let Some(topics) = topics else { return };
        for topic in &topics {
            self.by_topic.entry(topic.clone()).or_default().insert(key.clone());
        }
        self.by_key.insert(key.clone(), topics);
    }

    /// Forgets an object.
    pub(super) fn unsubscribe(&mut self, key: &ObjectKey) {
        for topic in self.by_key.remove(key).unwrap_or_default() {
            if let Some(keys) = self.by_topic.get_mut(&topic) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_topic.remove(&topic);
                }
            }
        }
    }

    /// Whether the object is this reconciler's.
    pub(super) fn holds(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// Whether nobody listens to anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_topic.is_empty() && self.by_key.is_empty()
    }

    /// Whom a change concerns, in one workspace or in all of them.
    pub(super) fn listeners(&self, feed: Feed, concerned: Concerned, workspace: Option<&LogicalCluster>) -> BTreeSet<ObjectKey> {
        let topics = match concerned {
            Concerned::Topics(topics) if topics.is_empty() => return BTreeSet::new(),
            Concerned::Topics(topics) => topics,
            Concerned::Everybody => {
                return self.by_key.keys().filter(|key| workspace.is_none_or(|place| key.workspace == *place)).cloned().collect();
            }
        };
        let mut found = BTreeSet::new();
        for topic in topics.into_iter().map(Some).chain([None]) {
            let Some(keys) = self.by_topic.get(&(feed, topic)) else { continue };
            match workspace {
                None => found.extend(keys.iter().cloned()),
                Some(workspace) => {
                    let first = ObjectKey::new(workspace.clone(), ObjectName { namespace: Arc::from(""), name: Arc::from("") });
                    found.extend(keys.range(first..).take_while(|key| key.workspace == *workspace).cloned());
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconciler::Topic;

    fn key(workspace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(LogicalCluster::new(workspace), ObjectName::namespaced("default", name))
    }

    fn topics(texts: &[&str]) -> BTreeSet<Subscription> {
        texts.iter().map(|text| (Feed::Names(0), Some(Topic::new(*text)))).collect()
    }

    fn about(text: &str) -> Concerned {
        Concerned::Topics(vec![Topic::new(text)])
    }

    #[test]
    fn a_topic_in_one_workspace_reaches_nobody_elsewhere() {
        let mut index = Index::default();
        for (workspace, name) in [("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")] {
            index.subscribe(&key(workspace, name), Some(topics(&["otc"])));
        }
        let heard = index.listeners(Feed::Names(0), about("otc"), Some(&LogicalCluster::new("b")));
        assert_eq!(heard, BTreeSet::from([key("b", "2"), key("b", "3")]));
        assert_eq!(index.listeners(Feed::Names(0), about("otc"), None).len(), 4);
        assert!(index.listeners(Feed::Platform(0), about("otc"), None).is_empty(), "another input's topic");
    }

    #[test]
    fn a_changed_subscription_leaves_nothing_behind() {
        let mut index = Index::default();
        index.subscribe(&key("a", "1"), Some(topics(&["x", "y"])));
        index.subscribe(&key("a", "1"), Some(topics(&["y"])));
        assert!(index.listeners(Feed::Names(0), about("x"), None).is_empty());
        index.subscribe(&key("a", "1"), None);
        assert!(!index.holds(&key("a", "1")) && index.is_empty());
    }

    #[test]
    fn whoever_cannot_say_what_concerns_it_hears_of_every_change_and_of_none_that_concerns_nobody() {
        let mut index = Index::default();
        index.subscribe(&key("a", "1"), Some(topics(&["x"])));
        index.subscribe(&key("a", "2"), Some(BTreeSet::from([(Feed::Names(0), None)])));
        index.subscribe(&key("b", "3"), Some(BTreeSet::new()));
        let heard = |concerned, workspace: Option<&str>| {
            let workspace = workspace.map(LogicalCluster::new);
            index
                .listeners(Feed::Names(0), concerned, workspace.as_ref())
                .into_iter()
                .map(|key| key.name.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(heard(about("x"), None), ["1", "2"]);
        assert_eq!(heard(about("y"), Some("a")), ["2"]);
        assert_eq!(heard(Concerned::Topics(Vec::new()), None), [] as [&str; 0]);
        assert_eq!(heard(Concerned::Everybody, None), ["1", "2", "3"]);
        assert_eq!(heard(Concerned::Everybody, Some("b")), ["3"]);
        assert!(index.listeners(Feed::Config, about("x"), None).is_empty(), "another input's change");
    }
}
