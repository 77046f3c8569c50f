//! Pure: which of the two verbs an object needs, and what becomes of its finalizer.

use serde_json::Value;

use crate::reconciler::add_finalizer;

/// What to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nobody wants it gone.
    CreateOrUpdate,
    /// Somebody does.
    Delete,
}

/// The verb for an object.
pub(crate) fn next_step(object: &Value) -> Step {
    if object.pointer("/metadata/deletionTimestamp").is_none_or(Value::is_null) { Step::CreateOrUpdate } else { Step::Delete }
}

/// Whether the object carries the finalizer.
pub(crate) fn carries(object: &Value, finalizer: &str) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|all| all.iter().any(|have| have == finalizer))
}

/// The object without the finalizer; `None` if it carries no such.
pub(crate) fn without(object: &Value, finalizer: &str) -> Option<Value> {
    let finalizers = object.pointer("/metadata/finalizers")?.as_array()?;
    let kept: Vec<Value> = finalizers.iter().filter(|have| *have != finalizer).cloned().collect();
    if kept.len() == finalizers.len() {
        return None;
    }
    let mut object = object.clone();
    *object.pointer_mut("/metadata/finalizers")? = Value::Array(kept);
    Some(object)
}

/// The object with the finalizer.
pub(crate) fn with(object: &Value, finalizer: &str) -> Value {
    let mut object = object.clone();
    add_finalizer(&mut object, finalizer);
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_deletion_timestamp_leads_to_delete() {
        assert_eq!(next_step(&json!({"metadata": {"finalizers": ["a"]}})), Step::CreateOrUpdate);
        assert_eq!(next_step(&json!({"metadata": {"deletionTimestamp": null}})), Step::CreateOrUpdate);
        assert_eq!(next_step(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})), Step::Delete);
    }

    #[test]
    fn a_finalizer_goes_alone() {
        let object = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"x": 1}});
        assert_eq!(without(&object, "a"), Some(json!({"metadata": {"finalizers": ["b"]}, "spec": {"x": 1}})));
        assert_eq!(without(&object, "c"), None);
        assert_eq!(without(&json!({"metadata": {}}), "a"), None);
    }
}
