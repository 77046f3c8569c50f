//! Pure: changes to an object that is not known whole, so that a write of it loses no field that the type does not hold.

use serde_json::{Map, Value};

use crate::api::meta::Kind;

use super::CallError;
use super::clients::{decode, wire};

/// JSON merge patch (RFC 7396).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// The merge patch that leads from one object to another; `None` when they are equal. Lists are replaced whole.
fn diff(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (from, to) else { return Some(to.clone()) };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let mut patch: Map<String, Value> = gone.collect();
    for (key, value) in after {
        let change = before.get(key).map_or_else(|| Some(value.clone()), |before| diff(before, value));
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    Some(Value::Object(patch))
}

/// The object to be written: what the server is known to have under the very uid and resourceVersion of `object`, with the fields changed that
/// `object` changes. Without such a state it is `object` alone.
pub(crate) fn over<K: Kind>(shown: Option<&str>, object: &K) -> Result<Value, CallError> {
    let wanted = wire(object)?;
    let Some(mut whole) = shown.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return Ok(wanted) };
    let same = |known: &K| known.meta().uid == object.meta().uid && known.meta().resource_version == object.meta().resource_version;
    let Some(known) = decode::<K>(&whole).ok().filter(same) else { return Ok(wanted) };
    if let Some(patch) = diff(&wire(&known)?, &wanted) {
        merge(&mut whole, &patch);
    }
    // The items of a list do not carry them.
    for key in ["apiVersion", "kind"] {
        whole[key] = wanted[key].clone();
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::projection::Projection;

    #[test]
    fn a_merge_patch_follows_the_examples_of_rfc_7396() {
        for (target, patch, wanted) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut got = target.clone();
            merge(&mut got, &patch);
            assert_eq!(got, wanted, "{target} with {patch}");
        }
    }

    #[test]
    fn a_difference_leads_from_one_to_the_other() {
        for (from, to) in [
            (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"b": {"c": 4}, "e": [5]})),
            (json!({"a": {"b": 1}}), json!({"a": 2})),
            (json!({"a": [1, 2]}), json!({"a": [2]})),
            (json!({"a": 1}), json!({"a": 1})),
        ] {
            let mut got = from.clone();
            if let Some(patch) = diff(&from, &to) {
                merge(&mut got, &patch);
            }
            assert_eq!(got, to, "from {from}");
        }
    }

    /// A projection as a list shows it, with fields that no type here holds.
    fn shown() -> Value {
        json!({
            "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "resourceVersion": "7", "generateName": "later-",
                "labels": {"a": "ours", "b": "theirs"}},
            "spec": {"providerRef": {"name": "otc", "later": 1}, "version": "1.34.1", "region": "eu-de", "nodePools": [], "later": {"x": 1}},
            "status": {"ready": true, "later": 2},
        })
    }

    #[test]
    fn a_write_changes_what_it_changes_and_keeps_what_the_type_does_not_hold() {
        let text = shown().to_string();
        let mut object: Projection = serde_json::from_str(&text).unwrap();
        object.metadata.labels.remove("a");
        object.spec.version = "1.34.2".into();
        let mut wanted = shown();
        wanted["metadata"]["labels"] = json!({"b": "theirs"});
        wanted["spec"]["version"] = "1.34.2".into();
        wanted["apiVersion"] = Projection::REF.api_version().into();
        wanted["kind"] = Projection::REF.kind.into();
        assert_eq!(over(Some(&text), &object).unwrap(), wanted);
    }

    #[test]
    fn another_state_of_the_object_is_not_written_over() {
        let text = shown().to_string();
        let mut object: Projection = serde_json::from_str(&text).unwrap();
        object.metadata.resource_version = Some("8".into());
        assert_eq!(over(Some(&text), &object).unwrap(), wire(&object).unwrap());
        assert_eq!(over(None, &object).unwrap(), wire(&object).unwrap());
    }
}
