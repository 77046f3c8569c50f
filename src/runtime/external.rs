//! Pure: the nouns of external work: which workload clusters there are, how a piece of work is recorded, and why one cannot be begun.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::api::meta::{KindRef, Meta};
use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
use crate::api::reason::Reason;

use super::hex::hex;
use super::raw::Raw;
use super::secured::Kept;

/// What our own labels and annotations begin with.
pub(crate) const DOMAIN: &str = "runtime.edge-connect.eu/";
/// The label of a pool's Secrets: what a workload cluster is for.
pub(crate) const PURPOSE: &str = "runtime.edge-connect.eu/workload-purpose";
/// The label or annotation of a Secret whose cluster takes no new work; `false` is as good as none.
pub(crate) const CLOSED: &str = "runtime.edge-connect.eu/workload-closed";
/// The label of a record: whose work it is.
pub(crate) const CONTROLLER: &str = "runtime.edge-connect.eu/controller";
/// The label of a record: for whom.
pub(crate) const WORKSPACE: &str = "runtime.edge-connect.eu/workspace";
/// The key of a pool's Secret.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// Where kubeconfigs are.
pub(crate) const SECRET: KindRef = built_in("Secret", "secrets");
/// Where work is recorded.
pub(crate) const CONFIG_MAP: KindRef = built_in("ConfigMap", "configmaps");

const fn built_in(kind: &'static str, plural: &'static str) -> KindRef {
    KindRef { group: "", version: "v1", kind, plural, namespaced: true }
}

/// A workload cluster, by the metadata of its Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The Secret's name.
    pub(crate) name: Arc<str>,
    pub(crate) purpose: Arc<str>,
    /// Whether it takes no new work.
    pub(crate) closed: bool,
    /// The Secret's resourceVersion: with it, its kubeconfig may have changed.
    pub(crate) version: Box<str>,
}

/// All workload clusters, by the name of their Secret.
pub(crate) type Members = BTreeMap<Arc<str>, Member>;

impl Member {
    /// From a Secret as the pool's stream shows it; `None` where it says nothing of a purpose.
    pub(crate) fn read(raw: &Raw) -> Option<Self> {
        let metadata = raw.metadata()?;
        let tag = |key| metadata.labels.get(key).or_else(|| metadata.annotations.get(key));
        Some(Self {
            name: raw.name.name.clone(),
            purpose: metadata.labels.get(PURPOSE)?.as_str().into(),
            closed: tag(CLOSED).is_some_and(|value| value != "false"),
            version: raw.resource_version.clone(),
        })
    }
}

/// Why external work cannot be begun or gone on with now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    /// `AccessPending` where waiting helps, `AccessDenied` where somebody has to mend something.
    pub(crate) reason: Reason,
    /// What is missing, for people: never what a Secret holds.
    pub(crate) what: String,
    /// It says nothing of the work itself: an object that is as it should be stays so.
    pub(crate) passing: bool,
}

impl Lack {
    pub(crate) fn pending(what: String) -> Self {
        Self { reason: Reason::AccessPending, what, passing: false }
    }

    pub(crate) fn denied(what: String) -> Self {
        Self { reason: Reason::AccessDenied, what, passing: false }
    }

    pub(crate) fn passing(self) -> Self {
        Self { passing: true, ..self }
    }
}

/// The workload cluster of a piece of work, and all others.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The recorded one, or the one that was chosen; or why there is none.
    pub(crate) chosen: Result<Arc<str>, Lack>,
    pub(crate) members: Arc<Members>,
}

impl Choice {
    /// The Secret of a workload cluster.
    pub(crate) fn member(&self, name: &str, namespace: &str) -> Result<&Member, Lack> {
        self.members.get(name).ok_or_else(|| {
            let what = format!(
                "the work of this object is on the workload cluster {name}, whose Secret {namespace}/{name} is not in the pool any more; \
                 it is not moved, and goes on once the Secret is back"
            );
            Lack::pending(what)
        })
    }
}

/// What the heart knows of the external work of an object when a call about it begins.
#[derive(Clone, Debug)]
pub(crate) struct ExternalWork {
    /// Where Secrets and records are.
    pub(crate) namespace: Arc<str>,
    /// The name of its record.
    pub(crate) name: Box<str>,
    /// The name of the export, and of the endpoint slice.
    pub(crate) export: Arc<str>,
    /// The record as it was seen last.
    pub(crate) record: Option<Record>,
    /// The Secret beside it, likewise.
    pub(crate) kept: Option<Kept>,
    /// `None` for work that needs no workload cluster.
    pub(crate) choice: Option<Choice>,
    /// How the server is asked whether the object is gone, where none is seen.
    pub(crate) orphan: Option<Probe>,
}

