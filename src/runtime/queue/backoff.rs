//! Pure: how long a failing key waits before its next attempt.

use std::time::Duration;

/// The bounds of the exponential wait between failed attempts of one key.
///
/// The n-th counted failure waits between half and all of `min · 2ⁿ⁻¹`, never more than `max`; where in that half is the jitter's choice, so
/// that keys which failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
}

impl Backoff {
    /// A wait that starts at `min` and doubles up to `max`; a `max` below `min` is raised to it.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max: max.max(min) }
    }

    /// The wait after the `level`-th counted failure (from 1). `jitter` is from 0 to 1; anything else is taken to the nearer end, and what is
    /// not a number counts as 1, because a wrong jitter must lengthen the wait rather than end the process.
    fn wait(self, level: u32, jitter: f64) -> Duration {
        let factor = 1_u32.checked_shl(level.saturating_sub(1)).unwrap_or(u32::MAX);
        let half = self.min.saturating_mul(factor).min(self.max) / 2;
        let jitter = if jitter.is_nan() { 1.0 } else { jitter.clamp(0.0, 1.0) };
        half + half.mul_f64(jitter)
    }
}

impl Default for Backoff {
    /// 250 ms to 5 min: a conflict is retried within a blink, and a fault that was repaired is noticed within five minutes.
    fn default() -> Self {
        Self::new(Duration::from_millis(250), Duration::from_mins(5))
    }
}

/// The failures of one key since it last settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failures {
    level: u32,
    until: Duration,
}

impl Failures {
    /// Counts the failure at `now` of an attempt begun at `started`, and says how long the next one waits.
    ///
    /// An attempt that something else triggered before the earlier wait was over does not raise the level: it waited for nothing, and a busy
    /// neighbour object would otherwise drive a key to the longest wait within a second (kubernetes#132805).
    pub(super) fn count(earlier: Option<Self>, policy: Backoff, started: Duration, now: Duration, jitter: f64) -> (Self, Duration) {
        let level = match earlier {
            None => 1,
            Some(Self { level, until }) if started >= until => level.saturating_add(1),
            Some(Self { level, .. }) => level,
        };
        let wait = policy.wait(level, jitter);
        (Self { level, until: now.saturating_add(wait) }, wait)
    }
}
