//! The control plane as a tower service: requests in, answers out, in this process.

use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::Service;

use super::body::{Body, full, stream};
use super::observe::Event;
use super::profile::Options;
use super::request::Request as Asked;
use super::store::{Difference, Place, Stored};
use super::verbs::{self, Reply};
use super::world::World;

/// A kcp in memory. Cheap to clone: clones are the same one.
///
/// As a [`tower::Service`] it takes requests whose body is there as [`Bytes`]; it answers at once, and a watch's body goes on. It must be
/// called within a tokio runtime, whose clock is its clock: with paused time nothing happens by itself.
#[derive(Clone)]
pub struct ControlPlane {
    inner: Arc<Inner>,
}

struct Inner {
    world: Arc<Mutex<World>>,
    started: Instant,
    epoch: Timestamp,
    /// Wakes whoever does what is due later.
    later: Notify,
    driving: Mutex<bool>,
    observer: Mutex<Option<Observer>>,
}

type Observer = Box<dyn FnMut(Event) + Send>;

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane").finish_non_exhaustive()
    }
}

/// A control plane at one moment, in no tokio runtime.
#[derive(Debug)]
pub struct Snapshot(World);

impl Snapshot {
    /// The time of day at which it was taken.
    pub fn now(&self) -> Timestamp {
        self.0.now
    }

    /// A control plane that is as this one was, at the same time of day: what happens in it happens in no other. Nobody watches or observes it.
    /// Costs about a microsecond for each object.
    pub fn start(&self) -> ControlPlane {
        let control_plane = ControlPlane::of(self.0.fork(), self.0.now);
        if self.0.tasks.next().is_some() {
            control_plane.drive();
        }
        control_plane
    }
}

impl ControlPlane {
    /// A control plane with the workspace `root`.
    pub fn new(options: Options) -> Self {
        let epoch = options.started;
        Self::of(World::new(options), epoch)
    }

