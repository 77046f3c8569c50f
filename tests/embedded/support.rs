//! A client that speaks to a control plane in this process.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kcp_provider_runtime::embedded::{ADMIN, ControlPlane, Options};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// An answer: its code and its body, as JSON where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) control_plane: ControlPlane,
    token: String,
    accept: String,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self { control_plane: ControlPlane::new(options), token: ADMIN.into(), accept: String::new() }
    }

    /// Another user of the same control plane.
    pub(crate) fn as_bearer(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// The same user, who wants answers in this form.
    pub(crate) fn accepting(&self, accept: &str) -> Self {
        Self { accept: accept.to_owned(), ..self.clone() }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, media_type: &str, body: Bytes) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type).header("accept", &self.accept);
        let request = request.header("authorization", format!("Bearer {}", self.token)).body(body).unwrap();
        let response = self.control_plane.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
        Answer { code, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", body.to_string().into()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", body.to_string().into()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, "application/merge-patch+json", body.to_string().into()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "", Bytes::new()).await
    }

    /// A workspace below root; returns its logical cluster.
    pub(crate) async fn workspace(&self, name: &str) -> String {
        let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
        let made =
            self.post(path, &json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}})).await;
        assert_eq!(made.code, 201, "{made:?}");
        let ready = self.get(&format!("{path}/{name}")).await;
        assert_eq!(ready.body["status"]["phase"], "Ready", "{ready:?}");
        ready.body["spec"]["cluster"].as_str().unwrap().to_owned()
    }
}
