//! Any bytes at a server of HTTP/2 that answers at once, or never: events and output are the same
//! however the bytes were cut, and every request is settled once. With little room for its output, no
//! more waits than that and what one answer takes. The first byte says which, and where the rest is
//! cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::http2::frame::PREFACE;
use trueload_wire::http2::server::{Config, Event, Server};

/// SETTINGS without parameters: a client that sends anything else first is not read any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The most that answers can have: larger than the first window of a connection.
static BODY: [u8; 100_000] = [b'a'; 100_000];
const WINDOW: usize = 65_535;
/// Output that is no body: answers to frames of the input, of which there are 1,024 bytes at most.
const OTHER: usize = 1 << 16;

fn run(answers: bool, room: usize, parts: &[&[u8]]) -> (Vec<Event<usize>>, Vec<u8>) {
    let config = Config { streams: 4, window: 65_535, enlarges: true };
    let (mut server, mut events, mut output) = (Server::new(config), Vec::new(), Vec::new());
    let (mut answered, mut sent) = (0, Vec::new());
    for part in [&PREFACE[..], &SETTINGS].into_iter().chain(parts.iter().copied()) {
        let mut rest = part;
        server.set_room(room);
        while let Some(event) = server.next(&mut rest, &mut output, &mut |head| head.target.len()) {
            events.push(event);
            if let Event::Request { stream, made } = event
                && answers
                && output.len() < room
            {
                let body = &BODY[..(made * 100).min(BODY.len())];
                assert!(server.answer(stream, &[0x88], body, &mut output));
                assert!(!server.answer(stream, &[0x88], b"", &mut output), "once");
                answered += 1;
            }
        }
        assert!(rest.is_empty());
        assert!(output.len() <= room.saturating_add(WINDOW + OTHER), "{}", output.len());
        while server.is_full() {
            sent.append(&mut output);
            server.go_on(&mut output);
        }
        sent.append(&mut output);
    }
    let count = |is: fn(&Event<usize>) -> bool| events.iter().filter(|event| is(event)).count();
    let requests = count(|event| matches!(event, Event::Request { .. }));
    let gone = count(|event| matches!(event, Event::Gone { .. }));
    assert_eq!(requests, answered + gone + server.waiting());
    (events, sent)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let (answers, is_narrow) = (first & 1 > 0, first & 2 > 0);
    let cut = bytes.len() * usize::from(first / 16) / 16;
    let (one, two) = bytes.split_at(cut);
    if is_narrow {
        // What has been sent when a reset comes depends on the reads.
        run(answers, 1_000, &[one, two]);
    } else {
        let whole = run(answers, usize::MAX, &[bytes]);
        assert_eq!(run(answers, usize::MAX, &[one, two]), whole, "cut at {cut}");
    }
});
