//! Any bytes at a client of HTTP/2 that has asked requests, with and without bodies: every request ends once, and the same
//! way however the bytes were cut. The first byte says how many are asked, and where the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, PeerEnd};
use trueload_wire::http1::client::Rules;
use trueload_wire::http1::template::Texts;
use trueload_wire::http2::client::{Client, Windows};
use trueload_wire::http2::request::Template;

/// SETTINGS without parameters: a peer that says anything else first is not heard any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn heard(asked: usize, body: Option<&[u8]>, parts: &[&[u8]]) -> (Vec<(usize, Ending)>, Disposition) {
    let rules = Rules { idempotent: true, ..Rules::default() };
    let texts = Texts { method: "POST", path: "/", headers: &[], body };
    let template = Template::plain("http", &texts);
    let (mut client, mut endings, mut said) = (Client::default(), Vec::new(), Vec::new());
    client.reopen();
    client.open(Windows::RFC, &mut said);
    let mut hear = |heard: Outcome<usize>| endings.push((heard.tag, heard.ending));
    let mut link = client.handle_input(1, &SETTINGS, &rules, &mut said, &mut hear);
    for tag in 0..asked {
        client.ask(tag);
    }
    for part in parts {
        said.clear();
        client.write(&template, 1 << 16, &mut said);
        assert!(said.len() <= 1 << 18);
        link = client.handle_input(2, part, &rules, &mut said, &mut hear);
        if !matches!(link, Disposition::Open | Disposition::Draining) {
            break;
        }
    }
    client.handle_end(3, PeerEnd::Fin, &rules, &mut hear);
    assert_eq!(client.outstanding(), 0);
    (endings, link)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let asked = usize::from(first % 8);
    let body = (first & 8 > 0).then_some(&[0; 100][..]);
    let (whole, link) = heard(asked, body, &[bytes]);
    let mut tags: Vec<_> = whole.iter().map(|(tag, _)| *tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..asked).collect::<Vec<_>>());
    let cut = bytes.len() * usize::from(first / 16) / 16;
    let (one, two) = bytes.split_at(cut);
    assert_eq!(heard(asked, body, &[one, two]), (whole, link), "cut at {cut}");
});
