//! How a run ended: what is there that was not there before, without what no two runs have in common.
//!
//! Pure: values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Fields that differ between runs that are equal: names that nobody chose, times, and counts of writes.
const INCIDENTAL: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "lastTransitionTime",
    "managedFields",
    "observedGeneration",
    "resourceVersion",
    "uid",
];

/// Every object that is not as it was in the beginning, by its kind and place; null for one that is gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ending(BTreeMap<String, Value>);

impl Ending {
    /// From all that changed: where, before, after.
    pub(super) fn of(changes: Vec<(String, Option<Value>, Option<Value>)>) -> Self {
        let mut ending = BTreeMap::new();
        // Events tell what happened on the way, which differs with what went wrong.
        for (place, before, after) in changes.into_iter().filter(|(place, ..)| !place.starts_with("events ")) {
            let (before, after) = (before.map(essence), after.map(essence));
            if before != after {
                ending.insert(place, after.unwrap_or_default());
            }
        }
        Self(ending)
    }

    /// The first objects in which they differ, in words; `None` when there are none.
    pub(super) fn difference(&self, wanted: &Self) -> Option<String> {
        let places = self.0.keys().chain(wanted.0.keys().filter(|place| !self.0.contains_key(*place)));
        let mut text = String::new();
        let shown = |value: Option<&Value>| match value {
            None => "as it was in the beginning".to_owned(),
            Some(Value::Null) => "gone".to_owned(),
            Some(value) => format!("{value:#}"),
        };
        for place in places.filter(|place| self.0.get(*place) != wanted.0.get(*place)).take(3) {
            let (is, was) = (shown(self.0.get(place)), shown(wanted.0.get(place)));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{place} is {is}\nwhere without faults it is {was}");
        }
        (!text.is_empty()).then_some(text)
    }
}

fn essence(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !INCIDENTAL.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key, essence(value))).collect())
        }
        Value::Array(all) => {
            let mut all: Vec<Value> = all.into_iter().map(essence).collect();
            // Conditions are a map, whose order tells who wrote first.
            all.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
            Value::Array(all)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_that_differ_in_versions_and_times_end_alike_and_others_do_not() {
        let toy = |colour: &str, version: &str| {
            Some(json!({"metadata": {"name": "car", "resourceVersion": version, "uid": version}, "spec": {"colour": colour},
                "status": {"conditions": [{"type": "Painted", "lastTransitionTime": version}]}}))
        };
        let ending = |after| Ending::of(vec![("toys car".into(), toy("blue", "1"), after)]);
        assert_eq!(ending(toy("red", "7")).difference(&ending(toy("red", "9"))), None);
        assert_eq!(ending(toy("blue", "7")).difference(&Ending::default()), None);
        let text = ending(None).difference(&ending(toy("red", "2"))).unwrap();
        assert!(text.starts_with("toys car is gone\nwhere without faults it is {"), "{text}");
        assert!(ending(toy("red", "2")).difference(&Ending::default()).unwrap().ends_with("it is as it was in the beginning\n"));
    }
}
