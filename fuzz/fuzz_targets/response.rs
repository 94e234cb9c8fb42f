//! Any bytes at the response parser, in one read and byte by byte; the first byte chooses what is asked.

#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use common::{Asked, LIMITS, SMALL, responses, responses_remembering};
use libfuzzer_sys::fuzz_target;
use trueload_wire::http1::response::HeadMemory;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let limits = if choice & 2 == 0 { LIMITS } else { SMALL };
    let asked = Asked {
        responses: 1 + usize::from(choice >> 2 & 3),
        head_request: choice & 1 == 1,
        limits,
    };
    let whole = responses([bytes], asked).lines;
    let mut memory = HeadMemory::default();
    for _ in 0..2 {
        let again = responses_remembering([bytes], asked, Some(&mut memory));
        assert_eq!(again.lines, whole, "heard before");
    }
    let slow = responses(bytes.chunks(1), asked);
    assert_eq!(slow.lines, whole, "byte by byte");
    assert!(slow.held_bytes_max <= 24, "a response is never buffered");
});
