//! Properties: any bytes, any split, and both ends talking to each other.

use proptest::prelude::*;
use trueload_wire::message;
use trueload_wire::websocket::{
    Event, Kind, Limits, Receiver, Role, Scratch, client, fake, send, server,
};

use super::common::{SMALL, cut, receive};

/// What one end sends.
#[derive(Clone, Debug)]
enum Sent {
    Message(Kind, Vec<u8>),
    Parts(Kind, Vec<Vec<u8>>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
}

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    let text = |most: usize| prop::collection::vec(any::<char>(), 0..most);
    let text = move |most| text(most).prop_map(|all| all.into_iter().collect::<String>());
    prop_oneof![
        text(60).prop_map(|text| Sent::Message(Kind::Text, text.into_bytes())),
        bytes(400).prop_map(|bytes| Sent::Message(Kind::Binary, bytes)),
        (text(30), any::<prop::sample::Index>()).prop_map(|(text, at)| {
            let at = at.index(text.len() + 1);
            let (one, two) = text.as_bytes().split_at(at);
            Sent::Parts(Kind::Text, vec![one.to_vec(), two.to_vec()])
        }),
        prop::collection::vec(bytes(200), 2..5).prop_map(|all| Sent::Parts(Kind::Binary, all)),
        bytes(126).prop_map(Sent::Ping),
        bytes(126).prop_map(Sent::Pong),
    ]
}

/// Writes what is sent, with a ping before the last part of what is sent in parts.
fn write(sent: &Sent, out: &mut Vec<u8>, key: Option<[u8; 4]>) {
    match sent {
        Sent::Message(kind, payload) => send::message(out, *kind, payload, key),
        Sent::Parts(kind, parts) => {
            for (at, part) in parts.iter().enumerate() {
                let last = at + 1 == parts.len();
                if last {
                    fake::ping(out, b"between", key);
                }
                fake::fragment(out, (at == 0).then_some(*kind), last, part, key);
            }
        }
        Sent::Ping(payload) => fake::ping(out, payload, key),
        Sent::Pong(payload) => send::pong(out, payload, key),
    }
}

fn expected(sent: &Sent) -> Vec<(u8, Vec<u8>)> {
    let number = |kind: Kind| if kind == Kind::Text { 1 } else { 2 };
    match sent {
        Sent::Message(kind, payload) => vec![(number(*kind), payload.clone())],
        Sent::Parts(kind, parts) => vec![(9, b"between".to_vec()), (number(*kind), parts.concat())],
        Sent::Ping(payload) => vec![(9, payload.clone())],
        Sent::Pong(payload) => vec![(10, payload.clone())],
    }
}

