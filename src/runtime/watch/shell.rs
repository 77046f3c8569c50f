//! The I/O around the machine: one task per stream, which sends what the machine asks for and passes on what it says.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures::stream::{self, BoxStream, StreamExt};
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::orders::{Inbox, Order};
use super::{Answer, Ending, Failure, Health, Input, Machine, Output, Settings};
use crate::runtime::clock::Clock;
use crate::runtime::raw::{Raw, read_frame, read_page};
use crate::runtime::rest::{Source, message};
use crate::runtime::telemetry::Metrics;
use crate::runtime::transport::{Ask, Body, Transport, retry_after};

/// Bytes of one watch event at most: above what etcd stores of one object.
const MAX_LINE: usize = 8 << 20;

/// What a stream says.
#[derive(Debug)]
pub(crate) enum News {
    /// These objects are all there are; the list was asked for at this moment.
    Reset { items: Vec<Raw>, asked: Duration },
    /// An object is new or changed.
    Upsert(Raw),
    /// An object was deleted.
    Delete(Raw),
    /// The stream's health changed.
    Health(Health),
}

/// The way to the server, and where its use is counted.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) transport: Arc<Transport>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Follows one source until nobody can give it orders or hear its news any more; may be cancelled at any time.
pub(crate) async fn follow<F, Fut>(source: Source, way: Way, clock: Clock, mut orders: Inbox, tell: F)
where
    F: Fn(News) -> Fut + Send,
    Fut: Future<Output = bool> + Send,
{
    let mut machine: Machine<Raw> = Machine::new(if source.eager { Settings::eager() } else { Settings::default() });
    let mut answers: BoxStream<'static, (u64, Answer<Raw>)> = stream::pending().boxed();
    let mut asked = Duration::ZERO;
    loop {
        let input = tokio::select! {
            biased;
            order = orders.next() => match order {
                Some(Order::Nudge) => Input::Nudge,
                Some(Order::Refresh) => Input::Refresh,
                None => return,
            },
            Some((attempt, answer)) = answers.next() => Input::Answer { attempt, answer },
            () = tokio::time::sleep_until(clock.instant(machine.wake_at())) => Input::Elapsed,
        };
        for output in machine.step(clock.now(), clock.jitter(), input) {
            let news = match output {
                Output::List { attempt, cont, limit } => {
                    if cont.is_none() {
                        asked = clock.now();
                    }
                    answers = list(way.clone(), &source, attempt, limit, cont.as_deref());
                    continue;
                }
                Output::Watch { attempt, resource_version } => {
                    answers = watch(way.clone(), &source, attempt, &resource_version);
                    continue;
                }
                Output::Abort => {
                    answers = stream::pending().boxed();
                    continue;
                }
                Output::Progress(_) => continue,
                Output::Reset { items, .. } => News::Reset { items, asked },
                Output::Upsert(raw) => News::Upsert(raw),
                Output::Delete(raw) => News::Delete(raw),
                Output::Health(health) => {
                    log(&source, &health);
                    News::Health(health)
                }
            };
            if !tell(news).await {
                return;
            }
        }
    }
}

fn log(source: &Source, health: &Health) {
    match health {
        Health::Forbidden { what } => warn!(url = source.url, %what, "a stream is refused"),
        Health::Broken { what } => warn!(url = source.url, %what, "a stream broke; what it showed is kept"),
        Health::NotServed => warn!(url = source.url, "a kind is no longer served; what it showed is kept"),
        Health::Syncing | Health::Live | Health::SyncedEmpty => debug!(url = source.url, ?health, "stream"),
    }
}

fn list(way: Way, source: &Source, attempt: u64, limit: u32, cont: Option<&str>) -> BoxStream<'static, (u64, Answer<Raw>)> {
    let (ask, keep, deadline) = (source.list(limit, cont), source.keep, Settings::default().list_deadline);
    stream::once(async move {
        let reply = way.transport.send(&ask, deadline).await;
        way.metrics.stream("list", reply.as_ref().map_or(0, |reply| reply.status.as_u16()));
        let answer = match reply {
            Err(problem) => Answer::Failed(Failure::Transport(problem)),
            Ok(reply) if reply.status.is_success() => match read_page(&reply.body, keep) {
                Ok(page) => Answer::Page(page),
                Err(problem) => Answer::Failed(Failure::Transport(problem)),
            },
            Ok(reply) => Answer::Failed(failure(reply.status, reply.retry_after, &reply.body)),
        };
        (attempt, answer)
    })
    .fuse()
    .boxed()
}

fn failure(status: StatusCode, after: Option<Duration>, body: &[u8]) -> Failure {
    match status.as_u16() {
        401 => Failure::Unauthorized,
        403 => Failure::Forbidden(message(body)),
        404 => Failure::NotServed,
        410 => Failure::Gone,
        429 => Failure::Throttled { after },
        code => Failure::Server { code, message: message(body) },
    }
}

/// An open watch: the body, what of it is not yet a whole line, and whether it is over.
struct Lines {
    body: Body,
    rest: BytesMut,
    over: bool,
}

fn watch(way: Way, source: &Source, attempt: u64, resource_version: &str) -> BoxStream<'static, (u64, Answer<Raw>)> {
    let (ask, keep) = (source.watch(resource_version), source.keep);
    let opened = stream::once(open(way, ask));
    opened
        .flat_map(move |opened| match opened {
            Err(failure) => stream::once(async { Answer::Failed(failure) }).boxed(),
            Ok(body) => {
                let lines = Lines { body, rest: BytesMut::new(), over: false };
                let frames = stream::unfold(lines, move |lines| async move { lines.next(keep).await });
                stream::once(async { Answer::Opened }).chain(frames).boxed()
            }
        })
        .map(move |answer| (attempt, answer))
        .fuse()
        .boxed()
}

async fn open(way: Way, ask: Ask) -> Result<Body, Failure> {
    let response = way.transport.open(&ask).await;
    way.metrics.stream("watch", response.as_ref().map_or(0, |response| response.status().as_u16()));
    let response = response.map_err(Failure::Transport)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    let after = retry_after(response.headers());
    let body = http_body_util::Limited::new(response.into_body(), MAX_LINE).collect().await.map(http_body_util::Collected::to_bytes);
    Err(failure(status, after, &body.unwrap_or_default()))
}

impl Lines {
    async fn next(mut self, keep: crate::runtime::raw::Keep) -> Option<(Answer<Raw>, Self)> {
        if self.over {
            return None;
        }
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end);
                self.rest.advance(1);
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some((Answer::Frame(read_frame(&line, keep)), self));
            }
            if self.rest.len() > MAX_LINE {
                self.over = true;
                return Some((Answer::Ended(Ending::Broken(format!("an event of more than {MAX_LINE} bytes"))), self));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => {
                    self.over = true;
                    return Some((Answer::Ended(Ending::Broken(error.to_string())), self));
                }
                None => {
                    self.over = true;
                    return Some((Answer::Ended(Ending::Clean), self));
                }
            }
        }
    }
}

impl Clock {
    /// The moment on tokio's clock.
    fn instant(&self, at: Duration) -> Instant {
        self.start() + at.min(Duration::from_hours(24 * 365))
    }
}
