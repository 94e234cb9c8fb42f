//! Any bytes in any split: the first eight bytes say where the rest is cut.

#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use common::{Asked, LIMITS, cut, requests, responses};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((places, bytes)) = data.split_first_chunk::<8>() else {
        return;
    };
    let cuts: Vec<usize> = places.iter().map(|&place| usize::from(place)).collect();
    let asked = Asked { responses: 3, head_request: false, limits: LIMITS };
    let whole = responses([bytes], asked);
    assert_eq!(responses(cut(bytes, &cuts), asked).lines, whole.lines, "responses");
    let whole = requests([bytes], &LIMITS);
    assert_eq!(requests(cut(bytes, &cuts), &LIMITS).lines, whole.lines, "requests");
});
