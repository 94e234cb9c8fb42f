//! A sparse histogram in little memory: for what is kept for long and rarely looked at.
//!
//! How it works: each index is the difference to the one before, each number in groups of seven bits, the lowest first (as
//! LEB128 has it). Latencies of a second take 2 to 3 bytes each so, and a tenth of what a map of them takes.

use crate::Sparse;

/// A [`Sparse`], packed. Two that hold the same are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    /// Packs counts; those that are 0 are left out.
    #[must_use]
    pub fn of(sparse: &Sparse) -> Self {
        let mut bytes = Vec::new();
        let mut before = 0;
        for (index, count) in sparse.iter().filter(|(_, count)| **count > 0) {
            put(&mut bytes, u64::from(index - before));
            put(&mut bytes, *count);
            before = *index;
        }
        Packed(bytes.into_boxed_slice())
    }

    /// Index and count, by index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut left = &self.0[..];
        let mut index = 0_u32;
        std::iter::from_fn(move || {
            index = index.wrapping_add(take(&mut left)? as u32);
            Some((index, take(&mut left)?))
        })
    }

    /// The same as a map.
    #[must_use]
    pub fn sparse(&self) -> Sparse {
        self.iter().collect()
    }

    /// The packed bytes: pairs of a difference and a count, as the head of this file says.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What [`Packed::as_bytes`] gave; None for bytes that it cannot have given.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let packed = Packed(bytes.into());
        (Packed::of(&packed.sparse()).0 == packed.0).then_some(packed)
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            counts in prop::collection::btree_map(any::<u32>(), 1..=u64::MAX, 0..50),
        ) {
            let packed = Packed::of(&counts);
            prop_assert_eq!(packed.sparse(), counts);
            let again = Packed::from_bytes(packed.as_bytes());
            prop_assert_eq!(again, Some(packed));
        }

        #[test]
        fn bytes_that_nobody_packed_are_refused_or_mean_one_histogram(bytes: Vec<u8>) {
            if let Some(packed) = Packed::from_bytes(&bytes) {
                let again = Packed::of(&packed.sparse());
                prop_assert_eq!(again.as_bytes(), &bytes[..]);
            }
        }
    }

    #[test]
    fn a_count_of_nothing_takes_no_room() {
        let sparse = Sparse::from([(3, 0), (200, 5), (201, 0)]);
        let packed = Packed::of(&sparse);
        assert_eq!(packed.sparse(), Sparse::from([(200, 5)]));
        assert_eq!(
            packed.as_bytes(),
            [0xc8, 0x01, 5],
            "200 in two groups of seven bits, then the count"
        );
        assert_eq!(Packed::of(&Sparse::new()), Packed::default());
    }
}
