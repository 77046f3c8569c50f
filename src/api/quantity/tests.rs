//! What a quantity accepts, refuses and gives back, as tables.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::*;

mod go_table;
mod properties;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> QuantityError {
    text.parse::<Quantity>().expect_err(text)
}

#[test]
fn the_value_is_exact_and_a_finer_one_is_rounded_up() {
    let cases: &[(&str, i128, &str)] = &[
        ("0", 0, "nothing is a quantity"),
        ("4", 4_000_000_000, "four cores"),
        ("500m", 500_000_000, "half a core"),
        ("16Gi", 17_179_869_184_000_000_000, "a binary suffix"),
        ("+1.5Gi", 1_610_612_736_000_000_000, "a plus sign, and a fraction of a binary unit"),
        (".5", 500_000_000, "no digit before the point"),
        ("5.", 5_000_000_000, "no digit after the point"),
        ("1E", 1_000_000_000_000_000_000_000_000_000, "E alone is exa, not an exponent without digits"),
        ("1E3", 1_000_000_000_000, "E with digits is an exponent"),
        ("1e+3", 1_000_000_000_000, "the exponent may have a plus sign"),
        ("1e-9", 1, "one nano unit is exact"),
        ("1e-18", 1, "finer than a nano unit is rounded up, as Go does"),
        ("1.0000000001", 1_000_000_001, "the part finer than a nano unit is rounded up"),
        ("1.00000000100000000000", 1_000_000_001, "zeros are not finer than a nano unit"),
        ("0.00000000000000000000", 0, "zero stays zero in any number of digits"),
        ("1.000000000000000000000000001Ei", 1_152_921_504_606_846_976_000_000_002, "27 decimals times 2^60 exceed 128 bits on the way"),
        ("1234567890123456789012345678e-18", 1_234_567_890_123_456_790, "a long number with a small exponent is in range"),
        ("9223372036854775807", MAX_NANOS, "the largest value"),
        ("9223372036854775807000000000n", MAX_NANOS, "the largest value in its finest unit"),
        ("9223372036854775806.9999999999", MAX_NANOS, "rounded up to the largest value"),
    ];
    for (text, nanos, why) in cases {
        assert_eq!(quantity(text).as_nanos(), *nanos, "{text}: {why}");
    }
}

#[test]
fn what_is_no_quantity_is_refused_with_its_reason() {
    let cases: &[(&str, &str, &str)] = &[
        ("", "a quantity must not be empty; write for example 4, 500m or 16Gi", "an empty string is not zero"),
        (
            "0.0000000000000000000000000000001",
            "a quantity has at most 32 bytes, but the one that begins with `0.000000000000000000000000000000` has 33",
            "length is bounded before anything is read",
        ),
        ("-1", "a quantity must not be negative, but `-1` is", "no machine has less than nothing"),
        ("-0", "a quantity must not be negative, but `-0` is", "the pattern refuses the sign, so the parser does"),
        ("Gi", "`Gi` is not a quantity: it does not begin with a number; write for example 4, 500m or 16Gi", "a suffix alone"),
        ("+.", "`+.` is not a quantity: it does not begin with a number; write for example 4, 500m or 16Gi", "a point alone"),
        (
            "1\u{b5}\n",
            "`1??` is not a quantity: after the number stands neither a suffix (n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei) \
             nor an exponent such as e3",
            "what is not printable ASCII is not echoed",
        ),
        ("1e19", "the exponent of the quantity `1e19` is not between -18 and 18", "one above the largest exponent"),
        ("1e-19", "the exponent of the quantity `1e-19` is not between -18 and 18", "one below the smallest exponent"),
        ("0e19", "the exponent of the quantity `0e19` is not between -18 and 18", "the pattern cannot tell zero from others"),
        ("1e4294967297", "the exponent of the quantity `1e4294967297` is not between -18 and 18", "Go reads it as 10"),
        ("2E6024865272343", "the exponent of the quantity `2E6024865272343` is not between -18 and 18", "Go does not return from it"),
        ("8Ei", "the quantity `8Ei` is larger than the largest, 9223372036854775807", "2^63: Go caps it silently"),
        (
            "9223372036854775807.0000000001",
            "the quantity `9223372036854775807.0000000001` is larger than the largest, 9223372036854775807",
            "rounding up passes the largest value",
        ),
        (
            "12345678901234567890123456789012",
            "the quantity `12345678901234567890123456789012` is larger than the largest, 9223372036854775807",
            "the most digits that the length admits",
        ),
    ];
    for (text, message, why) in cases {
        assert_eq!(refused(text).to_string(), *message, "{text:?}: {why}");
    }
}

