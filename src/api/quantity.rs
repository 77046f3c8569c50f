//! Amounts of CPU and memory as Kubernetes writes them (`4`, `500m`, `16Gi`), compared as numbers.
//!
//! Pure: a tenant writes these strings, so the parser is bounded: at most [`MAX_LEN`] bytes, an exponent from -18 to 18, checked `i128`
//! arithmetic, no panic and no loop longer than the text. Go's parser is the reference for the value of what both accept
//! (`quantity/go_table.txt`), not for its bounds: it does not return from `2E6024865272343` and reads `1e4294967297` as 10
//! (kubernetes/kubernetes#131063, #141203).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest text of a quantity, in bytes; the schema says the same in characters, and [`PATTERN`] admits ASCII only.
pub const MAX_LEN: usize = 32;

/// The regular expression (RE2, as API servers use) of a quantity's text in the schema.
///
/// With [`MAX_LEN`] it accepts nothing that the parser refuses, so that no object is stored that cannot be read. A pattern cannot compare with
/// the largest value (2^63 - 1), so it bounds the digits before the point by the suffix: 18 without one, 15 for k and Ki, 12 for M and Mi and so
/// on, less than 7.9 for E and Ei, and 3 before a positive exponent, which is at most 15. What the parser accepts beyond that is larger than any
/// machine.
pub const PATTERN: &str = concat!(
    r"^\+?(",
    r"(0*[0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)([num]|[eE]-0*([0-9]|1[0-8]))?|",
    r"(0*[0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)(k|Ki)|",
    r"(0*[0-9]{1,12}(\.[0-9]*)?|\.[0-9]+)Mi?|",
    r"(0*[0-9]{1,9}(\.[0-9]*)?|\.[0-9]+)Gi?|",
    r"(0*[0-9]{1,6}(\.[0-9]*)?|\.[0-9]+)Ti?|",
    r"(0*[0-9]{1,3}(\.[0-9]*)?|\.[0-9]+)(Pi?|[eE]\+?0*([0-9]|1[0-5]))|",
    r"(0*[0-6](\.[0-9]*)?|0*7(\.([0-8][0-9]*)?)?|\.[0-9]+)Ei?",
    r")$"
);

/// An exponent beyond this is refused: `1e18` is the last power of ten below the largest value.
const MAX_EXPONENT: i32 = 18;

/// 10^9 nano units make one.
const NANO_DIGITS: i32 = 9;

/// The largest value, 2^63 - 1, in nano units. Above it Go caps a binary value silently and an `int64` no longer holds a decimal one.
const MAX_NANOS: i128 = i64::MAX as i128 * 1_000_000_000;

/// A non-negative amount of at most 2^63 - 1, exact to a billionth (one nano unit).
///
/// It is equal, ordered and hashed by its value: `2` is `2000m` and `1Gi` is `1024Mi`. [`Display`](fmt::Display) and serialisation
/// give it back as it was written: an integer on the wire stays an integer, a string stays that string, so writing an object back
/// changes nothing. A value finer than a nano unit is rounded up to the next one, as Go does: who asks for something gets something.
///
/// Cloning is cheap.
#[derive(Clone)]
pub struct Quantity {
    written: Written,
    nanos: i128,
}

/// How the quantity stood on the wire.
#[derive(Clone)]
enum Written {
    Integer(i64),
    Text(Arc<str>),
}

/// Why a value is not a quantity. Each message shows at most [`MAX_LEN`] bytes of the text, with `?` for what is not printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is empty.
    #[error("a quantity must not be empty; write for example 4, 500m or 16Gi")]
    Empty,
    /// The text is longer than [`MAX_LEN`].
    #[error("a quantity has at most {MAX_LEN} bytes, but the one that begins with `{shown}` has {len}")]
    TooLong {
        /// The beginning of the text.
        shown: String,
        /// The length in bytes.
        len: usize,
    },
    /// The text begins with a minus sign; `-0` too, as the pattern could not tell it from others.
    #[error("a quantity must not be negative, but `{shown}` is")]
    Negative {
        /// The text.
        shown: String,
    },
    /// There is no digit before the suffix. Go reads `.` and `Ki` as 0; they are mistakes.
    #[error("`{shown}` is not a quantity: it does not begin with a number; write for example 4, 500m or 16Gi")]
    NoNumber {
        /// The text.
        shown: String,
    },
    /// What follows the number is no suffix that Kubernetes knows.
    #[error(
        "`{shown}` is not a quantity: after the number stands neither a suffix (n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei) \
         nor an exponent such as e3"
    )]
    UnknownSuffix {
        /// The text.
        shown: String,
    },
    /// The decimal exponent is below -18 or above 18.
    #[error("the exponent of the quantity `{shown}` is not between -{MAX_EXPONENT} and {MAX_EXPONENT}")]
    ExponentOutOfRange {
        /// The text.
        shown: String,
    },
    /// The value is above 2^63 - 1.
    #[error("the quantity `{shown}` is larger than the largest, {}", i64::MAX)]
    TooLarge {
        /// The text.
        shown: String,
    },
}

