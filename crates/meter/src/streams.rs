//! The parts of answers that are streams: when the first one came, and the gaps between them.
//!
//! A gap is recorded when it ends, so the gaps of a stream that fails later are in. The time to the
//! first part and the number of parts are recorded only when the stream has come to its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Lazy;

/// The parts of streamed answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    /// Parts that came, including those of streams that failed. The marks that end a stream are not
    /// counted.
    pub parts: u64,
    /// Parts that came together with the part before them. Their gap counts as 0.
    pub together: u64,
    /// Streams that came to their end.
    pub whole: u64,
    /// The times of these parts.
    pub histograms: StreamHistograms,
}

/// Histograms of streamed answers: HdrHistogram V2, compressed, base64; null when empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamHistograms {
    /// From the scheduled send to the first part, in ns; only of streams that came to their end.
    #[schemars(with = "Option<String>")]
    pub first_part: Lazy,
    /// From one part to the next, in ns, by the kernel's receive times where they are known.
    #[schemars(with = "Option<String>")]
    pub gap: Lazy,
    /// The number of parts of each stream that came to its end.
    #[schemars(with = "Option<String>")]
    pub parts_per_answer: Lazy,
}

impl Streams {
    /// Records parts that came at the same time: the first of them a gap after the part before, if
    /// it is not the first of its stream, and `together` others.
    #[inline]
    pub fn record_parts(&mut self, is_first: bool, gap_ns: Option<u64>, together: u64) {
        self.parts += u64::from(is_first || gap_ns.is_some()) + together;
        self.together += together;
        if let Some(gap_ns) = gap_ns {
            self.histograms.gap.record(gap_ns);
        }
        if together > 0 {
            self.histograms.gap.record_times(0, together);
        }
    }

    /// Records a stream that came to its end.
    pub fn record_whole(&mut self, first_part_ns: u64, parts: u64) {
        self.whole += 1;
        self.histograms.first_part.record(first_part_ns);
        self.histograms.parts_per_answer.record(parts);
    }
}

crate::merged! { Streams: parts, together, whole, histograms }
crate::merged! { StreamHistograms: first_part, gap, parts_per_answer }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazy::{Hdr, decoded};

    #[test]
    fn each_part_but_the_first_of_its_stream_leaves_a_gap() {
        let (mut one, mut two) = (Streams::default(), Streams::default());
        one.record_parts(true, None, 2);
        one.record_parts(false, Some(500), 0);
        two.record_parts(true, None, 0);
        two.record_parts(false, Some(700), 1);
        two.record_parts(false, None, 3);
        two.record_whole(90, 7);
        one.merge(&two);
        assert_eq!((one.parts, one.together, one.whole), (10, 6, 1));
        let StreamHistograms { first_part, gap, parts_per_answer } = one.histograms;
        let [first_part, gap, parts] = [first_part, gap, parts_per_answer]
            .map(|times| decoded(&times.encoded().expect("not empty")));
        assert_eq!((first_part.len(), first_part.max()), (1, 90));
        assert_eq!((gap.len(), gap.max(), gap.count_at(500)), (8, 700, 1));
        assert_eq!([parts].each_ref().map(Hdr::max), [7]);
    }
}
