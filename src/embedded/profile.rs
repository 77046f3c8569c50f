//! What differs between servers: how fast they react, and which version of kcp they are like.
//!
//! Pure: values.

use std::fmt;
use std::time::Duration;

/// How long the server takes for what a real one does in its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a binding's creation until its kinds are served.
    pub bind: Duration,
    /// From a change of an export's schemas until its bindings have followed.
    pub roll: Duration,
    /// From a binding's creation or end until the endpoint slice shows it.
    pub slice: Duration,
    /// A new workspace until it is Ready.
    pub workspace: Duration,
    /// The deletion of whatever lost its owner, its namespace or its binding.
    pub collect: Duration,
    /// Between two bookmarks of a watch.
    pub bookmark: Duration,
}

impl Timing {
    /// Everything follows at once, before the answer of the request that caused it.
    pub const INSTANT: Self = Self {
        bind: Duration::ZERO,
        roll: Duration::ZERO,
        slice: Duration::ZERO,
        workspace: Duration::ZERO,
        collect: Duration::ZERO,
        bookmark: Duration::from_mins(1),
    };

    /// About what kcp v0.28 takes on two cores.
    pub const KCP: Self = Self {
        bind: Duration::from_secs(8),
        roll: Duration::from_secs(9),
        slice: Duration::from_millis(200),
        workspace: Duration::from_millis(1800),
        collect: Duration::from_secs(1),
        bookmark: Duration::from_mins(1),
    };
}

/// Versions of kcp that answer differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// v0.28: what the differential tests compare with.
    #[default]
    V0_28,
    /// v0.30: `kcp.io/path` on bindings.
    V0_30,
    /// v0.31: `GlobalServiceAccount` is on, so that an account of one workspace can be given rights in another.
    V0_31,
    /// Later: a kind that no binding of the shard has is an empty list without resourceVersion and a watch that stays silent, where earlier
    /// ones answer 404 (commit 8d385ddcc).
    Later,
}

/// How an embedded control plane is to be. Its `Debug` shows no token.
#[derive(Clone)]
pub struct Options {
    /// How fast it reacts. Default [`Timing::INSTANT`].
    pub timing: Timing,
    /// Which kcp it is like. Default v0.28.
    pub version: Version,
    /// How many shards. Default 1; workspaces are spread over them in turn, `root` is on the first.
    pub shards: usize,
    /// What uids, logical clusters and tokens are made from.
    pub seed: u64,
    /// The wall clock when it starts, in seconds since 1970; from then on it goes with tokio's clock.
    pub started: jiff::Timestamp,
    /// The base of all URLs in objects, without a slash at its end.
    pub url: String,
    /// Certificates in PEM, as `kube-root-ca.crt` and token Secrets show them.
    pub authority: String,
    /// Bearer tokens and their users: `(token, user, groups)`.
    pub users: Vec<(String, String, Vec<String>)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timing, version, shards, seed, started, url, authority, users } = self;
        let users: Vec<(&String, &Vec<String>)> = users.iter().map(|(_, user, groups)| (user, groups)).collect();
        f.debug_struct("Options")
            .field("timing", timing)
            .field("version", version)
            .field("shards", shards)
            .field("seed", seed)
            .field("started", started)
            .field("url", url)
            .field("authority", authority)
            .field("users", &users)
            .finish()
    }
}

/// The administrator: in the group `system:kcp:admin`, which may do everything in every workspace.
pub const ADMIN: &str = "kcp-admin";

impl Default for Options {
    fn default() -> Self {
        Self {
            timing: Timing::INSTANT,
            version: Version::default(),
            shards: 1,
            seed: 1,
            started: jiff::Timestamp::UNIX_EPOCH,
            url: "https://embedded.invalid:6443".into(),
            authority: String::new(),
            users: vec![(ADMIN.into(), ADMIN.into(), vec!["system:kcp:admin".into()])],
        }
    }
}
