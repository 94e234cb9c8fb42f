//! Reads a map by number: JSON's keys are strings, and serde does not convert them to numbers inside a
//! tagged message.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub(super) fn read<'de, D, V>(deserializer: D) -> Result<BTreeMap<u32, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let texts = BTreeMap::<String, V>::deserialize(deserializer)?;
    let number = |(key, value): (String, V)| key.parse().map(|key| (key, value));
    texts.into_iter().map(number).collect::<Result<_, _>>().map_err(D::Error::custom)
}
