//! Packed histograms as base64: an hour of seconds as JSON maps would take 100 MB in the reader.

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use trueload_meter::Packed;

use super::Sparse;

pub(super) fn serialize<S: Serializer>(packed: &Packed, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(packed.as_bytes(), &STANDARD))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Packed, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    Packed::from_bytes(&bytes).ok_or_else(|| D::Error::custom("no packed histogram"))
}

/// The same for a map that is packed only to be written.
pub(super) mod written {
    use super::{Deserializer, Packed, Serializer, Sparse};

    pub(crate) fn serialize<S: Serializer>(
        counts: &Sparse,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        super::serialize(&Packed::of(counts), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Sparse, D::Error> {
        super::deserialize(deserializer).map(|packed| packed.sparse())
    }
}
