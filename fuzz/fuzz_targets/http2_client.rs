//! Any bytes at a client of HTTP/2 that has asked requests, with and without bodies: every request ends once, and the same
//! way however the bytes were cut. The first byte says how many are asked, and where the rest is cut.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, PeerClose};
use trueload_wire::http2::client::{Client, Windows};
use trueload_wire::http2::request::Template;
use trueload_wire::message::{self, Book, Head, Rules, Texts};

/// SETTINGS without parameters: a peer that sends anything else first is not read any further.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Always the same request.
struct Same(Template, Rules);

impl Book<usize> for Same {
    fn rules_of(&self, _: &usize) -> &Rules {
        &self.1
    }

    fn write_block(&self, _: &usize, out: &mut Vec<u8>) -> Head {
        self.0.write_block(&(), out)
    }

    fn write_body(&self, _: &usize, part: Range<u64>, out: &mut Vec<u8>) {
        self.0.write_body(&(), part, out);
    }
}

fn outcomes(
    asked: usize,
    body: Option<&[u8]>,
    parts: &[&[u8]],
) -> (Vec<(usize, Ending)>, Disposition) {
    let rules = Rules { idempotent: true, ..Rules::default() };
    let texts = Texts { method: "POST", path: "/", headers: &[], body };
    let request = message::Template::new(&texts, None);
    let same = Same(Template::of("http", &request), rules);
    let (mut client, mut endings, mut output) = (Client::default(), Vec::new(), Vec::new());
    client.open(Windows::RFC, &mut output);
    let mut on_outcome = |outcome: Outcome<usize>| endings.push((outcome.tag, outcome.ending));
    let mut link = client.handle_input(1, &SETTINGS, &same, &mut output, &mut on_outcome);
    for tag in 0..asked {
        client.ask(tag);
    }
    for part in parts {
        output.clear();
        client.write(&same, 1 << 16, &mut output);
        assert!(output.len() <= 1 << 18);
        link = client.handle_input(2, part, &same, &mut output, &mut on_outcome);
        if !matches!(link, Disposition::Open | Disposition::Draining) {
            break;
        }
    }
    client.handle_end(3, PeerClose::Fin, &same, &mut on_outcome);
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
