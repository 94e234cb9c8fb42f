//! What the tests of the ledgers share.

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// All values of an encoded histogram, the smallest first.
pub(crate) fn decoded(encoded: Option<String>) -> Vec<u64> {
    let Some(encoded) = encoded else { return Vec::new() };
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
    let histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("an HdrHistogram");
    let values = histogram.iter_recorded();
    values
        .flat_map(|step| (0..step.count_at_value()).map(move |_| step.value_iterated_to()))
        .collect()
}
