//! How long ago something was, in two or three figures, as `kubectl` shows it.
//!
//! Pure: from seconds to words. The thresholds are those of `k8s.io/apimachinery/pkg/util/duration`.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// `7s`, `3m12s`, `5d`. One second in the future is a clock that differs a little, more is `<invalid>`.
pub fn human(seconds: i64) -> String {
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// How long before `now`, in Unix seconds, the time in RFC 3339 was: `<unknown>` for none, `<invalid>` for what is no time.
pub fn age(time: &str, now: i64) -> String {
    if time.is_empty() {
        return "<unknown>".to_owned();
    }
    time.parse::<Timestamp>().map_or_else(|_| "<invalid>".to_owned(), |time| human(now - time.as_second()))
}

fn two(seconds: i64, large: i64, large_sign: &str, small: i64, small_sign: &str) -> String {
    let (first, second) = (seconds / large, seconds % large / small);
    if second == 0 { format!("{first}{large_sign}") } else { format!("{first}{large_sign}{second}{small_sign}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_get_fewer_as_time_passes() {
        for (seconds, words) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (192, "3m12s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 61, "7h1m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR, "8y"),
        ] {
            assert_eq!(human(seconds), words, "{seconds}");
        }
    }

    #[test]
    fn no_time_and_a_wrong_time_have_words() {
        assert_eq!(age("", 0), "<unknown>");
        assert_eq!(age("yesterday", 0), "<invalid>");
        assert_eq!(age("1970-01-01T00:00:10Z", 17), "7s");
    }
}
