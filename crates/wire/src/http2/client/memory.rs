//! Remembered header blocks and their meaning. A server under load repeats the same few, and
//! comparing bytes costs a fraction of decoding.
//!
//! How it works: a block without references to the dynamic table always means the same. It may
//! insert fields without ever referring to them, as nginx does each time. Such insertions are only
//! noted, and made up for before the next block that must be decoded. A block that refers to the
//! table means the same as long as the table is unchanged.
//!
//! Must not know: the rules for a header section, and which stream a block came on.

use super::answer::Head;
use crate::http2::hpack::{self, ENTRY_BYTES, shape};

/// The maximum number of blocks that are remembered.
const KNOWN_MOST: usize = 4;
/// A longer block is rare and changes more often.
const BLOCK_BYTES_MOST: usize = 1024;

#[derive(Debug)]
struct Known {
    block: Box<[u8]>,
    head: Head,
    /// The bytes of its names and values.
    plain: u32,
    /// The generation of the table when the block was decoded; none if the block does not refer to
    /// the table.
    generation: Option<u64>,
    inserts: u32,
}

/// The header blocks of one connection.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    decoder: hpack::Decoder,
    known: Vec<Known>,
    /// The index at which the next block is stored.
    turn: usize,
    /// The table size that was announced to the peer, until it acknowledges it.
    announced: Option<u32>,
    /// The known blocks that came since the last decoding and were not decoded: their indices and
    /// counts, in order.
    missed: Vec<(usize, u32)>,
}

impl Blocks {
    /// Announces to the peer that the table may have `table_bytes`.
    pub(super) fn announce(&mut self, table_bytes: u32) {
        if table_bytes != hpack::TABLE_BYTES {
            self.announced = Some(table_bytes);
            self.decoder.announce(table_bytes);
        }
    }

    /// Notes that the peer has acknowledged the announcement.
    #[inline]
    pub(super) fn acknowledged(&mut self) -> Result<(), hpack::Error> {
        let Some(table_bytes) = self.announced.take() else { return Ok(()) };
        self.catch_up()?;
        // If the table must shrink, the next block has to resize it. So no block may be treated as
        // known.
        self.known.clear();
        self.turn = 0;
        self.decoder.acknowledged(table_bytes);
        Ok(())
    }

    /// The meaning of a block and the size of its names and values, if the block is remembered.
    #[inline]
    pub(super) fn recognise(&mut self, block: &[u8]) -> Option<(Head, u32)> {
        let same = |known: &Known| {
            *known.block == *block
                && known.generation.is_none_or(|generation| {
                    self.missed.is_empty() && generation == self.decoder.generation()
                })
        };
        let place = self.known.iter().position(same)?;
        let Known { head, plain, inserts, .. } = self.known[place];
        if inserts > 0 {
            match self.missed.last_mut() {
                Some((last, count)) if *last == place => *count = count.saturating_add(1),
                _ => self.note_missed(place),
            }
        }
        Some((head, plain))
    }

