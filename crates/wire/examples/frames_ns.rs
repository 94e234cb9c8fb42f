//! Prints what frames cost: `cargo run --release -p trueload-wire --example frames_ns`.
//!
//! Frames of 300 bytes, as a client receives broadcasts: in large reads, cut anywhere, and one in
//! each read; and as servers receive from clients, masked.

use std::hint::black_box;
use std::time::Instant;

use trueload_wire::websocket::{Event, Kind, Limits, Receiver, Role, Scratch, mask, send};

const FRAMES: usize = 4000;
const ROUNDS: usize = 500;
const PAYLOAD_BYTES: usize = 300;

fn main() {
    println!("a receiver takes {} bytes", size_of::<Receiver>());
    for (what, kind) in [("text", Kind::Text), ("binary", Kind::Binary)] {
        for (role, key) in [(Role::Client, None), (Role::Server, Some([1, 2, 3, 4]))] {
            for read_bytes in [256 * 1024, 64 * 1024, 4096] {
                let ns = receiving_ns(kind, role, key, read_bytes);
                println!(
                    "{what:>8} to a {role:?}, reads of {:>3} KiB: {ns:6.1} ns a frame",
                    read_bytes >> 10
                );
            }
        }
        let one = 4 + PAYLOAD_BYTES;
        println!(
            "{what:>8} to a Client, one in each read: {:6.1} ns a frame",
            receiving_ns(kind, Role::Client, None, one)
        );
    }
    for (what, key) in [("written", None), ("written and masked", Some([1, 2, 3, 4]))] {
        println!("{what:>22}: {:6.1} ns a frame", written_ns(key));
    }
    let mut bytes = vec![0; 64 * 1024];
    let start = Instant::now();
    (0..10_000).for_each(|_| mask::apply(black_box(&mut bytes), [1, 2, 3, 4], 0));
    let each = start.elapsed().as_nanos() as f64 / (10_000.0 * 64.0);
    println!("               masking: {each:6.1} ns a KiB");
}

fn receiving_ns(kind: Kind, role: Role, key: Option<[u8; 4]>, read_bytes: usize) -> f64 {
    let mut wire = Vec::new();
    (0..FRAMES).for_each(|_| send::message(&mut wire, kind, &[b'x'; PAYLOAD_BYTES], key));
    let mut receiver = Receiver::new(role);
    let mut scratch = Scratch::default();
    let limits = Limits::default();
    let mut received = 0;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for read in wire.chunks(read_bytes) {
            let fed = receiver.feed(black_box(read), &limits, &mut scratch, &mut |event| {
                if let Event::Message { payload, .. } = event {
                    received += black_box(payload).len();
                }
            });
            assert!(fed.is_ok());
        }
    }
    let elapsed = start.elapsed();
    assert_eq!(received, ROUNDS * FRAMES * PAYLOAD_BYTES);
    elapsed.as_nanos() as f64 / (ROUNDS * FRAMES) as f64
}

fn written_ns(key: Option<[u8; 4]>) -> f64 {
    let mut out = Vec::new();
    let payload = [b'x'; PAYLOAD_BYTES];
    let start = Instant::now();
    for _ in 0..ROUNDS {
        out.clear();
        (0..FRAMES).for_each(|_| send::message(&mut out, Kind::Text, black_box(&payload), key));
        black_box(&out);
    }
    start.elapsed().as_nanos() as f64 / (ROUNDS * FRAMES) as f64
}
