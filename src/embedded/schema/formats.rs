//! The formats of strings that a server checks (kube-openapi `strfmt`). Others, such as `int32`, are not looked at.
//!
//! Pure: predicates of text.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// A format that is checked.
#[derive(Clone, Debug)]
pub(super) struct Format {
    /// As the schema says it; messages repeat it.
    pub(super) name: String,
    /// Whether a text has it.
    pub(super) accepts: fn(&str) -> bool,
}

/// The format of that name, if a server checks it. Hyphens in the name do not count.
pub(super) fn known(name: &str) -> Option<Format> {
    let accepts: fn(&str) -> bool = match name.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => is_uri,
        "email" => |text| EMAIL.is_match(text),
        "hostname" => is_hostname,
        "ipv4" => |text| is_ipv4(text) || (text.contains('.') && is_ipv6(text)),
        "ipv6" => is_ipv6,
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| UUID.is_match(text),
        "uuid3" => |text| UUID.is_match(text) && hex_digit(text, 12) == Some('3'),
        "uuid4" => {
            |text| UUID.is_match(text) && hex_digit(text, 12) == Some('4') && matches!(hex_digit(text, 16), Some('8' | '9' | 'a' | 'b'))
        }
        "uuid5" => {
            |text| UUID.is_match(text) && hex_digit(text, 12) == Some('5') && matches!(hex_digit(text, 16), Some('8' | '9' | 'a' | 'b'))
        }
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_creditcard,
        "ssn" => |text| SSN.is_match(text),
        "hexcolor" => |text| HEX_COLOR.is_match(text),
        "rgbcolor" => |text| RGB_COLOR.is_match(text),
        "byte" => |text| BASE64.is_match(text),
        "password" => |_| true,
        "date" => is_date,
        "duration" => is_duration,
        "datetime" => is_datetime,
        _ => return None,
    };
    Some(Format { name: name.to_owned(), accepts })
}

macro_rules! regexes {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a constant that a test compiles"));)*
    };
}

regexes! {
    EMAIL = r#"^(?:[^<>@]*<)?[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*@[^\s<>@,;:\\"()]+>?$"#;
    HOSTNAME = r"^(?:[a-zA-Z0-9\p{S}\p{L}](?:(?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|(?:[a-zA-Z0-9\p{S}\p{L}](?:(?:[a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(?:\.)){1,}(?:[a-zA-Z\p{L}]){2,63})$";
    UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    CREDIT_CARD = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    SSN = r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    GO_DURATION = r"^[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$";
    LOOSE_DURATION = r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)";
}

fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) || !escapes_are_whole(text) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let host = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    starts
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        && host.is_none_or(|host| !host.contains([' ', '<', '>', '"', '^', '`', '{', '}', '|', '\\']))
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| after.len() >= 2 && after.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

fn is_hostname(text: &str) -> bool {
    HOSTNAME.is_match(text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// Leading zeros are tolerated, as before Go 1.17.
fn is_ipv4(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u32>().is_ok_and(|number| number < 256)
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let plain = !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|byte| byte.is_ascii_digit());
    let at_most = |most: u32| plain && bits.parse::<u32>().is_ok_and(|bits| bits <= most);
    (is_ipv4(address) && at_most(Ipv4Addr::BITS)) || (is_ipv6(address) && at_most(Ipv6Addr::BITS))
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

fn hex_digit(text: &str, index: usize) -> Option<char> {
    text.chars().filter(|letter| *letter != '-').nth(index).map(|letter| letter.to_ascii_lowercase())
}

fn digits_only(text: &str) -> String {
    text.chars().filter(|letter| !matches!(letter, ' ' | '-' | '\t' | '\n' | '\r')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = digits_only(text);
    let value = |(index, letter): (usize, char)| match letter {
        'X' if index == 9 => Some(10),
        digit => digit.to_digit(10),
    };
    let digits: Option<Vec<u32>> = text.chars().enumerate().map(value).collect();
    digits.is_some_and(|digits| digits.len() == 10 && (1..).zip(&digits).map(|(weight, digit)| weight * digit).sum::<u32>() % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = digits_only(text).chars().map(|letter| letter.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        digits.len() == 13 && digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum::<u32>() % 10 == 0
    })
}

fn is_creditcard(text: &str) -> bool {
    let text: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&text) {
        return false;
    }
    let digits = text.bytes().rev().map(|byte| u32::from(byte - b'0'));
    let sum: u32 = digits
        .zip([false, true].into_iter().cycle())
        .map(|(digit, twice)| if twice { digit * 2 / 10 + digit * 2 % 10 } else { digit })
        .sum();
    sum.is_multiple_of(10)
}

/// `2006-01-02`, with a day that exists.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| if index == 4 || index == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    shaped && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_datetime(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's durations, and any text that has a number with a unit somewhere: `22 ns`, `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let is_unit =
        |unit: &str| UNITS.iter().any(|variants| variants.contains(&unit) || variants.last().is_some_and(|last| unit.starts_with(last)));
    GO_DURATION.is_match(text) || LOOSE_DURATION.captures_iter(text).any(|found| is_unit(&found[2].to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_accepts_what_it_names() {
        for (format, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("uri", "https://example.com/a?b", "example.com"),
            ("email", "a.b@example.com", "a.b"),
            ("hostname", "www.example.com", "a_b"),
            ("ipv4", "10.00.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("uuid", "123E4567-e89b-12d3-a456-426614174000", "123"),
            ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "0321751043", "0321751044"),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
            ("ssn", "111-22-3333", "111"),
            ("hexcolor", "#FFFFFF", "#FFFF"),
            ("rgbcolor", "rgb(255,255,25)", "rgb(256,0,0)"),
            ("byte", "aGVsbG8=", "aGVsbG8"),
            ("date", "2024-02-29", "2023-02-29"),
            ("duration", "1h30m", "soon"),
            ("duration", "22 ns", "22 xs"),
            ("date-time", "2024-01-02T03:04:05.678Z", "2024-01-02 03:04:05Z"),
            ("datetime", "2024-01-02T03:04:05+01:00", "2024-01-02T24:04:05Z"),
        ] {
            let accepts = known(format).unwrap().accepts;
            assert!(accepts(good), "{format} {good}");
            assert!(!accepts(bad), "{format} {bad}");
        }
        assert!((known("password").unwrap().accepts)(""));
    }

    #[test]
    fn formats_of_numbers_are_not_looked_at() {
        for format in ["int32", "int64", "double", "quantity"] {
            assert!(known(format).is_none(), "{format}");
        }
    }
}
