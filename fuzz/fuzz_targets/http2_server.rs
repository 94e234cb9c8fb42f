//! Any bytes at a server of HTTP/2 that answers at once, or never: the same is told and said however the bytes were cut, and
//! every request is settled once. The first byte says which, and where the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::http2::frame::PREFACE;
use trueload_wire::http2::server::{Config, Event, Server};

/// SETTINGS without parameters: a client that says anything else first is not heard any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn heard(answers: bool, parts: &[&[u8]]) -> (Vec<Event<usize>>, Vec<u8>) {
    let config = Config { streams: 4, window: 65_535, enlarges: true };
    let (mut server, mut told, mut said) = (Server::new(config), Vec::new(), Vec::new());
    for part in [&PREFACE[..], &SETTINGS].into_iter().chain(parts.iter().copied()) {
        let mut rest = part;
        while let Some(event) = server.next(&mut rest, &mut said, &mut |head| head.target.len()) {
            told.push(event);
            if let Event::Request { stream, made } = event
                && answers
            {
                assert!(server.answer(stream, &[0x88], &vec![b'a'; made * 100], &mut said));
                assert!(!server.answer(stream, &[0x88], b"", &mut said), "once");
            }
        }
        assert!(rest.is_empty());
    }
    let count = |is: fn(&Event<usize>) -> bool| told.iter().filter(|event| is(event)).count();
    let requests = count(|event| matches!(event, Event::Request { .. }));
    let gone = count(|event| matches!(event, Event::Gone { .. }));
    let answered = if answers { requests } else { 0 };
    assert_eq!(requests, answered + gone + server.waiting());
    (told, said)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let answers = first & 1 > 0;
    let whole = heard(answers, &[bytes]);
    let cut = bytes.len() * usize::from(first / 16) / 16;
    let (one, two) = bytes.split_at(cut);
    assert_eq!(heard(answers, &[one, two]), whole, "cut at {cut}");
});
