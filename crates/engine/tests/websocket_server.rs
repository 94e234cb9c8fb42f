//! The WebSocket server in virtual time: threads of it, several clients, wires that only write down.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use proptest::prelude::*;
use trueload_drive::{Clock, Conn, Epoll, PeerClose, Program, Settings, Token};
use trueload_engine::outlet::Outlet;
use trueload_engine::protocol::Served;
use trueload_engine::server::websocket::{Hub, Server};
use trueload_engine::server::{Command, Report, Watch};
use trueload_wire::message;
use trueload_wire::shootout::{Dialect, Joining, Key, Parsed};
use trueload_wire::websocket::{self, Event, Kind, Limits, Role, Scratch, client, fake, send};

use crate::common::{Wire, run_to, token};

const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);
const PADDING: &[u8] = b"padding";

/// One thread of a server, and how to speak to it.
struct Thread {
    server: Server,
    wire: Wire,
    accepted: u32,
    commands: Sender<Command>,
    reports: Receiver<Report>,
}

/// A client: which thread it is connected to, as which connection, and what it has received.
struct Client {
    thread: usize,
    token: Token,
    opening: client::Opening,
    frames: Option<websocket::Receiver>,
    awaited: Option<client::Awaited>,
    scratch: Scratch,
    received: Vec<String>,
    messages: Vec<Vec<u8>>,
}

impl Client {
    fn conn(&self) -> Conn {
        Conn { key: self.token.index, token: self.token }
    }
}

struct World {
    threads: Vec<Thread>,
    dialect: Dialect,
}

fn host() -> Vec<(String, String)> {
    vec![("Host".to_owned(), "h".to_owned())]
}

impl World {
    fn new(dialect: Dialect, threads: usize) -> Self {
        let waker = |_| {
            let epoll = Epoll::new(Clock::start(), None, &Settings::default());
            epoll.expect("an epoll").waker()
        };
        let hub = Arc::new(Hub::new((0..threads).map(waker).collect()));
        let threads = (0..threads).map(|index| {
            let (commands, inbox) = channel();
            let (sink, reports) = channel();
            let outlet = Outlet::to(sink, |report| report);
            let hub = (index, Arc::clone(&hub));
            let watch = Watch::new(index, inbox, outlet);
            let server = Server::new(hub, dialect, None, watch);
            Thread { server, wire: Wire::default(), accepted: 0, commands, reports }
        });
        World { threads: threads.collect(), dialect }
    }

    fn one(dialect: Dialect) -> Self {
        Self::new(dialect, 1)
    }

    /// Connects to a thread, and sends bytes as they stand.
    fn connect(&mut self, thread: usize) -> Client {
        let Thread { server, wire, accepted, .. } = &mut self.threads[thread];
        let token = token(*accepted);
        *accepted += 1;
        server.handle_accepted(wire, token);
        let opening = client::Opening::new("/ws", &host()).expect("an opening");
        let (frames, awaited) = (None, None);
        let (scratch, received, messages) = (Scratch::default(), Vec::new(), Vec::new());
        Client { thread, token, opening, frames, awaited, scratch, received, messages }
    }

    /// Opens a path of the server, and joins where the dialect asks for it.
    fn open(&mut self, thread: usize, path: &str) -> Client {
        let mut client = self.connect(thread);
        let mut headers = host();
        let protocol = self.dialect.subprotocol();
        headers.extend(protocol.map(|one| ("Sec-WebSocket-Protocol".to_owned(), one.to_owned())));
        client.opening = client::Opening::new(path, &headers).expect("an opening");
        let mut request = Vec::new();
        client.awaited = Some(client.opening.write([7; 16], &mut request));
        self.send(&client, &request);
        self.settle();
        self.listen(&mut client);
        if path == "/ws" {
            self.join(&mut client);
        }
        client
    }

