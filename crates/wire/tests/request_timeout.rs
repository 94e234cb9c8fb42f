//! A 408 that comes while nothing is asked: the peer gives an idle connection up (RFC 9110 §15.5.9), however it is cut.

use proptest::prelude::*;
use trueload_wire::exchange::{
    Disposition, Ending, Exchange, InOrder, Outcome, PeerClose, RequestTimeout,
};
use trueload_wire::http1::client::Client;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::message::Rules;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// 408s as servers send them: with and without a close, and with every kind of body.
const TIMEOUTS: [&str; 6] = [
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    "HTTP/1.0 408 Request Time-out\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n<html>408</html>",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nslow",
    "HTTP/1.1 408 \r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n0\r\n\r\n",
    "HTTP/1.1 408 Request Timeout\r\n\r\n",
];

/// Bytes that nobody asked for, and that announce nothing.
const OTHERS: [&str; 9] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 408 Request Timeout\r\n\r\n",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: x\r\n\r\n",
    "HTTP/1.1 408\r\n",
    "\0",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\nHTTP/1.1 408 Request Timeout\r\n\r\n",
];

#[derive(Default)]
struct World {
    client: Client<u64>,
    rules: Rules,
    heads: Vec<HeadMemory>,
    endings: Vec<Ending>,
}

impl World {
    fn new(answered: bool) -> Self {
        let rules = Rules { idempotent: true, ..Rules::default() };
        let mut world = World { rules, ..World::default() };
        if answered {
            world.client.ask(1);
            world.receive(OK);
            world.endings.clear();
        }
        world
    }

    fn receive(&mut self, bytes: &[u8]) -> Disposition {
        let World { client, rules, heads, endings } = self;
        let mut on_outcome =
            |one: Outcome<u64>| endings.extend(std::iter::repeat_n(one.ending, one.count));
        client.handle_input(7, bytes, rules, heads, &mut on_outcome)
    }

    fn end(&mut self, end: PeerClose) {
        let World { client, rules, endings, .. } = self;
        client.handle_end(9, end, rules, &mut |one| endings.push(one.ending));
    }
}

/// The bytes in pieces that end at these places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.dedup();
    at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

proptest! {
    #[test]
    fn a_408_gives_an_idle_connection_up_however_it_is_cut(
        text in prop::sample::select(&TIMEOUTS[..]),
        answered: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut world = World::new(answered);
        let head = text.find("\r\n\r\n").expect("a head") + 4;
        let mut come = 0;
        for piece in pieces(text.as_bytes(), &cuts) {
            prop_assert_eq!(world.receive(piece), Disposition::Closing);
            come += piece.len();
            let expected = if come < head { RequestTimeout::Begun } else { RequestTimeout::Received };
            prop_assert_eq!(world.client.standing().request_timeout, expected, "{} bytes of {:?}", come, text);
        }
        world.end(PeerClose::Fin);
        prop_assert_eq!(world.endings, []);
    }

    #[test]
    fn all_other_bytes_are_unsolicited_however_they_are_cut(
        text in prop::sample::select(&OTHERS[..]),
        answered: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut world = World::new(answered);
        let mut links =
            pieces(text.as_bytes(), &cuts).into_iter().map(|piece| world.receive(piece));
        let link = links.find(|link| *link != Disposition::Closing);
        prop_assert_eq!(link, Some(Disposition::Unsolicited), "{:?}", text);
        prop_assert_eq!(world.client.standing().request_timeout, RequestTimeout::None);
    }

    #[test]
    fn any_bytes_behind_an_answer_are_a_408_or_unsolicited(bytes in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut world = World::new(true);
        let link = world.receive(&bytes);
        let begun = b"HTTP/1.".starts_with(&bytes[..bytes.len().min(7)]);
        prop_assert!(link == Disposition::Unsolicited || begun, "{:?}", bytes);
    }

    #[test]
    fn a_408_answers_what_is_outstanding_however_it_is_cut(
        text in prop::sample::select(&TIMEOUTS[..]),
        answered: bool,
        idempotent: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut world = World::new(answered);
        world.rules.idempotent = idempotent;
        world.client.ask(2);
        pieces(text.as_bytes(), &cuts).into_iter().for_each(|piece| { world.receive(piece); });
        world.end(PeerClose::Fin);
        // With a close, or ended by one, it may have been sent before the request was there.
        let closes = text.contains("close") || text.ends_with("Timeout\r\n\r\n");
        let expected = if closes && idempotent { Ending::StaleTimeout } else { Ending::Status };
        prop_assert_eq!(world.endings, [expected], "{:?}", text);
    }
}

#[test]
fn requests_that_have_not_begun_to_leave_go_again_when_the_peer_gives_up() {
    let mut world = World::new(true);
    (2..4).for_each(|tag| world.client.ask(tag));
    world.client.note_unsent(2);
    assert_eq!(world.receive(TIMEOUTS[0].as_bytes()), Disposition::Closing);
    assert_eq!(world.endings, [Ending::StaleBehind, Ending::StaleBehind]);
    assert_eq!(world.client.outstanding(), 0);
}

#[test]
fn a_reset_behind_the_head_of_a_408_is_no_worse_than_one_without() {
    for (come, ending) in [
        ("HTTP/1.1 408 Request Timeout\r\n\r\n", Ending::StaleReset),
        ("HTTP/1.1 408", Ending::Reset),
    ] {
        let mut world = World::new(true);
        world.client.ask(2);
        assert_eq!(world.receive(come.as_bytes()), Disposition::Open);
        world.end(PeerClose::Reset);
        assert_eq!(world.endings, [ending], "{come:?}");
    }
}

#[test]
fn a_used_machine_has_received_nothing() {
    let mut world = World::new(true);
    world.receive(TIMEOUTS[0].as_bytes());
    world.client.reset();
    assert_eq!(world.client.standing().request_timeout, RequestTimeout::None);
    world.client.ask(2);
    assert_eq!(world.receive(OK), Disposition::Open);
    assert_eq!(world.endings, [Ending::Ok]);
}
