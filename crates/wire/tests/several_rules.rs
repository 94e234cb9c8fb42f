//! One connection whose requests differ: each answer is held against its own request's rules.

#![allow(missing_docs, clippy::expect_used)]

use trueload_wire::exchange::{End, Ending, Exchange, Heard, Link};
use trueload_wire::http1::client::{Client, Memories, Rulebook, Rules};
use trueload_wire::http1::response::HeadMemory;

/// Two kinds of requests; a tag is the number of its kind.
struct Kinds([Rules; 2]);

impl Rulebook<usize> for Kinds {
    fn rules_of(&self, tag: &usize) -> &Rules {
        &self.0[*tag]
    }
}

#[derive(Default)]
struct Heads([HeadMemory; 2]);

impl Memories<usize> for Heads {
    fn memory_of(&mut self, tag: &usize) -> &mut HeadMemory {
        &mut self.0[*tag]
    }
}

/// What becomes of requests of these kinds when such bytes come, split at every place.
fn heard(kinds: &Kinds, asked: &[usize], bytes: &[u8], fin: bool) -> (Vec<(usize, Ending)>, Link) {
    let mut first: Option<(Vec<(usize, Ending)>, Link)> = None;
    for cut in 0..=bytes.len() {
        let mut client = Client::default();
        let mut heads = Heads::default();
        asked.iter().for_each(|kind| client.ask(*kind));
        let mut endings = Vec::new();
        let mut hear = |heard: Heard<usize>| endings.push((heard.tag, heard.ending));
        let mut link = Link::Open;
        for part in [&bytes[..cut], &bytes[cut..]] {
            if matches!(link, Link::Open | Link::Closing) && !part.is_empty() {
                link = client.handle_input(7, part, kinds, &mut heads, &mut hear);
            }
        }
        if fin {
            client.handle_end(9, End::Fin, kinds, &mut hear);
        }
        let found = (endings, link);
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "cut at {cut}");
    }
    first.expect("at least one split")
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
const MISSING: &[u8] = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_head_request_among_others_has_no_body() {
    let kinds = Kinds([Rules::default(), Rules { head_request: true, ..Rules::default() }]);
    let bytes = [OK, HEAD, OK, HEAD].concat();
    let (endings, link) = heard(&kinds, &[0, 1, 0, 1], &bytes, false);
    assert_eq!(endings, [(0, Ending::Ok), (1, Ending::Ok), (0, Ending::Ok), (1, Ending::Ok)]);
    assert_eq!(link, Link::Open);
}

#[test]
fn each_answer_has_the_status_and_the_body_that_its_own_request_expects() {
    let missing = Rules { statuses: Some(vec![404]), ..Rules::default() };
    let kinds = Kinds([Rules { body: Some(b"ok".to_vec()), ..Rules::default() }, missing]);
    let (endings, _) = heard(&kinds, &[0, 1, 1, 0], &[OK, MISSING, OK, MISSING].concat(), false);
    let told: Vec<Ending> = endings.into_iter().map(|(_, ending)| ending).collect();
    assert_eq!(told, [Ending::Ok, Ending::Ok, Ending::Status, Ending::Status]);
}

#[test]
fn behind_an_announced_close_only_what_is_idempotent_may_be_sent_again() {
    let kinds = Kinds([Rules { idempotent: true, ..Rules::default() }, Rules::default()]);
    let (endings, link) = heard(&kinds, &[1, 0, 1, 0], LAST, false);
    let behind = [(0, Ending::StaleBehind), (1, Ending::ClosedPipelined), (0, Ending::StaleBehind)];
    assert_eq!(endings[0], (1, Ending::Ok));
    assert_eq!(endings[1..], behind);
    assert_eq!(link, Link::Closing);
}

#[test]
fn whether_a_request_is_stale_is_decided_by_its_own_method() {
    let kinds = Kinds([Rules { idempotent: true, ..Rules::default() }, Rules::default()]);
    for (kind, ending) in [(0, Ending::Stale), (1, Ending::Empty)] {
        let mut client = Client::default();
        let mut heads = Heads::default();
        let mut endings = Vec::new();
        let mut hear = |heard: Heard<usize>| endings.push(heard.ending);
        client.ask(1 - kind);
        client.handle_input(1, OK, &kinds, &mut heads, &mut hear);
        client.ask(kind);
        client.handle_end(2, End::Fin, &kinds, &mut hear);
        assert_eq!(endings, [Ending::Ok, ending]);
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