    fn join(&mut self, client: &mut Client) {
        let dialect = self.dialect;
        let echo = Key { sender: client.token.index, sequence: 0 };
        let mut out = Vec::new();
        let mut joining = Joining::start(dialect, echo, PADDING, &mut out);
        let mut at = 0;
        while joining != Joining::Done {
            if !out.is_empty() {
                let message = std::mem::take(&mut out);
                self.send_message(client, &message);
                self.settle();
                self.listen(client);
            }
            let parsed = dialect.parse(client.messages.get(at).expect("an answer"), PADDING);
            at += 1;
            joining =
                joining.handle_message(dialect, parsed, echo, PADDING, &mut out).expect("joined");
        }
        client.messages.clear();
        client.received.clear();
    }

    /// One input of a client.
    fn send(&mut self, client: &Client, bytes: &[u8]) {
        let Thread { server, wire, .. } = &mut self.threads[client.thread];
        server.handle_input(wire, client.conn(), bytes, false);
    }

    fn send_message(&mut self, client: &Client, payload: &[u8]) {
        let kind = if self.dialect.is_text() { Kind::Text } else { Kind::Binary };
        let mut frame = Vec::new();
        send::message(&mut frame, kind, payload, MASK);
        self.send(client, &frame);
    }

    fn broadcast(&mut self, client: &Client, sequence: u32) {
        let mut message = Vec::new();
        let key = Key { sender: client.token.index, sequence };
        self.dialect.write_broadcast(key, PADDING, &mut message);
        self.send_message(client, &message);
    }

    /// The batch is over in every thread, and each has received what the others posted.
    fn settle(&mut self) {
        for Thread { server, wire, .. } in &mut self.threads {
            server.handle_batch_end(wire);
        }
        for Thread { server, wire, .. } in &mut self.threads {
            server.handle_wake(wire);
        }
    }

    /// Lets time pass up to `until_ns`, waking the servers whenever they ask for it.
    fn pass(&mut self, until_ns: u64) {
        for Thread { server, wire, .. } in &mut self.threads {
            run_to(server, wire, until_ns);
        }
    }

    fn raw(&mut self, client: &Client) -> String {
        let sent = self.threads[client.thread].wire.bytes_to(client.token.index);
        String::from_utf8_lossy(&sent).into_owned()
    }

    /// Takes in what a client was sent: `received` has a word for each event.
    fn listen(&mut self, client: &mut Client) {
        let wire = &mut self.threads[client.thread].wire;
        let sent = wire.bytes_to(client.token.index);
        wire.sent.retain(|sent| sent.connection != client.token.index);
        let mut bytes = &sent[..];
        if let Some(awaited) = &mut client.awaited {
            let taken = awaited.feed(&client.opening, bytes, &message::Limits::default());
            bytes = &bytes[taken.expect("a handshake").expect("whole")..];
            client.awaited = None;
            client.frames = Some(websocket::Receiver::new(Role::Client));
        }
        let Some(frames) = &mut client.frames else { return };
        let (received, messages, dialect) =
            (&mut client.received, &mut client.messages, self.dialect);
        let fed = frames.feed(bytes, &Limits::default(), &mut client.scratch, &mut |event| {
            received.push(match event {
                Event::Message { payload, .. } => {
                    messages.push(payload.to_vec());
                    match dialect.parse(payload, PADDING) {
                        Parsed::Broadcast(key) => {
                            format!("broadcast {}/{}", key.sender, key.sequence)
                        }
                        Parsed::Echo(key) => format!("echo {}/{}", key.sender, key.sequence),
                        Parsed::Result(key, count) => match count {
                            Some(count) => format!("receipt {} of {count}", key.sequence),
                            None => format!("receipt {}", key.sequence),
                        },
                        other => format!("{other:?}"),
                    }
                }
                Event::Ping(payload) => format!("ping {payload:?}"),
                Event::Pong(payload) => format!("pong {payload:?}"),
                Event::Close { code, .. } => format!("close {code:?}"),
            });
        });
        assert_eq!(fed, Ok(()), "what the server says are frames");
    }