/// Where an object that is not seen would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Whether its workspace has a binding: without one a 403 says that the object is gone, with one it says nothing.
    pub(crate) is_bound: bool,
    /// Where it may be; none where the endpoint slice has none, which is asked then.
    pub(crate) endpoints: Vec<Arc<str>>,
}

/// A piece of external work as it is recorded in the provider workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The `ConfigMap`'s name, uid and resourceVersion.
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) entry: Entry,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name of the actor.
    pub(crate) controller: Box<str>,
    /// The export through which it saw the object: through another one it sees nothing of it, which proves nothing.
    pub(crate) export: Box<str>,
    pub(crate) key: ObjectKey,
    /// The object's uid.
    pub(crate) uid: Box<str>,
    /// `plural.group`, for people.
    pub(crate) kind: Box<str>,
    /// The workspace's path when it was known.
    pub(crate) path: Option<Box<str>>,
    /// The workload cluster.
    pub(crate) cluster: Option<Arc<str>>,
    /// The object as it was seen last: its names, its uid, and everything but its status.
    pub(crate) object: Arc<str>,
    /// Whether secrets are kept for the end of the work.
    pub(crate) keeping: Keeping,
}

/// What a record says of the secrets that are kept beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// None, as far as it knows.
    #[default]
    Nothing,
    /// Some are, so that the work may not count as ended without them.
    Kept,
    /// The work has ended, and nobody needs them any more.
    Ended,
}

impl Keeping {
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Kept => Some("kept"),
            Self::Ended => Some("ended"),
        }
    }

    /// A word that is not known is the careful one's.
    fn of(word: Option<&str>) -> Self {
        match word {
            None => Self::Nothing,
            Some("ended") => Self::Ended,
            Some(_) => Self::Kept,
        }
    }
}

#[derive(Deserialize)]
struct ConfigMap {
    metadata: Meta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Record {
    /// Reads a record; an error says what is missing.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let ConfigMap { metadata, mut data } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let controller = metadata.labels.get(CONTROLLER).ok_or_else(|| format!("it has no label {CONTROLLER}"))?.as_str().into();
        let mut need = |key: &str| data.remove(key).ok_or_else(|| format!("it has no data.{key}"));
        let (workspace, name, uid, kind, object) = (need("workspace")?, need("name")?, need("uid")?, need("kind")?, need("object")?);
        let export = need("export")?.into();
        let namespace = data.remove("namespace").unwrap_or_default();
        Ok(Self {
            uid: metadata.uid().into(),
            version: metadata.resource_version.unwrap_or_default().into(),
            name: metadata.name.into(),
            entry: Entry {
                controller,
                export,
                key: ObjectKey::new(LogicalCluster::new(workspace), ObjectName::namespaced(namespace, name)),
                uid: uid.into(),
                kind: kind.into(),
                path: data.remove("path").map(Into::into),
                cluster: data.remove("cluster").map(Into::into),
                object: object.into(),
                keeping: Keeping::of(data.remove("secrets").as_deref()),
            },
        })
    }

    /// Whether another state of the same record is an earlier one; the provider workspace is on one shard.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        let number = |record: &Self| record.version.parse::<u64>().ok();
        number(self).zip(number(other)).is_none_or(|(ours, theirs)| ours > theirs)
    }
}

impl Entry {
    /// The name of the record of this work: the same each time, and another one for each incarnation.
    pub(crate) fn record_name(export: &str, controller: &str, key: &ObjectKey, uid: &str) -> Box<str> {
        let ObjectKey { workspace, name: ObjectName { namespace, name } } = key;
        // None of them holds a line break.
        let digest = Sha256::digest(format!("{export}\n{controller}\n{workspace}\n{namespace}\n{name}\n{uid}"));
        format!("work-{}", hex(&digest[..16])).into()
    }

