//! A single HdrHistogram: at most three significant digits, any range, merged without loss.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

pub(crate) type Hdr = Histogram<u64>;

/// A histogram of `DIGITS` significant decimal digits that allocates memory only with its first
/// value. In JSON it is HdrHistogram V2 compressed, base64; null when empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lazy<const DIGITS: u8 = 3>(Option<Hdr>);

/// A histogram of two digits, with an eighth of the memory: 20 KB if the largest value is a second.
/// Sufficient for a component of a request's time.
pub(crate) type Coarse = Lazy<2>;

impl<const DIGITS: u8> Lazy<DIGITS> {
    fn get(&mut self) -> &mut Hdr {
        self.0.get_or_insert_with(|| {
            Hdr::new(DIGITS).expect("these digits are within what the histogram allows")
        })
    }

    /// Records one value, in ns.
    #[inline]
    pub(crate) fn record(&mut self, value_ns: u64) {
        self.record_times(value_ns, 1);
    }

    /// Records a value `count` times.
    #[inline]
    pub(crate) fn record_times(&mut self, value_ns: u64, count: u64) {
        // An auto-resizing histogram takes every u64, so this cannot fail.
        let _ = self.get().record_n(value_ns.max(1), count);
    }

    /// Takes back one recorded value.
    pub(crate) fn retract(&mut self, value_ns: u64) {
        let mut one = Hdr::new(DIGITS).expect("these digits are within what is allowed");
        let _ = one.record(value_ns.max(1));
        let _ = self.get().subtract(&one);
    }

    /// Adds the values of another histogram.
    pub(crate) fn add(&mut self, other: &Self) {
        if let Some(theirs) = &other.0 {
            let _ = self.get().add(theirs);
        }
    }

    /// Encodes this histogram together with the values of another.
    pub(crate) fn encoded_with(mut self, other: &Self) -> Option<String> {
        if self.0.is_none() {
            return other.encoded();
        }
        self.add(other);
        self.encoded()
    }

    /// Encodes the histogram as HdrHistogram V2 compressed, base64; none when empty.
    pub fn encoded(&self) -> Option<String> {
        let hdr = self.0.as_ref().filter(|hdr| !hdr.is_empty())?;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(hdr, &mut bytes).ok()?;
        Some(STANDARD.encode(bytes))
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of recorded values.
    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, Hdr::len)
    }

    /// The value that this share of the values does not exceed; 0 when empty.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        self.0.as_ref().map_or(0, |hdr| hdr.value_at_quantile(share))
    }
}

impl<const DIGITS: u8> Serialize for Lazy<DIGITS> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encoded().serialize(serializer)
    }
}

impl<'de, const DIGITS: u8> Deserialize<'de> for Lazy<DIGITS> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Option::<String>::deserialize(deserializer)?;
        encoded.as_deref().map(decode).transpose().map(Lazy).map_err(serde::de::Error::custom)
    }
}

fn decode(encoded: &str) -> Result<Hdr, String> {
    let bytes = STANDARD.decode(encoded).map_err(|error| error.to_string())?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

#[cfg(test)]
pub(crate) fn decoded(encoded: &str) -> Hdr {
    decode(encoded).expect("an HdrHistogram")
}
