//! Waiting for what a server does in its own time.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{AdminClient, AdminError, Resource};

/// How often a wait looks. A GET costs kcp about a millisecond, so that five a second do not slow what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How much of a status an error shows.
const SHOWN: usize = 2_000;

impl AdminClient {
    /// Waits until `condition` holds for one object, looking five times a second, and returns it.
    ///
    /// `until` completes the sentence "waited for OBJECT …", such as `"to be Ready"`. Errors count as "not yet", since kcp answers
    /// 403, 404, 429 and 500 while it sets something up; the last one is in [`AdminError::Deadline`]. May be cancelled.
    pub async fn wait_for(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        until: &str,
        deadline: Duration,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value, AdminError> {
        let look = async || match self.find(resource, namespace, name).await {
            Ok(Some(object)) if condition(&object) => Ok(object),
            Ok(Some(object)) => Err(shown(&object)),
            Ok(None) => Err("no such object".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.repeat(&resource.object_path(namespace, name), until, deadline, look).await
    }

    /// Waits until the server says that one object is not there (404). A workspace that is gone answers 403, which is not that.
    pub async fn wait_gone(&self, resource: &Resource, namespace: &str, name: &str, deadline: Duration) -> Result<(), AdminError> {
        let look = async || match self.find(resource, namespace, name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(shown(&object)),
            Err(error) => Err(error.to_string()),
        };
        self.repeat(&resource.object_path(namespace, name), "to be gone", deadline, look).await
    }

    async fn repeat<T>(
        &self,
        path: &str,
        until: &str,
        deadline: Duration,
        look: impl AsyncFn() -> Result<T, String>,
    ) -> Result<T, AdminError> {
        let began = Instant::now();
        loop {
            let seen = match look().await {
                Ok(found) => return Ok(found),
                Err(seen) => seen,
            };
            let waited = began.elapsed();
            if waited >= deadline {
                return Err(AdminError::Deadline { url: format!("{}{path}", self.url()), until: until.to_owned(), waited, seen });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What an error shows of an object: its status and metadata that decide a deletion, never its data, which may be a Secret's.
fn shown(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = match (&metadata["deletionTimestamp"], &object["status"]) {
        (Value::Null, Value::Null) => "an object without a status".to_owned(),
        (Value::Null, status) => format!("status {status}"),
        (since, status) => format!("deleted at {since}, kept by {}, status {status}", metadata["finalizers"]),
    };
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_shows_the_status_and_never_the_data() {
        for (why, object, expected) in [
            ("a Secret has no status", json!({"data": {"token": "c2VjcmV0"}}), "an object without a status"),
            ("the status says how far it is", json!({"status": {"phase": "Binding"}}), r#"status {"phase":"Binding"}"#),
            (
                "what keeps an object is its finalizers",
                json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["f"]}, "data": {"k": "v"}}),
                r#"deleted at "t", kept by ["f"], status null"#,
            ),
        ] {
            assert_eq!(shown(&object), expected, "{why}");
        }
    }
}
