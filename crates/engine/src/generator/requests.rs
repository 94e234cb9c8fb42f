//! Requests that differ: several targets by weight, or one whose text depends on its number.
//!
//! Every request of a run has a number, drawn when it is sent, from a count that all threads share.
//! The number says which target it is for and what its places are filled with, so that nothing else
//! has to be kept about it. A run whose requests are all alike knows nothing of this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trueload_drive::Net;
use trueload_load::{Mix, Places, random};
use trueload_wire::http1::client::{Memories, Rulebook, Rules};
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::http1::template::{Part, Template};

use super::carrier::Carrier;
use super::slot::Tag;

/// From this length on bytes that all requests share are not copied to be sent.
const SHARED_FROM_BYTES: usize = 16 * 1024;

/// One of the requests that are sent, and what is a good answer to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// What is sent.
    pub template: Template,
    /// What counts as a good answer.
    pub rules: Rules,
}

/// All that a run sends.
#[derive(Debug)]
pub struct Requests {
    targets: Vec<Target>,
    order: Mix,
    seed: u64,
    /// Whether counts are kept by target.
    apart: bool,
    /// Which of several engines counts here: no two send the same number.
    part: (u64, u64),
    /// Of one of several origins: which of all turns are its own.
    places: Option<Places>,
    drawn: AtomicU64,
}

impl Requests {
    /// Targets in the order of their turns; with `apart` each is counted by itself. `part` is an
    /// index, from 0, and a number of engines.
    #[must_use]
    pub fn new(targets: Vec<Target>, order: Mix, seed: u64, apart: bool, part: (u64, u64)) -> Self {
        Requests { targets, order, seed, apart, part, places: None, drawn: AtomicU64::new(0) }
    }

    /// The same as those of one of several origins: each is numbered by its turn among those of all.
    #[must_use]
    pub fn at(self, places: Option<Places>) -> Self {
        Requests { places, ..self }
    }

    /// Targets to count by themselves.
    pub(super) fn counted(&self) -> usize {
        if self.apart { self.targets.len() } else { 0 }
    }

    /// Answers whose heads are remembered.
    pub(super) fn heads(&self) -> Vec<HeadMemory> {
        self.targets.iter().map(|_| HeadMemory::default()).collect()
    }

    /// The first of so many new numbers.
    pub(super) fn draw(&self, count: u64) -> u64 {
        self.drawn.fetch_add(count, Ordering::Relaxed)
    }

    /// Which target the request of a tag is for, when `drawn` numbers have been.
    pub(super) fn index(&self, drawn: u64, low: u32) -> usize {
        self.order.pick(number(drawn, low))
    }

    /// Sends these requests in this order, in as few pieces as can be; returns their length.
    pub(super) fn send<'a>(
        &self,
        carrier: &mut Carrier<'_, impl Net>,
        drawn: u64,
        tags: impl Iterator<Item = &'a Tag>,
        scratch: &mut Vec<u8>,
    ) -> usize {
        let mut sent = 0;
        scratch.clear();
        for tag in tags {
            let number = number(drawn, tag.number);
            let template = &self.targets[self.order.pick(number)].template;
            let (index, of) = self.part;
            let turn = self.places.as_ref().map_or(number, |places| places.place(number));
            let written = turn * of + index;
            let chance = |nth| random(self.seed, written, nth);
            template.write(written, chance, &mut |part| {
                sent += part.bytes().len();
                match part {
                    Part::Fixed(bytes) if bytes.len() >= SHARED_FROM_BYTES => {
                        flush(carrier, scratch);
                        carrier.send_shared(bytes, 0..bytes.len());
                    }
                    part => scratch.extend_from_slice(part.bytes()),
                }
            });
        }
        flush(carrier, scratch);
        sent
    }
}

fn flush(carrier: &mut Carrier<'_, impl Net>, scratch: &mut Vec<u8>) {
    if !scratch.is_empty() {
        carrier.send(scratch);
        scratch.clear();
    }
}

/// The number whose lower half is `low`: the last such one before `drawn`. No request waits while
/// four thousand million others are sent.
fn number(drawn: u64, low: u32) -> u64 {
    let last = drawn.wrapping_sub(1);
    last.wrapping_sub(u64::from((last as u32).wrapping_sub(low)))
}

/// The rules of requests that differ, when `drawn` numbers have been.
#[derive(Debug)]
pub(super) struct ByTarget<'a> {
    pub(super) requests: &'a Arc<Requests>,
    pub(super) drawn: u64,
}

impl Rulebook<Tag> for ByTarget<'_> {
    fn rules_of(&self, tag: &Tag) -> &Rules {
        &self.requests.targets[self.requests.index(self.drawn, tag.number)].rules
    }
}

/// What is remembered of the answers of each target.
#[derive(Debug)]
pub(super) struct HeadsByTarget<'a> {
    pub(super) heads: &'a mut [HeadMemory],
    pub(super) by: &'a ByTarget<'a>,
}

impl Memories<Tag> for HeadsByTarget<'_> {
    fn memory_of(&mut self, tag: &Tag) -> &mut HeadMemory {
        &mut self.heads[self.by.requests.index(self.by.drawn, tag.number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_by_its_lower_half() {
        const TURN: u64 = 1 << 32;
        for (drawn, wanted) in [
            (1, 0),
            (5, 4),
            (5, 0),
            (TURN, TURN - 1),
            (TURN + 1, TURN),
            (TURN + 1, TURN - 1),
            (7 * TURN + 3, 7 * TURN + 2),
            (7 * TURN + 3, 7 * TURN - 9),
            (7 * TURN + 3, 6 * TURN + 3),
        ] {
            assert_eq!(number(drawn, wanted as u32), wanted, "of {drawn}");
        }
    }
}