    fn of(world: World, epoch: Timestamp) -> Self {
        let (world, started) = (Arc::new(Mutex::new(world)), Instant::now());
        let inner = Inner { world, started, epoch, later: Notify::new(), driving: Mutex::new(false), observer: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Every object that is not as it was at that moment, in the order of kinds and places: the stored kind, where it is, and both states.
    pub(crate) fn since(&self, then: &Snapshot) -> Vec<(String, Option<Value>, Option<Value>)> {
        let world = self.inner.world.lock();
        let mut found = Vec::new();
        for (now, then) in world.shards.iter().zip(&then.0.shards) {
            for difference in now.store.differences(&then.store) {
                let Difference { kind, place: Place { workspace, namespace, name }, before, after } = difference;
                let value = |stored: Option<&Arc<Stored>>| stored.map(|stored| stored.value());
                found.push((format!("{kind} {namespace}/{name} in {workspace}"), value(before), value(after)));
            }
        }
        found
    }

    /// What it is now, kept for any number of control planes that begin from it.
    pub fn snapshot(&self) -> Snapshot {
        let mut world = self.inner.world.lock();
        world.now = self.now();
        self.inner.settle(&mut world);
        Snapshot(world.fork())
    }

    /// The base of all URLs that objects show, such as those of endpoint slices.
    pub fn url(&self) -> String {
        self.inner.world.lock().options.url.clone()
    }

    /// Tells it by which URL it is reached, and by which certificates it is known, before anything was made in it.
    pub(super) fn is_reached_at(&self, url: &str, authority: &str) {
        self.inner.world.lock().is_reached_at(url, authority);
    }

    /// Objects stored, and bytes of their text.
    pub fn size(&self) -> (usize, usize) {
        let world = self.inner.world.lock();
        world.shards.iter().map(|shard| shard.store.size()).fold((0, 0), |(objects, bytes), (more, size)| (objects + more, bytes + size))
    }

    /// How many changes there were, on all shards.
    pub(crate) fn changes(&self) -> u64 {
        self.inner.world.lock().shards.iter().map(|shard| shard.store.revision()).sum()
    }

    /// Ends every open watch, as a restart does.
    pub fn close_watches(&self) {
        self.inner.world.lock().closed.grow();
    }

    /// A shard is reached by another URL from now on, as after a change of its address: endpoint slices say so, the old URL answers 503 and its
    /// watches end. Shards are counted from 0; without one of this number nothing happens. The first shard also is the front of the whole, which
    /// stays where it is.
    pub fn move_shard(&self, shard: usize) {
        {
            let mut world = self.inner.world.lock();
            world.now = self.now();
            world.move_shard(shard);
            world.closed.grow();
            self.inner.settle(&mut world);
        }
        self.drive();
    }

    /// Forgets all past changes: watches and pages of older versions are 410 from now on.
    pub fn compact(&self) {
        for shard in &mut self.inner.world.lock().shards {
            shard.store.compact();
        }
    }

    /// Tells of every request and of every change from now on, in the order of the commits and before anybody is answered. The latest observer is
    /// the only one. It must not call the control plane, which waits for it.
    pub fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        let mut world = self.inner.world.lock();
        world.changes = Some(Vec::new());
        *self.inner.observer.lock() = Some(Box::new(observer));
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Answers one request.
    fn answer(&self, request: &Asked) -> Reply {
        let (reply, next) = {
            let mut world = self.inner.world.lock();
            world.now = self.now();
            self.inner.settle(&mut world);
            let reply = verbs::answer(&mut world, request);
            self.inner.tell_of(&mut world, request, &reply);
            self.inner.settle(&mut world);
            (reply, world.tasks.next())
        };
        if next.is_some() {
            self.drive();
        }
        reply
    }

    /// Sees to it that what is due later happens, though nobody asks.
    fn drive(&self) {
        let mut driving = self.inner.driving.lock();
        if std::mem::replace(&mut *driving, true) {
            self.inner.later.notify_one();
            return;
        }
        drop(tokio::spawn(Driver(Arc::downgrade(&self.inner)).drive()));
    }
}

/// Who does what is due later. When its runtime ends before its work does, the next request starts another one.
struct Driver(Weak<Inner>);

impl Driver {
    async fn drive(mut self) {
        loop {
            // Without a handle on the control plane nobody sees what would happen.
            let Some(inner) = self.0.upgrade() else { return };
            let next = {
                let mut world = inner.world.lock();
                world.now = inner.now();
                inner.settle(&mut world);
                world.tasks.next()
            };
            let Some(next) = next else {
                // Whoever asks for something after this look finds nobody driving, and drives.
                let mut driving = inner.driving.lock();
                if inner.world.lock().tasks.next().is_some() {
                    continue;
                }
                *driving = false;
                drop(std::mem::take(&mut self.0));
                return;
            };
            let wait = next.duration_since(inner.now()).max(SignedDuration::ZERO).unsigned_abs();
            tokio::select! {
                biased;
                () = tokio::time::sleep(wait) => {}
                () = inner.later.notified() => {}
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            *inner.driving.lock() = false;
        }
    }
}

impl Inner {
    /// Does what is due.
    fn settle(&self, world: &mut World) {
        world.settle();
        let changes = world.changes.as_mut().map(std::mem::take);
        self.tell(changes.unwrap_or_default());
    }

    fn tell_of(&self, world: &mut World, request: &Asked, reply: &Reply) {
        let Some(changes) = world.changes.as_mut().map(std::mem::take) else { return };
        let user = world.authenticate(request).map(|user| user.name).unwrap_or_default();
        self.tell(Event::answered(request, &user, world.now, reply.code(), changes));
    }

    fn tell(&self, events: Vec<Event>) {
        if let Some(observer) = &mut *self.observer.lock() {
            events.into_iter().for_each(observer);
        }
    }

    fn now(&self) -> Timestamp {
        self.epoch.checked_add(SignedDuration::try_from(self.started.elapsed()).unwrap_or_default()).unwrap_or(self.epoch)
    }
}

impl Service<Request<Bytes>> for ControlPlane {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let control_plane = self.clone();
        Box::pin(async move {
            let asked = Asked::parse(parts.method, &parts.uri, &parts.headers, body);
            Ok(control_plane.respond(control_plane.answer(&asked)))
        })
    }
}

impl ControlPlane {
    fn respond(&self, reply: Reply) -> Response<Body> {
        match reply {
            Reply::Json { code, body, warnings } => {
                let mut response = response(code, "application/json", full(body));
                for warning in warnings {
                    let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
                    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                        response.headers_mut().append(WARNING, value);
                    }
                }
                if matches!(code, 429 | 504) {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                response
            }
            Reply::Text(code, text) => response(code, "text/plain; charset=utf-8", full(text)),
            Reply::Bytes(media_type, bytes) => response(200, media_type, full(bytes)),
            Reply::Watch(plan) => {
                let inner = self.inner.clone();
                let now = move || inner.now();
                response(200, "application/json", stream(verbs::watch::stream(*plan, self.inner.world.clone(), now)))
            }
        }
    }
}

fn response(code: u16, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    // Every code here is one of ours.
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
