//! Pure: what each open stream is for, and how it is.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::meta::KindRef;
use crate::reconciler::Trouble;
use crate::runtime::clock::Moment;
use crate::runtime::watch::Health;

/// How long a first sync is waited for before reconciles start without it.
pub(super) const SYNC_PATIENCE: Duration = Duration::from_secs(10);

/// Names one opened stream; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(crate) u32);

/// Names one endpoint URL until the grace after it left the slice is over; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShardId(pub(crate) u32);

impl ShardId {
    /// Names none: the first is 1.
    pub(super) const NONE: Self = Self(0);
}

/// Names one parent workspace whose children are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ParentId(pub(crate) u32);

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The export's endpoint slice.
    Slice,
    /// A configuration object.
    Config(KindRef),
    /// A kind of the platform's.
    Platform(KindRef),
    /// The workload clusters.
    Pool,
    /// The index of external work.
    Works,
    /// What is kept for the end of external work.
    Secured,
    /// The workspaces below one parent.
    Workspaces(ParentId),
    /// The bindings behind one shard.
    Roster(ShardId),
    /// Service objects or children behind one shard.
    Objects(ShardId, KindRef),
    /// Names behind one shard.
    Names(ShardId, KindRef),
}

impl Role {
    /// The shard, for a stream of a virtual workspace.
    pub(super) const fn shard(self) -> Option<ShardId> {
        match self {
            Self::Roster(shard) | Self::Objects(shard, _) | Self::Names(shard, _) => Some(shard),
            Self::Slice | Self::Config(_) | Self::Platform(_) | Self::Pool | Self::Works | Self::Secured | Self::Workspaces(_) => None,
        }
    }

    fn what(self) -> String {
        match self {
            Self::Slice => "apiexportendpointslices.apis.kcp.io".into(),
            Self::Roster(_) => "apibindings.apis.kcp.io".into(),
            Self::Pool | Self::Secured => "secrets".into(),
            Self::Works => "configmaps".into(),
            Self::Workspaces(_) => "workspaces.tenancy.kcp.io".into(),
            Self::Config(kind) | Self::Platform(kind) | Self::Objects(_, kind) | Self::Names(_, kind) => kind.resource(),
        }
    }
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) role: Role,
    pub(super) health: Health,
    opened: Moment,
    /// When health stopped being good, or was last shown by a complete list while it was not: from then on what the cache has grows stale.
    troubled: Option<Moment>,
    /// A complete list came in, or the kind is known not to be served in a virtual workspace.
    pub(super) synced: bool,
    /// When the last complete list was asked for.
    pub(super) listed: Option<Duration>,
    /// When somebody last wanted a list.
    pub(super) refresh_wanted: Option<Duration>,
    /// When it was last wanted since the stream did not show what the server had said.
    pub(super) nudged: Option<Duration>,
}

impl Stream {
    pub(super) const fn new(role: Role, now: Moment) -> Self {
        Self { role, health: Health::Syncing, opened: now, troubled: None, synced: false, listed: None, refresh_wanted: None, nudged: None }
    }

    /// Takes the new health; true when the stream is good again, or for the first time.
    pub(super) fn take_health(&mut self, health: Health, now: Moment) -> bool {
        let was_good = self.is_good();
        self.synced |= health == Health::SyncedEmpty && self.role.shard().is_some();
        self.health = health;
        let good = self.is_good();
        if good {
            self.troubled = None;
        } else if was_good || self.troubled.is_none() {
            self.troubled = Some(now);
        }
        good && !was_good
    }

    /// Takes a complete list; true for the first one.
    pub(super) fn take_list(&mut self, asked: Duration, now: Moment) -> bool {
        let first = !self.synced;
        self.synced = true;
        self.listed = Some(asked);
        self.troubled = self.troubled.map(|_| now);
        first
    }

    /// Whether what it shows is what there is, as far as anybody knows.
    pub(super) fn is_good(&self) -> bool {
        match self.health {
            Health::Live => true,
            Health::SyncedEmpty => self.role.shard().is_some(),
            _ => false,
        }
    }

