//! Where time and randomness come in: everything that decides is handed a moment and a draw.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Monotonic time since the process began to serve, the wall clock for what people read, and seeded jitter. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Instant,
    wall_at_start: jiff::Timestamp,
    draws: Arc<AtomicU64>,
}

/// Where time and randomness begin for a runtime. With the same origin, the same server and paused time, everything happens again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The wall clock at the start; from then on it goes with the monotonic one.
    pub wall: jiff::Timestamp,
    /// What all jitter is drawn from.
    pub seed: u64,
}

impl Origin {
    /// The machine's clock, and a seed that no other process is likely to have.
    pub fn here() -> Self {
        let wall = jiff::Timestamp::now();
        Self { wall, seed: u64::from(std::process::id()) ^ wall.as_millisecond().unsigned_abs() }
    }
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since the start; what decisions use.
    pub(crate) mono: Duration,
    /// What people read; nothing is decided by it.
    pub(crate) wall: jiff::Timestamp,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn new(origin: Origin) -> Self {
        Self { start: Instant::now(), wall_at_start: origin.wall, draws: Arc::new(AtomicU64::new(origin.seed)) }
    }

    pub(crate) const fn start(&self) -> Instant {
        self.start
    }

    /// Monotonic time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Both clocks. The wall clock advances with the monotonic one, so that paused time is paused here too.
    pub(crate) fn moment(&self) -> Moment {
        let mono = self.now();
        let wall = self.wall_at_start.checked_add(jiff::SignedDuration::try_from(mono).unwrap_or_default()).unwrap_or(self.wall_at_start);
        Moment { mono, wall }
    }

    /// A draw from 0..1 (splitmix64): the same seed gives the same draws in the same order.
    pub(crate) fn jitter(&self) -> f64 {
        let mut z = self.draws.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let top = u32::try_from((z ^ (z >> 31)) >> 32).unwrap_or_default();
        f64::from(top) / f64::from(u32::MAX)
    }
}

impl Moment {
    /// RFC 3339, whole seconds, UTC: how Kubernetes writes times.
    pub(crate) fn stamp(&self) -> String {
        self.wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
