//! Reads a sparse histogram: JSON's keys are strings, and serde does not convert them to numbers
//! inside a tagged message. An aggregator reads hundreds a second, so no key is copied.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};

use super::Sparse;

pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sparse, D::Error> {
    deserializer.deserialize_map(Counts)
}

struct Counts;

impl<'de> Visitor<'de> for Counts {
    type Value = Sparse;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object of counts by index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sparse, A::Error> {
        let mut found = Sparse::new();
        while let Some(index) = map.next_key_seed(Index)? {
            found.insert(index, map.next_value()?);
        }
        Ok(found)
    }
}

struct Index;

impl<'de> DeserializeSeed<'de> for Index {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u32, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Index {
    type Value = u32;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an index in quotes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u32, E> {
        text.parse().map_err(E::custom)
    }
}
