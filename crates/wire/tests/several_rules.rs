//! One connection whose requests differ: each answer is held against its own request's rules.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, PeerClose};
use trueload_wire::http1::client::Client;
use trueload_wire::message::{Book, Rules};

/// Two kinds of requests; a tag is the number of its kind.
struct Kinds([Rules; 2]);

impl Book<usize> for Kinds {
    fn rules_of(&self, tag: &usize) -> &Rules {
        &self.0[*tag]
    }

    fn memory_of(&self, tag: &usize) -> usize {
        *tag
    }
}

type Outcomes = (Vec<(usize, Ending)>, Disposition);

/// What becomes of requests of these kinds when such parts come.
fn outcomes_in<'a>(
    kinds: &Kinds,
    asked: &[usize],
    parts: impl IntoIterator<Item = &'a [u8]>,
    fin: bool,
) -> Outcomes {
    let mut client = Client::default();
    let mut heads = Vec::new();
    asked.iter().for_each(|kind| client.ask(*kind));
    let mut endings = Vec::new();
    let mut on_outcome = |outcome: Outcome<usize>| {
        endings.extend(std::iter::repeat_n((outcome.tag, outcome.ending), outcome.count));
    };
    let mut link = Disposition::Open;
    for part in parts {
        if matches!(link, Disposition::Open | Disposition::Closing) && !part.is_empty() {
            link = client.handle_input(7, part, kinds, &mut heads, &mut on_outcome);
        }
    }
    if fin {
        client.handle_end(9, PeerClose::Fin, kinds, &mut on_outcome);
    }
    (endings, link)
}

/// The same byte by byte, where nothing is told from its repetition, and split at every place.
fn outcomes(kinds: &Kinds, asked: &[usize], bytes: &[u8], fin: bool) -> Outcomes {
    let slow = outcomes_in(kinds, asked, bytes.chunks(1), fin);
    for cut in 0..=bytes.len() {
        let split = outcomes_in(kinds, asked, [&bytes[..cut], &bytes[cut..]], fin);
        assert_eq!(split, slow, "cut at {cut}");
    }
    slow
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
const MISSING: &[u8] = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
const INTERIM: &[u8] = b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_head_request_among_others_has_no_body() {
    let kinds = Kinds([Rules::default(), Rules { head_request: true, ..Rules::default() }]);
    let bytes = [OK, HEAD, OK, HEAD].concat();
    let (endings, link) = outcomes(&kinds, &[0, 1, 0, 1], &bytes, false);
    assert_eq!(endings, [(0, Ending::Ok), (1, Ending::Ok), (0, Ending::Ok), (1, Ending::Ok)]);
    assert_eq!(link, Disposition::Open);
}

#[test]
fn each_answer_has_the_status_and_the_body_that_its_own_request_expects() {
    let missing = Rules { statuses: Some(vec![404]), ..Rules::default() };
    let kinds = Kinds([Rules { body: Some(b"ok".to_vec()), ..Rules::default() }, missing]);
    let (endings, _) = outcomes(&kinds, &[0, 1, 1, 0], &[OK, MISSING, OK, MISSING].concat(), false);
    let found: Vec<Ending> = endings.into_iter().map(|(_, ending)| ending).collect();
    assert_eq!(found, [Ending::Ok, Ending::Ok, Ending::Status, Ending::Status]);
}

#[test]
fn behind_an_announced_close_only_what_is_idempotent_may_be_sent_again() {
    let kinds = Kinds([Rules { idempotent: true, ..Rules::default() }, Rules::default()]);
    let (endings, link) = outcomes(&kinds, &[1, 0, 1, 0], LAST, false);
    let behind = [(0, Ending::StaleBehind), (1, Ending::ClosedPipelined), (0, Ending::StaleBehind)];
    assert_eq!(endings[0], (1, Ending::Ok));
    assert_eq!(endings[1..], behind);
    assert_eq!(link, Disposition::Closing);
}

#[test]
fn whether_a_request_is_stale_is_decided_by_its_own_method() {
    let kinds = Kinds([Rules { idempotent: true, ..Rules::default() }, Rules::default()]);
    for (kind, ending) in [(0, Ending::Stale), (1, Ending::Empty)] {
        let mut client = Client::default();
        let mut heads = Vec::new();
        let mut endings = Vec::new();
        let mut on_outcome = |outcome: Outcome<usize>| endings.push(outcome.ending);
        client.ask(1 - kind);
        client.handle_input(1, OK, &kinds, &mut heads, &mut on_outcome);
        client.ask(kind);
        client.handle_end(2, PeerClose::Fin, &kinds, &mut on_outcome);
        assert_eq!(endings, [Ending::Ok, ending]);
    }
}

#[test]
fn a_reset_may_be_a_close_only_where_nothing_of_the_one_answer_has_come() {
    let kinds = Kinds([Rules { idempotent: true, ..Rules::default() }, Rules::default()]);
    for (sentence, answered, asked, come, endings) in [
        ("a reused connection", true, &[0][..], &b""[..], &[Ending::StaleReset][..]),
        ("a fresh connection", false, &[0], b"", &[Ending::UnusedReset]),
        ("not idempotent", true, &[1], b"", &[Ending::Reset]),
        ("a byte of the answer", true, &[0], b"H", &[Ending::Reset]),
        ("an interim answer", true, &[0], b"HTTP/1.1 100 \r\n\r\n", &[Ending::Reset]),
        ("one behind another", true, &[0, 0], b"", &[Ending::Reset, Ending::Reset]),
    ] {
        let mut client = Client::default();
        let mut heads = Vec::new();
        let mut found = Vec::new();
        let mut on_outcome = |one: Outcome<usize>| found.push(one.ending);
        if answered {
            client.ask(0);
            client.handle_input(1, OK, &kinds, &mut heads, &mut on_outcome);
        }
        asked.iter().for_each(|kind| client.ask(*kind));
        client.handle_input(2, come, &kinds, &mut heads, &mut on_outcome);
        client.handle_end(3, PeerClose::Reset, &kinds, &mut on_outcome);
        assert_eq!(&found[usize::from(answered)..], endings, "{sentence}");
    }
}

proptest! {
    #[test]
    fn answers_that_repeat_are_read_as_if_each_came_alone(
        asked in vec(select(&[0, 0, 0, 1][..]), 0..12),
        answers in vec((select(&[OK, OK, HEAD, MISSING, INTERIM, LAST][..]), 1..5_usize), 1..5),
        expected in select(&[None, Some("ok"), Some("no")][..]),
        damage in (any::<Index>(), select(&b"\r\n0k: H"[..])),
        damaged in any::<bool>(),
        fin in any::<bool>(),
    ) {
        let first = Rules { body: expected.map(Vec::from), idempotent: true, ..Rules::default() };
        let kinds = Kinds([first, Rules { head_request: true, ..Rules::default() }]);
        let mut bytes = answers.iter().flat_map(|(answer, times)| answer.repeat(*times)).collect::<Vec<u8>>();
        if damaged {
            let at = damage.0.index(bytes.len());
            bytes[at] = damage.1;
        }
        outcomes(&kinds, &asked, &bytes, fin);
    }
}

#[test]
fn the_requests_asked_last_are_told_in_their_order() {
    let mut client = Client::default();
    (0..4).for_each(|tag| client.ask(tag));
    let newest = |count| client.newest(count).copied().collect::<Vec<i32>>();
    assert_eq!(newest(0), [0; 0]);
    assert_eq!(newest(3), [1, 2, 3]);
}
