//! Any bytes from the server of a conversation, cut anywhere: each step ends once, and what is kept for steps to come
//! is bounded. The first byte chooses the cut, whether messages that no step expects are allowed, and whether the
//! server agrees to compression.

#![no_main]

#[path = "../../crates/wire/tests/websocket/talk.rs"]
mod talk;

use libfuzzer_sys::fuzz_target;
use talk::{AWAITED, MESSAGE, Play, SENT, UPGRADE};
use trueload_wire::exchange::{Disposition, Exchange};
use trueload_wire::message::Form;

const STEPS: [(Form, &str, &str); 6] = [
    (Form::Request, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""),
    (Form::Upgrade, UPGRADE, ""),
    (MESSAGE, "a", "b"),
    (AWAITED, "", "{"),
    (AWAITED, "", ""),
    (SENT, "bye", ""),
];

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    // A Sec-WebSocket-Accept cannot be guessed: half of the inputs begin behind the upgrade.
    let steps = if first & 2 == 0 { &STEPS[..] } else { &STEPS[1..] };
    let mut play = Play::offering(steps, first & 1 == 0, first & 4 != 0);
    if first & 2 == 0 {
        play.ask();
    } else {
        play.upgrade();
    }
    for piece in bytes.chunks(usize::from(first >> 3) + 1) {
        let mut heard = play.hear(piece);
        while heard == Disposition::Open
            && play.client.outstanding() == 0
            && play.next < steps.len()
        {
            heard = play.ask();
        }
        if heard != Disposition::Open {
            break;
        }
    }
    let mut ended: Vec<usize> = play.outcomes.iter().map(|one| one.tag).collect();
    ended.dedup();
    assert_eq!(ended.len(), play.outcomes.len(), "each step ends once");
    assert!(ended.iter().copied().eq(0..ended.len()), "in their order");
    assert!(ended.len() + play.client.outstanding() <= play.next, "none that was not asked");
    if first & 2 != 0 {
        // What is sent are legal frames.
        play.said();
    }
});
