//! Reads sums of times, which are written with all their digits. Within a tagged message serde reads at most
//! 64 bits, and nothing that reads them here has more.

use serde::{Deserialize, Deserializer};
use trueload_meter::SumNs;

pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SumNs, D::Error> {
    u64::deserialize(deserializer).map(SumNs::from)
}

pub(super) fn read_all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SumNs>, D::Error> {
    let found = Vec::<u64>::deserialize(deserializer)?;
    Ok(found.into_iter().map(SumNs::from).collect())
}
