//! The administrator: any request, at once.

use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::api::meta::KindRef;
use crate::api::names::ObjectName;
use crate::embedded::{ADMIN, ControlPlane};

/// An answer: its code, and its body as JSON, or as a JSON string where it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// What was answered.
    pub body: Value,
}

impl Answer {
    /// The object that was answered; where it was refused, why.
    ///
    /// # Errors
    /// Every code from 300 on: the code and the server's message.
    pub fn ok(self) -> Result<Value, String> {
        if self.code < 300 {
            return Ok(self.body);
        }
        let message = self.body["message"].as_str().or_else(|| self.body.as_str()).unwrap_or_default();
        Err(format!("{} {message}", self.code))
    }

    pub(super) fn is_absent(&self) -> bool {
        self.code == 404 && self.body["reason"] == "NotFound"
    }
}

/// A user of one workspace, the administrator unless [`Client::as_bearer`] says otherwise. Nothing it sends counts among [`World::requests`].
///
/// [`World::requests`]: super::World::requests
#[derive(Clone, Debug)]
pub struct Client {
    control_plane: ControlPlane,
    base: String,
    token: String,
}

impl Client {
    pub(super) fn new(control_plane: ControlPlane, base: impl Into<String>) -> Self {
        Self { control_plane, base: base.into(), token: ADMIN.into() }
    }

    /// The same place below another base path: `""` is the server itself, `/clusters/root` a workspace, and
    /// `/services/apiexport/<logical cluster>/<export>/clusters/*` an export's virtual workspace.
    #[must_use]
    pub fn at(&self, base: impl Into<String>) -> Self {
        Self { base: base.into(), ..self.clone() }
    }

    /// Another user in the same place, by their bearer token.
    #[must_use]
    pub fn as_bearer(&self, token: impl Into<String>) -> Self {
        Self { token: token.into(), ..self.clone() }
    }

    /// The URL of the base.
    pub(super) fn url(&self) -> String {
        format!("{}{}", self.control_plane.url(), self.base)
    }

    /// Sends one request. `path` begins with a slash and is below the base.
    ///
    /// # Panics
    /// When `path` makes no URL, or the answer is one that goes on: a watch.
    pub async fn send(&self, method: Method, path: &str, media_type: &str, body: impl Into<Bytes>) -> Answer {
        let url = format!("{}{path}", self.base);
        let request = Request::builder().method(method).uri(&url).header(CONTENT_TYPE, media_type);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token)).body(body.into());
        let request = request.unwrap_or_else(|error| panic!("{url} is no URL: {error}"));
        let Ok(response) = self.control_plane.clone().oneshot(request).await;
        let code = response.status().as_u16();
        let Some(Ok(body)) = response.into_body().collect().now_or_never() else { panic!("the answer of {url} goes on: is it a watch?") };
        let body = body.to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
        Answer { code, body }
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", Bytes::new()).await
    }

    /// Creates (POST).
    pub async fn create(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", body.to_string()).await
    }

    /// Replaces (PUT).
    pub async fn replace(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", body.to_string()).await
    }

    /// Merges (PATCH): `null` removes a field.
    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, "application/merge-patch+json", body.to_string()).await
    }

    /// Applies (server-side) as the manager `kit`, taking over fields of others.
    pub async fn apply(&self, path: &str, body: &Value) -> Answer {
        let path = format!("{path}?fieldManager=kit&force=true");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", body.to_string()).await
    }

    /// Deletes.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "", Bytes::new()).await
    }
}

/// `/apis/<group>/<version>`, or `/api/v1` for the core group.
pub(super) fn group_version(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

/// The path of one object below a workspace.
pub(super) fn object_path(kind: KindRef, name: &ObjectName) -> String {
    let ObjectName { namespace, name } = name;
    let within = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    format!("{}{within}/{}/{name}", group_version(&kind.api_version()), kind.plural)
}

/// `namespace/name`; a name alone is in the namespace `default` where its kind has namespaces.
pub(super) fn object_name(kind: KindRef, name: &str) -> ObjectName {
    match name.split_once('/') {
        Some((namespace, name)) => ObjectName::namespaced(namespace, name),
        None if kind.namespaced => ObjectName::namespaced("default", name),
        None => ObjectName::cluster_scoped(name),
    }
}
