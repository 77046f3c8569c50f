//! The verbs: one request each, JSON in and JSON out.

use http::{Method, Request, header};
use serde_json::{Value, json};

use super::{AdminClient, AdminError, Resource};

/// The media types of a body; the server tells a patch's meaning by them.
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Between two tries of a request that the server asked to wait with: what kcp's `Retry-After` says.
const THROTTLE_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
/// Tries that the server may ask to wait with: it has filled every cache long before.
const THROTTLED_AT_MOST: u32 = 30;

impl AdminClient {
    /// Reads one object. `namespace` is `""` for a cluster-scoped kind, here and below.
    pub async fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Value, AdminError> {
        self.send("get", Method::GET, &resource.object_path(namespace, name), None).await
    }

    /// Reads one object, or `None` when there is none. A kind that is not served looks the same.
    pub async fn find(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Option<Value>, AdminError> {
        match self.get(resource, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The items of one unpaged list; `""` lists all namespaces.
    pub async fn list(&self, resource: &Resource, namespace: &str) -> Result<Vec<Value>, AdminError> {
        let mut list = self.send("list", Method::GET, &resource.collection_path(namespace), None).await?;
        // A list without items may hold null.
        let Value::Array(items) = list["items"].take() else { return Ok(Vec::new()) };
        Ok(items)
    }

    /// Creates one object and returns what the server made of it. Its name is the body's.
    pub async fn create(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<Value, AdminError> {
        self.send("create", Method::POST, &resource.collection_path(namespace), Some((JSON, object))).await
    }

    /// Creates a subresource of one object, such as `token` of a `ServiceAccount`.
    pub async fn create_in(&self, subresource: &Resource, namespace: &str, name: &str, body: &Value) -> Result<Value, AdminError> {
        self.send("create", Method::POST, &subresource.object_path(namespace, name), Some((JSON, body))).await
    }

    /// Replaces one object (PUT); with a resourceVersion in the body only when it is still that.
    pub async fn replace(&self, resource: &Resource, namespace: &str, name: &str, object: &Value) -> Result<Value, AdminError> {
        self.send("replace", Method::PUT, &resource.object_path(namespace, name), Some((JSON, object))).await
    }

    /// Server-side apply as field manager `manager`, taking over fields of others.
    ///
    /// Through a virtual workspace of kcp an apply does not remove what an earlier one set.
    pub async fn apply(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        manager: &str,
        object: &Value,
    ) -> Result<Value, AdminError> {
        let path = format!("{}?fieldManager={manager}&force=true", resource.object_path(namespace, name));
        self.send("apply", Method::PATCH, &path, Some((APPLY_PATCH, object))).await
    }

    /// JSON merge patch (RFC 7386): `null` removes a field.
    pub async fn patch(&self, resource: &Resource, namespace: &str, name: &str, patch: &Value) -> Result<Value, AdminError> {
        self.send("patch", Method::PATCH, &resource.object_path(namespace, name), Some((MERGE_PATCH, patch))).await
    }

    /// Asks for one object's deletion; one that is gone already is no error. Finalizers may keep it: see [`AdminClient::wait_gone`].
    pub async fn delete(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), AdminError> {
        match self.send("delete", Method::DELETE, &resource.object_path(namespace, name), None).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks for the deletion of one object if it is still the one of this uid; another of the same name is no error and stays.
    pub async fn delete_exactly(&self, resource: &Resource, namespace: &str, name: &str, uid: &str) -> Result<(), AdminError> {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } });
        match self.send("delete", Method::DELETE, &resource.object_path(namespace, name), Some((JSON, &options))).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks for the deletion of every object of a cluster-scoped kind at once. Never through a virtual workspace: kcp v0.28 does not keep to the
    /// claim's selector there.
    pub async fn delete_collection(&self, resource: &Resource) -> Result<(), AdminError> {
        self.send("delete all", Method::DELETE, &resource.collection_path(""), None).await.map(drop)
    }

    /// What time it is at the server, by the `Date` of its answer, whatever the answer is; `None` without one.
    pub async fn server_date(&self) -> Result<Option<String>, AdminError> {
        let request =
            Request::get("/version").body(kube::client::Body::empty()).map_err(|source| self.failed("get", "/version", source.into()))?;
        let answer = self.client.send(request).await.map_err(|source| self.failed("get", "/version", source.into()))?;
        Ok(answer.headers().get(header::DATE).and_then(|date| date.to_str().ok()).map(ToOwned::to_owned))
    }

    /// The text at any path below this client's URL, such as `/readyz`.
    pub async fn get_text(&self, path: &str) -> Result<String, AdminError> {
        self.request("get", Method::GET, path, None).await
    }

    async fn send(&self, verb: &'static str, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, AdminError> {
        let text = self.request(verb, method, path, body).await?;
        serde_json::from_str(&text).map_err(|source| self.failed(verb, path, source.into()))
    }

    /// Sends, and waits where the server asks to: kcp answers 429 while it fills the cache of a kind that was just installed or bound. It has
    /// done nothing then, so that every verb may be sent again.
    async fn request(&self, verb: &'static str, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<String, AdminError> {
        for _ in 0..THROTTLED_AT_MOST {
            match self.request_once(verb, method.clone(), path, body).await {
                Err(error) if error.code() == Some(429) => tokio::time::sleep(THROTTLE_PAUSE).await,
                answer => return answer,
            }
        }
        self.request_once(verb, method, path, body).await
    }

    async fn request_once(
        &self,
        verb: &'static str,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<String, AdminError> {
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, JSON);
        let request = match body {
            Some((media_type, body)) => request.header(header::CONTENT_TYPE, media_type).body(body.to_string().into_bytes()),
            None => request.body(Vec::new()),
        };
        let request = request.map_err(|source| self.failed(verb, path, source.into()))?;
        self.client.request_text(request).await.map_err(|error| match error {
            kube::Error::Api(status) => {
                AdminError::Refused { verb, url: format!("{}{path}", self.url()), code: status.code, message: status.message }
            }
            other => self.failed(verb, path, other.into()),
        })
    }

    fn failed(&self, verb: &'static str, path: &str, source: Box<dyn std::error::Error + Send + Sync>) -> AdminError {
        AdminError::Failed { verb, url: format!("{}{path}", self.url()), source }
    }
}
