//! Watches: a plan made under the lock, and the stream that follows it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::options::{self, At};
use super::{Answer, Call, Reply, Way, bytes_of};
use crate::embedded::convert;
use crate::embedded::errors::Refusal;
use crate::embedded::front::negotiation::{Representation, Shape};
use crate::embedded::front::table::{self, IncludeObject};
use crate::embedded::selector::Selector;
use crate::embedded::served::Served;
use crate::embedded::signal::{Signal, Waiter};
use crate::embedded::store::{Change, Compacted, Scope, Stored};
use crate::embedded::world::World;

/// The longest that a watch lasts: beyond any test, and within what the clock can add.
const LONGEST: Duration = Duration::from_hours(24 * 365);
/// How long a watch lasts that does not say so. The real server draws from 30 to 60 minutes.
const LASTS: Duration = Duration::from_mins(45);

/// What a watch shows.
#[derive(Debug)]
pub(crate) struct Plan {
    kind: Option<Arc<Served>>,
    shard: usize,
    scope: Scope,
    selector: Selector,
    representation: Representation,
    include: Option<IncludeObject>,
    /// The version after which events are shown.
    from: u64,
    /// What is shown first.
    first: Vec<Bytes>,
    bookmarks: Option<Duration>,
    lasts: Duration,
    latest: Waiter,
    rolls: Waiter,
    closed: Waiter,
    through: bool,
    headed: bool,
    /// Of tables: only the names.
    names_only: bool,
}

impl Plan {
    /// A watch that never shows anything.
    pub(crate) fn silent() -> Self {
        let never = || Signal::default().waiter();
        Self {
            kind: None,
            shard: 0,
            scope: Scope { workspace: None, namespace: None },
            selector: Selector::default(),
            representation: Representation::Object,
            include: None,
            from: 0,
            first: Vec::new(),
            bookmarks: None,
            lasts: LASTS,
            latest: never(),
            rolls: never(),
            closed: never(),
            through: true,
            headed: false,
            names_only: false,
        }
    }
}

pub(super) fn watch(world: &mut World, call: &Call<'_>) -> Answer {
    let options = options::list(&call.request.query, true)?;
    let selector = call.selector()?;
    let representation = call.represented(Shape::Watch)?;
    let include = match representation {
        Representation::Table { .. } => Some(IncludeObject::parse(call.request.query.get("includeObject").unwrap_or_default())?),
        _ => None,
    };
    let bookmarks = options.bookmarks.then_some(world.options.timing.bookmark.min(LONGEST));
    let rolls = world.rolls_of(&call.kind, call.workspace.as_deref());
    let shard = &mut world.shards[call.shard];
    let revision = shard.store.revision();
    let latest = shard.store.latest(&call.kind.storage);
    let mut plan = Plan {
        kind: Some(call.kind.clone()),
        shard: call.shard,
        scope: call.scope(),
        selector,
        representation,
        include,
        from: revision,
        first: Vec::new(),
        bookmarks,
        lasts: options.timeout.filter(|seconds| *seconds > 0).map_or(LASTS, Duration::from_secs).min(LONGEST),
        latest,
        rolls,
        closed: world.closed.waiter(),
        through: matches!(call.way, Way::Virtual { .. }),
        headed: false,
        names_only: call.shows_names_only(),
    };
    let now = world.now.as_second();
    match options.at {
        At::NotOlderThan(version) | At::Exact(version) if version > 0 && !options.initial_events => plan.from = version,
        _ => {
            let store = &world.shards[call.shard].store;
            let there: Vec<Arc<Stored>> = store.list(&call.kind.storage, &plan.scope).map(|(_, stored)| stored.clone()).collect();
            for stored in there {
                if plan.selector.is_empty() || plan.selector.matches(&stored.value()) {
                    let event = plan.event("ADDED", convert::value(&call.kind, &stored), now);
                    plan.first.push(event);
                }
            }
        }
    }
    if options.initial_events && options.bookmarks {
        let done = json!({"k8s.io/initial-events-end": "true"});
        plan.first.push(plan.bookmark(revision, Some(done)));
    }
    Ok(Reply::Watch(Box::new(plan)))
}

impl Plan {
    fn event(&mut self, type_: &str, object: Value, now: i64) -> Bytes {
        let object = match self.representation {
            Representation::Object => object,
            Representation::Partial { v1 } => {
                let mut partial = table::partial(&object);
                if let Some(kind) = self.kind.as_ref().filter(|_| self.scope.workspace.is_none()) {
                    table::of_version(&mut partial, kind);
                }
                if v1 { partial } else { table::in_v1beta1(partial) }
            }
            Representation::Table { v1 } => self.row(&object, now, v1),
        };
        line(type_, &object)
    }

    fn row(&mut self, object: &Value, now: i64, v1: bool) -> Value {
        let Some(kind) = &self.kind else { return Value::Null };
        let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let include = self.include.unwrap_or(IncludeObject::Metadata);
        let mut table = table::table(kind, std::slice::from_ref(object), &meta, now, include);
        if self.names_only {
            table::names_only(&mut table);
        }
        // Only the first event of a stream has the headings.
        let table = if std::mem::replace(&mut self.headed, true) { table::without_headings(table) } else { table };
        if v1 { table } else { table::in_v1beta1(table) }
    }

    fn bookmark(&self, revision: u64, annotations: Option<Value>) -> Bytes {
        let Some(kind) = &self.kind else { return Bytes::new() };
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let object = json!({"apiVersion": kind.api_version(), "kind": &*kind.names.kind, "metadata": metadata});
        line("BOOKMARK", &object)
    }

