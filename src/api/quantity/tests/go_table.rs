//! The parser beside Go's own answers: equal, but for the differences listed here.

use std::collections::BTreeMap;

use super::{Quantity, QuantityError};

const TABLE: &str = include_str!("../go_table.txt");

/// The kind of an error without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Exponent,
    Large,
    Long,
    Negative,
    NoNumber,
}

/// What Go accepts, or does not return from, and the parser here refuses.
const DIFFERENCES: &[(Refusal, &str, &[&str])] = &[
    (Refusal::Negative, "no offering and no machine has a negative amount", &["-1", "-0", "-1.5Gi", "-500m"]),
    (
        Refusal::NoNumber,
        "Go reads a text without any digit as 0, which hides a mistake",
        &[".", "+", "+.", "Ki", ".Ki", "m", "e3", "E", "+Gi"],
    ),
    (Refusal::Negative, "the same, after a minus sign", &["-"]),
    (
        Refusal::Large,
        "Go caps a binary value at 2^63 - 1 without a word",
        &["8Ei", "9Ei", "10Ei", "8192Pi", "8193Pi", "7.9999999999999999999999999Ei", "9007199254740992Ki", "8589934592Gi"],
    ),
    (
        Refusal::Large,
        "Go holds a decimal value above 2^63 - 1, but its Value() does not",
        &[
            "9223372036854775808",
            "9223372036854775807.5",
            "9223372036854775807.000000001",
            "9223372036854775807000000001n",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999",
            "9.223372036854775808E",
            "9.223372036854775808e18",
            "9223372036854775.808k",
            "10E",
            "100E",
            "10e18",
            "1000000000000000000000000000000n",
            "123456789012345678901234567890",
            "12345678901234567890123456789012",
        ],
    ),
    (
        Refusal::Exponent,
        "the exponent is bounded to -18..=18, whatever the number before it",
        &["1e19", "1e-19", "0e19", "0e-19", "1e20", "1e100", "1e-100", "1234567890123456789012345678e-19", "1e2147483647"],
    ),
    (
        Refusal::Exponent,
        "Go keeps the low 32 bits of the exponent and so misreads it",
        &["1e4294967297", "1E4294967296", "1e-4294967297", "1e9223372036854775807"],
    ),
    (Refusal::Exponent, "Go does not return in useful time", &["2E6024865272343", "1e2147483648", "1e-2147483648"]),
    (
        Refusal::Long,
        "the length is bounded to 32 bytes, zeros included",
        &[
            "123456789012345678901234567890123",
            "0.0000000000000000000000000000001",
            "0000000000000000000000000000000000000001",
            "1.0000000000000000000000000000000000000000",
        ],
    ),
];

/// The inputs of the table and Go's answers.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (input, answer) = line.split_once('\t').expect("an input, a tab, an answer");
        (input.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("an input in double quotes"), answer)
    })
}

const fn refusal(error: &QuantityError) -> Option<Refusal> {
    match error {
        QuantityError::ExponentOutOfRange { .. } => Some(Refusal::Exponent),
        QuantityError::TooLarge { .. } => Some(Refusal::Large),
        QuantityError::TooLong { .. } => Some(Refusal::Long),
        QuantityError::Negative { .. } => Some(Refusal::Negative),
        QuantityError::NoNumber { .. } => Some(Refusal::NoNumber),
        QuantityError::Empty | QuantityError::UnknownSuffix { .. } => None,
    }
}

#[test]
fn the_values_are_those_of_go_but_for_the_listed_differences() {
    let mut listed: BTreeMap<&str, (Refusal, &str)> =
        DIFFERENCES.iter().flat_map(|(refusal, why, inputs)| inputs.iter().map(move |input| (*input, (*refusal, *why)))).collect();
    let mut compared = 0;
    for (input, go) in rows() {
        compared += 1;
        let ours = input.parse::<Quantity>();
        if let Some((expected, why)) = listed.remove(input) {
            assert!(!go.starts_with("error"), "{input:?}: Go refuses it too: {go}");
            let error = ours.expect_err(input);
            assert_eq!(refusal(&error), Some(expected), "{input:?}: {why}: {error}");
        } else if go.starts_with("error") {
            assert!(ours.is_err(), "{input:?}: Go answers {go}, we accept {ours:?}");
        } else {
            let ours = ours.unwrap_or_else(|error| panic!("{input:?}: Go reads {go}, we refuse: {error}"));
            assert_eq!(ours.as_nanos().to_string(), go, "{input:?}");
        }
    }
    assert!(listed.is_empty(), "these differences are not in the table: {listed:?}");
    assert!(compared > 200, "the table has only {compared} rows");
}
