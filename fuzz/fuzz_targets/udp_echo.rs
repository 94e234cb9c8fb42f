//! Any datagrams at a client that has asked 200 requests, with some of them given up in between: every request ends once,
//! every datagram is counted once. The first byte of a datagram is its length, or 255: the oldest request is given up.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::udp_echo::{Client, Counts};

const SIZE: usize = 20;
const ASKED: usize = 200;
const GIVEN_UP: u8 = 255;

fuzz_target!(|data: &[u8]| {
    let messages =
        Messages::new(b"abcdefghijklmnopqrst".as_slice().into(), SIZE).expect("a message");
    let mut client = Client::default();
    // Zeroes are what a fuzzer finds first: most of its datagrams are answers then.
    client.open([0; 8]);
    for tag in 0..ASKED {
        client.ask_alike(tag, 1);
    }
    client.write(ASKED, &messages, &mut Vec::new());
    let (mut endings, mut counts, mut delivered) = (Vec::new(), Counts::default(), 0);
    let mut left = data;
    while let Some((&head, rest)) = left.split_first() {
        let mut on_outcome = |outcome: Outcome<usize>| endings.push((outcome.tag, outcome.ending));
        left = rest;
        if head == GIVEN_UP {
            let oldest = client.next_timeout_ns(|tag| *tag as u64);
            let is_oldest = |tag: &usize| Some(*tag as u64) == oldest;
            let deadline_ns = |tag: &usize| if is_oldest(tag) { 2 } else { 3 };
            let _ = client.handle_timeout(2, deadline_ns, &mut Output::default(), &mut on_outcome);
        } else {
            let (datagram, behind) = rest.split_at(rest.len().min(usize::from(head)));
            client.handle_datagram(1, datagram, &messages, &mut counts, &mut on_outcome);
            delivered += 1;
            left = behind;
        }
        assert_eq!(client.outstanding(), ASKED - endings.len());
    }
    let lost = endings.iter().filter(|(_, ending)| *ending == Ending::Lost).count();
    let settled = (endings.len() - lost) as u64;
    let Counts { late, duplicated, unsolicited, reordered } = counts;
    assert_eq!(settled + late + duplicated + unsolicited, delivered);
    assert!(late <= lost as u64 && reordered <= settled);
    client.handle_end(3, PeerClose::Reset, &mut |outcome| {
        endings.push((outcome.tag, outcome.ending));
    });
    let mut tags: Vec<_> = endings.iter().map(|(tag, _)| *tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..ASKED).collect::<Vec<_>>());
});
