//! What an old value corresponds to, and whether it is still the same (apiserver `cel/common` `CorrelatedObject`, `MapList`).
//!
//! Pure: comparisons.

use serde_json::{Map, Value};

use super::node::{ListType, Node};

/// The entry of an old list with the keys of `entry`. Only lists of type map correspond entry by entry.
pub(super) fn entry<'a>(list: &Node, old: &'a Value, entry: &Value) -> Option<&'a Value> {
    let ListType::Map(keys) = &list.list else { return None };
    let (old, entry) = (old.as_array()?, entry.as_object()?);
    if !keys.iter().all(|key| entry.get(key).is_some_and(is_scalar)) {
        return None;
    }
    let same = |candidate: &Map<String, Value>| keys.iter().all(|key| candidate.get(key) == entry.get(key));
    old.iter().find(|candidate| candidate.as_object().is_some_and(same))
}

fn is_scalar(value: &Value) -> bool {
    !(value.is_null() || value.is_array() || value.is_object())
}

/// Whether nothing changed. What the schema does not describe counts as changed, and the order of a list of type map does not count.
pub(super) fn unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(entries)) => {
            if new.len() != entries.len() {
                return false;
            }
            match (&node.list, node.items.as_deref()) {
                (ListType::Map(_), Some(items)) => {
                    new.iter().all(|value| entry(node, old, value).is_some_and(|previous| unchanged(items, value, previous)))
                }
                _ => new == entries,
            }
        }
        (Value::Object(new), Value::Object(old)) => {
            let same = |(name, value): (&String, &Value)| {
                old.get(name).zip(node.described(name)).is_some_and(|(previous, child)| unchanged(child, value, previous))
            };
            new.len() == old.len() && new.iter().all(same)
        }
        (new, old) => new == old,
    }
}

/// The nearest places that have an old value, on the way down through CEL rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ratchet<'a> {
    /// This place, with its old value.
    pub(super) here: Option<Pair<'a>>,
    /// The nearest place above with an old value.
    pub(super) above: Option<Pair<'a>>,
}

/// A place with its new and its old value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    /// The schema of both.
    pub(super) node: &'a Node,
    /// As it shall be.
    pub(super) new: &'a Value,
    /// As it was.
    pub(super) old: &'a Value,
}

impl Pair<'_> {
    fn is_unchanged(&self) -> bool {
        unchanged(self.node, self.new, self.old)
    }
}

impl<'a> Ratchet<'a> {
    /// From the root of an update.
    pub(super) fn root(node: &'a Node, new: &'a Value, old: &'a Value) -> Self {
        Self { here: Some(Pair { node, new, old }), above: None }
    }

    /// Whether a failed rule passes, for nothing it looks at changed.
    pub(super) fn forgives(&self) -> bool {
        self.here.or(self.above).is_some_and(|pair| pair.is_unchanged())
    }

    /// One field down.
    pub(super) fn key(self, name: &str, child: &'a Node) -> Self {
        let Some(here) = self.here else { return self };
        if self.above.is_none() && (name == "apiVersion" || name == "kind") {
            return Self::default();
        }
        let found = here.new.get(name).zip(here.old.get(name)).map(|(new, old)| Pair { node: child, new, old });
        Self { here: found, above: Some(here) }
    }

    /// One entry down.
    pub(super) fn index(self, index: usize, child: &'a Node) -> Self {
        let Some(here) = self.here else { return self };
        let new = here.new.get(index);
        let found = new.and_then(|new| entry(here.node, here.old, new).map(|old| Pair { node: child, new, old }));
        Self { here: found, above: Some(here) }
    }
}
