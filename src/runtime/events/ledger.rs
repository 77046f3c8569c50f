//! Pure: which events there are, how often each happened, and when which of them is sent.
//!
//! What happens again is one event that counts. An event is sent at once the first time, and then at intervals; what comes in between waits for
//! the next. What a workspace does not take is tried once more, and then given up until it happens again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::names::LogicalCluster;
use crate::reconciler::{Event, EventType, cut};
use crate::runtime::clock::Moment;

use super::Note;
use super::letter::{Letter, Subject};

/// Between two writes of one event, and from a refusal of a workspace to the next request there: whoever reads an event reads a count that is five
/// minutes old at most, an object that flaps each second costs twelve writes in an hour, and a claim that is accepted late counts soon.
pub(super) const INTERVAL: Duration = Duration::from_mins(5);
/// Events that are known at once: some 4 MiB where each has the longest message. The server knows the others, and they are found there by their names.
pub(super) const ENTRIES: usize = 4096;
/// New events of one workspace in an interval: a page of `kubectl get events`. Whoever orders a thousand clusters that nobody offers can read
/// their conditions, and neither fills its workspace nor crowds out the events of others.
pub(super) const NEW: u32 = 100;
/// How often one state of an event is sent at most before it is given up.
const ATTEMPTS: u8 = 2;

/// What makes two events one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    workspace: LogicalCluster,
    uid: Arc<str>,
    actor: &'static str,
    type_: EventType,
    reason: &'static str,
}

impl Key {
    /// Where it goes.
    pub(super) const fn workspace(&self) -> &LogicalCluster {
        &self.workspace
    }
}

/// What the server has of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing, unless an earlier process has made it.
    New,
    /// We have asked for it and do not know what came of it: what is there is ours.
    Asked,
    /// It is there.
    Known,
    /// It is there, and we may not see it: each further telling is an event of its own.
    Hidden,
}

/// An event to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) key: Key,
    pub(super) standing: Standing,
    pub(super) endpoint: Arc<str>,
    pub(super) letter: Letter,
}

/// What came of sending one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server has it; an earlier process had counted this much.
    Told { before: u64 },
    /// The server has it in a new event, beside one that we may not see: kcp before v0.31 takes the claim's label off events, and whoever has no
    /// more than the claim is told that there is none (<https://github.com/kcp-dev/kcp/pull/3894>).
    Hidden,
    /// The server does not take it: for one, since the claim on events is not accepted.
    Refused,
    /// Nobody knows: no answer, or an error of the server's own.
    Failed,
    /// Somebody was faster: that says nothing of the workspace.
    Missed,
}

struct Entry {
    endpoint: Arc<str>,
    subject: Subject,
    message: String,
    first: Moment,
    last: Moment,
    count: u64,
    /// How much of the count is on its way, and how much the server has.
    sent: u64,
    told: u64,
    /// When what the server does not have began.
    since: Moment,
    standing: Standing,
    /// When it is sent, and its place among those of the same time; `None` where the server has all of it, or it is on its way, or was given up.
    due: Option<(Duration, u64)>,
    /// Not before this time.
    rests: Duration,
    attempts: u8,
    /// Whether it is on its way, and whether it happened again meanwhile.
    under_way: bool,
    again: bool,
    /// Orders entries by when they happened last.
    touched: u64,
}

/// What is known of a workspace.
#[derive(Default)]
struct Place {
    /// Nothing is sent there before this time.
    shut: Duration,
    /// Whether its refusal was told to the log.
    logged: bool,
    /// When the interval began in which new events are counted, and how many there were.
    since: Duration,
    new: u32,
}

/// All of it.
#[derive(Default)]
pub(super) struct Ledger {
    entries: BTreeMap<Key, Entry>,
    due: BTreeSet<(Duration, u64, Key)>,
    places: BTreeMap<LogicalCluster, Place>,
    /// Workspaces to which something is on its way: one thing at a time, so that one that refuses is asked once.
    busy: BTreeSet<LogicalCluster>,
    serial: u64,
}

