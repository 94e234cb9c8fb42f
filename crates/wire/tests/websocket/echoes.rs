//! The client of an echo: what came before a request was sent is none of its answer.

use std::sync::Arc;

use trueload_wire::chance::Chance;
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::message;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::{Client, Outgoing, Shared};
use trueload_wire::websocket::{Kind, Limits, server};

/// An upgraded connection whose messages are `abcd`, `efgh`, …
struct World {
    shared: Shared,
    client: Client<u32>,
    now_ns: u64,
    outcomes: Vec<Outcome<u32>>,
}

impl World {
    fn upgraded() -> Self {
        let headers = [("Host".to_owned(), "localhost".to_owned())];
        let opening = Opening::new("/", &headers).expect("no header of the handshake's own");
        let messages = Messages::new(Arc::from(*b"abcdefgh"), 4).expect("two messages");
        let outgoing = Outgoing::Plain(messages, Kind::Text);
        let mut shared = Shared::new(opening, outgoing, Limits::default(), Chance::new(7));
        let (mut client, mut asked) = (Client::default(), Vec::new());
        client.open(&mut shared, 0, &mut asked);
        let mut world = World { shared, client, now_ns: 0, outcomes: Vec::new() };
        assert_eq!(world.receive(&answer_to(&asked)), Disposition::Open);
        world
    }

    /// Bytes that come a nanosecond later.
    fn receive(&mut self, bytes: &[u8]) -> Disposition {
        self.now_ns += 1;
        let World { shared, client, now_ns, outcomes } = self;
        client.handle_input(*now_ns, bytes, shared, &mut Vec::new(), &mut |one| outcomes.push(one))
    }

    fn ask(&mut self, tag: u32) {
        self.client.ask(tag);
        self.client.wait_to_write(1);
        self.client.write(&mut self.shared, usize::MAX, &mut Vec::new());
    }
}

fn answer_to(request: &[u8]) -> Vec<u8> {
    let (mut opening, mut answer) = (server::Opening::default(), Vec::new());
    let taken = opening.feed(request, &message::Limits::default());
    assert_eq!(taken, Ok(Some(request.len())));
    opening.judge().expect("a handshake").write(None, &mut answer);
    answer
}

#[test]
fn a_message_that_begins_before_its_request_is_unsolicited_at_its_first_byte() {
    for (sentence, begun) in [
        ("half a head", &b"\x81"[..]),
        ("a head", b"\x81\x04"),
        ("a part of its payload", b"\x81\x04ab"),
        ("a part of its payload behind a ping", b"\x89\0\x81\x04ab"),
        ("a fragment", b"\x01\x02ab"),
        ("a fragment, and a ping behind it", b"\x01\x02ab\x89\0"),
    ] {
        let mut world = World::upgraded();
        assert_eq!(world.receive(begun), Disposition::Unsolicited, "{sentence}");
        assert_eq!(world.outcomes, [], "{sentence}");
    }
}

#[test]
fn what_is_not_written_yet_is_not_answered() {
    for (sentence, come) in [
        ("its echo", &b"\x81\x04abcd"[..]),
        ("a part of it", b"\x81\x04ab"),
        ("bytes that are no frame", b"\xff\xff"),
    ] {
        let mut world = World::upgraded();
        for tag in 1..=2 {
            world.client.ask(tag);
            world.client.wait_to_write(1);
        }
        assert_eq!(world.receive(come), Disposition::Unsolicited, "{sentence}");
        let ended: Vec<_> = world.outcomes.iter().map(|one| (one.tag, one.ending)).collect();
        let closed = Ending::ClosedPipelined;
        assert_eq!(ended, [(1, closed), (2, closed)], "{sentence}");
        assert!(!world.client.waits_to_write(), "{sentence}: nothing of it is written any more");
    }
}

