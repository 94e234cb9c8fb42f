//! Streamed answers: where their parts end, and whether they came to their end.
//!
//! How it works: a reader counts the parts that a slice of the body completes, and compares the
//! latest one with the end that is expected. No part is kept, so the memory of a stream is bounded
//! whatever its peer sends. A read ends with [`Parts::note`], because all parts that one read
//! completes have the same time.
//!
//! Must not know: clocks, and which protocol carried the body.

mod chunks;
mod events;
mod lines;
mod matching;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use chunks::Chunks;
use events::Events;
use lines::Lines;

/// A time that never comes.
const NEVER_NS: u64 = u64::MAX;

/// What a part of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StreamKindPlan")]
pub enum Kind {
    /// A server-sent event.
    Sse,
    /// A chunk of HTTP/1.1, or a DATA frame of HTTP/2.
    Chunks,
    /// A line.
    Jsonl,
}

/// What ends a stream. It is not counted as a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "StreamEndPlan")]
pub enum End {
    /// A part with this content.
    Content {
        /// The whole content of the part.
        text: String,
    },
    /// A server-sent event of this type.
    Event {
        /// The type of the event.
        name: String,
    },
}

/// What the parts of an answer are, and when it has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StreamPlan")]
pub struct Rule {
    /// What a part is.
    pub kind: Kind,
    /// What must come behind the last part; null for the end of the body.
    #[serde(default)]
    pub end: Option<End>,
    /// The longest time without a part once the first has come; null for any time.
    #[serde(default)]
    pub stall_ns: Option<u64>,
}

impl Rule {
    /// The content of the part that ends a stream.
    fn end_content(&self) -> Option<&[u8]> {
        if let Some(End::Content { text }) = &self.end { Some(text.as_bytes()) } else { None }
    }

    /// The type of the event that ends a stream.
    fn end_event(&self) -> Option<&[u8]> {
        if let Some(End::Event { name }) = &self.end { Some(name.as_bytes()) } else { None }
    }
}

/// The rule of an answer, and the time of the bytes that are being read.
#[derive(Clone, Copy, Debug)]
pub struct Streaming<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The time at which the bytes came.
    pub at_ns: u64,
}

/// Parts that have come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The first of them is the first of its stream.
    pub is_first: bool,
    /// The time from the part before to the first of them; none if that is the first of its
    /// stream, or came together with the part before.
    pub gap_ns: Option<u64>,
    /// The number of parts that came together with the part before them, without a gap.
    pub together: u64,
}

/// A stream that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The time at which its first part was complete.
    pub first_ns: u64,
    /// The number of its parts.
    pub parts: u64,
}

/// Reads the body of one answer.
#[derive(Debug)]
enum Reader {
    Events(Events),
    Chunks(Chunks),
    Lines(Lines),
}

/// Where a stream is in relation to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stand {
    #[default]
    Before,
    /// The expected end has come.
    At,
    /// A part has come behind the end.
    Behind,
}

/// The parts of one answer as far as they have come.
#[derive(Debug)]
pub(crate) struct Parts {
    reader: Reader,
    counts: Counts,
    first_ns: u64,
    last_ns: u64,
    stalls_at_ns: u64,
}

#[derive(Debug, Default)]
struct Counts {
    /// Parts that are complete, and those that were noted.
    complete: u64,
    noted: u64,
    stand: Stand,
}

impl Counts {
    /// Counts a part; `is_end` says that it is the expected end.
    #[inline]
    fn add(&mut self, is_end: bool) {
        self.stand = match self.stand {
            Stand::Before if is_end => Stand::At,
            Stand::Before => Stand::Before,
            Stand::At | Stand::Behind => Stand::Behind,
        };
        self.complete += u64::from(self.stand != Stand::At);
    }
}

impl Parts {
    pub(crate) fn new(rule: &Rule) -> Self {
        let reader = match rule.kind {
            Kind::Sse => Reader::Events(Events::default()),
            Kind::Chunks => Reader::Chunks(Chunks::default()),
            Kind::Jsonl => Reader::Lines(Lines::default()),
        };
        let counts = Counts::default();
        Parts { reader, counts, first_ns: 0, last_ns: 0, stalls_at_ns: NEVER_NS }
    }

    /// Reads the next slice of the body.
    #[inline]
    pub(crate) fn take(&mut self, rule: &Rule, slice: &[u8]) {
        let counts = &mut self.counts;
        match &mut self.reader {
            Reader::Events(events) => events.take(slice, rule, &mut |is_end| counts.add(is_end)),
            Reader::Chunks(chunks) => chunks.take(slice, rule),
            Reader::Lines(lines) => lines.take(slice, rule, &mut |is_end| counts.add(is_end)),
        }
    }

    /// Notes that a chunk or a frame ends with the last slice.
    #[inline]
    pub(crate) fn end_chunk(&mut self, rule: &Rule) {
        if let Reader::Chunks(chunks) = &mut self.reader
            && let Some(is_end) = chunks.end(rule)
        {
            self.counts.add(is_end);
        }
    }

    /// Returns the parts that were completed since the last call, all at the same time; none if
    /// there are none.
    #[inline]
    pub(crate) fn note(&mut self, streaming: Streaming<'_>) -> Option<Arrived> {
        let Streaming { rule, at_ns } = streaming;
        let new = self.counts.complete - self.counts.noted;
        if self.counts.stand != Stand::Before {
            // Only the end of the body is to come: for that the timeout of the request is enough.
            self.stalls_at_ns = NEVER_NS;
        }
        if new == 0 {
            return None;
        }
        let is_first = self.counts.noted == 0;
        let arrived = if is_first {
            self.first_ns = at_ns;
            Arrived { is_first, gap_ns: None, together: new - 1 }
        } else if at_ns > self.last_ns {
            Arrived { is_first, gap_ns: Some(at_ns - self.last_ns), together: new - 1 }
        } else {
            Arrived { is_first, gap_ns: None, together: new }
        };
        self.last_ns = self.last_ns.max(at_ns);
        self.counts.noted = self.counts.complete;
        if self.counts.stand == Stand::Before {
            let stall_ns = rule.stall_ns.unwrap_or(NEVER_NS);
            self.stalls_at_ns = self.last_ns.saturating_add(stall_ns);
        }
        Some(arrived)
    }

    /// The time at which the stream has stalled, unless another part comes before.
    pub(crate) fn stalls_at_ns(&self) -> u64 {
        self.stalls_at_ns
    }

    /// Ends the stream with its body. [`Parts::note`] is due once more.
    pub(crate) fn end_body(&mut self, rule: &Rule) {
        if let Reader::Lines(lines) = &mut self.reader
            && let Some(is_end) = lines.end(rule)
        {
            self.counts.add(is_end);
        }
    }

    /// How a request ends whose answer is complete and good otherwise. An answer without a part is
    /// no stream.
    pub(crate) fn ending(&self, rule: &Rule) -> Ending {
        let within = match &self.reader {
            Reader::Events(events) => events.is_within_event(self.counts.complete > 0),
            Reader::Chunks(chunks) => chunks.within,
            Reader::Lines(_) => false,
        };
        match (rule.end.is_none(), self.counts.stand) {
            _ if within => Ending::Truncated,
            (_, Stand::Behind) => Ending::Mismatch,
            _ if self.counts.complete == 0 => Ending::Mismatch,
            (false, Stand::Before) => Ending::Truncated,
            _ => Ending::Ok,
        }
    }

    pub(crate) fn whole(&self) -> Whole {
        Whole { first_ns: self.first_ns, parts: self.counts.noted }
    }
}

#[cfg(test)]
mod tests;
