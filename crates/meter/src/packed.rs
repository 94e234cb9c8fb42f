//! A sparse histogram in compact form, for data that is kept long and rarely read.
//!
//! How it works: as HdrHistogram V2 has its counts, in order of index. An even number is twice a
//! count, and the odd number `2 n - 1` stands for `n` empty indices. Each number is written in groups
//! of seven bits, lowest first (LEB128). The latencies of one second take 2 to 3 bytes each this
//! way, a tenth of the size of a map.

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Sparse;

/// A [`Sparse`] in packed form. Equal histograms have equal bytes. In JSON it is base64: an hour of
/// seconds as JSON maps would take 100 MB in the reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    /// Packs the counts; zero counts are left out.
    pub fn of(sparse: &Sparse) -> Self {
        let mut bytes = Vec::new();
        let mut end = 0;
        for (index, count) in sparse.iter().filter(|(_, count)| **count > 0) {
            if u64::from(*index) > end {
                put(&mut bytes, 2 * (u64::from(*index) - end) - 1);
            }
            put(&mut bytes, 2 * count);
            end = u64::from(*index) + 1;
        }
        Packed(bytes.into_boxed_slice())
    }

    /// Iterates over index and count, in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut left = &self.0[..];
        let mut next = 0_u32;
        std::iter::from_fn(move || {
            let mut number = take(&mut left)?;
            if number % 2 == 1 {
                next = next.wrapping_add((number / 2 + 1) as u32);
                number = take(&mut left)?;
            }
            let index = next;
            next = next.wrapping_add(1);
            Some((index, number / 2))
        })
    }

    /// Unpacks into a map.
    pub fn sparse(&self) -> Sparse {
        self.iter().collect()
    }

    /// The packed bytes, as described in the module documentation.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Restores what [`Packed::as_bytes`] returned; None for bytes that it cannot have returned.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let packed = Packed(bytes.into());
        (Packed::of(&packed.sparse()).0 == packed.0).then_some(packed)
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes =
            STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        Packed::from_bytes(&bytes).ok_or_else(|| D::Error::custom("no packed histogram"))
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
            counts in prop::collection::btree_map(any::<u32>(), 1..=u64::MAX / 4, 0..50),
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
            [0x8f, 0x03, 10],
            "200 empty indices in two groups of seven bits, then twice the count"
        );
        assert_eq!(Packed::of(&Sparse::new()), Packed::default());
    }
}
