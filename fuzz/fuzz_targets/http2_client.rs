//! Any bytes at a client of HTTP/2 that has asked requests, with and without bodies: every request ends once, and the same
//! way however the bytes were cut. The first byte says how many are asked, and where the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, PeerClose};
use trueload_wire::http2::client::{Client, Windows};
use trueload_wire::http2::request::Template;
use trueload_wire::message::{Rules, Texts};

/// SETTINGS without parameters: a peer that sends anything else first is not read any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn outcomes(
    asked: usize,
    body: Option<&[u8]>,
    parts: &[&[u8]],
) -> (Vec<(usize, Ending)>, Disposition) {
    let rules = Rules { idempotent: true, ..Rules::default() };
    let texts = Texts { method: "POST", path: "/", headers: &[], body };
    let template = Template::plain("http", &texts);
    let (mut client, mut endings, mut output) = (Client::default(), Vec::new(), Vec::new());
    client.reopen();
    client.open(Windows::RFC, &mut output);
    let mut on_outcome = |outcome: Outcome<usize>| endings.push((outcome.tag, outcome.ending));
    let mut link = client.handle_input(1, &SETTINGS, &rules, &mut output, &mut on_outcome);
    for tag in 0..asked {
        client.ask(tag);
    }
    for part in parts {
        output.clear();
        client.write(&template, 1 << 16, &mut output);
        assert!(output.len() <= 1 << 18);
        link = client.handle_input(2, part, &rules, &mut output, &mut on_outcome);
        if !matches!(link, Disposition::Open | Disposition::Draining) {
            break;
        }
    }
    client.handle_end(3, PeerClose::Fin, &rules, &mut on_outcome);
    assert_eq!(client.outstanding(), 0);
    (endings, link)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let asked = usize::from(first % 8);
    let body = (first & 8 > 0).then_some(&[0; 100][..]);
    let (whole, link) = outcomes(asked, body, &[bytes]);
    let mut tags: Vec<_> = whole.iter().map(|(tag, _)| *tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..asked).collect::<Vec<_>>());
    let cut = bytes.len() * usize::from(first / 16) / 16;
    let (one, two) = bytes.split_at(cut);
    assert_eq!(outcomes(asked, body, &[one, two]), (whole, link), "cut at {cut}");
});
