//! What is to be done about one object, given what is there.
//!
//! Pure: `(desired, live) → action`. What the desired object does not mention stays as it is: fields, claims and bindings of others.

use serde_json::{Map, Value};
use similar::TextDiff;

use crate::api::manifest::files::yaml;

/// How far an object is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// What the desired object says holds, now and after every run.
    Kept,
    /// It is made when it is missing; from then on it is the operator's.
    Seeded,
    /// It can only be made: the server refuses changes of its spec.
    Immutable,
}

/// An object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The object.
    pub object: Value,
    /// How far it is ours.
    pub ownership: Ownership,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It is missing.
    Create,
    /// It says something else; the body for a PUT, with the live object's resourceVersion.
    Update(Value),
    /// It is as it should be, or the operator's.
    Keep,
    /// It is there, says something else, and cannot be changed.
    Refuse,
}

/// The lists whose items have identities, by the field that holds them: items of others stay, ours are found by these keys.
const KEYED: [(&str, &[&str]); 6] = [
    ("permissionClaims", &["group", "resource"]),
    ("resources", &["group", "name"]),
    ("defaultAPIBindings", &["path", "export"]),
    ("with", &["path", "name"]),
    ("subjects", &["kind", "namespace", "name"]),
    ("versions", &["name"]),
];

/// Decides about one object.
pub fn plan(desired: &Desired, live: Option<&Value>) -> Action {
    let Some(live) = live else { return Action::Create };
    let wanted = merged("", &desired.object, live);
    match desired.ownership {
        _ if wanted == *live => Action::Keep,
        Ownership::Seeded => Action::Keep,
        Ownership::Kept => Action::Update(wanted),
        Ownership::Immutable => Action::Refuse,
    }
}

/// `desired` laid over `live`, which stands in the field `name`.
fn merged(name: &str, desired: &Value, live: &Value) -> Value {
    match (desired, live) {
        // A field that left a schema must not stay in it.
        _ if name == "openAPIV3Schema" => desired.clone(),
        (Value::Object(desired), Value::Object(live)) => Value::Object(merged_fields(desired, live)),
        (Value::Array(desired), Value::Array(live)) => match KEYED.iter().find(|(list, _)| *list == name) {
            Some((_, keys)) if desired.iter().chain(live).all(Value::is_object) => merged_items(keys, desired, live).into(),
            _ => desired.clone().into(),
        },
        _ => desired.clone(),
    }
}

fn merged_fields(desired: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = live.clone();
    for (name, value) in desired {
        let value = live.get(name).map_or_else(|| value.clone(), |live| merged(name, value, live));
        fields.insert(name.clone(), value);
    }
    fields
}

/// Live items in their order, each with ours laid over it, then those of ours that are missing.
fn merged_items(keys: &[&str], desired: &[Value], live: &[Value]) -> Vec<Value> {
    let same = |a: &Value, b: &Value| keys.iter().all(|key| a.get(key) == b.get(key));
    let ours = |live: &Value| desired.iter().find(|desired| same(desired, live));
    let kept = live.iter().map(|live| ours(live).map_or_else(|| live.clone(), |desired| merged("", desired, live)));
    let missing = desired.iter().filter(|desired| !live.iter().any(|live| same(desired, live)));
    kept.chain(missing.cloned()).collect()
}

/// What an update changes, as a unified diff of the YAML.
pub fn diff(before: &Value, after: &Value) -> String {
    let shown = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        yaml(&object)
    };
    TextDiff::from_lines(&shown(before), &shown(after)).unified_diff().context_radius(3).to_string()
}

