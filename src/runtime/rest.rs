//! Pure: URLs, bodies and answers of the Kubernetes API.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectName};
use crate::mutants::{Mutant, mutated};
use crate::reconciler::{Answer, Failure, Verb};

use super::raw::Keep;
use super::transport::Ask;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const NAMES_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const NAMES: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";

/// Seconds after which the server ends a watch by itself; under the five minutes after which middle boxes tend to cut.
const WATCH_SECONDS: u32 = 290;

/// The base URL of one workspace behind an endpoint, or of all of them. `endpoint` comes verbatim from the endpoint slice.
pub(crate) fn scoped(endpoint: &str, workspace: Option<&LogicalCluster>) -> String {
    format!("{}/clusters/{}", endpoint.trim_end_matches('/'), workspace.map_or("*", LogicalCluster::as_str))
}

/// `root` of the server for a kubeconfig whose server may end in `/clusters/<path>`.
pub(crate) fn host(server: &str) -> &str {
    server.split_once("/clusters/").map_or(server, |(host, _)| host).trim_end_matches('/')
}

/// The collection of a kind below a base URL, over all namespaces.
pub(crate) fn collection(base: &str, kind: KindRef) -> String {
    let prefix = if kind.group.is_empty() { "api".to_owned() } else { format!("apis/{}", kind.group) };
    format!("{base}/{prefix}/{}/{}", kind.version, kind.plural)
}

/// The collection of a kind in one namespace below a base URL.
pub(crate) fn within_namespace(base: &str, kind: KindRef, namespace: &str) -> String {
    within(base, kind, &ObjectName::namespaced(namespace, ""))
}

/// One object below a base URL.
pub(crate) fn object(base: &str, kind: KindRef, name: &ObjectName) -> String {
    format!("{}/{}", within(base, kind, name), escape(&name.name))
}

fn within(base: &str, kind: KindRef, name: &ObjectName) -> String {
    if name.namespace.is_empty() {
        return collection(base, kind);
    }
    let prefix = if kind.group.is_empty() { "api".to_owned() } else { format!("apis/{}", kind.group) };
    format!("{base}/{prefix}/{}/namespaces/{}/{}", kind.version, escape(&name.namespace), kind.plural)
}

/// Percent-encodes whatever is not plainly allowed in a path segment or a query value.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// What one stream follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The URL of the collection.
    pub(crate) url: String,
    /// Only the object of this name.
    pub(crate) only: Option<String>,
    /// Only objects with a label of this key.
    pub(crate) labelled: Option<&'static str>,
    pub(crate) keep: Keep,
    /// Whether everybody waits for it, so that trouble is looked into each second.
    pub(crate) eager: bool,
}

impl Source {
    /// A page of the list.
    pub(crate) fn list(&self, limit: u32, cont: Option<&str>) -> Ask {
        let mut url = format!("{}?limit={limit}", self.url);
        self.select(&mut url);
        if let Some(cont) = cont {
            let _ = write!(url, "&continue={}", escape(cont));
        }
        Ask::get(url, if self.keep == Keep::Body { JSON } else { NAMES_LIST })
    }

    /// The watch from a resourceVersion on.
    pub(crate) fn watch(&self, resource_version: &str) -> Ask {
        let mut url = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
            self.url,
            escape(resource_version)
        );
        self.select(&mut url);
        Ask::get(url, if self.keep == Keep::Body { JSON } else { NAMES })
    }

    fn select(&self, url: &mut String) {
        if let Some(name) = &self.only {
            let _ = write!(url, "&fieldSelector=metadata.name%3D{}", escape(name));
        }
        if let Some(key) = self.labelled {
            let _ = write!(url, "&labelSelector={}", escape(key));
        }
    }
}

/// The request of a verb on an object.
pub(crate) fn ask(base: &str, kind: KindRef, name: &ObjectName, verb: &Verb) -> Ask {
    let at = || object(base, kind, name);
    let with = |method, url, content_type, body: &Value| Ask {
        method,
        url,
        accept: JSON,
        body: Some((content_type, Bytes::from(body.to_string()))),
    };
    match verb {
        Verb::Get => Ask::get(at(), JSON),
        Verb::Create(body) => with(Method::POST, within(base, kind, name), JSON, body),
        Verb::Replace(body) if mutated(Mutant::NoVersionOnReplace) => with(Method::PUT, at(), JSON, &without_version(body)),
        Verb::Replace(body) => with(Method::PUT, at(), JSON, body),
        Verb::ApplyStatus { manager, body } => {
            with(Method::PATCH, format!("{}/status?fieldManager={}&force=true", at(), escape(manager)), APPLY, body)
        }
        Verb::Delete { .. } if mutated(Mutant::NoUidOnDelete) => with(Method::DELETE, at(), JSON, &json!({})),
        Verb::Delete { uid } => {
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
            with(Method::DELETE, at(), JSON, &options)
        }
    }
}

