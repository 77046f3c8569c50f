//! Pure: objects as they come in: what addresses and orders them is parsed, the rest stays text until a reconciler reads it.
//!
//! `managedFields` are left out, which is three quarters of what an object would take; unknown fields are kept, so that a whole-object write
//! loses nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::meta::{Meta, OPERATION_ANNOTATION};
use crate::api::names::{LogicalCluster, ObjectName};

use super::external::DOMAIN;
use super::watch::{Frame, Page};

/// The annotation in which kcp names an object's logical cluster.
pub(crate) const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// An object of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) name: ObjectName,
    /// `None` where the object carries no `kcp.io/cluster`.
    pub(crate) workspace: Option<LogicalCluster>,
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) operation: Operation,
    /// The whole object without `managedFields`; empty where only the name was asked for, and only metadata where only tags were.
    pub(crate) body: Arc<str>,
}

/// What a person asks about an object: see [`OPERATION_ANNOTATION`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Nothing.
    #[default]
    None,
    /// To look at it once more.
    Reconcile,
    /// To leave it alone.
    Ignore,
}

impl Operation {
    /// An unknown word asks for nothing.
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("reconcile") => Self::Reconcile,
            Some("ignore") => Self::Ignore,
            _ => Self::None,
        }
    }
}

/// How much of an object is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of it.
    Body,
    /// Its name only.
    Name,
    /// Its name, and our own labels and annotations: nothing else of it gets into the cache, whatever the server sends.
    Tags,
}

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

impl Raw {
    /// Reads one object; an error means that not even its name can be read.
    pub(crate) fn read(json: &str, keep: Keep) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| format!("an object without readable metadata: {error}");
        let mut fields: Fields<'_> = serde_json::from_str(json).map_err(unreadable)?;
        let metadata = fields.get("metadata").ok_or("an object without metadata")?.get();
        let head: Head<'_> = serde_json::from_str(metadata).map_err(unreadable)?;
        let mut annotations = head.annotations.unwrap_or_default();
        let body = match keep {
            Keep::Body => Some(without_managed_fields(&mut fields, metadata)?),
            Keep::Name => None,
            Keep::Tags => Some(tags(&head.name, &head.labels.unwrap_or_default(), &annotations)),
        };
        Ok(Self {
            name: ObjectName::namespaced(&*head.namespace, &*head.name),
            workspace: annotations.remove(CLUSTER_ANNOTATION).map(LogicalCluster::new),
            uid: head.uid.into(),
            resource_version: head.resource_version.into(),
            operation: Operation::of(annotations.get(OPERATION_ANNOTATION).map(String::as_str)),
            body: body.map_or_else(|| Arc::from(""), Arc::from),
        })
    }

    /// The metadata of its body; `None` where that was not kept, or cannot be read.
    pub(crate) fn metadata(&self) -> Option<Meta> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Meta,
        }
        serde_json::from_str::<Object>(&self.body).ok().map(|object| object.metadata)
    }

    /// The resourceVersion as a number, where it is one: comparable within one shard only.
    pub(crate) fn version(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }
}

/// Not what others have put there: `kubectl apply` keeps the whole object in an annotation, a Secret's content with it.
fn tags(name: &str, labels: &BTreeMap<Cow<'_, str>, Cow<'_, str>>, annotations: &BTreeMap<String, String>) -> String {
    let labels: BTreeMap<_, _> = labels.iter().filter(|(key, _)| key.starts_with(DOMAIN)).collect();
    let annotations: BTreeMap<_, _> = annotations.iter().filter(|(key, _)| key.starts_with(DOMAIN)).collect();
    serde_json::json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}}).to_string()
}

fn without_managed_fields<'a>(fields: &mut Fields<'a>, metadata: &'a str) -> Result<String, String> {
    let unwritable = |error: serde_json::Error| format!("an object that cannot be kept: {error}");
    let mut inner: Fields<'_> = serde_json::from_str(metadata).map_err(unwritable)?;
    inner.remove("managedFields");
    let slim = serde_json::value::to_raw_value(&inner).map_err(unwritable)?;
    let mut slimmed: Fields<'_> = std::mem::take(fields);
    slimmed.insert(Cow::Borrowed("metadata"), &slim);
    serde_json::to_string(&slimmed).map_err(unwritable)
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    cont: Option<String>,
}