#[test]
fn messages_are_written_whole_until_there_are_enough_bytes_and_in_order() {
    let mut world = World::upgraded();
    for tag in 1..=5 {
        world.client.ask(tag);
    }
    world.client.wait_to_write(5);
    // A frame is 10 bytes: a head of 2, a key and a message of 4.
    for (enough, written, more) in [(0, 0, true), (1, 10, true), (11, 20, true), (99, 20, false)] {
        let mut out = Vec::new();
        world.client.write(&mut world.shared, enough, &mut out);
        assert_eq!((out.len(), world.client.waits_to_write()), (written, more), "{enough}");
    }
    let echoes = b"\x81\x04abcd\x81\x04efgh\x81\x04abcd\x81\x04efgh\x81\x04abcd";
    assert_eq!(world.receive(echoes), Disposition::Open);
    let ended: Vec<_> = world.outcomes.iter().map(|one| (one.tag, one.ending)).collect();
    assert_eq!(ended, (1..=5).map(|tag| (tag, Ending::Ok)).collect::<Vec<_>>());
}

#[test]
fn a_control_frame_may_come_in_parts_at_any_time_and_is_no_first_byte_of_an_answer() {
    let mut world = World::upgraded();
    assert_eq!(world.receive(b"\x89"), Disposition::Open);
    assert_eq!(world.receive(b"\x02h"), Disposition::Open);
    world.ask(1);
    assert_eq!(world.receive(b"i\x8a\0"), Disposition::Open);
    assert_eq!(world.receive(b"\x81\x04ab"), Disposition::Open);
    let first_byte_ns = world.now_ns;
    assert_eq!(world.receive(b"cd"), Disposition::Open);
    let found = Outcome {
        tag: 1,
        count: 1,
        ending: Ending::Ok,
        complete: true,
        status: None,
        first_byte_ns,
        content: None,
    };
    assert_eq!(world.outcomes, [found]);
}

#[test]
fn half_a_control_frame_is_not_half_an_answer() {
    for (begun, ending) in
        [(&b"\x89\x02h"[..], Ending::TimeoutFirstByte), (b"\x81\x04ab", Ending::TimeoutTotal)]
    {
        let mut world = World::upgraded();
        world.ask(1);
        assert_eq!(world.receive(begun), Disposition::Open);
        let World { client, outcomes, .. } = &mut world;
        client.handle_timeout(9, |_| 9, &mut Output::default(), &mut |one| outcomes.push(one));
        assert_eq!(world.outcomes.iter().map(|one| one.ending).collect::<Vec<_>>(), [ending]);
    }
}

#[test]
fn a_client_knows_why_frames_were_refused() {
    for (frame, ending, why) in [
        (&b"\x81\x84\0\0\0\0abcd"[..], Ending::WsProtocol, "a server's frame is masked"),
        (b"\x81\x02\xc3(", Ending::WsPayload, "a text is not UTF-8"),
    ] {
        let mut world = World::upgraded();
        world.ask(1);
        assert_eq!(world.receive(frame), Disposition::Broken);
        assert_eq!(world.client.standing().broken, Some((ending, why)));
    }
}

#[test]
fn an_echo_has_the_kind_and_the_bytes_of_its_message_and_a_wrong_one_ends_alone() {
    for (sentence, frame, ending) in [
        ("the same", &b"\x81\x04abcd"[..], Ending::Ok),
        ("the same as binary", b"\x82\x04abcd", Ending::Mismatch),
        ("other bytes", b"\x81\x04abcX", Ending::Mismatch),
        ("other bytes as binary", b"\x82\x04abcX", Ending::Mismatch),
        ("its beginning", b"\x81\x03abc", Ending::Mismatch),
        ("more than it", b"\x81\x05abcde", Ending::Mismatch),
        ("the next message", b"\x81\x04efgh", Ending::Mismatch),
    ] {
        let mut world = World::upgraded();
        (1..=2).for_each(|tag| world.ask(tag));
        let frames = [frame, b"\x81\x04efgh"].concat();
        assert_eq!(world.receive(&frames), Disposition::Open, "{sentence}");
        let ended: Vec<_> = world.outcomes.iter().map(|one| one.ending).collect();
        assert_eq!(ended, [ending, Ending::Ok], "{sentence}");
    }
}

