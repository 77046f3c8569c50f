//! Bodies: valid ones, and ones that break one rule or another.

use serde_json::{Map, Value, json};

use super::{Generator, Kind, Object};

/// A finalizer that only these tests take away.
pub(super) const HOLD: &str = "lab.example.org/hold";

impl Generator {
    /// A whole object. Most are valid; transition rules may still refuse an update.
    pub(super) fn body(&mut self, object: &Object) -> Value {
        let mut body = json!({"apiVersion": object.kind.api_version(), "kind": object.kind.name(), "metadata": self.metadata(object)});
        if object.kind == Kind::ConfigMap {
            body["data"] = self.data();
        } else {
            body["spec"] = self.spec(object.kind);
        }
        body
    }

    pub(super) fn metadata(&mut self, object: &Object) -> Value {
        let mut metadata = json!({"name": object.name});
        if self.dice.percent(30) && !object.namespace.is_empty() {
            metadata["namespace"] = object.namespace.into();
        }
        if self.dice.percent(40) {
            metadata["labels"] = self.labels();
        }
        if self.dice.percent(20) {
            metadata["annotations"] = json!({"example.org/note": *self.dice.one(&["one", "two", ""])});
        }
        metadata
    }

    pub(super) fn labels(&mut self) -> Value {
        match self.dice.below(3) {
            0 => json!({"color": "red"}),
            1 => json!({"color": "blue", "shape": "round"}),
            _ => json!({"shape": "square", "example.org/odd": ""}),
        }
    }

    pub(super) fn data(&mut self) -> Value {
        json!({*self.dice.one(&["a", "b", "c"]): *self.dice.one(&["x", "y", ""]), "fixed": "f"})
    }

    pub(super) fn spec(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Widget => self.widget(),
            Kind::Gadget => {
                let all = [
                    ("count", json!([1, 2, -7])),
                    ("text", json!(["", "text", "ü"])),
                    ("nested", json!([{}, {"a": "x"}, {"b": [1, 2]}, {"a": "y", "b": []}])),
                ];
                self.some_of(&all, 60)
            }
            Kind::Board => {
                let all = [
                    ("anything", json!([{"deep": {"er": [1, "two", null]}}, [], 1.5, true])),
                    ("other", json!(["x", 10_000_000_000_i64, {"a": {"b": {}}}])),
                ];
                self.some_of(&all, 60)
            }
            Kind::Crate => {
                let mut spec = self.some_of(&[("label", json!(["blue", ""]))], 40);
                spec["weight"] = self.dice.below(5).into();
                spec
            }
            Kind::ConfigMap => Value::Null,
        }
    }

    fn widget(&mut self) -> Value {
        let all = [
            ("replicas", json!([0, 2, 5, 10])),
            ("even", json!([0, 2, 4, -2])),
            ("code", json!(["ab", "abcde"])),
            ("title", json!(["ab", "a title", "ünïcödé"])),
            (
                "parts",
                json!([[{"name": "p"}], [{"name": "p", "count": 3}, {"name": "q", "note": "n"}], [], [{"name": "r"}, {"name": "p"}]]),
            ),
            ("tags", json!([["a"], ["a", "b"], ["c", "b", "a"], []])),
            ("steps", json!([["one"], ["one", "two", "one"]])),
            ("port", json!([80, "http"])),
            ("extra", json!([{"known": "k", "unknown": {"x": [1]}}, {}, {"y": 2}])),
            ("note", json!(["text", null])),
            ("lost", json!(["text", null])),
            ("limits", json!([{"a": 1}, {"a": 0, "b": 5}, {}])),
            ("options", json!([{"x": "1"}, {"y": "2", "z": ""}])),
            ("fixed", json!(["f", "f", "g"])),
            ("window", json!([{"from": 1, "to": 2}, {"from": 2, "to": 2}])),
            ("ratio", json!([0.5, 1, 0.001])),
            ("when", json!(["2001-01-01T00:00:00Z", "1999-12-31T23:59:59+01:00"])),
            ("flag", json!([true, false])),
            ("mode", json!([{}, {"level": "high"}, {"speed": 3}])),
        ];
        let mut spec = self.some_of(&all, 22);
        let small = spec["replicas"].as_i64().is_none_or(|replicas| replicas <= 5);
        let size = *self.dice.one(if small { &["small", "medium", "large"] } else { &["medium", "large", "large"] });
        spec["size"] = size.into();
        spec
    }

    /// Each field with this likelihood, with one of its values.
    fn some_of(&mut self, fields: &[(&str, Value)], percent: u64) -> Value {
        let mut chosen = Map::new();
        for (name, values) in fields {
            if self.dice.percent(percent)
                && let Some(values) = values.as_array()
            {
                chosen.insert((*name).to_owned(), self.dice.one(values).clone());
            }
        }
        chosen.into()
    }

    /// What breaks a rule of a widget's schema, as fields to put into `spec`.
    pub(super) fn wrong_widget_fields(&mut self) -> Value {
        let wrong: Value = serde_json::from_str(include_str!("../wrong.json")).expect("wrong.json is JSON");
        let wrong = wrong.as_array().cloned().unwrap_or_default();
        let mut fields = self.dice.one(&wrong).clone();
        if self.dice.percent(25) {
            merge(&mut fields, self.dice.one(&wrong).clone());
        }
        fields
    }

    /// A status that may be wrong.
    pub(super) fn status(&mut self, kind: Kind) -> Value {
        let all = match kind {
            Kind::Widget => json!([
                {"phase": "Ready"}, {"phase": "Pending", "observed": 3}, {}, {"phase": "Nope"}, {"observed": "x"}, {"bogus": 1},
                {"conditions": [{"type": "A", "status": "True"}]},
                {"conditions": [{"type": "B", "status": "False", "reason": "R", "message": "m"}, {"type": "A", "status": "Unknown"}]},
                {"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}]}, {"conditions": [{"type": "A"}]}
            ]),
            Kind::Crate => json!([{"weighed": true}, {"weighed": false}, {}, {"weighed": "x"}]),
            _ => json!([{"phase": "p"}, {"any": {"thing": [1, 2]}}, {}]),
        };
        let all = all.as_array().cloned().unwrap_or_default();
        self.dice.one(&all).clone()
    }
}

/// Puts the fields of one object into another.
pub(super) fn merge(into: &mut Value, fields: Value) {
    if let (Some(into), Value::Object(fields)) = (into.as_object_mut(), fields) {
        into.extend(fields);
    }
}