    fn received(&mut self, client: &mut Client) -> Vec<String> {
        self.listen(client);
        std::mem::take(&mut client.received)
    }

    fn is_closed(&self, client: &Client) -> bool {
        self.threads[client.thread].wire.closed.contains(&client.token.index)
    }

    /// What all threads have seen.
    fn seen(mut self) -> Vec<Served> {
        self.threads.iter().for_each(|thread| {
            thread.commands.send(Command::Stop).expect("the server listens");
        });
        self.settle();
        let last = |thread: &Thread| match thread.reports.try_iter().last() {
            Some(Report::Counts { seen, .. }) => seen,
            other => panic!("no last report: {other:?}"),
        };
        self.threads.iter().map(last).collect()
    }
}

#[test]
fn every_message_to_echo_comes_back_as_it_came() {
    let mut world = World::one(Dialect::Json);
    let mut client = world.open(0, "/echo?a=b");
    let mut frames = Vec::new();
    send::message(&mut frames, Kind::Text, b"hello", MASK);
    fake::fragment(&mut frames, Some(Kind::Binary), false, b"in ", MASK);
    fake::ping(&mut frames, b"p", MASK);
    fake::fragment(&mut frames, None, true, b"parts", MASK);
    for byte in &frames {
        world.send(&client, &[*byte]);
    }
    let received = world.received(&mut client);
    assert_eq!(received[1], "pong [112]", "before the message in whose middle the ping was");
    assert_eq!(
        (received.len(), &client.messages[..]),
        (3, &[b"hello".to_vec(), b"in parts".to_vec()][..])
    );
    let seen = world.seen()[0];
    assert_eq!((seen.requests, seen.responses, seen.malformed), (2, 2, 0));
}

#[test]
fn frames_right_behind_the_handshake_are_received() {
    let mut world = World::one(Dialect::Json);
    let mut client = world.connect(0);
    let mut input = Vec::new();
    client.opening = client::Opening::new("/echo", &host()).expect("an opening");
    client.awaited = Some(client.opening.write([7; 16], &mut input));
    send::message(&mut input, Kind::Text, b"early", MASK);
    world.send(&client, &input);
    world.listen(&mut client);
    assert_eq!(client.messages, [b"early"]);
}

#[test]
fn a_message_longer_than_what_may_wait_still_goes_to_who_takes_it() {
    let mut world = World::one(Dialect::Json);
    let mut client = world.open(0, "/ws");
    let big = vec![b'x'; 6 * 1024 * 1024];
    let mut message = Vec::new();
    Dialect::Json.write_broadcast(Key { sender: 0, sequence: 1 }, &big, &mut message);
    world.send_message(&client, &message);
    world.settle();
    world.listen(&mut client);
    assert_eq!((client.messages.len(), world.is_closed(&client)), (2, false));
}

#[test]
fn a_broadcast_goes_to_all_and_then_the_sender_gets_its_receipt() {
    for dialect in Dialect::ALL {
        let mut world = World::one(dialect);
        let mut clients: Vec<Client> = (0..3).map(|_| world.open(0, "/ws")).collect();
        world.broadcast(&clients[1], 1);
        world.broadcast(&clients[1], 2);
        assert_eq!(world.raw(&clients[0]), "", "{dialect:?}: it leaves when the batch is over");
        let before = world.threads[0].wire.shared_bytes;
        world.settle();
        assert!(world.threads[0].wire.shared_bytes > before, "{dialect:?}: shared, not copied");
        let [one, two, three] = &mut clients[..] else { panic!("three") };
        let all = ["broadcast 1/1", "broadcast 1/2"];
        assert_eq!(world.received(one), all, "{dialect:?}");
        assert_eq!(world.received(three), all, "{dialect:?}");
        let counted = ["receipt 1 of 3", "receipt 2 of 3"];
        let plain = ["receipt 1", "receipt 2"];
        let received = world.received(two);
        assert_eq!(received[..2], all, "{dialect:?}");
        assert!(received[2..] == counted || received[2..] == plain, "{dialect:?}: {received:?}");
        let seen = world.seen()[0];
        assert_eq!(
            (seen.requests, seen.responses, seen.deliveries),
            (3 + 2, 3 + 2, 6),
            "{dialect:?}"
        );
    }
}

