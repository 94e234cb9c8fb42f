//! Any bytes at the request parser, in one read and byte by byte; the first byte chooses the caps.

#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

use common::{LIMITS, SMALL, requests};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let limits = if choice & 1 == 0 { LIMITS } else { SMALL };
    let whole = requests([bytes], &limits).lines;
    let slow = requests(bytes.chunks(1), &limits);
    assert_eq!(slow.lines, whole, "byte by byte");
    let cap = limits.head_bytes.min(bytes.len());
    assert!(slow.held_bytes_max <= 2 * cap + 24, "memory stays bounded");
});
