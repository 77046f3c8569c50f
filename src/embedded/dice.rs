//! Names that nobody chose: uids, logical clusters, suffixes of `generateName`. From a seed, so that a run can be repeated.
//!
//! Pure: splitmix64 over a counter.

use std::sync::Arc;

/// A seeded source of names.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
}

/// The letters of `generateName`: no vowels and no digits that look like one (`k8s.io/apimachinery/pkg/util/rand`).
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next draw.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random UUID (RFC 9562, version 4).
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.draw(), self.draw());
        let version = (high & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000;
        let variant = (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            version >> 32,
            (version >> 16) & 0xFFFF,
            version & 0xFFFF,
            variant >> 48,
            variant & 0xFFFF_FFFF_FFFF
        )
    }

    /// The five letters after a `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        self.letters(SAFE, 5)
    }

    /// The name of a logical cluster: a letter or digit each in base 36, 16 of them, as kcp's hash has.
    pub(crate) fn logical_cluster(&mut self) -> Arc<str> {
        self.letters(BASE36, 16).into()
    }

    fn letters(&mut self, of: &[u8], count: usize) -> String {
        let size = of.len() as u64;
        (0..count).map(|_| char::from(of[usize::try_from(self.draw() % size).unwrap_or_default()])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_names_again_and_no_name_twice() {
        let draw = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).flat_map(|_| [dice.uid(), dice.suffix(), dice.logical_cluster().to_string()]).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        let names: std::collections::BTreeSet<String> = draw(1).into_iter().chain(draw(2)).collect();
        assert_eq!(names.len(), 600);
    }

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = Dice::new(7).uid();
        let parts: Vec<&str> = uid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4') && matches!(parts[3].as_bytes()[0], b'8' | b'9' | b'a' | b'b'), "{uid}");
    }
}
