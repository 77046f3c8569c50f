//! What a Kubernetes API server answers when it refuses: `metav1.Status` with its code, reason, words and causes.
//!
//! Pure: from an attempt to JSON. The words are those of `k8s.io/apimachinery/pkg/api/errors` and `…/util/validation/field`.

use serde_json::{Value, json};

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …: the type of a `field.Error`.
    pub reason: &'static str,
    /// What is wrong, without the field: `Required value`, `Invalid value: "x": must be …`.
    pub message: String,
    /// The path: `spec.nodePools[0].name`; `<nil>` for the object itself.
    pub field: String,
}

impl Cause {
    /// One wrong field.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), field: field.into() }
    }
}

/// An answer other than success. The `body` of a plain-text one is not JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// `NotFound`, `Conflict`, …; empty for a plain-text answer.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details` of the status, `null` for none.
    pub details: Value,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u32>,
    /// What is said in `Warning` headers.
    pub warnings: Vec<String>,
}

/// Which kind and object was meant; what `details` shows.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group, `""` for core.
    pub group: &'a str,
    /// The plural for most answers, the kind for `Invalid`.
    pub kind: &'a str,
    /// The object's name, or `""`.
    pub name: &'a str,
}

impl About<'_> {
    fn details(&self) -> Value {
        let mut details = json!({});
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details[key] = value.into();
            }
        }
        details
    }

    /// `kubernetesclusters.kubernetes.edge-connect.eu`: how messages name a kind.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// The reason of a status that shows none.
const NONE: &str = "-";

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String, details: Value) -> Self {
        Self { code, reason, message, details, retry_after: None, warnings: Vec::new() }
    }

    /// 404: there is no such object.
    pub fn not_found(about: About<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} {:?} not found", about.qualified(), about.name), about.details())
    }

    /// 404: no such path, as the generic server says it.
    pub fn no_such_resource() -> Self {
        let details = json!({"causes": [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]});
        Self::new(404, "NotFound", "the server could not find the requested resource".into(), details)
    }

    /// 409: create of what is there.
    pub fn already_exists(about: About<'_>) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {:?} already exists", about.qualified(), about.name), about.details())
    }

    /// 409: a precondition does not hold.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::new(409, "Conflict", message, about.details())
    }

    /// 409: the resourceVersion is an old one.
    pub fn modified(about: About<'_>) -> Self {
        Self::conflict(about, "the object has been modified; please apply your changes to the latest version and try again")
    }

    /// 409: server-side apply against fields of others; `message` has the count and the owners.
    pub fn apply_conflict(message: String, causes: &[Cause]) -> Self {
        Self::new(409, "Conflict", message, json!({"causes": as_json(causes)}))
    }

    /// 403: `why` says which rule lacks.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let object = if about.name.is_empty() { String::new() } else { format!(" {:?}", about.name) };
        let message =
            if about.kind.is_empty() { format!("forbidden: {why}") } else { format!("{}{object} is forbidden: {why}", about.qualified()) };
        Self::new(403, "Forbidden", message, about.details())
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized".into(), Value::Null)
    }

    /// 400: what was sent cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), Value::Null)
    }

    /// 405: the kind does not know this verb.
    pub fn method_not_allowed(about: About<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", about.qualified());
        Self::new(405, "MethodNotAllowed", message, About { name: "", ..about }.details())
    }

    /// 406: none of the accepted media types can be made.
    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message, Value::Null)
    }

    /// 415: the body's media type is not understood.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 410: that resourceVersion is older than what is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), Value::Null)
    }

    /// 422 of a patch that cannot be applied.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message.into(), Value::Null)
    }

    /// 422: fields are wrong. `about.kind` is the kind in this one answer.
    pub fn invalid(about: About<'_>, causes: &[Cause]) -> Self {
        let mut each: Vec<String> = Vec::new();
        for cause in causes {
            let text = format!("{}: {}", cause.field, cause.message);
            // The message says nothing twice; the causes are all there.
            if !each.contains(&text) {
                each.push(text);
            }
        }
        let list = match each.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut details = about.details();
        details["causes"] = as_json(causes);
        Self::new(422, "Invalid", format!("{} {:?} is invalid: {list}", about.qualified(), about.name), details)
    }

    /// 429: come again after so many seconds.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(429, "TooManyRequests", message.into(), json!({"retryAfterSeconds": seconds}));
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// 500 as a status.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let details = json!({"causes": [{"message": message.to_string()}]});
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"), details)
    }

    /// An answer in plain text, which is no `Status`.
    pub fn plain(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message.into(), Value::Null)
    }

    /// A status without a reason, as errors of Go's own become.
    pub fn unreasoned(code: u16, message: impl Into<String>) -> Self {
        Self { reason: NONE, ..Self::new(code, "", message.into(), Value::Null) }
    }

    /// The same with what was to be said about the request.
    #[must_use]
    pub fn warning(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    /// Whether the answer is plain text.
    pub fn is_plain(&self) -> bool {
        self.reason.is_empty()
    }

    /// The `metav1.Status`, as it is in the body and in an `ERROR` event of a watch.
    pub fn status(&self) -> Value {
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message});
        if self.reason != NONE {
            status["reason"] = self.reason.into();
        }
        if self.details.is_object() {
            status["details"] = self.details.clone();
        }
        status["code"] = self.code.into();
        status
    }
}

/// What Go says of JSON that cannot be read: a word that is none, or what it is cut to.
pub fn go_error(body: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let start = text.trim_start();
    for word in ["null", "true", "false"] {
        let same = word.chars().zip(start.chars()).take_while(|(one, other)| one == other).count();
        if let (true, Some(found), Some(expected)) = (same > 0, start.chars().nth(same), word.chars().nth(same)) {
            return format!("invalid character '{found}' in literal {word} (expecting '{expected}')");
        }
    }
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    match start.chars().next() {
        Some(first) if !"{[\"-0123456789ntf".contains(first) => format!("invalid character '{first}' looking for beginning of value"),
        _ => error.to_string(),
    }
}

fn as_json(causes: &[Cause]) -> Value {
    causes.iter().map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field})).collect()
}
