//! One HdrHistogram: three digits or fewer, any range, merged without loss.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

pub(crate) type Hdr = Histogram<u64>;

/// A histogram of so many significant decimal digits that takes no memory before its first value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lazy<const DIGITS: u8 = 3>(Option<Hdr>);

/// Two digits, an eighth of the memory: 20 KB where a second is the most. Enough for what is a part of a time.
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

    /// Records a value so many times.
    #[inline]
    pub(crate) fn record_times(&mut self, value_ns: u64, count: u64) {
        // An auto-resizing histogram takes every u64, so this cannot fail.
        let _ = self.get().record_n(value_ns.max(1), count);
    }

    /// Takes back what was recorded.
    pub(crate) fn retract(&mut self, value_ns: u64) {
        let mut one = Hdr::new(DIGITS).expect("these digits are within what is allowed");
        let _ = one.record(value_ns.max(1));
        let _ = self.get().subtract(&one);
    }

    /// Adds another's values.
    pub(crate) fn add(&mut self, other: &Self) {
        if let Some(theirs) = &other.0 {
            let _ = self.get().add(theirs);
        }
    }

    /// Encoded together with another's values.
    pub(crate) fn encoded_with(mut self, other: &Self) -> Option<String> {
        if self.is_unused() {
            return other.encoded();
        }
        self.add(other);
        self.encoded()
    }

    /// HdrHistogram V2 compressed, base64; none when empty.
    pub(crate) fn encoded(&self) -> Option<String> {
        let hdr = self.0.as_ref().filter(|hdr| !hdr.is_empty())?;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(hdr, &mut bytes).ok()?;
        Some(STANDARD.encode(bytes))
    }

    /// Values recorded.
    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, Hdr::len)
    }

    /// The value that this share of them does not exceed; 0 when empty.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        self.0.as_ref().map_or(0, |hdr| hdr.value_at_quantile(share))
    }

    /// Whether nothing was ever recorded.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
pub(crate) fn decoded(encoded: &str) -> Hdr {
    use hdrhistogram::serialization::Deserializer;

    let bytes = STANDARD.decode(encoded).expect("base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("an HdrHistogram")
}