    /// What a change is to this watch.
    fn shown(&mut self, change: &Change, now: i64) -> Option<Bytes> {
        let kind = self.kind.clone()?;
        let value = |stored: &Arc<Stored>| convert::value(&kind, stored);
        let seen =
            |stored: Option<&Arc<Stored>>| stored.is_some_and(|stored| self.selector.is_empty() || self.selector.matches(&stored.value()));
        let (before, after) = (seen(change.before.as_ref()), seen(change.after.as_ref()));
        let (type_, object) = match (before, after) {
            (false, false) => return None,
            (false, true) => ("ADDED", change.after.as_ref().map(value)?),
            (true, true) => ("MODIFIED", change.after.as_ref().map(value)?),
            // What leaves the selection is shown as it was, with the version at which it left.
            (true, false) => {
                let mut object = change.last.as_ref().or(change.before.as_ref()).map(value)?;
                object["metadata"]["resourceVersion"] = change.revision.to_string().into();
                ("DELETED", object)
            }
        };
        Some(self.event(type_, object, now))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.lasts
    }
}

fn line(type_: &str, object: &Value) -> Bytes {
    let mut bytes = bytes_of(&json!({"type": type_, "object": object})).to_vec();
    bytes.push(b'\n');
    bytes.into()
}

fn error(refusal: &Refusal) -> Bytes {
    line("ERROR", &refusal.status())
}

/// One step of the stream.
enum Step {
    Lines(Vec<Bytes>),
    Last(Vec<Bytes>),
    End,
}

struct Following {
    plan: Plan,
    world: Arc<Mutex<World>>,
    until: Instant,
    next_bookmark: Option<Instant>,
    ended: bool,
    begun: bool,
}

/// The events of a plan as they come. Ends at its deadline, when all watches are closed, and after an error.
pub(crate) fn stream(
    plan: Plan,
    world: Arc<Mutex<World>>,
    now: impl Fn() -> jiff::Timestamp + Send + Sync + 'static,
) -> impl Stream<Item = Bytes> + Send {
    let until = plan.deadline();
    let next_bookmark = plan.bookmarks.map(|every| Instant::now() + every);
    let following = Following { plan, world, until, next_bookmark, ended: false, begun: false };
    futures::stream::unfold((following, now), |(mut following, now)| async move {
        loop {
            if following.ended {
                return None;
            }
            let lines = match following.step(&now).await {
                Step::End => return None,
                Step::Last(lines) => {
                    following.ended = true;
                    lines
                }
                Step::Lines(lines) => lines,
            };
            if !lines.is_empty() {
                return Some((lines.concat().into(), (following, now)));
            }
        }
    })
}

impl Following {
    async fn step(&mut self, now: &(impl Fn() -> jiff::Timestamp + Send + Sync)) -> Step {
        if !std::mem::replace(&mut self.begun, true) {
            let first = std::mem::take(&mut self.plan.first);
            if !first.is_empty() {
                return Step::Lines(first);
            }
        }
        match self.news(now().as_second()) {
            Ok(lines) if !lines.is_empty() => return Step::Lines(lines),
            Ok(_) => {}
            Err(last) => return Step::Last(last),
        }
        let Plan { latest, rolls, closed, .. } = &mut self.plan;
        let pause = self.next_bookmark.unwrap_or(self.until).min(self.until);
        tokio::select! {
            biased;
            () = closed.grown() => Step::End,
            () = rolls.grown() => {
                if self.plan.through { Step::Last(vec![error(&broken())]) } else { Step::End }
            }
            () = latest.grown() => Step::Lines(Vec::new()),
            () = tokio::time::sleep_until(pause) => self.pause_is_over(now().as_second()),
        }
    }

    fn pause_is_over(&mut self, now: i64) -> Step {
        let at = Instant::now();
        if at >= self.until {
            return Step::End;
        }
        let Some(every) = self.plan.bookmarks else { return Step::Lines(Vec::new()) };
        self.next_bookmark = Some(at + every);
        // A bookmark says that everything before it was shown, so that what came meanwhile is shown first.
        match self.news(now) {
            Ok(mut lines) => {
                lines.push(self.plan.bookmark(self.plan.from, None));
                Step::Lines(lines)
            }
            Err(last) => Step::Last(last),
        }
    }

    /// The events since the last look, or the error with which the watch ends.
    fn news(&mut self, now: i64) -> Result<Vec<Bytes>, Vec<Bytes>> {
        let Some(kind) = self.plan.kind.clone() else { return Ok(Vec::new()) };
        self.plan.latest.look();
        let (changes, revision) = {
            let world = self.world.lock();
            let store = &world.shards[self.plan.shard].store;
            (store.since(&kind.storage, &self.plan.scope, self.plan.from), store.revision())
        };
        let changes = changes.map_err(|Compacted { oldest }| {
            let message = format!("too old resource version: {} ({oldest})", self.plan.from);
            vec![error(&Refusal::expired(message))]
        })?;
        let mut lines = Vec::new();
        for change in &changes {
            lines.extend(self.plan.shown(change, now));
        }
        // Whatever happened elsewhere is seen too: a quiet watch of a busy kind does not fall behind.
        self.plan.from = self.plan.from.max(revision);
        Ok(lines)
    }
}

/// What a virtual workspace says when the schema behind a watch is replaced.
fn broken() -> Refusal {
    let message = "an error on the server (\"unable to decode an event from the watch stream: context canceled\") has prevented the request from succeeding";
    let causes = json!([{"reason": "UnexpectedServerResponse", "message": "unable to decode an event from the watch stream: context canceled"},
        {"reason": "ClientWatchDecoding", "message": "unable to decode an event from the watch stream: context canceled"}]);
    Refusal {
        code: 500,
        reason: "InternalError",
        message: message.into(),
        details: json!({"causes": causes}),
        retry_after: None,
        warnings: Vec::new(),
    }
}