#[test]
fn an_echo_comes_back_to_its_sender_alone() {
    for dialect in Dialect::ALL {
        let mut world = World::one(dialect);
        let (mut one, mut two) = (world.open(0, "/ws"), world.open(0, "/ws"));
        let mut message = Vec::new();
        dialect.write_echo(Key { sender: 5, sequence: 6 }, PADDING, &mut message);
        world.send_message(&one, &message);
        world.settle();
        assert_eq!(world.received(&mut one), ["echo 5/6"], "{dialect:?}");
        assert!(world.received(&mut two).is_empty(), "{dialect:?}");
    }
}

#[test]
fn what_is_sent_behind_a_broadcast_is_answered_behind_it() {
    let mut world = World::one(Dialect::Json);
    let mut client = world.open(0, "/ws");
    let mut echo = Vec::new();
    Dialect::Json.write_echo(Key { sender: 0, sequence: 1 }, PADDING, &mut echo);
    world.send_message(&client, &echo);
    world.broadcast(&client, 2);
    world.send_message(&client, &echo);
    world.settle();
    let received = world.received(&mut client);
    assert_eq!(received, ["echo 0/1", "broadcast 0/2", "receipt 2 of 1", "echo 0/1"]);
}

#[test]
fn a_broadcast_goes_to_the_clients_of_every_thread_once() {
    let mut world = World::new(Dialect::Json, 3);
    let mut clients: Vec<Client> =
        [0, 0, 1, 2, 2].into_iter().map(|thread| world.open(thread, "/ws")).collect();
    world.broadcast(&clients[2], 1);
    world.settle();
    for (index, client) in clients.iter_mut().enumerate() {
        let mut expected = vec!["broadcast 0/1"];
        expected.extend((index == 2).then_some("receipt 1 of 5"));
        assert_eq!(world.received(client), expected, "client {index}");
    }
    let deliveries: Vec<u64> = world.seen().iter().map(|seen| seen.deliveries).collect();
    assert_eq!(deliveries, [2, 1, 2]);
}

#[test]
fn who_has_not_joined_or_is_gone_is_no_listener() {
    let mut world = World::one(Dialect::Phoenix);
    let mut joined = world.open(0, "/ws");
    let leaving = world.open(0, "/ws");
    let mut echoing = world.open(0, "/echo");
    let Thread { server, wire, .. } = &mut world.threads[0];
    server.handle_end(wire, leaving.conn(), PeerClose::Fin);
    world.broadcast(&joined, 1);
    world.settle();
    assert_eq!(world.received(&mut joined).len(), 2);
    assert!(world.received(&mut echoing).is_empty());
    let seen = world.seen()[0];
    assert_eq!((seen.deliveries, seen.open, seen.accepted), (1, 2, 3));
}

#[test]
fn a_listener_that_takes_nothing_is_closed_and_counted_and_the_others_go_on() {
    let mut world = World::one(Dialect::Json);
    let (mut one, stuck) = (world.open(0, "/ws"), world.open(0, "/ws"));
    world.threads[0].wire.stuck = Some(stuck.token.index);
    let mut sent = 0;
    let big = vec![b'x'; 200 * 1024];
    while !world.is_closed(&stuck) {
        let mut message = Vec::new();
        Dialect::Json.write_broadcast(Key { sender: 0, sequence: sent }, &big, &mut message);
        world.send_message(&one, &message);
        world.settle();
        sent += 1;
        assert!(sent < 100, "memory is bounded");
    }
    world.broadcast(&one, sent);
    world.settle();
    assert_eq!(world.received(&mut one).last(), Some(&format!("receipt {sent} of 1")));
    let seen = world.seen()[0];
    assert_eq!((seen.slow, seen.open), (1, 1));
}

