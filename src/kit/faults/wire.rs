//! The way from a runtime to its server: every request is written down, and goes wrong where it is told to.

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use crate::embedded::ControlPlane;
use crate::embedded::body::{Body as Plain, full};
use crate::kit::client::Client;
use crate::kit::journal::Journal;
use crate::kit::runs::WeakRuns;
use crate::runtime::{Body, Wire};

use super::fault::{Fault, Side, Site, Target};
use super::{Faults, Lasting, lines};

/// How long a slow request takes.
const SLOW: Duration = Duration::from_secs(5);
/// How long a process stands still.
const PAUSE: Duration = Duration::from_mins(1);
/// How many changes ago a stale read is from.
const STALE: u64 = 3;

/// Of this answer nobody hears the end.
#[derive(Clone, Copy)]
struct Half;

/// A control plane whose requests are written down, and go wrong.
#[derive(Clone)]
pub(in crate::kit) struct Tap {
    pub(in crate::kit) control_plane: ControlPlane,
    pub(in crate::kit) journal: Journal,
    pub(in crate::kit) faults: Faults,
    pub(in crate::kit) runs: WeakRuns,
}

impl Service<Request<Bytes>> for Tap {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let tap = self.clone();
        let at = self.journal.begin(&request);
        Box::pin(async move {
            let answer = tap.pass(at, request).await;
            let whole = answer.as_ref().ok().filter(|answer| answer.extensions().get::<Half>().is_none());
            tap.journal.end(at, whole.map_or(0, |answer| answer.status().as_u16()));
            answer
        })
    }
}

impl Tap {
    async fn pass(&self, at: u64, request: Request<Bytes>) -> Result<Response<Body>, BoxError> {
        let target = target(self.journal.verb(at));
        let path = request.uri().path().to_owned();
        let fault = self.faults.strike(Site::Request(at), target);
        match fault {
            Some(Fault::Crash(Side::Before)) => return self.crash().await,
            Some(Fault::Pause) => tokio::time::advance(PAUSE).await,
            Some(Fault::Reset(Side::Before)) => return Err(reset()),
            Some(Fault::Hang(Side::Before)) => return std::future::pending().await,
            Some(Fault::Slow(Side::Before)) => tokio::time::sleep(SLOW).await,
            Some(Fault::Code(code, Side::Before)) => return Ok(refusal(code)),
            Some(Fault::Down | Fault::CloseWatches) => self.control_plane.close_watches(),
            Some(Fault::Compact) => self.control_plane.compact(),
            Some(Fault::Stale) => return Ok(self.stale(request, target).await),
            _ => {}
        }
        match self.faults.lasting(&path, target) {
            Some(Lasting::Down) => return Err(reset()),
            Some(Lasting::Unauthorized) => return Ok(refusal(401)),
            Some(Lasting::Forbidden) => return Ok(refusal(403)),
            None => {}
        }
        if target == Target::Change && self.faults.is_overtaken(&path, fault == Some(Fault::Storm)) {
            self.overtake(&path).await;
        }
        let Ok(answer) = self.control_plane.clone().call(request).await;
        let answer = match fault {
            Some(Fault::Crash(Side::After)) => return self.crash().await,
            Some(Fault::Reset(Side::After)) => return Err(reset()),
            Some(Fault::Hang(Side::After)) => return std::future::pending().await,
            Some(Fault::Slow(Side::After)) => {
                tokio::time::sleep(SLOW).await;
                answer
            }
            Some(Fault::Code(code, Side::After)) => return Ok(refusal(code)),
            Some(how @ (Fault::Torn | Fault::Trickle)) => return Ok(half(answer, how).await),
            _ => answer,
        };
        if target == Target::Watch && answer.status().is_success() {
            return Ok(answer.map(|body| lines::struck(body, self.faults.clone(), at, path)));
        }
        Ok(whole(answer))
    }

    /// The processes die, this request with them.
    async fn crash<T>(&self) -> T {
        self.runs.crash();
        std::future::pending().await
    }

    /// Somebody changes the object and changes it back: only its version is another one.
    async fn overtake(&self, path: &str) {
        let admin = Client::new(self.control_plane.clone(), "");
        let object = path.strip_suffix("/status").unwrap_or(path);
        for value in [json!("true"), Value::Null] {
            // One that is gone by now is not changed.
            let _ = admin.merge(object, &json!({"metadata": {"annotations": {"kit/overtaken": value}}})).await;
        }
    }