    pub(super) fn decode(
        &mut self,
        block: &[u8],
        list_bytes_max: usize,
        on_field: &mut impl FnMut(hpack::Field<'_>),
    ) -> Result<(), hpack::Error> {
        self.catch_up()?;
        self.decoder.decode(block, list_bytes_max, on_field)
    }

    /// Remembers the meaning of the block that was just decoded, and the size of its names and
    /// values.
    pub(super) fn remember(&mut self, block: &[u8], head: Head, plain: u32) {
        let Some(shape) = shape(block).filter(|_| block.len() <= BLOCK_BYTES_MOST) else { return };
        if shape.refers && shape.inserts > 0 {
            // Its insertions change the meaning of its indices.
            return;
        }
        let generation = shape.refers.then(|| self.decoder.generation());
        let (block, inserts) = (block.into(), shape.inserts);
        let known = Known { block, head, plain, generation, inserts };
        // A block that depends on another generation will never match again, so it can be replaced.
        let stale = self.known.iter().position(|before| {
            before.generation.is_some_and(|before| before != self.decoder.generation())
        });
        match stale {
            Some(place) => self.known[place] = known,
            None if self.known.len() < KNOWN_MOST => self.known.push(known),
            None => {
                self.known[self.turn] = known;
                self.turn = (self.turn + 1) % KNOWN_MOST;
            }
        }
    }

    /// This many insertions leave nothing of the table's earlier content.
    fn inserts_most(&self) -> usize {
        self.decoder.table_bytes_most() / ENTRY_BYTES + 1
    }

    #[cold]
    fn note_missed(&mut self, place: usize) {
        // For alternating blocks: insertions older than a whole table have left nothing in it.
        let inserts_most = self.inserts_most();
        if self.missed.len() > 2 * inserts_most {
            self.missed.drain(..inserts_most);
        }
        self.missed.push((place, 1));
    }

    /// Decodes the blocks that were only recognised.
    fn catch_up(&mut self) -> Result<(), hpack::Error> {
        let inserts_most = self.inserts_most();
        for (place, count) in self.missed.drain(..) {
            let Known { block, inserts, .. } = &self.known[place];
            for _ in 0..(count as usize).min(inserts_most.div_ceil(*inserts as usize)) {
                self.decoder.decode(block, usize::MAX, &mut |_| {})?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http2::hpack::{Encoder, Indexing};

    type List = Vec<(Vec<u8>, Vec<u8>)>;

    /// Blocks of a server, and what they are to mean.
    fn block(encoder: &mut Encoder, which: u8) -> (Vec<u8>, List) {
        let indexing = match which % 3 {
            0 => Indexing::Insert,
            1 => Indexing::Without,
            _ => Indexing::Never,
        };
        let value = [b'a' + which; 90];
        let fields = [(b":status".to_vec(), b"200".to_vec()), (b"x".to_vec(), value.to_vec())];
        let mut out = Vec::new();
        encoder.begin_block(&mut out);
        fields.iter().for_each(|(name, value)| encoder.field(&mut out, name, value, indexing));
        (out, fields.to_vec())
    }

    #[test]
    fn a_block_that_only_inserts_is_recognised_and_the_table_is_made_up_for() {
        let inserting = [&[0x88, 0x76, 60][..], &[b'x'; 60]].concat();
        let head = Head { status: 200, ..Head::default() };
        // 98 bytes each: so many have room.
        for (table_bytes, room) in [(4096, 41), (2048, 20), (5880, 60)] {
            let mut blocks = Blocks::default();
            blocks.announce(table_bytes);
            blocks.acknowledged().expect("nothing was left to be decoded");
            let mut resizing = Vec::new();
            let mut encoder = Encoder::new(4096);
            encoder.resize(table_bytes);
            encoder.begin_block(&mut resizing);
            blocks.decode(&resizing, 1 << 20, &mut |_| {}).expect("a change of size");
            for _ in 0..200 {
                if blocks.recognise(&inserting) != Some((head, 7)) {
                    blocks.decode(&inserting, 1 << 20, &mut |_| {}).expect("a block");
                    blocks.remember(&inserting, head, 7);
                }
            }
            let mut decoded = 0;
            blocks
                .decode(&[0x80 | (61 + room)], 1 << 20, &mut |field| decoded += field.value.len())
                .expect("a block");
            assert_eq!(decoded, 60);
            let beyond = blocks.decode(&[0x80 | (61 + room + 1)], 1 << 20, &mut |_| {});
            beyond.expect_err("beyond the table");
        }
    }

    proptest! {
        #[test]
        fn a_recognised_block_means_the_same_as_when_it_is_decoded(
            which in prop::collection::vec(0u8..7, 1..300),
            inserts_only in any::<bool>(),
        ) {
            let mut encoder = Encoder::new(4096);
            let (mut blocks, mut model) = (Blocks::default(), hpack::Decoder::default());
            for which in which {
                // Without a table of its own an encoder inserts the same again and again.
                let mut fresh = Encoder::new(4096);
                let encoder = if inserts_only { &mut fresh } else { &mut encoder };
                let (bytes, fields) = block(encoder, which);
                let length = Some(u64::from(which));
                let expected = Head { status: 200, length, ..Head::default() };
                let mut decoded = Vec::new();
                model
                    .decode(&bytes, 1 << 20, &mut |field| {
                        decoded.push((field.name.to_vec(), field.value.to_vec()));
                    })
                    .expect("a block");
                prop_assert_eq!(&decoded, &fields);
                match blocks.recognise(&bytes) {
                    Some(found) => prop_assert_eq!(found, (expected, which.into())),
                    None => {
                        let mut decoded = Vec::new();
                        blocks
                            .decode(&bytes, 1 << 20, &mut |field| {
                                decoded.push((field.name.to_vec(), field.value.to_vec()));
                            })
                            .expect("a block");
                        prop_assert_eq!(&decoded, &fields);
                        blocks.remember(&bytes, expected, which.into());
                    }
                }
            }
        }
    }
}