#[test]
fn messages_that_never_end_or_are_not_read_are_held_for_few_clients_only() {
    let mib = vec![0; 1024 * 1024];
    // The head of a binary message of 15 MiB.
    let head = [&[0x82, 0xff, 0, 0, 0, 0, 0, 0xf0, 0, 0][..], &[0; 4]].concat();
    let mut world = World::one(Dialect::Json);
    let clients: Vec<Client> = (0..12).map(|_| world.open(0, "/echo")).collect();
    for client in &clients {
        world.send(client, &head);
        for _ in 0..14 {
            if !world.is_closed(client) {
                world.send(client, &mib);
            }
        }
    }
    let open = clients.iter().filter(|client| !world.is_closed(client)).count();
    assert!((1..=4).contains(&open), "{open} messages of 14 MiB are held");
    let honest: Vec<Client> = (0..100).map(|_| world.open(0, "/echo")).collect();
    for client in &honest {
        world.send_message(client, &mib);
        assert!(!world.is_closed(client), "a message as long as the generator's is ordinary");
    }
}

#[test]
fn half_a_handshake_ends_after_a_minute() {
    const S: u64 = 1_000_000_000;
    let mut world = World::one(Dialect::Json);
    let (half, none) = (world.connect(0), world.connect(0));
    let whole = world.open(0, "/echo");
    world.send(&half, b"GET /echo HTTP/1.1\r\n");
    world.pass(60 * S - 1);
    assert!(!world.is_closed(&half));
    world.pass(61 * S);
    let closed = [&half, &none, &whole].map(|client| world.is_closed(client));
    assert_eq!(closed, [true, false, false]);
    assert_eq!(world.seen()[0].timed_out, 1);
}

#[test]
fn a_close_is_answered_and_the_connection_ends() {
    let mut world = World::one(Dialect::Json);
    for (code, answer) in [(Some(1000), "close Some(1000)"), (None, "close None")] {
        let mut client = world.open(0, "/echo");
        let mut frame = Vec::new();
        send::close(&mut frame, code, "bye", MASK);
        fake::ping(&mut frame, b"behind", MASK);
        world.send(&client, &frame);
        assert_eq!(world.received(&mut client), [answer]);
        assert!(world.is_closed(&client));
    }
    assert_eq!(world.seen()[0].malformed, 0);
}

#[test]
fn what_must_not_be_sent_is_answered_by_a_close_with_its_code() {
    let plain = |payload: &[u8], key| {
        let mut frame = Vec::new();
        send::message(&mut frame, Kind::Text, payload, key);
        frame
    };
    for (sentence, path, frame, close) in [
        ("unmasked", "/echo", plain(b"a", None), "close Some(1002)"),
        ("bad UTF-8", "/echo", plain(b"\xff", MASK), "close Some(1007)"),
        (
            "too long",
            "/echo",
            [&[0x82, 0xff][..], &[0xff; 8], &[0; 4]].concat(),
            "close Some(1009)",
        ),
        ("not in the dialect", "/ws", plain(b"hello", MASK), "close Some(1008)"),
    ] {
        let mut world = World::one(Dialect::Json);
        let mut client = world.open(0, path);
        let other = world.open(0, "/ws");
        world.send(&client, &frame);
        assert_eq!(world.received(&mut client), [close], "{sentence}");
        world.send(&client, &frame);
        assert!(world.received(&mut client).is_empty(), "{sentence}: nothing more is heard");
        assert!(!world.is_closed(&other), "{sentence}");
        assert_eq!(world.threads[0].wire.ended, [client.token.index], "{sentence}");
        assert!(!world.is_closed(&client), "{sentence}: the peer has its time to close");
        world.pass(2_000_000_000);
        assert!(world.is_closed(&client), "{sentence}");
        let seen = world.seen()[0];
        assert_eq!((seen.malformed, seen.open), (1, 1), "{sentence}");
    }
}