#[test]
fn the_pattern_takes_the_largest_that_is_sure_to_be_read_and_nothing_beyond() {
    let pattern = regex::Regex::new(PATTERN).unwrap();
    let nines = |digits: usize, rest: &str| format!("{}{rest}", "9".repeat(digits));
    let cases = [
        (18, ""),
        (18, ".9999999999"),
        (18, "n"),
        (18, "m"),
        (18, "e-18"),
        (15, "k"),
        (15, "Ki"),
        (12, "M"),
        (12, "Mi"),
        (9, "G"),
        (9, "Gi"),
        (6, "T"),
        (6, "Ti"),
        (3, "P"),
        (3, ".9Pi"),
        (3, "e15"),
        (3, "E+015"),
    ];
    for (digits, rest) in cases {
        let (largest, beyond) = (nines(digits, rest), nines(digits + 1, rest));
        assert!(pattern.is_match(&largest) && largest.parse::<Quantity>().is_ok(), "{largest}");
        assert!(!pattern.is_match(&beyond), "{beyond}");
    }
    for text in ["7.8999999999999999999999999999Ei", "7E", "6.9999999999Ei", "000007.Ei", "+.5Ei", "0Ki", "007", "16Gi", "500m"] {
        assert!(pattern.is_match(text) && text.parse::<Quantity>().is_ok(), "{text}");
    }
    for text in ["7.9999999999999999999999999999Ei", "8Ei", "8E", "1e16", "1e-19", "99999999999999999999", "1Gi\n", "1K", ".", "Ki", "-1"] {
        assert!(!pattern.is_match(text), "{text}");
    }
}

#[test]
fn a_suffix_has_the_case_and_the_place_that_kubernetes_gives_it() {
    for text in
        ["1K", "1ki", "1g", "1GB", "1Gib", "1 Gi", " 1", "1 ", "1e", "1E+", "1e3.5", "1k3", "1+5", "1.2.3", "1_000", "1,5", "0x10", "1Gi\n"]
    {
        let error = refused(text);
        assert!(matches!(error, QuantityError::UnknownSuffix { .. } | QuantityError::NoNumber { .. }), "{text}: {error:?}");
    }
}

#[test]
fn an_error_shows_at_most_the_longest_quantity_of_any_text() {
    let error = refused(&"\u{1F980}".repeat(1_000_000));
    assert_eq!(error, QuantityError::TooLong { shown: "?".repeat(MAX_LEN), len: 4_000_000 });
}

#[test]
fn quantities_are_equal_ordered_and_hashed_by_value() {
    for (one, other) in [("2", "2000m"), ("1Gi", "1024Mi"), ("1k", "1e3"), ("0", "0Ei"), ("1", "+01.0")] {
        assert_eq!(quantity(one), quantity(other));
        assert_eq!(HashSet::from([quantity(one), quantity(other)]).len(), 1, "{one} and {other} are one key");
    }
    assert_eq!(Quantity::try_from(2).unwrap(), quantity("2000m"), "an integer and a string are compared as numbers");
    let mut sorted: Vec<_> = ["9", "10", "1Gi", "1G", "900m", "1025Mi"].map(quantity).into();
    sorted.sort();
    let sorted: Vec<_> = sorted.iter().map(ToString::to_string).collect();
    assert_eq!(sorted, ["900m", "9", "10", "1G", "1Gi", "1025Mi"], "as text, 10 would stand before 9");
}

#[test]
fn what_was_read_is_written_back_as_it_was() {
    let cases: &[(Value, &str)] = &[
        (json!(4), "an integer stays an integer"),
        (json!(0), "zero too"),
        (json!(i64::MAX), "the largest integer"),
        (json!("4"), "a string of digits stays a string"),
        (json!("2000m"), "not made canonical"),
        (json!("+01.50Gi"), "nor tidied"),
    ];
    for (wire, why) in cases {
        let read: Quantity = serde_json::from_value(wire.clone()).expect(why);
        assert_eq!(serde_json::to_value(&read).expect(why), *wire, "{why}");
    }
    assert_eq!(
        format!("{:>6}|{:<4}|{:?}", quantity("500m"), Quantity::try_from(4).unwrap(), quantity("1u")),
        "  500m|4   |Quantity(1u = 1000n)"
    );
}

#[test]
fn the_wire_type_is_an_integer_or_a_string() {
    let cases: &[(&str, &str, &str)] = &[
        ("1.5", "a quantity is an integer or a string, not the floating-point number 1.5; put it in quotes", "a float is not exact"),
        ("1e3", "a quantity is an integer or a string, not the floating-point number 1000.0; put it in quotes", "JSON reads it as a float"),
        ("-1", "a quantity must not be negative, but `-1` is", "a negative integer"),
        (
            "9223372036854775808",
            "the quantity `9223372036854775808` is larger than the largest, 9223372036854775807",
            "one above the largest",
        ),
        (
            "true",
            "invalid type: boolean `true`, expected a quantity: an integer, or a string such as \"500m\" or \"16Gi\"",
            "another type names what is expected",
        ),
        ("\"1.5GB\"", &refused("1.5GB").to_string(), "the parser's reason reaches the reader"),
    ];
    for (wire, message, why) in cases {
        let error = serde_json::from_str::<Quantity>(wire).expect_err(why).to_string();
        assert!(error.starts_with(message), "{wire}: {why}: {error}");
    }
}

#[test]
fn yaml_reads_a_bare_number_as_an_integer_and_a_suffix_as_a_string() {
    let read: Vec<Quantity> = serde_saphyr::from_str("[4, 16Gi, \"8\"]").unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), json!([4, "16Gi", "8"]));
}

#[test]
fn the_schema_is_the_structural_form_of_int_or_string() {
    assert!(Quantity::inline_schema(), "an API server follows no $ref");
    let expected = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maxLength": 32,
        "pattern": PATTERN,
    });
    assert_eq!(Quantity::json_schema(&mut SchemaGenerator::default()).to_value(), expected);
}
