//! What runtimes ask the server: every request goes by here and is written down.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// A request of a runtime, its answer's code included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When, since the world began.
    pub at: Duration,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `apply` or `delete`.
    pub verb: &'static str,
    /// Path and query.
    pub target: String,
    /// The body as JSON; null where there was none.
    pub body: Value,
    /// The HTTP status; 0 before the answer, and where its end was never heard.
    pub code: u16,
}

impl Sent {
    /// Whether it reads what streams follow: such requests tell nothing of what a reconciler does.
    pub fn is_stream(&self) -> bool {
        matches!(self.verb, "list" | "watch")
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !self.is_stream() && self.verb != "get"
    }
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>8.3} s  {:<6}  {}  {}", self.at.as_secs_f64(), self.verb, self.code, self.target)
    }
}

/// Everything that was asked, in its order.
#[derive(Clone)]
pub(super) struct Journal {
    began: Instant,
    book: Arc<Mutex<Book>>,
}

/// Who hears of every answer.
type Listener = Box<dyn FnMut(&Sent) + Send>;

#[derive(Default)]
struct Book {
    next: u64,
    /// Each without its body, and the body.
    sent: BTreeMap<u64, (Sent, Bytes)>,
    /// Requests that tell of a reconciler, the forgotten ones too.
    said: u64,
    /// Who hears of every answer.
    listener: Option<Listener>,
    /// Of all requests and answers, the forgotten ones too, and when each was.
    digest: DefaultHasher,
}

impl Journal {
    pub(super) fn new(began: Instant) -> Self {
        Self { began, book: Arc::default() }
    }

    pub(super) fn all(&self) -> Vec<Sent> {
        let read = |(sent, body): &(Sent, Bytes)| Sent { body: serde_json::from_slice(body).unwrap_or_default(), ..sent.clone() };
        self.book.lock().sent.values().map(read).collect()
    }

    /// The same without the bodies.
    pub(super) fn heads(&self) -> Vec<Sent> {
        self.book.lock().sent.values().map(|(sent, _)| sent.clone()).collect()
    }

    pub(super) fn forget(&self) {
        self.book.lock().sent.clear();
    }

    /// Writes by verb.
    pub(super) fn writes(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for sent in self.book.lock().sent.values().map(|(sent, _)| sent).filter(|sent| sent.is_write()) {
            *counts.entry(sent.verb).or_default() += 1;
        }
        counts
    }

    /// How many requests there were that tell of a reconciler.
    pub(super) fn said(&self) -> u64 {
        self.book.lock().said
    }

    /// Equal for equal sequences of requests and answers at equal times, in every process.
    pub(super) fn digest(&self) -> u64 {
        self.book.lock().digest.finish()
    }

    /// The verb of a request that is under way.
    pub(super) fn verb(&self, at: u64) -> &'static str {
        self.book.lock().sent.get(&at).map_or("", |(sent, _)| sent.verb)
    }

    pub(super) fn begin(&self, request: &Request<Bytes>) -> u64 {
        let target = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let sent = Sent { at: self.began.elapsed(), verb: verb(request), target, body: Value::Null, code: 0 };
        let mut book = self.book.lock();
        let at = book.next;
        book.next += 1;
        book.said += u64::from(!sent.is_stream());
        (at, sent.at, sent.verb, &sent.target, request.body()).hash(&mut book.digest);
        book.sent.insert(at, (sent, request.body().clone()));
        at
    }

    pub(super) fn end(&self, at: u64, code: u16) {
        let mut book = self.book.lock();
        (at, self.began.elapsed(), code).hash(&mut book.digest);
        // It may have been forgotten meanwhile.
        let Book { sent, listener, .. } = &mut *book;
        if let Some((sent, _)) = sent.get_mut(&at) {
            sent.code = code;
            if let Some(listener) = listener {
                listener(sent);
            }
        }
    }

    pub(super) fn listen(&self, listener: impl FnMut(&Sent) + Send + 'static) {
        self.book.lock().listener = Some(Box::new(listener));
    }
}

fn verb(request: &Request<Bytes>) -> &'static str {
    let is_apply = || request.headers().get(CONTENT_TYPE).is_some_and(|media| media.as_bytes().starts_with(b"application/apply-patch"));
    match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        Method::PATCH if is_apply() => "apply",
        Method::PATCH => "patch",
        _ if request.uri().query().is_some_and(|query| query.contains("watch=true")) => "watch",
        _ if names_an_object(request.uri().path()) => "get",
        _ => "list",
    }
}

/// `…/clusters/<workspace>/apis/<group>/<version>[/namespaces/<namespace>]/<plural>[/<name>[/<subresource>]]`.
fn names_an_object(path: &str) -> bool {
    let Some((_, rest)) = path.split_once("/clusters/") else { return true };
    let mut rest: Vec<&str> = rest.split('/').skip(1).collect();
    let group = if rest.first() == Some(&"api") { 2 } else { 3 };
    rest.drain(..group.min(rest.len()));
    if rest.len() > 2 && rest[0] == "namespaces" {
        rest.drain(..2);
    }
    rest.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_one_object_is_told_from_a_list() {
        for (path, one) in [
            ("/clusters/a/apis/toys.test/v1/toys", false),
            ("/clusters/a/apis/toys.test/v1/namespaces/default/toys", false),
            ("/clusters/a/apis/toys.test/v1/namespaces/default/toys/car", true),
            ("/services/apiexport/1abc/toys.test/clusters/*/apis/toys.test/v1/toys", false),
            ("/clusters/a/api/v1/namespaces", false),
            ("/clusters/a/api/v1/namespaces/default", true),
        ] {
            assert_eq!(names_an_object(path), one, "{path}");
        }
    }
}