/// The body of a defect: see [`Mutant::NoVersionOnReplace`].
fn without_version(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        metadata.remove("uid");
    }
    body
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    name: String,
}

/// What an answer means. A 404 counts as "there is no such object" only where the server names the object: a kind that is not served answers
/// 404 too, and that proves nothing.
pub(crate) fn answer(name: &ObjectName, verb: &Verb, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
    if status.is_success() {
        let value: Value = serde_json::from_slice(body).map_err(|error| Failure::Undecodable(error.to_string()))?;
        let gone = matches!(verb, Verb::Delete { .. }) && value["kind"] == "Status";
        return Ok(if gone { Answer::Gone } else { Answer::Object(value) });
    }
    let Status { message, reason, details } = status_of(body);
    Err(match status.as_u16() {
        401 => Failure::Unauthorized,
        403 if mutated(Mutant::ForbiddenIsAbsent) => Failure::NotFound,
        403 => Failure::Forbidden(message),
        404 if reason == "NotFound" && details.is_some_and(|d| d.name == *name.name) => Failure::NotFound,
        405 => Failure::NotAllowed(message),
        409 if reason == "AlreadyExists" => Failure::AlreadyExists,
        409 => Failure::Conflict(message),
        400 | 413 | 415 | 422 => Failure::Invalid(message),
        429 => Failure::Throttled,
        code => Failure::Server(code, message),
    })
}

fn status_of(body: &[u8]) -> Status {
    serde_json::from_slice(body).unwrap_or_else(|_| Status { message: brief(body), ..Status::default() })
}

/// The message of an error answer.
pub(crate) fn message(body: &[u8]) -> String {
    status_of(body).message
}

/// The start of an answer that is no `Status`: the virtual workspace answers in plain text at times.
fn brief(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(200)]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::meta::Kind;
    use crate::api::projection::Projection;
    use crate::api::tenant::KubernetesCluster;

    #[test]
    fn an_endpoint_is_joined_with_exactly_one_clusters_segment() {
        let url = "https://shard:6443/services/apiexport/2hx7/kubernetes.edge-connect.eu";
        assert_eq!(scoped(url, None), format!("{url}/clusters/*"));
        assert_eq!(scoped(&format!("{url}/"), Some(&LogicalCluster::new("1abc"))), format!("{url}/clusters/1abc"));
        assert_eq!(host("https://kcp:6443/clusters/root:provider"), "https://kcp:6443");
        assert_eq!(host("https://kcp:6443/"), "https://kcp:6443");
    }

    #[test]
    fn objects_are_addressed_by_namespace_and_name() {
        let name = ObjectName::namespaced("default", "demo");
        assert_eq!(
            object("https://h/clusters/a", KubernetesCluster::REF, &name),
            "https://h/clusters/a/apis/kubernetes.edge-connect.eu/v1alpha1/namespaces/default/kubernetesclusters/demo"
        );
    }

    #[test]
    fn a_404_proves_an_absence_only_where_it_names_the_object() {
        let name = ObjectName::namespaced("default", "demo");
        let named = br#"{"kind":"Status","reason":"NotFound","message":"not found","details":{"name":"demo"},"code":404}"#;
        assert_eq!(answer(&name, &Verb::Get, StatusCode::NOT_FOUND, named), Err(Failure::NotFound));
        for unserved in [&b"404 page not found"[..], br#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#] {
            assert!(matches!(answer(&name, &Verb::Get, StatusCode::NOT_FOUND, unserved), Err(Failure::Server(404, _))));
        }
    }

    #[test]
    fn a_delete_says_whether_the_object_is_gone() {
        let name = ObjectName::namespaced("default", "demo");
        let delete = Verb::Delete { uid: "u".into() };
        assert_eq!(answer(&name, &delete, StatusCode::OK, br#"{"kind":"Status","status":"Success"}"#), Ok(Answer::Gone));
        let waiting = br#"{"kind":"KubernetesCluster","metadata":{"name":"demo","finalizers":["x"]}}"#;
        assert!(matches!(answer(&name, &delete, StatusCode::OK, waiting), Ok(Answer::Object(_))));
        assert_eq!(Projection::REF.plural, "kubernetesclusters");
    }
}
