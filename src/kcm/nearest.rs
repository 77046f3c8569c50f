//! Orders what is on offer by how near it is to what was asked for, for messages that help.
//!
//! Pure: equal distances fall back to the order of bytes.

/// The versions, nearest first: by the distance of the first number, then of the second, and so on.
pub(super) fn versions<'a>(asked: &str, mut on_offer: Vec<&'a str>) -> Vec<&'a str> {
    let asked = numbers(asked);
    on_offer.sort_by_cached_key(|version| {
        let numbers = numbers(version);
        let distance: [u64; NUMBERS] = std::array::from_fn(|at| numbers[at].abs_diff(asked[at]));
        (distance, *version)
    });
    on_offer.dedup();
    on_offer
}

/// The regions, nearest first: those that begin alike, as a typing mistake or another zone of one country does.
pub(super) fn regions<'a>(asked: &str, mut on_offer: Vec<&'a str>) -> Vec<&'a str> {
    on_offer.sort_by_cached_key(|region| {
        let alike = region.bytes().zip(asked.bytes()).take_while(|(a, b)| a == b).count();
        (usize::MAX - alike, *region)
    });
    on_offer.dedup();
    on_offer
}

/// Major, minor, patch, and what builds like `1.34.2-gke.5` add.
const NUMBERS: usize = 4;

/// The first numbers in the text; 0 where there is none, and the largest for one that is larger than any version's.
fn numbers(version: &str) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    let found = version.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    for (slot, digits) in numbers.iter_mut().zip(found) {
        *slot = digits.parse().unwrap_or(u64::MAX);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let on_offer = vec!["1.9.0", "1.33.6", "1.34.2", "2.34.9", "1.34.10", "1.33.6", "latest"];
        assert_eq!(versions("1.34.9", on_offer), ["1.34.10", "1.34.2", "1.33.6", "1.9.0", "2.34.9", "latest"]);
    }

    #[test]
    fn a_region_that_begins_alike_comes_first() {
        assert_eq!(regions("eu-dee", vec!["ap-sg", "eu-nl", "eu-de"]), ["eu-de", "eu-nl", "ap-sg"]);
    }
}
