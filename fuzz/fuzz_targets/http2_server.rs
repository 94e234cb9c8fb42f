//! Any bytes at a server of HTTP/2 that answers at once, or never: events and output are the same
//! however the bytes were cut, and every request is settled once. The first byte says which, and
//! where the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::http2::frame::PREFACE;
use trueload_wire::http2::server::{Config, Event, Server};

/// SETTINGS without parameters: a client that sends anything else first is not read any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn run(answers: bool, parts: &[&[u8]]) -> (Vec<Event<usize>>, Vec<u8>) {
    let config = Config { streams: 4, window: 65_535, enlarges: true };
    let (mut server, mut events, mut output) = (Server::new(config), Vec::new(), Vec::new());
    for part in [&PREFACE[..], &SETTINGS].into_iter().chain(parts.iter().copied()) {
        let mut rest = part;
        while let Some(event) = server.next(&mut rest, &mut output, &mut |head| head.target.len()) {
            events.push(event);
            if let Event::Request { stream, made } = event
                && answers
            {
                assert!(server.answer(stream, &[0x88], &vec![b'a'; made * 100], &mut output));
                assert!(!server.answer(stream, &[0x88], b"", &mut output), "once");
            }
        }
        assert!(rest.is_empty());
    }
    let count = |is: fn(&Event<usize>) -> bool| events.iter().filter(|event| is(event)).count();
    let requests = count(|event| matches!(event, Event::Request { .. }));
    let gone = count(|event| matches!(event, Event::Gone { .. }));
    let answered = if answers { requests } else { 0 };
    assert_eq!(requests, answered + gone + server.waiting());
    (events, output)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let answers = first & 1 > 0;
    let whole = run(answers, &[bytes]);
    let cut = bytes.len() * usize::from(first / 16) / 16;
    let (one, two) = bytes.split_at(cut);
    assert_eq!(run(answers, &[one, two]), whole, "cut at {cut}");
});
