//! The contract's messages: what real servers send, both sides against each other, and the memory against the parser.

mod memory;
mod server;
mod table;

use proptest::prelude::*;
use trueload_wire::shootout::{Asked, Dialect, Due, Joining, Key, Parsed, Stamp, Wrong};

/// A server's part: what a message asks for, what goes to all, what to the sender.
fn answered(dialect: Dialect, message: &[u8]) -> (Asked, Due) {
    let mut due = Due::default();
    let asked = dialect.answer(message, 7, &mut due);
    (asked, due)
}

#[test]
fn a_client_becomes_a_listener_of_our_own_server_in_every_dialect() {
    let echo = Key { sender: 3, sequence: 0 };
    for dialect in Dialect::ALL {
        let (mut output, mut to_client) = (Vec::new(), Vec::new());
        let mut joining = Joining::start(dialect, echo, b"xx", &mut output);
        dialect.write_welcome(&mut to_client);
        let mut asked = Vec::new();
        for _ in 0..4 {
            if !output.is_empty() {
                let (what, due) = answered(dialect, &output);
                asked.push(what);
                to_client = due.to_sender;
            }
            output.clear();
            let parsed = dialect.parse(&to_client, b"xx");
            joining = joining
                .handle_message(dialect, parsed, echo, b"xx", &mut output)
                .expect("accepted");
            if joining == Joining::Done {
                break;
            }
        }
        assert_eq!(joining, Joining::Done, "{}", dialect.name());
        let joins: &[Asked] =
            if dialect.is_joined() { &[Asked::Join, Asked::Echo] } else { &[Asked::Echo] };
        assert_eq!(asked, joins, "{}", dialect.name());
    }
}

#[test]
fn names_are_read_as_they_are_written_and_no_others() {
    let read = |name: &str| serde_json::from_value(name.into()).ok();
    for dialect in Dialect::ALL {
        assert_eq!(read(dialect.name()), Some(dialect));
    }
    assert_eq!(read("Json"), None);
}

/// What a dialect's method writes.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("a text")
}

#[test]
fn each_dialect_has_its_own_ceremonies() {
    let heartbeat = r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"heartbeat"}"#;
    let (welcome, ping) = (r#"{"type":"welcome"}"#, r#"{"type":"ping","message":1700000000}"#);
    for (dialect, subprotocol, is_text, heartbeat_ns, alive, welcomes, pings) in [
        (Dialect::Json, None, true, None, "", "", ""),
        (Dialect::Binary, None, false, None, "", "", ""),
        (Dialect::ActionCable, Some("actioncable-v1-json"), true, None, "", welcome, ping),
        (Dialect::Phoenix, None, true, Some(30_000_000_000), heartbeat, "", ""),
    ] {
        let name = dialect.name();
        assert_eq!(dialect.subprotocol(), subprotocol, "{name}");
        assert_eq!(dialect.is_text(), is_text, "{name}");
        assert_eq!(dialect.heartbeat_ns(), heartbeat_ns, "{name}");
        assert_eq!(written(|out| dialect.write_heartbeat(out)), alive, "{name}");
        assert_eq!(written(|out| dialect.write_welcome(out)), welcomes, "{name}");
        assert_eq!(written(|out| dialect.write_ping(1_700_000_000, out)), pings, "{name}");
    }
}

