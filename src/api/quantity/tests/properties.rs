//! Properties over any text: agreement with arithmetic on decimal digits, with the pattern, and no panic.

use std::cmp::Ordering;

use proptest::prelude::*;
use regex::Regex;

use super::{MAX_LEN, PATTERN, Quantity, QuantityError, go_table};

/// The parts of a well-formed quantity; the oracle works on them and never parses.
#[derive(Clone, Debug)]
struct Parts {
    sign: &'static str,
    whole: String,
    fraction: String,
    binary: usize,
    decimal: i32,
    suffix: String,
}

impl Parts {
    fn text(&self) -> String {
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{}{}{point}{}{}", self.sign, self.whole, self.fraction, self.suffix)
    }

    /// The digits of the value in nano units, rounded up, without leading zeros; slow, by hand, and of any size.
    fn oracle(&self) -> String {
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0').collect();
        for _ in 0..self.binary {
            double(&mut digits);
        }
        let dropped = i32::try_from(self.fraction.len()).unwrap() - self.decimal - 9;
        let kept = if dropped < 0 {
            digits.resize(digits.len() + dropped.unsigned_abs() as usize, 0);
            digits.len()
        } else {
            digits.len().saturating_sub(dropped.unsigned_abs() as usize)
        };
        let tail = digits.split_off(kept);
        if tail.iter().any(|digit| *digit != 0) {
            increment(&mut digits);
        }
        digits.iter().skip_while(|digit| **digit == 0).map(|digit| char::from(digit + b'0')).collect()
    }
}

fn double(digits: &mut Vec<u8>) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        (carry, *digit) = ((*digit * 2 + carry) / 10, (*digit * 2 + carry) % 10);
    }
    if carry > 0 {
        digits.insert(0, carry);
    }
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        *digit = (*digit + 1) % 10;
        if *digit != 0 {
            return;
        }
    }
    digits.insert(0, 1);
}