#[test]
fn what_is_no_handshake_is_answered_in_http() {
    let host = "Host: h\r\n";
    let rest = "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (request, status) in [
        (format!("GET /ws HTTP/1.1\r\n{host}\r\n"), "426 Upgrade Required"),
        (format!("HEAD /echo HTTP/1.1\r\n{host}\r\n"), "426 Upgrade Required"),
        (
            format!(
                "GET /ws HTTP/1.1\r\n{host}Upgrade: websocket\r\n{rest}Sec-WebSocket-Version: 7\r\n\r\n"
            ),
            "426 Upgrade Required",
        ),
        (format!("GET /ws HTTP/1.1\r\n{host}Upgrade: websocket\r\n{rest}\r\n"), "400 Bad Request"),
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), "404 Not Found"),
        ("hello\r\n".to_owned(), "400 Bad Request"),
    ] {
        let mut world = World::one(Dialect::Json);
        let client = world.connect(0);
        world.send(&client, request.as_bytes());
        let sent = world.raw(&client);
        assert!(sent.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {sent}");
        assert!(sent.contains("Connection: close\r\n"), "{sent}");
        let needs_version = status.starts_with("426");
        assert_eq!(sent.contains("Sec-WebSocket-Version: 13\r\n"), needs_version, "{sent}");
        assert_eq!(sent.ends_with("\r\n\r\n"), request.starts_with("HEAD"), "{sent}");
        assert!(world.is_closed(&client));
        assert_eq!(world.seen()[0].malformed, 1);
    }
}

/// What a server sends to a client that sends these bytes behind a handshake, in these pieces, and
/// what it has seen.
fn sent_to(path: &str, bytes: &[u8], cuts: &[usize]) -> (Vec<String>, bool, Served) {
    let mut world = World::one(Dialect::Json);
    let mut client = world.open(0, path);
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    for place in places.into_iter().chain([bytes.len()]) {
        world.send(&client, &bytes[from..place]);
        from = place;
    }
    world.settle();
    let received = world.received(&mut client);
    let closed = world.is_closed(&client);
    (received, closed, world.seen()[0])
}

proptest! {
    #[test]
    fn a_split_never_changes_what_the_server_sends(
        messages in prop::collection::vec((0..5_u8, prop::collection::vec(any::<u8>(), 0..20)), 0..8),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut wire = Vec::new();
        let key = Key { sender: 0, sequence: 1 };
        for (kind, padding) in &messages {
            let mut text = Vec::new();
            match kind {
                0 => Dialect::Json.write_echo(key, b"x", &mut text),
                1 => Dialect::Json.write_broadcast(key, b"x", &mut text),
                2 => text.extend_from_slice(padding),
                3 => {
                    fake::ping(&mut wire, padding, MASK);
                    continue;
                }
                _ => text.extend_from_slice(b"{}"),
            }
            send::message(&mut wire, Kind::Text, &text, MASK);
        }
        if let Some((at, byte)) = change.filter(|_| !wire.is_empty()) {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        for path in ["/ws", "/echo"] {
            let whole = sent_to(path, &wire, &[]);
            prop_assert_eq!(sent_to(path, &wire, &cuts), whole);
        }
    }
}

#[test]
fn action_cable_sends_a_sign_of_life_every_three_seconds() {
    let mut world = World::one(Dialect::ActionCable);
    let mut client = world.open(0, "/ws");
    let mut echoing = world.open(0, "/echo");
    world.pass(2_999_999_999);
    assert!(world.received(&mut client).is_empty());
    world.pass(6_000_000_000);
    assert_eq!(world.received(&mut client), ["Ping", "Ping"]);
    let pings =
        [3, 6].map(|unix_s| format!(r#"{{"type":"ping","message":{unix_s}}}"#).into_bytes());
    assert_eq!(client.messages, pings, "by the wall clock of the driver");
    assert!(world.received(&mut echoing).is_empty());
}