proptest! {
    #[test]
    fn what_one_end_sends_the_other_receives_in_any_split(
        all in prop::collection::vec(sent(), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        key in any::<[u8; 4]>(),
    ) {
        for (role, key) in [(Role::Client, None), (Role::Server, Some(key))] {
            let mut wire = Vec::new();
            all.iter().for_each(|sent| write(sent, &mut wire, key));
            send::close(&mut wire, Some(1000), "bye", key);
            let mut receiver = Receiver::new(role);
            let mut scratch = Scratch::default();
            let mut received = Vec::new();
            for piece in cut(&wire, &cuts) {
                let mut on_event = |event: Event<'_>| received.push(match event {
                    Event::Message { kind: Kind::Text, payload } => (1, payload.to_vec()),
                    Event::Message { kind: Kind::Binary, payload } => (2, payload.to_vec()),
                    Event::Ping(payload) => (9, payload.to_vec()),
                    Event::Pong(payload) => (10, payload.to_vec()),
                    Event::Close { code, reason } => {
                        assert_eq!((code, reason), (Some(1000), "bye"));
                        (8, Vec::new())
                    }
                });
                let fed = receiver.feed(piece, &Limits::default(), &mut scratch, &mut on_event);
                prop_assert_eq!(fed, Ok(()));
            }
            let mut events: Vec<_> = all.iter().flat_map(expected).collect();
            events.push((8, Vec::new()));
            prop_assert_eq!(received, events);
            prop_assert!(receiver.is_closed() && receiver.buffered_bytes() == 0);
        }
    }

    #[test]
    fn changed_bytes_are_read_the_same_in_any_split(
        all in prop::collection::vec(sent(), 1..6),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        for (role, key) in [(Role::Client, None), (Role::Server, Some([9, 8, 7, 6]))] {
            let mut wire = Vec::new();
            all.iter().for_each(|sent| write(sent, &mut wire, key));
            for (at, byte) in &changes {
                let at = at.index(wire.len());
                wire[at] = *byte;
            }
            let whole = receive([&wire[..]], role, &SMALL);
            let split = receive(cut(&wire, &cuts), role, &SMALL);
            prop_assert_eq!(&split.lines, &whole.lines);
            prop_assert_eq!(&receive(wire.chunks(1), role, &SMALL).lines, &whole.lines);
            // A vector grows to twice what it holds, and a payload has its first room at once.
            prop_assert!(split.held_bytes_max <= 8 * 1024, "{} bytes held", split.held_bytes_max);
        }
    }

    #[test]
    fn any_bytes_are_read_the_same_in_any_split(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        for role in [Role::Client, Role::Server] {
            let whole = receive([&bytes[..]], role, &SMALL);
            prop_assert_eq!(receive(cut(&bytes, &cuts), role, &SMALL).lines, whole.lines);
        }
    }

    #[test]
    fn both_ends_open_a_connection_in_any_split(
        random in any::<[u8; 16]>(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        back in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let headers = [("Host".to_owned(), "h".to_owned())];
        let opening = client::Opening::new("/ws?a=b", &headers).expect("an opening");
        let mut request = Vec::new();
        let mut awaited = opening.write(random, &mut request);
        let head_len = request.len();
        send::message(&mut request, Kind::Text, b"first", Some([1, 2, 3, 4]));
        let limits = message::Limits::default();

        let mut asked = server::Opening::default();
        let mut taken = 0;
        for piece in cut(&request, &cuts) {
            match asked.feed(piece, &limits) {
                Ok(None) => taken += piece.len(),
                Ok(Some(more)) => {
                    taken += more;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        prop_assert_eq!(taken, head_len, "what is behind the head are frames");
        prop_assert_eq!((asked.method(), asked.target()), ("GET", "/ws?a=b"));
        let mut answer = Vec::new();
        asked.judge().expect("a handshake").write(None, &mut answer);
        let answer_len = answer.len();
        answer.extend_from_slice(b"\x81\x02hi");
        let mut taken = 0;
        for piece in cut(&answer, &back) {
            match awaited.feed(&opening, piece, &limits) {
                Ok(None) => taken += piece.len(),
                Ok(Some(more)) => {
                    taken += more;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        prop_assert_eq!(taken, answer_len);
    }

    #[test]
    fn a_changed_handshake_never_panics_and_is_read_the_same_in_any_split(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let headers = [("Host".to_owned(), "h".to_owned())];
        let opening = client::Opening::new("/", &headers).expect("an opening");
        let limits = message::Limits::default();
        let mut request = Vec::new();
        let _ = opening.write([7; 16], &mut request);
        let mut asked = server::Opening::default();
        prop_assert_eq!(asked.feed(&request, &limits), Ok(Some(request.len())));
        let mut answer = Vec::new();
        asked.judge().expect("a handshake").write(None, &mut answer);
        for (at, byte) in &changes {
            let place = at.index(request.len());
            request[place] = *byte;
            let place = at.index(answer.len());
            answer[place] = *byte;
        }
        let client_reads = |pieces: Vec<&[u8]>| {
            let mut awaited = opening.write([7; 16], &mut Vec::new());
            pieces.into_iter().find_map(|piece| awaited.feed(&opening, piece, &limits).transpose().map(
                |fed| fed.map(|_| ()),
            ))
        };
        prop_assert_eq!(client_reads(cut(&answer, &cuts)), client_reads(vec![&answer]));
        let server_reads = |pieces: Vec<&[u8]>| {
            let mut asked = server::Opening::default();
            let fed = pieces.into_iter().find_map(|piece| asked.feed(piece, &limits).transpose());
            fed.map(|fed| fed.map(|_| (asked.target().to_owned(), asked.judge())))
        };
        prop_assert_eq!(server_reads(cut(&request, &cuts)), server_reads(vec![&request]));
    }
}