#[test]
fn the_end_of_the_stream_ends_every_request() {
    use Ending::{ClosedPipelined, Empty, Reset, Truncated};
    for (come, end, endings) in [
        (&b""[..], PeerClose::Fin, [Empty, ClosedPipelined]),
        (b"\x81\x04ab", PeerClose::Fin, [Truncated, ClosedPipelined]),
        (b"\x81\x04ab", PeerClose::Reset, [Reset, Reset]),
    ] {
        let mut world = World::upgraded();
        (1..=2).for_each(|tag| world.ask(tag));
        world.receive(come);
        let World { client, outcomes, .. } = &mut world;
        client.handle_end(9, end, &mut |one| outcomes.push(one));
        assert_eq!(world.outcomes.iter().map(|one| one.ending).collect::<Vec<_>>(), endings);
        assert_eq!(world.client.outstanding(), 0);
    }
}

#[test]
fn a_connection_that_is_opened_again_begins_with_the_first_message() {
    let mut world = World::upgraded();
    world.ask(1);
    assert_eq!(world.receive(b"\x81\x04abcd"), Disposition::Open);
    world.ask(2);
    assert_eq!(world.receive(b"\xff\xff"), Disposition::Broken);
    assert!(world.client.standing().broken.is_some() && world.client.standing().answered);
    let mut asked = Vec::new();
    world.client.open(&mut world.shared, 0, &mut asked);
    assert!(world.client.standing().broken.is_none() && !world.client.standing().answered);
    assert_eq!(world.receive(&answer_to(&asked)), Disposition::Open);
    world.ask(3);
    assert_eq!(world.receive(b"\x81\x04abcd"), Disposition::Open);
    let ended: Vec<_> = world.outcomes.iter().map(|one| (one.tag, one.ending)).collect();
    assert_eq!(ended, [(1, Ending::Ok), (2, Ending::WsProtocol), (3, Ending::Ok)]);
}

#[test]
fn why_a_connection_was_not_upgraded_is_known() {
    let mut world = World::upgraded();
    assert_eq!(world.shared.refusal(), None);
    world.client.open(&mut world.shared, 0, &mut Vec::new());
    assert_eq!(world.receive(b"HTTP/1.1 404 x\r\n\r\n"), Disposition::Refused);
    let why = world.shared.refusal().map(|why| why.to_string());
    assert_eq!(why.as_deref(), Some("the server answered 404 instead of 101"));
}

#[test]
fn a_thousand_pings_without_a_message_are_a_flood_if_one_is_awaited() {
    let limit = Some(Ending::Limit);
    for (sentence, steps, ended) in [
        ("a thousand", &[(1000, false)][..], None),
        ("one more", &[(1001, false)], limit),
        ("with an answer in between", &[(1000, true), (1000, false)], None),
        ("one more behind it", &[(1000, true), (1001, false)], limit),
    ] {
        for control in [b"\x89\0", b"\x8a\0"] {
            let mut world = World::upgraded();
            let mut link = Disposition::Open;
            for (tag, (count, answers)) in (0..).zip(steps) {
                world.ask(tag);
                link = world.receive(&control.repeat(*count));
                if *answers {
                    assert_eq!(world.receive(b"\x81\x04abcd"), Disposition::Open, "{sentence}");
                }
            }
            let last = world.outcomes.iter().map(|one| one.ending).find(|one| *one != Ending::Ok);
            assert_eq!(last, ended, "{sentence}");
            assert_eq!(link == Disposition::Broken, ended.is_some(), "{sentence}");
        }
    }
    let mut world = World::upgraded();
    assert_eq!(world.receive(&b"\x89\0".repeat(5000)), Disposition::Open, "nothing is awaited");
    world.ask(1);
    assert_eq!(world.receive(&b"\x89\0".repeat(1000)), Disposition::Open);
}

#[test]
fn the_first_wrong_message_is_told_with_the_one_that_was_expected() {
    let mut world = World::upgraded();
    (1..=3).for_each(|tag| world.ask(tag));
    world.receive(b"\x81\x04abcd\x81\x04hgfe\x81\x04later");
    assert_eq!(world.shared.mismatch.first(), Some(r#""hgfe" came, "efgh" was expected"#));
}