fn compare(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

fn suffix() -> impl Strategy<Value = (usize, i32, String)> {
    const UNITS: [(&str, usize, i32); 16] = [
        ("", 0, 0),
        ("n", 0, -9),
        ("u", 0, -6),
        ("m", 0, -3),
        ("k", 0, 3),
        ("M", 0, 6),
        ("G", 0, 9),
        ("T", 0, 12),
        ("P", 0, 15),
        ("E", 0, 18),
        ("Ki", 10, 0),
        ("Mi", 20, 0),
        ("Gi", 30, 0),
        ("Ti", 40, 0),
        ("Pi", 50, 0),
        ("Ei", 60, 0),
    ];
    prop_oneof![
        2 => prop::sample::select(&UNITS).prop_map(|(text, binary, decimal)| (binary, decimal, text.to_owned())),
        1 => (-20_i32..=20, prop::sample::select(&["e", "E"]), 0_usize..3).prop_map(|(exponent, letter, zeros)| {
            let sign = if exponent < 0 { "-" } else { ["", "+"][zeros % 2] };
            (0, exponent, format!("{letter}{sign}{}{}", "0".repeat(zeros), exponent.unsigned_abs()))
        }),
    ]
}

fn parts() -> impl Strategy<Value = Parts> {
    let number = prop_oneof![
        2 => ("[0-9]{1,4}", "[0-9]{0,4}"),
        2 => ("[0-9]{0,20}", "[0-9]{0,25}"),
        1 => ("922337203685477580[6-9]", "[09]{0,12}"),
        1 => ("0{0,3}", "0{1,20}[1-9]"),
    ];
    (prop::sample::select(&["", "+"]), number, suffix())
        .prop_map(|(sign, (whole, fraction), (binary, decimal, suffix))| Parts { sign, whole, fraction, binary, decimal, suffix })
        .prop_filter("a number, of bounded length", |parts| {
            parts.text().len() <= MAX_LEN && !(parts.whole.is_empty() && parts.fraction.is_empty())
        })
}

/// What holds for every text: whatever the pattern and the length accept is read; gives whether they accept it.
fn assert_pattern_agrees(pattern: &Regex, text: &str) -> bool {
    let matches = text.chars().count() <= MAX_LEN && pattern.is_match(text);
    match text.parse::<Quantity>() {
        Ok(quantity) => assert_eq!(quantity.to_string(), text),
        Err(error) => {
            assert!(!matches, "{text:?} matches, but is refused: {error}");
            assert!(error.to_string().len() <= 200, "{text:?}: {error}");
        }
    }
    matches
}

/// Whether the pattern promises to accept it: few enough digits before the point for its suffix.
fn is_ordinary(parts: &Parts) -> bool {
    let digits = parts.whole.trim_start_matches('0').len();
    let is_exponent = parts.suffix.strip_prefix(['e', 'E']).is_some_and(|rest| rest.ends_with(|last: char| last.is_ascii_digit()));
    let most = match (is_exponent, parts.binary / 10, parts.decimal) {
        (true, _, 0..) => 3,
        (_, 0, ..=0) => 18,
        (_, power, 0) => 18 - 3 * power,
        (_, _, decimal) => 18 - usize::try_from(decimal).unwrap(),
    };
    let exa = parts.binary == 60 || (!is_exponent && parts.decimal == 18);
    let small = if exa { digits == 0 || (digits == 1 && parts.whole.ends_with(['1', '2', '3', '4', '5', '6'])) } else { digits <= most };
    small && if is_exponent { (-18..=15).contains(&parts.decimal) } else { true }
}

proptest! {
    #[test]
    fn the_value_agrees_with_arithmetic_on_decimal_digits(parts in parts()) {
        let text = parts.text();
        let expected = parts.oracle();
        match text.parse::<Quantity>() {
            Ok(quantity) => prop_assert_eq!(quantity.as_nanos().to_string(), if expected.is_empty() { "0" } else { &expected }),
            Err(QuantityError::ExponentOutOfRange { .. }) => prop_assert!(parts.decimal.abs() > 18, "{}", text),
            Err(QuantityError::TooLarge { .. }) => {
                prop_assert_eq!(compare(&expected, "9223372036854775807000000000"), Ordering::Greater, "{}", text);
            }
            Err(error) => prop_assert!(false, "{} is well-formed: {}", text, error),
        }
    }

    #[test]
    fn the_order_is_that_of_the_values(one in parts(), other in parts()) {
        if let (Ok(a), Ok(b)) = (one.text().parse::<Quantity>(), other.text().parse::<Quantity>()) {
            prop_assert_eq!(a.cmp(&b), compare(&one.oracle(), &other.oracle()));
        }
    }

    #[test]
    fn what_was_read_survives_the_wire(parts in parts()) {
        if let Ok(quantity) = parts.text().parse::<Quantity>() {
            let wire = serde_json::to_string(&quantity).unwrap();
            let read: Quantity = serde_json::from_str(&wire).unwrap();
            prop_assert_eq!(&read, &quantity);
            prop_assert_eq!(read.to_string(), parts.text());
        }
    }

    #[test]
    fn every_integer_on_the_wire_is_read_or_refused_by_its_sign(value: i64) {
        let read = serde_json::from_str::<Quantity>(&value.to_string());
        prop_assert_eq!(read.is_ok(), value >= 0);
        if let Ok(read) = read {
            prop_assert_eq!(&read, &value.to_string().parse::<Quantity>().unwrap());
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), value.to_string());
        }
    }

    #[test]
    fn the_pattern_accepts_what_has_few_enough_digits_for_its_suffix(parts in parts().prop_filter("ordinary", is_ordinary)) {
        prop_assert!(Regex::new(PATTERN).unwrap().is_match(&parts.text()), "{}", parts.text());
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let pattern = Regex::new(PATTERN).unwrap();
        assert_pattern_agrees(&pattern, &text);
        assert_pattern_agrees(&pattern, &String::from_utf8_lossy(&bytes));
    }
}

/// xorshift64: the same mutations in every run.
struct Mutations(u64);

impl Mutations {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// One to three characters of the text replaced, put in, taken out or doubled.
    fn mutate(&mut self, text: &mut Vec<char>) {
        let alphabet: &[char] = &[
            '0', '0', '1', '5', '8', '9', '.', '+', '-', 'e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P', ' ', '\n', '\0',
            '\u{663}', '\u{b5}',
        ];
        for _ in 0..=self.below(3) {
            let letter = alphabet[self.below(alphabet.len())];
            let at = self.below(text.len() + 1);
            match self.below(4) {
                0 => text.insert(at, letter),
                1 if at < text.len() => text[at] = letter,
                2 if at < text.len() => drop(text.remove(at)),
                _ => text.extend_from_within(at..),
            }
        }
    }
}

#[test]
fn two_hundred_thousand_mutations_of_quantities_agree_with_the_pattern() {
    let pattern = Regex::new(PATTERN).unwrap();
    let mut mutations = Mutations(0x9E37_79B9_7F4A_7C15);
    let seeds: Vec<Vec<char>> = go_table::rows().map(|(input, _)| input.chars().collect()).collect();
    let (mut accepted, mut refused, mut matching) = (0, 0, 0);
    for round in 0..200_000 {
        let mut text = seeds[round % seeds.len()].clone();
        mutations.mutate(&mut text);
        let text: String = text.into_iter().collect();
        matching += usize::from(assert_pattern_agrees(&pattern, &text));
        *(if text.parse::<Quantity>().is_ok() { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(accepted > 20_000 && refused > 20_000, "one-sided mutations: {accepted} accepted, {refused} refused");
    assert!(matching > accepted / 2, "the pattern accepts only {matching} of {accepted}");
}
