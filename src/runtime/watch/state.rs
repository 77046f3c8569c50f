//! Pure: the states of the watcher's machine.

use std::fmt;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum State<T> {
    /// No request is open.
    Waiting { until: Duration, next: Request<T>, pause: Pause },
    /// A page is awaited; `list` holds those before it.
    Listing { deadline: Duration, list: Partial<T> },
    /// A watch was asked for at `started`; its headers (`opened` is none) or its next frame are awaited.
    Watching { started: Duration, opened: Option<Duration>, deadline: Duration },
}

/// Why nothing is open, which decides who may end the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The minimum interval, or the spread of a schema roll.
    Paced,
    /// After a failure.
    Backoff,
    /// The server asked for it: nobody ends it early.
    Throttled,
    /// The kind is not served: a nudge ends it.
    NotServed,
}

#[derive(Debug)]
pub(super) enum Request<T> {
    List(Partial<T>),
    Watch,
}

/// A list of which some pages are here; the default is one of which none is.
#[derive(Debug)]
pub(super) struct Partial<T> {
    pub(super) items: Vec<T>,
    /// That of the first page: a watch from it repeats at most what later pages show, and loses nothing.
    pub(super) resource_version: Option<String>,
    pub(super) cont: Option<String>,
    pub(super) pages: u32,
}

impl<T> Default for Partial<T> {
    fn default() -> Self {
        Self { items: Vec::new(), resource_version: None, cont: None, pages: 0 }
    }
}

impl<T> Default for Request<T> {
    fn default() -> Self {
        Self::List(Partial::default())
    }
}

impl<T> Request<T> {
    /// The same request, of a list from its first page.
    pub(super) fn afresh(self) -> Self {
        match self {
            Self::List(_) => Self::default(),
            Self::Watch => Self::Watch,
        }
    }
}

impl<T> fmt::Display for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List(_) => "LIST",
            Self::Watch => "WATCH",
        })
    }
}

/// Whether `one` is an earlier resourceVersion than `other` of the same stream; what is no number is never older.
pub(super) fn is_older(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<u128>().ok();
    number(one).zip(number(other)).is_some_and(|(one, other)| one < other)
}
