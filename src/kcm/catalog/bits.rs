//! Sets of machine types as bits, one per slot of the type table.
//!
//! Pure: a thousand offerings are compared with a request by a few machine words each, which is what keeps a failing decision short.

/// A set of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a slot; whether it was not there before.
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        let (word, bit) = place(slot);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Whether the slot is in the set.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        let (word, bit) = place(slot);
        self.0.get(word).is_some_and(|&bits| bits & bit != 0)
    }

    /// Whether the two sets share a slot.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Adds every slot of the other set.
    pub(crate) fn extend(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// The slots, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let slots = self.0.iter().enumerate().flat_map(|(word, &bits)| {
            (0..u64::BITS).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * u64::BITS as usize + bit as usize)
        });
        slots.map(|slot| u32::try_from(slot).expect("every slot was inserted as a u32"))
    }
}

/// The word and the bit of a slot.
fn place(slot: u32) -> (usize, u64) {
    ((slot / u64::BITS) as usize, 1 << (slot % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_inserted_across_words() {
        let mut set = Bits::default();
        assert!(set.insert(3) && set.insert(64) && set.insert(200) && !set.insert(64));
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200]);
        assert!(set.contains(200) && !set.contains(199) && !set.contains(10_000));
    }

    #[test]
    fn sets_of_different_length_intersect_and_unite() {
        let (mut short, mut long) = (Bits::default(), Bits::default());
        short.insert(1);
        long.insert(130);
        assert!(!short.intersects(&long));
        short.extend(&long);
        assert!(short.intersects(&long) && long.intersects(&short));
    }
}
