//! Pure: what goes into and comes out of the watcher's machine.

use std::time::Duration;

/// The waits and bounds of one stream; the defaults suit a kcp virtual workspace and a kube-apiserver alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Objects asked for in one page. 500, as client-go does.
    pub page_size: u32,
    /// Pages of one list before it is given up: the bound on memory, and on a server that never ends. 400 (200,000 objects).
    pub max_pages: u32,
    /// From the request for a page to its last byte. 60 s.
    pub list_deadline: Duration,
    /// From the request for a watch to its headers. 30 s.
    pub header_deadline: Duration,
    /// Silence on an open watch before it is given up. 180 s: three of the bookmarks that a server sends about each minute.
    pub frame_watchdog: Duration,
    /// From one watch to the next after a clean close, and between two lists that somebody asked for. 1 s.
    pub min_watch_interval: Duration,
    /// The first wait after a failure. 500 ms, of which jitter leaves at least half.
    pub backoff_min: Duration,
    /// The longest wait after a failure. 30 s.
    pub backoff_max: Duration,
    /// How long a watch must have been open when a good frame arrives for earlier failures to be forgotten. 60 s.
    pub reset_after: Duration,
    /// Failed watches in a row, each answered by the server or by silence, before the next attempt is a list. 4.
    pub watch_retries: u32,
    /// Jitter over which streams spread the list after a schema roll, which ends all of them at once. 2 s.
    pub roll_spread: Duration,
    /// The longest `Retry-After` that is believed. 60 s.
    pub throttle_max: Duration,
    /// How long an endpoint may throttle the stream before this is shown as broken. 60 s.
    pub throttle_patience: Duration,
    /// Between polls of a kind that is not served, while a nudge says that it is about to be. 2 s: kcp serves a kind some
    /// 8 s after its binding became visible.
    pub not_served_poll: Duration,
    /// Between polls of a kind that is not served and of which nobody knows better. 30 s: the nudge is the fast way, this is
    /// the safety net.
    pub quiet_poll: Duration,
    /// How long a nudge is remembered. 60 s.
    pub nudge_window: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_size: 500,
            max_pages: 400,
            list_deadline: Duration::from_mins(1),
            header_deadline: Duration::from_secs(30),
            frame_watchdog: Duration::from_mins(3),
            min_watch_interval: Duration::from_secs(1),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            reset_after: Duration::from_mins(1),
            watch_retries: 4,
            roll_spread: Duration::from_secs(2),
            throttle_max: Duration::from_mins(1),
            throttle_patience: Duration::from_mins(1),
            not_served_poll: Duration::from_secs(2),
            quiet_poll: Duration::from_secs(30),
            nudge_window: Duration::from_mins(1),
        }
    }
}

impl Settings {
    /// For the few streams that everything waits for, such as a catalog's: what was repaired is noticed within a second.
    ///
    /// A runtime has a handful of them whatever its number of tenants, so that an outage costs the server as many requests a second.
    pub fn eager() -> Self {
        let second = Duration::from_secs(1);
        Self { backoff_max: second, quiet_poll: second, not_served_poll: second, ..Self::default() }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<T> {
    /// The time given by [`Machine::wake_at`](super::Machine::wake_at) has come. An early one is ignored.
    Elapsed,
    /// A kind that was not served is about to be, for example since a binding became Bound: poll now, and often for a while.
    Nudge,
    /// Somebody wants a list now, whatever the watch says. Several within `min_watch_interval` become one.
    Refresh,
    /// The server, or the way to it, answered a request.
    Answer {
        /// The number that came with the request; an answer to an older request is ignored.
        attempt: u64,
        /// What was answered.
        answer: Answer<T>,
    },
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// A list, or a part of it.
    Page(Page<T>),
    /// The headers of a watch arrived with status 200.
    Opened,
    /// A line of an open watch.
    Frame(Frame<T>),
    /// The body of an open watch is over.
    Ended(Ending),
    /// A list did not succeed, or a watch did not open.
    Failed(Failure),
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The objects in it.
    pub items: Vec<T>,
    /// `metadata.resourceVersion`. Absent or empty is how kcp says that it does not serve the kind here.
    pub resource_version: Option<String>,
    /// `metadata.continue`; absent or empty on the last page.
    pub cont: Option<String>,
}

/// One event of a watch. An object that cannot be decoded is a `T` too, for one bad object must not stop the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<T> {
    /// ADDED or MODIFIED, with the object's resourceVersion (`""` if it has none).
    Upsert(T, String),
    /// DELETED, with the resourceVersion of the deletion.
    Deleted(T, String),
    /// BOOKMARK, with its resourceVersion.
    Bookmark(String),
    /// ERROR, with the code and message of its `Status`.
    Error {
        /// The HTTP-like code; 410 is an expired resourceVersion, 500 is what kcp sends at a schema roll.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// A line of which not even an object's name can be read: what it said is lost, so only a list can tell.
    Garbled(String),
}

/// How the body of a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server ended it, as it does every few minutes.
    Clean,
    /// The connection broke, with the error's text.
    Broken(String),
}

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// 404: the kind is not served on this endpoint.
    NotServed,
    /// 403, with the server's words, which name the missing rule.
    Forbidden(String),
    /// 410: the resourceVersion or the continue token expired.
    Gone,
    /// 429, with its `Retry-After`.
    Throttled {
        /// The wait asked for; 1 s if there is none.
        after: Option<Duration>,
    },
    /// 401; the transport loads its credentials again.
    Unauthorized,
    /// Any other status.
    Server {
        /// The HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// No answer at all: connection refused, reset, a name that does not resolve, a body that is no JSON.
    Transport(String),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<T> {
    /// Ask for a page. No request is open when this is given.
    List {
        /// To be handed back with the answer.
        attempt: u64,
        /// The continue token, or none for the first page.
        cont: Option<String>,
        /// Objects at most.
        limit: u32,
    },
    /// Open a watch with bookmarks. No request is open when this is given.
    Watch {
        /// To be handed back with every answer.
        attempt: u64,
        /// Where it starts.
        resource_version: String,
    },
    /// Drop the open request.
    Abort,
    /// These objects are all there are: every other one that came from this stream is gone.
    Reset {
        /// All objects.
        items: Vec<T>,
        /// The state of the server that they show.
        resource_version: String,
    },
    /// An object is new or changed.
    Upsert(T),
    /// An object was deleted; this is its last state.
    Delete(T),
    /// Everything up to this resourceVersion was seen.
    Progress(String),
    /// The stream's health changed.
    Health(Health),
}

/// How the stream is; told only when it changes, a new reason being a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing was learnt yet.
    Syncing,
    /// A list was complete, and the watch from it is open, or between two openings that did not fail.
    Live,
    /// The kind is not served and never was: nothing is there, which is a good answer.
    SyncedEmpty,
    /// The stream is known to be broken; what the cache holds is kept and becomes stale.
    Broken {
        /// What was attempted and what came of it, for an operator.
        what: String,
    },
    /// The kind was served once and is not any more; what the cache holds is kept, for this is no proof of deletion.
    NotServed,
    /// The server refuses; the stream is not synced until somebody grants the rule.
    Forbidden {
        /// What was attempted and the server's words.
        what: String,
    },
}