impl Ledger {
    /// Takes note of an event; how many were given up for it, itself or an older one.
    pub(super) fn note(&mut self, now: Moment, note: Note) -> usize {
        let Note { endpoint, workspace, actor, subject, event: Event { type_, reason, message } } = note;
        self.serial += 1;
        let serial = self.serial;
        let message = cut(&message).to_owned();
        let key = Key { workspace, uid: subject.uid.as_str().into(), actor, type_, reason: reason.as_str() };
        let shut = self.places.get(&key.workspace).map(|place| place.shut).unwrap_or_default();
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.count == entry.told {
                entry.since = now;
            }
            (entry.endpoint, entry.message, entry.last, entry.touched) = (endpoint, message, now, serial);
            entry.count = entry.count.saturating_add(1);
            entry.attempts = u8::from(shut > now.mono);
            entry.again |= entry.under_way;
            if !entry.under_way && entry.due.is_none() {
                let at = now.mono.max(entry.rests).max(shut);
                entry.due = Some((at, serial));
                self.due.insert((at, serial, key));
            }
            return 0;
        }
        if !self.admit(now.mono, &key.workspace) {
            return 1;
        }
        let dropped = self.make_room();
        let at = now.mono.max(shut);
        let entry = Entry {
            endpoint,
            subject,
            message,
            first: now,
            last: now,
            count: 1,
            sent: 0,
            told: 0,
            since: now,
            standing: Standing::New,
            due: Some((at, serial)),
            rests: Duration::ZERO,
            // To a workspace that has just refused another it would have come to the same.
            attempts: u8::from(shut > now.mono),
            under_way: false,
            again: false,
            touched: serial,
        };
        self.due.insert((at, serial, key.clone()));
        self.entries.insert(key, entry);
        dropped
    }

    /// Whether a workspace may have one more new event in this interval.
    fn admit(&mut self, now: Duration, workspace: &LogicalCluster) -> bool {
        if !self.places.contains_key(workspace) && self.places.len() >= ENTRIES {
            self.places.retain(|_, place| place.shut > now || place.since + INTERVAL > now);
            // All of them are of these minutes: the oldest may begin anew.
            if self.places.len() >= ENTRIES
                && let Some(oldest) = self.places.iter().min_by_key(|(_, place)| place.since).map(|(workspace, _)| workspace.clone())
            {
                self.places.remove(&oldest);
            }
        }
        let place = self.places.entry(workspace.clone()).or_insert_with(|| Place { since: now, ..Place::default() });
        if place.since + INTERVAL <= now {
            (place.since, place.new) = (now, 0);
        }
        let admitted = place.new < NEW;
        place.new += u32::from(admitted);
        admitted
    }

    /// Forgets the event that has not happened for the longest time, where there are too many; how many of those were unsent.
    fn make_room(&mut self) -> usize {
        if self.entries.len() < ENTRIES {
            return 0;
        }
        let idle = self.entries.iter().filter(|(_, entry)| !entry.under_way);
        let Some(oldest) = idle.min_by_key(|(_, entry)| entry.touched).map(|(key, _)| key.clone()) else { return 0 };
        let due = self.entries.remove(&oldest).and_then(|entry| entry.due);
        due.map_or(0, |(at, serial)| usize::from(self.due.remove(&(at, serial, oldest))))
    }

    /// The next event to be sent, which is on its way from now on until [`Self::done`] says what came of it.
    pub(super) fn next(&mut self, now: Duration) -> Option<Due> {
        let ready = self.due.iter().take_while(|(at, ..)| *at <= now).find(|(_, _, key)| !self.busy.contains(&key.workspace)).cloned()?;
        self.due.remove(&ready);
        let (_, _, key) = ready;
        let entry = self.entries.get_mut(&key)?;
        (entry.due, entry.under_way, entry.again, entry.sent) = (None, true, false, entry.count);
        let letter = Letter {
            subject: entry.subject.clone(),
            actor: key.actor,
            type_: key.type_,
            reason: key.reason,
            message: entry.message.clone(),
            count: entry.count,
            untold: entry.count - entry.told,
            since: entry.since.stamp(),
            first: entry.first.stamp(),
            last: entry.last.stamp(),
        };
        self.busy.insert(key.workspace.clone());
        Some(Due { standing: entry.standing, endpoint: entry.endpoint.clone(), letter, key })
    }

    /// When [`Self::next`] has something, if nothing happens before.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.due.iter().find(|(_, _, key)| !self.busy.contains(&key.workspace)).map(|(at, ..)| *at)
    }

    /// Takes back one that was sent. Says whether the workspace does not take any, which nobody was told yet.
    pub(super) fn done(&mut self, now: Duration, key: &Key, end: End) -> bool {
        self.busy.remove(&key.workspace);
        let Some(entry) = self.entries.get_mut(key) else { return false };
        entry.under_way = false;
        entry.rests = now + INTERVAL;
        let told = match end {
            End::Told { before } => Some((Standing::Known, before)),
            End::Hidden => Some((Standing::Hidden, 0)),
            End::Refused | End::Failed | End::Missed => None,
        };
        if let Some((standing, before)) = told {
            entry.standing = standing;
            entry.count = entry.count.saturating_add(before);
            entry.told = entry.sent.saturating_add(before);
            entry.attempts = 0;
            if std::mem::take(&mut entry.again) {
                entry.since = entry.last;
                self.put_off(key, now + INTERVAL);
            }
            return false;
        }
        if end == End::Failed && entry.standing == Standing::New {
            entry.standing = Standing::Asked;
        }
        let again = std::mem::take(&mut entry.again);
        entry.attempts = if again { 0 } else { entry.attempts + 1 };
        if entry.attempts < ATTEMPTS {
            self.put_off(key, now + INTERVAL);
        }
        end != End::Missed && self.shut(now, &key.workspace, key)
    }

    /// Nothing goes to this workspace for a while, and what waited for it counts as tried, for it would have come to the same.
    fn shut(&mut self, now: Duration, workspace: &LogicalCluster, tried: &Key) -> bool {
        let waiting: Vec<Key> =
            self.due.iter().filter(|(_, _, key)| key.workspace == *workspace && key != tried).map(|(.., key)| key.clone()).collect();
        for key in waiting {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let Some((at, serial)) = entry.due.take() else { continue };
            self.due.remove(&(at, serial, key.clone()));
            entry.attempts += 1;
            if entry.attempts < ATTEMPTS {
                self.put_off(&key, at.max(now + INTERVAL));
            }
        }
        let place = self.places.entry(workspace.clone()).or_default();
        place.shut = now + INTERVAL;
        !std::mem::replace(&mut place.logged, true)
    }

    /// Forgets what is known of a workspace that has unbound. What is on its way there may arrive, and then says nothing to anybody.
    pub(super) fn forget(&mut self, workspace: &LogicalCluster) {
        self.places.remove(workspace);
        self.due.retain(|(_, _, key)| key.workspace != *workspace);
        self.entries.retain(|key, _| key.workspace != *workspace);
    }

    fn put_off(&mut self, key: &Key, at: Duration) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.serial += 1;
            entry.due = Some((at, self.serial));
            self.due.insert((at, self.serial, key.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.due.is_empty() && self.places.is_empty() && self.busy.is_empty()
    }
}