#[test]
fn padding_that_is_no_text_comes_back_as_it_could_be_sent() {
    let (key, padding) = (Key { sender: 1, sequence: 2 }, b"x\xff\xfey");
    for dialect in Dialect::ALL {
        let mut message = Vec::new();
        dialect.write_echo(key, padding, &mut message);
        let due = answered(dialect, &message).1;
        let name = dialect.name();
        assert_eq!(dialect.parse(&due.to_sender, padding), Parsed::Echo(key), "{name}");
        let altered = Parsed::Error(Wrong::Altered);
        assert_eq!(dialect.parse(&due.to_sender, b"x\xffy"), altered, "{name}");
    }
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

proptest! {
    #[test]
    fn what_is_asked_comes_back_with_its_key(
        dialect in any_dialect(), sender: u32, sequence: u32, padding in ".{0,300}",
    ) {
        let (key, padding) = (Key { sender, sequence }, padding.as_bytes());
        let mut message = Vec::new();
        dialect.write_echo(key, padding, &mut message);
        let (asked, due) = answered(dialect, &message);
        prop_assert_eq!(asked, Asked::Echo);
        prop_assert!(due.to_all.is_empty());
        prop_assert_eq!(dialect.parse(&due.to_sender, padding), Parsed::Echo(key));

        message.clear();
        dialect.write_broadcast(key, padding, &mut message);
        let (asked, due) = answered(dialect, &message);
        prop_assert_eq!(asked, Asked::Broadcast);
        prop_assert_eq!(dialect.parse(&due.to_all, padding), Parsed::Broadcast(key));
        let listeners = (dialect == Dialect::Json).then_some(7);
        prop_assert_eq!(dialect.parse(&due.to_sender, padding), Parsed::Result(key, listeners));
    }

    #[test]
    fn a_stamp_comes_back_with_its_broadcast(
        dialect in any_dialect(), sender: u32, sequence: u32, phase: u16, sent_ns: u64, seed: u64,
    ) {
        let key = Key { sender, sequence };
        let stamp = Stamp::new(seed, key, phase, sent_ns);
        let (padding, mut message) = ([&stamp.digits()[..], b"xx"].concat(), Vec::new());
        dialect.write_broadcast(key, &padding, &mut message);
        let due = answered(dialect, &message).1;
        prop_assert_eq!(dialect.parse_stamped(&due.to_all, b"xx"), Parsed::Stamped(key, stamp));
        prop_assert_eq!(dialect.parse(&due.to_all, b"xx"), Parsed::Error(Wrong::Altered));
        let listeners = (dialect == Dialect::Json).then_some(7);
        let receipt = dialect.parse_stamped(&due.to_sender, b"xx");
        prop_assert_eq!(receipt, Parsed::Result(key, listeners));

        message.clear();
        dialect.write_echo(key, b"xx", &mut message);
        let due = answered(dialect, &message).1;
        prop_assert_eq!(dialect.parse_stamped(&due.to_sender, b"xx"), Parsed::Echo(key));

        message.clear();
        dialect.write_broadcast(key, b"xx", &mut message);
        let due = answered(dialect, &message).1;
        let altered = Parsed::Error(Wrong::Altered);
        prop_assert_eq!(dialect.parse_stamped(&due.to_all, b"xx"), altered);
    }

    #[test]
    fn no_bytes_harm_either_side(dialect in any_dialect(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = dialect.parse(&bytes, b"xx");
        let _ = dialect.parse_stamped(&bytes, b"xx");
        let _ = answered(dialect, &bytes);
    }

    #[test]
    fn what_a_server_makes_of_an_altered_message_is_in_the_dialect(
        dialect in any_dialect(),
        kind in 0..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let key = Key { sender: 1, sequence: 2 };
        let mut message = Vec::new();
        match kind {
            0 => dialect.write_join(&mut message),
            1 => dialect.write_echo(key, b"xx", &mut message),
            _ => dialect.write_broadcast(key, b"xx", &mut message),
        }
        for (at, byte) in changes {
            if !message.is_empty() {
                let at = at.index(message.len());
                message[at] = byte;
            }
        }
        let (asked, due) = answered(dialect, &message);
        for part in [&due.to_all, &due.to_sender] {
            let parsed = dialect.parse(part, b"xx");
            let malformed = matches!(parsed, Parsed::Error(Wrong::Malformed));
            prop_assert!(part.is_empty() || !malformed, "{asked:?}, then {parsed:?}");
        }
        prop_assert!(!matches!(asked, Asked::Error(_)) || due == Due::default());
    }

    #[test]
    fn a_message_cut_short_is_never_taken_for_whole(dialect in any_dialect(), cut in 0usize..400) {
        let key = Key { sender: 1, sequence: 2 };
        let mut message = Vec::new();
        dialect.write_broadcast(key, b"xxxx", &mut message);
        let due = answered(dialect, &message).1;
        let cut = cut % due.to_all.len();
        prop_assert!(matches!(dialect.parse(&due.to_all[..cut], b"xxxx"), Parsed::Error(_)));
        let cut = cut % message.len();
        prop_assert!(matches!(answered(dialect, &message[..cut]).0, Asked::Error(_)));
    }
}
