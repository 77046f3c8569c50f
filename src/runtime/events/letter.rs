//! Pure: an event on the wire, `core/v1` `Event`: its name, its body, and what changes of it.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::reconciler::{EventType, Verb};
use crate::runtime::hex::hex;
use crate::runtime::rest;
use crate::runtime::transport::Ask;

const EVENT: KindRef = KindRef { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };
const MERGE: &str = "application/merge-patch+json";
/// Bytes of an object's name at most, and of what tells two events of one object apart.
const MAX_NAME: usize = 253;
const DIGITS: usize = 16;

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) kind: KindRef,
    pub(crate) name: ObjectName,
    pub(crate) uid: String,
}

/// All that a server is to know of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) subject: Subject,
    pub(super) actor: &'static str,
    pub(super) type_: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) count: u64,
    /// What of the count the server does not have, and since when that is, RFC 3339.
    pub(super) untold: u64,
    pub(super) since: String,
    /// RFC 3339.
    pub(super) first: String,
    /// RFC 3339.
    pub(super) last: String,
}

impl Letter {
    /// Where it is: with the object, and for a cluster-scoped one in `default`, as the API server demands. The same event of the same incarnation
    /// has the same name in every process, so that one that is started anew goes on with what it finds.
    pub(super) fn name(&self) -> ObjectName {
        self.named("")
    }

    /// The name of the event that tells what happened since a moment.
    fn named(&self, since: &str) -> ObjectName {
        let Subject { name: ObjectName { namespace, name }, uid, .. } = &self.subject;
        let mut hash = Sha256::new();
        for part in [uid, self.actor, self.type_.as_str(), self.reason, since] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let mut end = name.len().min(MAX_NAME - 1 - DIGITS);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        // A label of a DNS name may not end in either.
        let unique = format!("{}.{}", name[..end].trim_end_matches(['.', '-']), hex(&hash.finalize()[..DIGITS / 2]));
        let namespace = if namespace.is_empty() { "default".into() } else { namespace.clone() };
        ObjectName::namespaced(namespace, unique)
    }

    /// The request that makes it, below a workspace.
    pub(super) fn create(&self, base: &str) -> Ask {
        rest::ask(base, EVENT, &self.name(), &Verb::Create(self.body(&self.name(), self.count, &self.first)))
    }

    /// The request that tells what is untold in an event of its own, beside one that cannot be changed.
    pub(super) fn follow(&self, base: &str) -> Ask {
        let name = self.named(&self.since);
        rest::ask(base, EVENT, &name, &Verb::Create(self.body(&name, self.untold, &self.since)))
    }

    /// The request that brings the one that is there up to date; `None` leaves its count as it is.
    pub(super) fn patch(&self, base: &str, count: Option<u64>) -> Ask {
        let mut patch = json!({"message": self.message, "lastTimestamp": self.last});
        if let Some(count) = count {
            patch["count"] = wire_count(count).into();
        }
        let body = Some((MERGE, Bytes::from(patch.to_string())));
        Ask { method: Method::PATCH, url: rest::object(base, EVENT, &self.name()), accept: "application/json", body }
    }

    fn body(&self, name: &ObjectName, count: u64, first: &str) -> Value {
        let Self { subject: Subject { kind, name: about, uid }, actor, type_, reason, message, last, .. } = self;
        let mut involved = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "name": about.name, "uid": uid});
        if !about.namespace.is_empty() {
            involved["namespace"] = (*about.namespace).into();
        }
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name.name, "namespace": name.namespace},
            "involvedObject": involved, "type": type_.as_str(), "reason": reason, "message": message, "count": wire_count(count),
            "firstTimestamp": first, "lastTimestamp": last, "source": {"component": actor}, "reportingComponent": actor,
        })
    }
}