    /// The `ConfigMap` to be written; a known state of it is replaced, else it is created.
    pub(crate) fn manifest(&self, namespace: &str, name: &str, known: Option<&Record>) -> Value {
        let Self { controller, export, key, uid, kind, path, cluster, object, keeping } = self;
        let mut metadata = json!({
            "namespace": namespace,
            "name": name,
            "labels": {CONTROLLER: controller, WORKSPACE: key.workspace},
        });
        if let Some(Record { uid, version, .. }) = known {
            metadata["uid"] = (&**uid).into();
            metadata["resourceVersion"] = (&**version).into();
        }
        let mut data = json!({
            "export": export, "workspace": key.workspace, "namespace": key.name.namespace, "name": key.name.name, "uid": uid, "kind": kind,
            "object": object,
        });
        if let Some(path) = path {
            data["path"] = (&**path).into();
        }
        if let Some(cluster) = cluster {
            data["cluster"] = (&**cluster).into();
        }
        if let Some(word) = keeping.word() {
            data["secrets"] = word.into();
        }
        json!({"apiVersion": "v1", "kind": CONFIG_MAP.kind, "metadata": metadata, "data": data})
    }
}

/// An object as a record keeps it: what `delete` may need of it, and nothing that changes by itself.
pub(crate) fn essence(object: &Value) -> Value {
    let Value::Object(fields) = object else { return Value::Null };
    let mut kept: Map<String, Value> = fields.clone();
    kept.remove("status");
    let metadata = fields.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let named = metadata.filter(|(key, _)| matches!(key.as_str(), "name" | "namespace" | "uid"));
    kept.insert("metadata".into(), named.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into());
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let key = ObjectKey::new(LogicalCluster::new("2hx7"), ObjectName::namespaced("default", "demo"));
        let object = essence(&json!({
            "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "resourceVersion": "7", "finalizers": ["x"]},
            "spec": {"colour": "red"},
            "status": {"ready": true},
        }));
        Entry {
            controller: "painter".into(),
            export: "toys.test".into(),
            key,
            uid: "u1".into(),
            kind: "toys.toys.test".into(),
            path: Some("root:orgs:a".into()),
            cluster: Some("one".into()),
            object: object.to_string().into(),
            keeping: Keeping::Kept,
        }
    }

    #[test]
    fn a_record_reads_back_as_what_was_written() {
        let written = entry().manifest("kcm-system", "work-1", None);
        let read = Record::read(&written.to_string()).unwrap();
        assert_eq!(read.entry, entry());
        let again = read.entry.manifest("kcm-system", "work-1", Some(&Record { uid: "c1".into(), version: "9".into(), ..read.clone() }));
        assert_eq!((&again["metadata"]["uid"], &again["metadata"]["resourceVersion"]), (&"c1".into(), &"9".into()));
        assert_eq!(&*read.entry.object, r#"{"metadata":{"name":"demo","namespace":"default","uid":"u1"},"spec":{"colour":"red"}}"#);
    }

    #[test]
    fn a_records_name_is_a_dns_label_and_another_one_for_each_incarnation() {
        let Entry { key, .. } = entry();
        let name = Entry::record_name("toys.test", "painter", &key, "u1");
        assert!(name.len() <= 63 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{name}");
        assert_eq!(name, Entry::record_name("toys.test", "painter", &key, "u1"));
        assert_ne!(name, Entry::record_name("toys.test", "painter", &key, "u2"));
        assert_ne!(name, Entry::record_name("toys.test", "polisher", &key, "u1"));
        assert_ne!(name, Entry::record_name("other.test", "painter", &key, "u1"));
    }

    #[test]
    fn a_record_says_whether_secrets_are_kept_and_a_word_that_it_does_not_know_keeps_them() {
        let said = |word: Option<&str>| {
            let mut written = Entry { keeping: Keeping::Nothing, ..entry() }.manifest("kcm-system", "work-1", None);
            assert!(written["data"].get("secrets").is_none());
            if let Some(word) = word {
                written["data"]["secrets"] = word.into();
            }
            Record::read(&written.to_string()).unwrap().entry.keeping
        };
        let all = [None, Some("kept"), Some("ended"), Some("later")].map(said);
        assert_eq!(all, [Keeping::Nothing, Keeping::Kept, Keeping::Ended, Keeping::Kept]);
        let ended = Entry { keeping: Keeping::Ended, ..entry() };
        assert_eq!(Record::read(&ended.manifest("kcm-system", "work-1", None).to_string()).unwrap().entry, ended);
    }

    #[test]
    fn what_is_no_record_says_what_it_lacks() {
        let mut broken = entry().manifest("kcm-system", "work-1", None);
        broken["data"].as_object_mut().unwrap().remove("uid");
        assert_eq!(Record::read(&broken.to_string()).unwrap_err(), "it has no data.uid");
    }
}
