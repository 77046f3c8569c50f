//! Pure: from what a reconciler says to the one status write it takes, or to none.

use serde_json::{Map, Value, json};

use crate::api::meta::KindRef;
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{Actor, ReportedCondition, cut};

/// The server-side apply body for `/status`, with the full set of the actor's conditions and its status fields; `None` when the object shows
/// all of it already.
///
/// A condition's time changes when its status does, and never else. A virtual workspace does not prune what an apply leaves out, so conditions
/// that the report leaves out are repeated as they are.
pub(crate) fn body(
    kind: KindRef,
    object: &Value,
    actor: &Actor,
    conditions: &[ReportedCondition],
    fields: &Value,
    now: &str,
) -> Option<Value> {
    let metadata = object.get("metadata")?;
    let generation = metadata.get("generation").and_then(Value::as_i64);
    let mut list = Vec::new();
    let mut changed = false;
    for type_ in actor.conditions {
        let shown = shown(object, type_);
        let wanted = match conditions.iter().find(|condition| condition.type_ == *type_) {
            Some(said) => condition(said, shown, generation, now),
            None => match shown {
                Some(shown) => shown.clone(),
                None => continue,
            },
        };
        changed |= shown != Some(&wanted);
        list.push(wanted);
    }
    if mutated(Mutant::ForeignConditions) {
        let others = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        list.extend(others.filter(|other| !actor.conditions.iter().any(|own| other["type"] == *own)).cloned());
    }
    let mut status = Map::new();
    if let Value::Object(fields) = fields {
        for (key, wanted) in fields {
            changed |= object.pointer("/status").and_then(|status| status.get(key)) != Some(wanted);
            status.insert(key.clone(), wanted.clone());
        }
    }
    if !changed && !mutated(Mutant::WriteAlways) {
        return None;
    }
    if !list.is_empty() {
        status.insert("conditions".into(), Value::Array(list));
    }
    let mut identity = Map::new();
    let keys: &[&str] =
        if mutated(Mutant::NoUidOnStatus) { &["name", "namespace"] } else { &["name", "namespace", "uid", "resourceVersion"] };
    for key in keys {
        if let Some(value) = metadata.get(key) {
            identity.insert((*key).into(), value.clone());
        }
    }
    Some(json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": identity, "status": status}))
}

/// Whether the reconciler may say this: conditions of its own only, each once. The error names the type.
pub(crate) fn check(actor: &Actor, conditions: &[ReportedCondition]) -> Result<(), String> {
    for (at, ReportedCondition { type_, .. }) in conditions.iter().enumerate() {
        if !actor.conditions.contains(type_) {
            return Err(format!("{} reported the condition {type_}, and owns {} only", actor.name, actor.conditions.join(", ")));
        }
        if conditions[..at].iter().any(|before| before.type_ == *type_) {
            return Err(format!("{} reported the condition {type_} twice", actor.name));
        }
    }
    Ok(())
}

/// Whether the object shows this condition as True for its current generation.
pub(crate) fn holds(object: &Value, type_: &str) -> bool {
    let generation = object.pointer("/metadata/generation");
    shown(object, type_).is_some_and(|shown| shown["status"] == "True" && shown.get("observedGeneration") == generation)
}

/// Whether the object does not say this yet; what it says of an older generation, it says.
pub(crate) fn is_news(object: &Value, said: &ReportedCondition) -> bool {
    shown(object, said.type_).is_none_or(|shown| {
        shown["status"] != said.status.as_str() || shown["reason"] != said.reason.as_str() || shown["message"] != cut(&said.message)
    })
}

/// The condition of that type that the object shows; a list-map holds at most one.
fn shown<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition["type"] == type_)
}

fn condition(said: &ReportedCondition, shown: Option<&Value>, generation: Option<i64>, now: &str) -> Value {
    let shown = shown.filter(|_| !mutated(Mutant::AlwaysNewTime));
    let since = shown.filter(|shown| shown["status"] == said.status.as_str()).and_then(|shown| shown["lastTransitionTime"].as_str());
    let mut condition = json!({
        "type": said.type_,
        "status": said.status.as_str(),
        "reason": said.reason.as_str(),
        "message": cut(&said.message),
        "lastTransitionTime": since.unwrap_or(now),
    });
    if let Some(generation) = generation {
        let generation = if mutated(Mutant::OldGeneration) { 1 } else { generation };
        condition["observedGeneration"] = generation.into();
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::meta::Kind;
    use crate::api::reason::Reason;
    use crate::api::tenant::KubernetesCluster;

    const ACTOR: Actor = Actor { name: "cluster-scheduler", finalizer: None, conditions: &["Scheduled", "Projected"] };

    fn object() -> Value {
        json!({"metadata": {"name": "demo", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 2},
        "status": {"ready": false, "conditions": [
            {"type": "Ready", "status": "False", "reason": "Pending", "message": "", "lastTransitionTime": "t0"},
            {"type": "Scheduled", "status": "True", "reason": "Scheduled", "message": "at otc", "lastTransitionTime": "t0", "observedGeneration": 1},
        ]}})
    }

    fn say(holds: bool, message: &str) -> ReportedCondition {
        ReportedCondition::new("Scheduled", holds, if holds { Reason::Scheduled } else { Reason::OfferingNotFound }, message)
    }

    fn write(conditions: &[ReportedCondition], fields: &Value) -> Option<Value> {
        body(KubernetesCluster::REF, &object(), &ACTOR, conditions, fields, "t1")
    }

    #[test]
    fn the_time_changes_with_the_status_and_never_else() {
        let same = write(&[say(true, "at otc")], &Value::Null).unwrap();
        assert_eq!(same["status"]["conditions"][0]["lastTransitionTime"], "t0", "only the generation moved on");
        let other = write(&[say(false, "none")], &Value::Null).unwrap();
        assert_eq!(other["status"]["conditions"][0]["lastTransitionTime"], "t1");
    }

    #[test]
    fn nothing_is_written_when_nothing_changed() {
        let mut shown = object();
        shown["status"]["conditions"][1]["observedGeneration"] = 2.into();
        let again = |fields: &Value| body(KubernetesCluster::REF, &shown, &ACTOR, &[say(true, "at otc")], fields, "t1");
        assert_eq!(again(&Value::Null), None);
        assert_eq!(again(&json!({"ready": false})), None);
        assert!(again(&json!({"ready": true})).is_some());
    }

    #[test]
    fn a_write_carries_identity_and_only_what_the_actor_owns() {
        let written = write(&[say(true, "at otc"), ReportedCondition::new("Projected", true, Reason::InSync, "")], &Value::Null).unwrap();
        assert_eq!(written["metadata"], json!({"name": "demo", "namespace": "default", "uid": "u", "resourceVersion": "7"}));
        let types: Vec<_> = written["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
        assert_eq!(types, ["Scheduled", "Projected"]);
        assert!(written["status"].get("ready").is_none());
    }

    #[test]
    fn a_message_is_cut_at_one_kibibyte_between_characters() {
        let written = write(&[say(false, &"ä".repeat(1000))], &Value::Null).unwrap();
        let message = written["status"]["conditions"][0]["message"].as_str().unwrap();
        assert_eq!(message.len(), 1024);
    }
}
