//! The parts of answers that are streams: when the first one came, and the gaps between them.
//!
//! A gap is recorded when it ends, so the gaps of a stream that fails later are in. The time to the
//! first part and the number of parts are recorded only when the stream has come to its end.

use crate::lazy::Lazy;

/// What was seen of the parts of streamed answers.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// Parts that came, the ends of streams not included.
    pub parts: u64,
    /// Parts that came together with the part before them, without a gap.
    pub together: u64,
    /// Streams that came to their end.
    pub whole: u64,
    first_part: Lazy,
    gap: Lazy,
    parts_per_answer: Lazy,
}

/// The encoded histograms: HdrHistogram V2 compressed, base64; none when empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EncodedStreams {
    /// From the scheduled send to the first part, of streams that came to their end.
    pub first_part: Option<String>,
    /// From one part to the next.
    pub gap: Option<String>,
    /// The number of parts, of streams that came to their end.
    pub parts_per_answer: Option<String>,
}

impl Streams {
    /// Records parts that came at the same time: the first of them a gap after the part before, if
    /// it is not the first of its stream, and `together` others.
    #[inline]
    pub fn record_parts(&mut self, is_first: bool, gap_ns: Option<u64>, together: u64) {
        self.parts += u64::from(is_first || gap_ns.is_some()) + together;
        self.together += together;
        if let Some(gap_ns) = gap_ns {
            self.gap.record(gap_ns);
        }
        if together > 0 {
            self.gap.record_times(0, together);
        }
    }

    /// Records a stream that came to its end.
    pub fn record_whole(&mut self, first_part_ns: u64, parts: u64) {
        self.whole += 1;
        self.first_part.record(first_part_ns);
        self.parts_per_answer.record(parts);
    }

    /// Adds the streams of another thread.
    pub fn merge(&mut self, other: &Streams) {
        self.parts += other.parts;
        self.together += other.together;
        self.whole += other.whole;
        self.first_part.add(&other.first_part);
        self.gap.add(&other.gap);
        self.parts_per_answer.add(&other.parts_per_answer);
    }

    /// Encodes all histograms.
    #[must_use]
    pub fn encoded(&self) -> EncodedStreams {
        EncodedStreams {
            first_part: self.first_part.encoded(),
            gap: self.gap.encoded(),
            parts_per_answer: self.parts_per_answer.encoded(),
        }
    }
}

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
        let encoded = one.encoded();
        let [first_part, gap, parts] = [encoded.first_part, encoded.gap, encoded.parts_per_answer]
            .map(|encoded| decoded(&encoded.expect("not empty")));
        assert_eq!((first_part.len(), first_part.max()), (1, 90));
        assert_eq!((gap.len(), gap.max(), gap.count_at(500)), (8, 700, 1));
        assert_eq!([parts].each_ref().map(Hdr::max), [7]);
    }

    #[test]
    fn without_streams_there_are_no_histograms() {
        assert_eq!(Streams::default().encoded(), EncodedStreams::default());
    }
}
