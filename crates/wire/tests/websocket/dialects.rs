//! The client of an echo in each dialect, against our own server: it joins first, and then knows its messages by their keys.

use trueload_wire::chance::Chance;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome};
use trueload_wire::message;
use trueload_wire::shootout::{Dialect, Due, Key, Wrong};
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::{Client, Outgoing, Shared};
use trueload_wire::websocket::{
    Event, Fault, HandshakeError, Kind, Limits, Receiver, Role, Scratch, send, server,
};

/// Which connection it is.
const SENDER: u32 = 5;
const PADDING: &[u8] = b"xx";

/// A client, what it sends, and a server that reads it.
struct World {
    dialect: Dialect,
    shared: Shared,
    client: Client<u32>,
    server: Receiver,
    sent: Vec<u8>,
    outcomes: Vec<Outcome<u32>>,
}

impl World {
    /// A connection that has been upgraded, and has not joined.
    fn upgraded(dialect: Dialect) -> Self {
        let headers = [("Host".to_owned(), "localhost".to_owned())];
        let opening = Opening::new("/", &headers).expect("no header of the handshake's own");
        let outgoing = Outgoing::Dialect(dialect, PADDING.into());
        let mut shared = Shared::new(opening, outgoing, Limits::default(), Chance::new(7));
        let (mut client, mut sent) = (Client::default(), Vec::new());
        client.open(&mut shared, SENDER, &mut sent);
        let (mut opening, mut answer) = (server::Opening::default(), Vec::new());
        let taken = opening.feed(&sent, &message::Limits::default());
        assert_eq!(taken, Ok(Some(sent.len())));
        opening.judge().expect("a handshake").write(None, &mut answer);
        sent.clear();
        let server = Receiver::new(Role::Server);
        let mut world = World { dialect, shared, client, server, sent, outcomes: Vec::new() };
        assert_eq!(world.receive(&answer), Disposition::Opening);
        world
    }

    /// A connection that has joined.
    fn joined(dialect: Dialect) -> Self {
        let mut world = World::upgraded(dialect);
        let mut link = Disposition::Opening;
        let mut welcome = Vec::new();
        dialect.write_welcome(&mut welcome);
        if !welcome.is_empty() {
            link = world.receive_message(&welcome);
        }
        while link == Disposition::Opening {
            let answer = world.answer();
            assert!(!answer.is_empty(), "{} waits for ever", dialect.name());
            link = world.receive(&answer);
        }
        assert_eq!(link, Disposition::Open, "{}", dialect.name());
        world
    }

    fn receive(&mut self, bytes: &[u8]) -> Disposition {
        let World { shared, client, sent, outcomes, .. } = self;
        client.handle_input(1, bytes, shared, sent, &mut |one| outcomes.push(one))
    }

    fn receive_message(&mut self, message: &[u8]) -> Disposition {
        self.receive(&framed(self.dialect, message))
    }

    /// Asks and writes as many requests; their tags count from 1.
    fn ask(&mut self, count: u32) {
        (1..=count).for_each(|tag| self.client.ask(tag));
        self.client.wait_to_write(count as usize);
        self.client.write(&mut self.shared, usize::MAX, &mut self.sent);
    }

    /// The messages that the client has sent since the last time.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let sent = std::mem::take(&mut self.sent);
        let (mut messages, mut scratch) = (Vec::new(), Scratch::default());
        let fed = self.server.feed(&sent, &Limits::default(), &mut scratch, &mut |event| {
            let Event::Message { kind, payload } = event else { panic!("{event:?}") };
            assert_eq!(kind == Kind::Text, self.dialect.is_text());
            messages.push(payload.to_vec());
        });
        assert_eq!(fed, Ok(()));
        messages
    }

    /// What our server makes of what the client has sent.
    fn answer(&mut self) -> Vec<u8> {
        let (mut due, mut answer) = (Due::default(), Vec::new());
        for message in self.messages() {
            self.dialect.answer(&message, 1, &mut due);
            answer.extend(framed(self.dialect, &due.to_sender));
        }
        answer
    }

    fn endings(&self) -> Vec<(u32, Ending)> {
        self.outcomes.iter().map(|one| (one.tag, one.ending)).collect()
    }
}

fn framed(dialect: Dialect, message: &[u8]) -> Vec<u8> {
    let kind = if dialect.is_text() { Kind::Text } else { Kind::Binary };
    let mut frame = Vec::new();
    send::message(&mut frame, kind, message, None);
    frame
}

/// An echo in the plain dialect, as a server sends it.
fn echo(sender: u32, sequence: u32, padding: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    Dialect::Json.write_echo(Key { sender, sequence }, padding, &mut message);
    framed(Dialect::Json, &message)
}

fn text(message: &str) -> Vec<u8> {
    framed(Dialect::Json, message.as_bytes())
}

#[test]
fn a_client_joins_in_every_dialect_and_its_echoes_come_back() {
    for dialect in Dialect::ALL {
        let mut world = World::joined(dialect);
        for _ in 0..2 {
            world.ask(3);
            let answer = world.answer();
            assert_eq!(world.receive(&answer), Disposition::Open, "{}", dialect.name());
        }
        let wanted = [1, 2, 3, 1, 2, 3].map(|tag| (tag, Ending::Ok));
        assert_eq!(world.endings(), wanted, "{}", dialect.name());
    }
}

#[test]
fn a_message_carries_its_connection_its_number_and_the_padding() {
    let mut world = World::joined(Dialect::Json);
    world.ask(3);
    let expected = (1..=3).map(|sequence| {
        let mut message = Vec::new();
        Dialect::Json.write_echo(Key { sender: SENDER, sequence }, PADDING, &mut message);
        message
    });
    assert!(world.messages().into_iter().eq(expected));
}