    /// The answer of a read as it would have been some changes ago; as it is where that is not known any more.
    async fn stale(&self, request: Request<Bytes>, target: Target) -> Response<Body> {
        let uri = request.uri().to_string();
        let Ok(fresh) = self.control_plane.clone().call(request).await;
        let (parts, body) = fresh.into_parts();
        let Ok(body) = body.collect().await;
        let body = body.to_bytes();
        let past = match target {
            Target::List if !uri.contains("continue=") => self.list_of_the_past(&uri, &body).await,
            Target::Get => self.object_of_the_past(&uri, &body).await,
            _ => None,
        };
        let body = past.map_or(body, |past| past.to_string().into());
        whole(Response::from_parts(parts, full(body)))
    }

    async fn list_of_the_past(&self, uri: &str, fresh: &[u8]) -> Option<Value> {
        let fresh: Value = serde_json::from_slice(fresh).ok()?;
        let version: u64 = fresh["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
        self.list_at(uri, version.checked_sub(STALE).filter(|version| *version > 0)?).await
    }

    /// Only an object that was there then: a server that answers a read out of nothing has lost it.
    async fn object_of_the_past(&self, uri: &str, fresh: &[u8]) -> Option<Value> {
        let fresh: Value = serde_json::from_slice(fresh).ok()?;
        let (kind, name) = uri.rsplit_once('/')?;
        let version: u64 = fresh["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
        let list = self.list_at(&format!("{kind}?"), version.checked_sub(1)?).await?;
        let mut found = list["items"].as_array()?.iter().find(|item| item["metadata"]["name"] == name)?.clone();
        found["apiVersion"] = fresh["apiVersion"].clone();
        found["kind"] = fresh["kind"].clone();
        Some(found)
    }

    async fn list_at(&self, uri: &str, version: u64) -> Option<Value> {
        let joint = if uri.contains('?') { "&" } else { "?" };
        let uri: Uri = format!("{uri}{joint}resourceVersion={version}&resourceVersionMatch=Exact").parse().ok()?;
        let path = uri.path_and_query()?.as_str().to_owned();
        let answer = Client::new(self.control_plane.clone(), "").send(Method::GET, &path, "", Bytes::new()).await;
        answer.ok().ok()
    }
}

fn target(verb: &str) -> Target {
    match verb {
        "create" => Target::Create,
        "get" => Target::Get,
        "list" => Target::List,
        "watch" => Target::Watch,
        _ => Target::Change,
    }
}

fn reset() -> BoxError {
    Error::new(ErrorKind::ConnectionReset, "connection reset by a fault of the kit").into()
}

fn whole(answer: Response<Plain>) -> Response<Body> {
    answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

/// The first half of an answer, and then an error, or nothing for ever.
async fn half(answer: Response<Plain>, how: Fault) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    parts.extensions.insert(Half);
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    let first = stream::iter([Ok(Frame::data(body.slice(..body.len() / 2)))]);
    let body = if how == Fault::Torn {
        let broken = Error::new(ErrorKind::ConnectionReset, "a fault of the kit");
        StreamBody::new(first.chain(stream::iter([Err(broken)]))).boxed_unsync()
    } else {
        StreamBody::new(first.chain(stream::pending())).boxed_unsync()
    };
    Response::from_parts(parts, body)
}

/// A refusal as a server, or what stands before it, says it.
fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let (media_type, body) = if reason.is_empty() {
        // What is not served, and a gateway's words, come in plain text.
        ("text/plain; charset=utf-8", if code == 404 { "404 page not found\n".to_owned() } else { "bad gateway\n".to_owned() })
    } else {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "a fault of the kit",
            "reason": reason, "code": code});
        ("application/json", status.to_string())
    };
    let mut answer = whole(Response::new(full(body)));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if code == 429 {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// The way of one process, which ends with it: what a dead process still tries to send reaches nobody.
#[derive(Clone)]
pub(in crate::kit) struct Mortal {
    wire: Wire,
    alive: Arc<AtomicBool>,
}

impl Mortal {
    pub(in crate::kit) fn new(wire: Wire, alive: Arc<AtomicBool>) -> Self {
        Self { wire, alive }
    }
}

impl Service<Request<Bytes>> for Mortal {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.wire.poll_ready(context)
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        if !self.alive.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        Box::pin(self.wire.call(request))
    }
}