impl Quantity {
    /// The exact value in nano units (10^-9), from 0 to (2^63 - 1) * 10^9.
    pub const fn as_nanos(&self) -> i128 {
        self.nanos
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let nanos = parse(text)?;
        Ok(Self { written: Written::Text(Arc::from(text)), nanos })
    }
}

impl TryFrom<&str> for Quantity {
    type Error = QuantityError;

    fn try_from(text: &str) -> Result<Self, QuantityError> {
        text.parse()
    }
}

/// A quantity that is an integer on the wire.
impl TryFrom<i64> for Quantity {
    type Error = QuantityError;

    fn try_from(value: i64) -> Result<Self, QuantityError> {
        if value < 0 {
            return Err(QuantityError::Negative { shown: value.to_string() });
        }
        Ok(Self { written: Written::Integer(value), nanos: i128::from(value) * 1_000_000_000 })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Written::Integer(value) => value.fmt(f),
            Written::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self} = {}n)", self.nanos)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.written {
            Written::Integer(value) => serializer.serialize_i64(*value),
            Written::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrString)
    }
}

/// Takes an integer or a string. A float is refused, as the schema does: its decimal digits are not those that were written.
struct IntOrString;

impl Visitor<'_> for IntOrString {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: an integer, or a string such as \"500m\" or \"16Gi\"")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        Quantity::try_from(value).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        let value = i64::try_from(value).map_err(|_| E::custom(QuantityError::TooLarge { shown: value.to_string() }))?;
        self.visit_i64(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        let shown = shown(&format!("{value:?}"));
        Err(E::custom(format_args!("a quantity is an integer or a string, not the floating-point number {shown}; put it in quotes")))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.parse().map_err(E::custom)
    }
}

/// The form that a structural schema prescribes for int-or-string, with bounds for either type.
impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Quantity")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maxLength": MAX_LEN,
            "pattern": PATTERN,
        })
    }
}

/// The factor that a suffix stands for: 2^binary * 10^decimal.
struct Scale {
    binary: u32,
    decimal: i32,
}

fn parse(text: &str) -> Result<i128, QuantityError> {
    if text.len() > MAX_LEN {
        return Err(QuantityError::TooLong { shown: shown(text), len: text.len() });
    }
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    if text.starts_with('-') {
        return Err(QuantityError::Negative { shown: shown(text) });
    }
    let (whole, rest) = split_digits(text.strip_prefix('+').unwrap_or(text));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::NoNumber { shown: shown(text) });
    }
    let scale = scale(suffix).ok_or_else(|| QuantityError::UnknownSuffix { shown: shown(text) })?;
    if scale.decimal.abs() > MAX_EXPONENT {
        return Err(QuantityError::ExponentOutOfRange { shown: shown(text) });
    }
    nanos(whole, fraction, &scale).ok_or_else(|| QuantityError::TooLarge { shown: shown(text) })
}

/// The ASCII digits at the front, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The factor of a suffix or exponent; the exponent may lie outside its bounds, but not outside `i32`.
fn scale(suffix: &str) -> Option<Scale> {
    let (binary, decimal) = match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        other => (0, exponent(other.strip_prefix(['e', 'E'])?)?),
    };
    Some(Scale { binary, decimal })
}

/// Reads `3`, `+3` or `-3`; a number too large for `i32` becomes the largest, which no bound admits.
fn exponent(text: &str) -> Option<i32> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text.strip_prefix('+').unwrap_or(text), 1),
    };
    let (digits, rest) = split_digits(digits);
    let value = digits.bytes().fold(0_i32, |value, digit| value.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
    (!digits.is_empty() && rest.is_empty()).then_some(sign * value)
}

/// `whole.fraction` times the scale in nano units, rounded up; `None` above [`MAX_NANOS`].
///
/// One `unit` is what the digit before the point counts, in units of 1/`divisor` nano: 10^27 or 2^60 * 10^9 at most, so that a value
/// that overflows is always one that is too large, and a fraction, which is less than one unit, never overflows.
fn nanos(whole: &str, fraction: &str, scale: &Scale) -> Option<i128> {
    let power = scale.decimal + NANO_DIGITS;
    let unit = power_of_ten(power) << scale.binary;
    let divisor = power_of_ten(-power);

    let whole = whole.bytes().try_fold(0_i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(digit - b'0')))?;
    let mut part = 0_i128;
    let mut inexact = false;
    // From the last digit to the first, since dropping a remainder at each step gives the floor of the exact sum.
    for digit in fraction.bytes().rev() {
        let sum = part + i128::from(digit - b'0') * unit;
        part = sum / 10;
        inexact |= sum % 10 != 0;
    }
    let total = whole.checked_mul(unit)?.checked_add(part)?;
    inexact |= total % divisor != 0;
    let nanos = total / divisor + i128::from(inexact);
    (nanos <= MAX_NANOS).then_some(nanos)
}

/// 10^power, and 1 for a negative power.
fn power_of_ten(power: i32) -> i128 {
    10_i128.pow(power.max(0).unsigned_abs())
}

/// What an error shows of a text: a tenant's bytes reach logs and conditions, so they are bounded and printable.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).take(MAX_LEN).collect()
}

#[cfg(test)]
mod tests;