    /// Whether waiting for a first sync is pointless or over.
    pub(super) fn is_decided(&self, now: Moment) -> bool {
        self.is_answered() || now.mono >= self.patience_ends()
    }

    /// Whether there is nothing to wait for, whatever the time.
    pub(super) fn is_answered(&self) -> bool {
        self.synced || matches!(self.health, Health::SyncedEmpty | Health::Forbidden { .. })
    }

    /// When [`Self::is_decided`] becomes true by time alone.
    pub(super) fn patience_ends(&self) -> Duration {
        self.opened.mono + SYNC_PATIENCE
    }

    /// Whether the kind is not served at all.
    pub(super) fn is_unserved(&self) -> bool {
        matches!(self.health, Health::SyncedEmpty | Health::NotServed)
    }

    /// What a reader of this stream's objects must know.
    pub(super) fn trouble(&self, now: Moment) -> Option<Trouble> {
        if self.is_good() && self.synced {
            return None;
        }
        let since = self.troubled.unwrap_or(self.opened);
        let tenant_side = self.role.shard().is_some();
        let (what, hard) = match &self.health {
            Health::Forbidden { what } => (format!("may not be read: {what}"), true),
            Health::NotServed => ("is no longer served".into(), !tenant_side),
            Health::SyncedEmpty if !tenant_side => ("is not served".into(), true),
            Health::Broken { what } => (format!("cannot be read: {what}"), !self.synced),
            Health::Live | Health::SyncedEmpty | Health::Syncing => ("has not been listed completely yet".into(), !self.synced),
        };
        let lasted = now.mono.saturating_sub(since.mono);
        Some(Trouble { what: format!("{} {what}", self.role.what()), since: since.stamp(), lasted, hard })
    }

    /// A line for readiness; `None` when nothing is missing.
    pub(super) fn missing(&self) -> Option<String> {
        // Who may not read a parent serves everybody who needs no path; whoever needs one is told.
        let fine = self.synced || matches!(self.role, Role::Workspaces(_)) || (matches!(self.role, Role::Config(_)) && self.is_unserved());
        (!fine).then(|| match &self.health {
            Health::Forbidden { what } | Health::Broken { what } => format!("{}: {what}", self.role.what()),
            _ => format!("{}: not listed yet", self.role.what()),
        })
    }
}

/// All open streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) open: BTreeMap<StreamId, Stream>,
    by_role: BTreeMap<Role, StreamId>,
    last: u32,
}

impl Streams {
    pub(super) fn add(&mut self, role: Role, now: Moment) -> StreamId {
        self.last += 1;
        let id = StreamId(self.last);
        self.open.insert(id, Stream::new(role, now));
        self.by_role.insert(role, id);
        id
    }

    pub(super) fn find(&self, role: Role) -> Option<(StreamId, &Stream)> {
        let id = *self.by_role.get(&role)?;
        Some((id, self.open.get(&id)?))
    }

    /// Takes one stream away.
    pub(super) fn remove(&mut self, role: Role) -> Option<StreamId> {
        let id = self.by_role.remove(&role)?;
        self.open.remove(&id);
        Some(id)
    }

    /// Takes the streams of a shard away, but for one of them.
    pub(super) fn remove_shard(&mut self, shard: ShardId, but: Option<StreamId>) -> Vec<StreamId> {
        let gone: Vec<StreamId> = self.of_shard(shard).filter(|id| Some(*id) != but).collect();
        for id in &gone {
            if let Some(stream) = self.open.remove(id) {
                self.by_role.remove(&stream.role);
            }
        }
        gone
    }

    pub(super) fn of_shard(&self, shard: ShardId) -> impl Iterator<Item = StreamId> {
        self.open.iter().filter(move |(_, stream)| stream.role.shard() == Some(shard)).map(|(id, _)| *id)
    }
}