/// A count as the API has it: an int32.
fn wire_count(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::catalog::KubernetesClusterOffering;
    use crate::api::meta::Kind;
    use crate::api::tenant::KubernetesCluster;

    fn letter(kind: KindRef, name: ObjectName) -> Letter {
        let subject = Subject { kind, name, uid: "u1".into() };
        let (first, last) = ("2026-01-01T00:00:00Z".to_owned(), "2026-01-01T00:05:00Z".to_owned());
        let (actor, reason) = ("cluster-scheduler", "OfferingNotFound");
        let since = "2026-01-01T00:04:00Z".to_owned();
        Letter { subject, actor, type_: EventType::Warning, reason, message: "none".into(), count: 3, untold: 2, since, first, last }
    }

    #[test]
    fn an_event_is_beside_its_object_and_names_it() {
        let letter = letter(KubernetesCluster::REF, ObjectName::namespaced("team", "demo"));
        let name = letter.name();
        assert_eq!((&*name.namespace, name.name.len()), ("team", "demo.".len() + DIGITS));
        let ask = letter.create("https://h/clusters/a");
        assert_eq!((ask.method, &*ask.url), (Method::POST, "https://h/clusters/a/api/v1/namespaces/team/events"));
        let body: Value = serde_json::from_slice(&ask.body.unwrap().1).unwrap();
        let involved = json!({"apiVersion": "kubernetes.edge-connect.eu/v1alpha1", "kind": "KubernetesCluster", "namespace": "team",
            "name": "demo", "uid": "u1"});
        assert_eq!(body["involvedObject"], involved);
        assert_eq!((&body["count"], &body["source"]["component"]), (&json!(3), &json!("cluster-scheduler")));
    }

    #[test]
    fn an_event_of_a_cluster_scoped_object_is_in_the_namespace_default() {
        let letter = letter(KubernetesClusterOffering::REF, ObjectName::cluster_scoped("otc"));
        assert_eq!(&*letter.name().namespace, "default");
        let body: Value = serde_json::from_slice(&letter.create("https://h").body.unwrap().1).unwrap();
        assert!(body["involvedObject"].get("namespace").is_none());
    }

    #[test]
    fn the_name_follows_from_whose_event_it_is_and_is_never_too_long() {
        let one = letter(KubernetesCluster::REF, ObjectName::namespaced("team", "demo"));
        let again = Letter { message: "other".into(), count: 9, ..one.clone() };
        assert_eq!(one.name(), again.name());
        assert_ne!(one.name(), Letter { reason: "NotEntitled", ..one.clone() }.name());
        assert_ne!(one.name(), Letter { type_: EventType::Normal, ..one.clone() }.name());
        let long = format!("{}-{}", "a".repeat(235), "b".repeat(17));
        let long = letter(KubernetesCluster::REF, ObjectName::namespaced("team", long)).name();
        assert_eq!((long.name.len(), &long.name[234..236]), (235 + 1 + DIGITS, "a."), "no label ends in a dash");
    }

    #[test]
    fn what_follows_an_event_that_cannot_be_changed_tells_only_what_is_new() {
        let letter = letter(KubernetesCluster::REF, ObjectName::namespaced("team", "demo"));
        let body: Value = serde_json::from_slice(&letter.follow("https://h").body.unwrap().1).unwrap();
        assert_ne!(body["metadata"]["name"], *letter.name().name);
        assert_eq!((&body["count"], &body["firstTimestamp"]), (&json!(2), &json!("2026-01-01T00:04:00Z")));
    }

    #[test]
    fn a_patch_says_what_changed_and_leaves_out_what_is_not_known() {
        let letter = letter(KubernetesCluster::REF, ObjectName::namespaced("team", "demo"));
        let said = |count| -> Value { serde_json::from_slice(&letter.patch("https://h", count).body.unwrap().1).unwrap() };
        assert_eq!(said(Some(u64::MAX)), json!({"message": "none", "lastTimestamp": "2026-01-01T00:05:00Z", "count": i32::MAX}));
        assert_eq!(said(None), json!({"message": "none", "lastTimestamp": "2026-01-01T00:05:00Z"}));
    }
}
