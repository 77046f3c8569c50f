//! Pure: the Secret beside a record, in which a reconciler keeps what the end of its work needs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::external::{CONFIG_MAP, CONTROLLER, Record, SECRET, WORKSPACE};
use super::hex::hex;
use super::raw::Raw;

/// The annotation of such a Secret that says whether it holds what is to be kept. It is on the Secret and nowhere else, so that whoever may read it
/// may read the Secret too.
pub(crate) const DIGEST: &str = "runtime.edge-connect.eu/digest";

/// Such a Secret, by its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The name of the record, and its own.
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) digest: Box<str>,
}

impl Kept {
    /// From a Secret as a stream shows it.
    pub(crate) fn read(raw: &Raw) -> Self {
        let digest = serde_json::from_str(&raw.body).map(|tags| digest_of(&tags)).unwrap_or_default();
        Self { name: (&*raw.name.name).into(), uid: raw.uid.clone(), version: raw.resource_version.clone(), digest }
    }

    /// From a Secret as the server answers with it.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().into();
        Self { name: text("name"), uid: text("uid"), version: text("resourceVersion"), digest: digest_of(object) }
    }

    /// Whether another state of the same Secret is an earlier one; the provider workspace is on one shard.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        self.versions(other).is_none_or(|(ours, theirs)| ours > theirs)
    }

    /// Whether this state is an earlier one than another for certain.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.versions(other).is_some_and(|(ours, theirs)| ours < theirs)
    }

    fn versions(&self, other: &Self) -> Option<(u64, u64)> {
        self.version.parse().ok().zip(other.version.parse().ok())
    }
}

fn digest_of(object: &Value) -> Box<str> {
    object["metadata"]["annotations"][DIGEST].as_str().unwrap_or_default().into()
}

/// Tells two sets of secrets apart.
pub(crate) fn digest(secrets: &BTreeMap<String, SecretString>) -> Box<str> {
    let mut all = Sha256::new();
    for text in secrets.iter().flat_map(|(key, value)| [key.as_str(), value.expose_secret()]) {
        all.update(text.len().to_be_bytes());
        all.update(text);
    }
    hex(&all.finalize()).into()
}

/// The Secret to be written; a known state of it is replaced, else it is created. The record owns it, so that the server takes away what comes late
/// and finds no record.
pub(crate) fn manifest(namespace: &str, record: &Record, secrets: &BTreeMap<String, SecretString>, known: Option<&Kept>) -> Value {
    let mut metadata = json!({
        "namespace": namespace,
        "name": record.name,
        "labels": {CONTROLLER: record.entry.controller, WORKSPACE: record.entry.key.workspace},
        "annotations": {DIGEST: digest(secrets)},
        "ownerReferences": [{"apiVersion": "v1", "kind": CONFIG_MAP.kind, "name": record.name, "uid": record.uid}],
    });
    if let Some(Kept { uid, version, .. }) = known {
        metadata["uid"] = (&**uid).into();
        metadata["resourceVersion"] = (&**version).into();
    }
    let data: Map<String, Value> = secrets.iter().map(|(key, value)| (key.clone(), BASE64.encode(value.expose_secret()).into())).collect();
    json!({"apiVersion": "v1", "kind": SECRET.kind, "type": "Opaque", "metadata": metadata, "data": data})
}

/// What a Secret holds; an error says what cannot be read, and nothing of it.
pub(crate) fn contents(object: &Value) -> Result<BTreeMap<String, SecretString>, String> {
    let read = |(key, value): (&String, &Value)| {
        let bytes = value.as_str().and_then(|text| BASE64.decode(text).ok());
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| format!("its key {key} holds no text"))?;
        Ok((key.clone(), text.into()))
    };
    object["data"].as_object().into_iter().flatten().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::{LogicalCluster, ObjectKey, ObjectName};
    use crate::runtime::external::{Entry, Keeping};
    use crate::runtime::raw::Keep;

    fn secrets(all: &[(&str, &str)]) -> BTreeMap<String, SecretString> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
    }

    fn record() -> Record {
        let entry = Entry {
            controller: "painter".into(),
            export: "toys.test".into(),
            key: ObjectKey::new(LogicalCluster::new("2hx7"), ObjectName::namespaced("default", "demo")),
            uid: "u1".into(),
            kind: "toys".into(),
            path: None,
            cluster: None,
            object: "{}".into(),
            keeping: Keeping::Nothing,
        };
        Record { name: "work-1".into(), uid: "c1".into(), version: "7".into(), entry }
    }

    #[test]
    fn a_secret_reads_back_as_what_was_kept_and_its_metadata_tells_whether_it_is_the_same() {
        let all = secrets(&[("user", "me"), ("token", "canary")]);
        let mut written = manifest("kcm-system", &record(), &all, None);
        let read = contents(&written).unwrap();
        assert_eq!(digest(&read), digest(&all));
        assert_eq!(read["token"].expose_secret(), "canary");
        assert!(!written.to_string().contains("canary") && !format!("{read:?}").contains("canary"));
        written["metadata"]["uid"] = "s1".into();
        written["metadata"]["resourceVersion"] = "9".into();
        let shown = Raw::read(&written.to_string(), Keep::Tags).unwrap();
        assert!(!shown.body.contains(&BASE64.encode("canary")), "the cache holds none of it");
        let kept = Kept::read(&shown);
        assert_eq!((&kept, &*kept.name, &*kept.digest), (&Kept::of(&written), "work-1", &*digest(&all)));
        let later = Kept { version: "10".into(), ..kept.clone() };
        assert!(later.is_after(&kept) && kept.is_before(&later) && !kept.is_after(&kept) && !kept.is_before(&kept));
        let odd = Kept { version: "?".into(), ..kept.clone() };
        assert!(odd.is_after(&kept) && !odd.is_before(&kept), "what cannot be compared is taken as it comes");
        let again = manifest("kcm-system", &record(), &all, Some(&kept));
        assert_eq!((&again["metadata"]["uid"], &again["metadata"]["resourceVersion"]), (&"s1".into(), &"9".into()));
        assert_eq!(again["metadata"]["ownerReferences"][0]["uid"], "c1");
    }

    #[test]
    fn what_is_cut_elsewhere_is_another_set_of_secrets() {
        let all = [&[("a", "bc")][..], &[("ab", "c")], &[("a", "b"), ("c", "")], &[("a", "b")], &[]].map(|all| digest(&secrets(all)));
        let apart: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(apart.len(), all.len(), "{all:?}");
    }

    #[test]
    fn what_is_no_text_is_told_by_its_key_alone() {
        for value in ["%canary%", &BASE64.encode([0xff, 0xfe])] {
            assert_eq!(contents(&json!({"data": {"token": value}})).unwrap_err(), "its key token holds no text");
        }
        assert!(contents(&json!({"data": null})).unwrap().is_empty());
    }
}