/// Reads a list; one unreadable item fails it, for without a name its absence could not be told from a deletion.
pub(crate) fn read_page(json: &[u8], keep: Keep) -> Result<Page<Raw>, String> {
    let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
    let list: List<'_> = serde_json::from_str(text).map_err(|error| format!("a list that is no list: {error}"))?;
    let items = list.items.unwrap_or_default().into_iter().map(|item| Raw::read(item.get(), keep)).collect::<Result<_, _>>()?;
    Ok(Page { items, resource_version: list.metadata.resource_version, cont: list.metadata.cont })
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: u16,
    message: String,
}

/// Reads one line of a watch.
pub(crate) fn read_frame(line: &[u8], keep: Keep) -> Frame<Raw> {
    let parsed = std::str::from_utf8(line).map_err(|error| error.to_string()).and_then(|text| {
        let Line { type_, object } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(match &*type_ {
            "ADDED" | "MODIFIED" => {
                let raw = Raw::read(object.get(), keep)?;
                let version = raw.resource_version.to_string();
                Frame::Upsert(raw, version)
            }
            "DELETED" => {
                let raw = Raw::read(object.get(), keep)?;
                let version = raw.resource_version.to_string();
                Frame::Deleted(raw, version)
            }
            "BOOKMARK" => Frame::Bookmark(bookmark(object.get()).unwrap_or_default()),
            "ERROR" => {
                let Status { code, message } = serde_json::from_str(object.get()).unwrap_or_default();
                Frame::Error { code, message }
            }
            other => Frame::Garbled(format!("an event of the unknown type {other:?}")),
        })
    });
    parsed.unwrap_or_else(Frame::Garbled)
}

fn bookmark(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: ListMeta,
    }
    serde_json::from_str::<Bookmark>(json).ok()?.metadata.resource_version
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"a/v1","kind":"K","metadata":{"name":"demo","namespace":"default","uid":"u1","resourceVersion":"7","annotations":{"kcp.io/cluster":"2hx7","x":"y\n"},"managedFields":[{"manager":"m"}]},"spec":{"later":"field"}}"#;

    #[test]
    fn managed_fields_go_and_unknown_fields_stay() {
        let raw = Raw::read(OBJECT, Keep::Body).unwrap();
        assert!(!raw.body.contains("managedFields"));
        assert!(raw.body.contains(r#""later":"field""#));
        assert_eq!(raw.workspace, Some(LogicalCluster::new("2hx7")));
        assert_eq!((raw.name.to_string(), &*raw.uid, raw.version()), ("default/demo".into(), "u1", Some(7)));
    }

    #[test]
    fn of_a_secret_nothing_but_our_own_tags_is_kept() {
        let secret = r#"{"metadata":{"name":"one","resourceVersion":"7","labels":{"runtime.edge-connect.eu/workload-purpose":"workload","x":"y"},
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"canary"},"managedFields":[]},"data":{"kubeconfig":"canary"}}"#;
        let raw = Raw::read(secret, Keep::Tags).unwrap();
        let kept = r#"{"metadata":{"annotations":{},"labels":{"runtime.edge-connect.eu/workload-purpose":"workload"},"name":"one"}}"#;
        assert_eq!((&*raw.body, raw.version()), (kept, Some(7)));
    }

    #[test]
    fn a_frame_of_every_type_is_read() {
        let line = |type_: &str, object: &str| format!(r#"{{"type":"{type_}","object":{object}}}"#).into_bytes();
        assert!(matches!(read_frame(&line("ADDED", OBJECT), Keep::Name), Frame::Upsert(raw, v) if raw.body.is_empty() && v == "7"));
        assert!(matches!(read_frame(&line("DELETED", OBJECT), Keep::Body), Frame::Deleted(_, v) if v == "7"));
        assert_eq!(read_frame(&line("BOOKMARK", r#"{"metadata":{"resourceVersion":"9"}}"#), Keep::Body), Frame::Bookmark("9".into()));
        let gone = r#"{"kind":"Status","code":410,"message":"too old"}"#;
        assert_eq!(read_frame(&line("ERROR", gone), Keep::Body), Frame::Error { code: 410, message: "too old".into() });
        assert!(matches!(read_frame(b"{", Keep::Body), Frame::Garbled(_)));
    }

    #[test]
    fn a_list_without_items_is_an_empty_page() {
        let page = read_page(br#"{"kind":"L","metadata":{"resourceVersion":"3","continue":""},"items":null}"#, Keep::Body).unwrap();
        assert_eq!((page.items.len(), page.resource_version.as_deref()), (0, Some("3")));
        assert!(read_page(b"404 page not found", Keep::Body).is_err());
    }
}