/// `kind/name` or `kind/namespace/name`, as messages name an object.
pub fn title(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_ascii_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    object["metadata"]["namespace"].as_str().map_or_else(|| format!("{kind}/{name}"), |namespace| format!("{kind}/{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(object: Value) -> Desired {
        Desired { object, ownership: Ownership::Kept }
    }

    #[test]
    fn a_missing_object_is_created_and_an_equal_one_kept() {
        let export = json!({ "kind": "APIExport", "spec": { "a": 1 } });
        assert_eq!(plan(&kept(export.clone()), None), Action::Create);
        assert_eq!(plan(&kept(export.clone()), Some(&export)), Action::Keep);
    }

    #[test]
    fn what_the_desired_object_does_not_mention_stays() {
        let cases = [
            ("a field", json!({ "spec": { "a": 1 } }), json!({ "spec": { "a": 1, "b": 2 } }), None),
            ("a label", json!({ "metadata": { "name": "x" } }), json!({ "metadata": { "name": "x", "labels": { "a": "b" } } }), None),
            (
                "a claim of an opt-in set",
                json!({ "permissionClaims": [{ "group": "", "resource": "events", "verbs": ["create", "patch"] }] }),
                json!({ "permissionClaims": [
                    { "group": "", "resource": "secrets", "verbs": ["get"] },
                    { "group": "", "resource": "events", "verbs": ["create"] },
                ] }),
                Some(json!({ "permissionClaims": [
                    { "group": "", "resource": "secrets", "verbs": ["get"] },
                    { "group": "", "resource": "events", "verbs": ["create", "patch"] },
                ] })),
            ),
            (
                "a door's default binding",
                json!({ "defaultAPIBindings": [{ "path": "root:p", "export": "a" }] }),
                json!({ "defaultAPIBindings": [{ "path": "root:p", "export": "b" }] }),
                Some(json!({ "defaultAPIBindings": [{ "path": "root:p", "export": "b" }, { "path": "root:p", "export": "a" }] })),
            ),
        ];
        for (what, desired, live, update) in cases {
            assert_eq!(plan(&kept(desired), Some(&live)), update.map_or(Action::Keep, Action::Update), "{what}");
        }
    }

    #[test]
    fn what_is_ours_as_a_whole_is_replaced_as_a_whole() {
        let cases = [
            ("rules", json!({ "rules": [{ "verbs": ["get"] }] }), json!({ "rules": [{ "verbs": ["get"] }, { "verbs": ["*"] }] })),
            (
                "the schema",
                json!({ "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": { "type": "object" } } }] }),
                json!({ "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": { "type": "object", "x": 1 } } }] }),
            ),
            ("verbs of a role on resources", json!({ "resources": ["a"] }), json!({ "resources": ["a", "b"] })),
        ];
        for (what, desired, live) in cases {
            assert_eq!(plan(&kept(desired.clone()), Some(&live)), Action::Update(desired), "{what}");
        }
    }

    #[test]
    fn a_seeded_object_is_the_operators_and_an_immutable_one_is_refused() {
        let desired = |ownership| Desired { object: json!({ "spec": { "a": 1 } }), ownership };
        let live = json!({ "spec": { "a": 2 } });
        assert_eq!(plan(&desired(Ownership::Seeded), Some(&live)), Action::Keep);
        assert_eq!(plan(&desired(Ownership::Immutable), Some(&live)), Action::Refuse);
        assert_eq!(plan(&desired(Ownership::Immutable), Some(&json!({ "spec": { "a": 1, "defaulted": true } }))), Action::Keep);
    }

    #[test]
    fn an_update_carries_the_resource_version_it_was_decided_on() {
        let live = json!({ "metadata": { "name": "x", "resourceVersion": "7" }, "spec": { "a": 2 } });
        let Action::Update(body) = plan(&kept(json!({ "metadata": { "name": "x" }, "spec": { "a": 1 } })), Some(&live)) else {
            panic!("an update")
        };
        assert_eq!(body["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn a_diff_shows_the_changed_lines_and_no_managed_fields() {
        let before = json!({ "metadata": { "name": "x", "managedFields": [{}] }, "spec": { "a": 2 } });
        let text = diff(&before, &json!({ "metadata": { "name": "x" }, "spec": { "a": 1 } }));
        assert!(text.contains("-  a: 2\n+  a: 1\n") && !text.contains("managedFields"), "{text}");
    }
}