#[test]
fn a_client_of_action_cable_sends_nothing_before_it_is_welcome() {
    let mut world = World::upgraded(Dialect::ActionCable);
    assert_eq!(world.messages().len(), 0);
    assert_eq!(world.receive_message(br#"{"type":"ping","message":1}"#), Disposition::Opening);
    assert_eq!(world.messages().len(), 0);
    assert_eq!(world.receive_message(br#"{"type":"welcome"}"#), Disposition::Opening);
    assert_eq!(world.messages().len(), 1);
}

#[test]
fn what_comes_to_two_requests_ends_them_or_not() {
    use Disposition::{Broken, Closing, Open, Unsolicited};
    use Ending::{ClosedPipelined, Mismatch, Ok, WsClosed, WsPayload};
    let broadcast = r#"{"type":"broadcast","payload":{"sender":9,"sequence":1,"padding":"xx"}}"#;
    let receipt = broadcast.replace("broadcast", "broadcastResult");
    let close = b"\x88\x02\x03\xe8".to_vec();
    let foreign = text(r#"{"type":"echo","payload":1}"#);
    let begun = [&text(broadcast)[..], b"\x81"].concat();
    for (sentence, come, link, endings) in [
        ("the first", echo(SENDER, 1, PADDING), Open, &[Ok][..]),
        ("the second", echo(SENDER, 2, PADDING), Open, &[Mismatch]),
        ("the join's again", echo(SENDER, 0, PADDING), Open, &[Mismatch]),
        ("another's", echo(SENDER + 1, 1, PADDING), Open, &[Mismatch]),
        ("other padding", echo(SENDER, 1, b"xy"), Broken, &[Mismatch, ClosedPipelined]),
        ("no payload of ours", foreign, Broken, &[Mismatch, ClosedPipelined]),
        ("not in the dialect", text("hi"), Broken, &[WsPayload, ClosedPipelined]),
        ("a ping of the dialect", text(r#"{"type":"ping"}"#), Open, &[]),
        ("something else", text(r#"{"type":"hello"}"#), Open, &[]),
        ("a broadcast", text(broadcast), Unsolicited, &[ClosedPipelined; 2]),
        ("a broadcast, and a byte", begun, Unsolicited, &[ClosedPipelined; 2]),
        ("a receipt", text(&receipt), Unsolicited, &[ClosedPipelined; 2]),
        ("a close", close, Closing, &[WsClosed, ClosedPipelined]),
    ] {
        let mut world = World::joined(Dialect::Json);
        world.ask(2);
        assert_eq!(world.receive(&come), link, "{sentence}");
        let found: Vec<_> = world.outcomes.iter().map(|one| one.ending).collect();
        assert_eq!(found, endings, "{sentence}");
    }
}

#[test]
fn after_a_wrong_echo_the_next_one_has_its_turn() {
    let mut world = World::joined(Dialect::Json);
    world.ask(2);
    let both = [echo(SENDER + 1, 1, PADDING), echo(SENDER, 2, PADDING)].concat();
    assert_eq!(world.receive(&both), Disposition::Open);
    assert_eq!(world.endings(), [(1, Ending::Mismatch), (2, Ending::Ok)]);
}

#[test]
fn with_nothing_outstanding_only_a_close_is_no_breach() {
    let crash = r#"{"topic":"room:lobby","event":"phx_error","payload":{},"ref":"join"}"#;
    for (sentence, dialect, come, link) in [
        ("an echo", Dialect::Json, echo(SENDER, 1, PADDING), Disposition::Unsolicited),
        ("a close", Dialect::Json, b"\x88\0".to_vec(), Disposition::Closing),
        ("no frame", Dialect::Json, b"\xff\xff".to_vec(), Disposition::Unsolicited),
        ("a crash", Dialect::Phoenix, text(crash), Disposition::Closing),
        ("text", Dialect::Binary, text("hi"), Disposition::Unsolicited),
        ("a beginning", Dialect::Json, b"\x81\x7e".to_vec(), Disposition::Open),
    ] {
        let mut world = World::joined(dialect);
        assert_eq!(world.receive(&come), link, "{sentence}");
        assert_eq!(world.endings(), [], "{sentence}");
    }
}

#[test]
fn an_echo_of_the_binary_dialect_does_not_come_as_text() {
    let mut world = World::joined(Dialect::Binary);
    world.ask(1);
    let answer = world.answer();
    // The bytes are ASCII, so that they are a text as well.
    let as_text = [b"\x81", &answer[1..]].concat();
    assert_eq!(world.receive(&as_text), Disposition::Broken);
    assert_eq!(world.endings(), [(1, Ending::WsPayload)]);
}

#[test]
fn a_join_that_fails_says_why() {
    let rejected =
        r#"{"identifier":"{\"channel\":\"BenchmarkChannel\"}","type":"reject_subscription"}"#;
    for (dialect, come, fault) in [
        (Dialect::Json, &b"\x81\x02hi"[..], Fault::Dialect(Wrong::Malformed)),
        (Dialect::Json, b"\x88\0", Fault::Closed),
        (Dialect::Binary, b"\x81\x02hi", Fault::Dialect(Wrong::Malformed)),
        (Dialect::ActionCable, &text(rejected), Fault::Dialect(Wrong::Refused)),
    ] {
        let mut world = World::upgraded(dialect);
        assert_eq!(world.receive(come), Disposition::Refused, "{fault}");
        assert_eq!(world.shared.refusal(), Some(HandshakeError::Join(fault)));
    }
}
