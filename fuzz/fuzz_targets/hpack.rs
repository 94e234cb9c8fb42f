//! Any bytes as blocks of fields: they are decoded within the cap or refused, a block under the same generation says the same
//! again, and what was decoded comes back when it is encoded. The first byte says where the first block ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::http2::hpack::{Decoder, ENTRY_BYTES, Encoder, Error, Indexing};

const LIST_BYTES: usize = 4096;

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let (mut list, mut size) = (List::new(), 0);
    let outcome = decoder.decode(block, LIST_BYTES, &mut |field| {
        size += field.name.len() + field.value.len() + ENTRY_BYTES;
        list.push((field.name.into(), field.value.into()));
    });
    assert!(size <= LIST_BYTES);
    outcome.map(|()| list)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let (one, two) = bytes.split_at(bytes.len() * usize::from(first) / 256);
    let (mut decoder, mut back, mut encoder) =
        (Decoder::default(), Decoder::default(), Encoder::new(256));
    for block in [one, two] {
        let before = decoder.generation();
        let Ok(list) = decode(&mut decoder, block) else { return };
        if decoder.generation() == before {
            assert_eq!(decode(&mut decoder, block).as_ref(), Ok(&list));
        }
        assert!(decoder.heap_bytes() < 1 << 20);
        for indexing in [Indexing::Insert, Indexing::Without, Indexing::Never] {
            let mut encoded = Vec::new();
            encoder.begin_block(&mut encoded);
            for (name, value) in &list {
                encoder.field(&mut encoded, name, value, indexing);
            }
            assert_eq!(decode(&mut back, &encoded).as_ref(), Ok(&list));
        }
    }
});
