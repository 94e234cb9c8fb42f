//! Compressed messages (RFC 7692), as tables and properties: whole, byte by byte and in any split.

use proptest::prelude::*;
use trueload_wire::exchange::{Disposition, Ending};
use trueload_wire::message::Form;
use trueload_wire::websocket::{Deflater, Kind, Limits, Receiver, Role, Sizes, fake, send};

use super::common::{SMALL, cut, receive, receive_by};
use super::talk::{MESSAGE, Play, UPGRADE};

const HELLO: &[u8] = b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00";

fn agreed(role: Role) -> Receiver {
    Receiver::new(role).deflating(true)
}

#[test]
fn compressed_messages_are_those_of_the_rfc_and_everything_else_is_refused() {
    let bit = "websocket: a reserved bit is set";
    let broken = "websocket payload: a compressed message cannot be decompressed";
    let text = "text \"Hello\"";
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 27] = [
        ("one frame (§7.2.3.1)", HELLO, &[text, "done"]),
        ("two frames", b"\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00", &[text, "done"]),
        ("binary", b"\xc2\x07\xf2\x48\xcd\xc9\xc9\x07\x00", &["binary [48, 65, 6c, 6c, 6f]", "done"]),
        ("twice, without a context (§7.2.3.2)", &[HELLO, HELLO].concat(), &[text, text, "done"]),
        ("with a context", &[HELLO, b"\xc1\x05\xf2\x00\x11\x00\x00"].concat(), &[text, broken]),
        ("a block without compression (§7.2.3.3)", b"\xc1\x0b\x00\x05\x00\xfa\xffHello\x00", &[text, "done"]),
        ("a final block (§7.2.3.4)", b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00", &[text, "done"]),
        ("a final block, and more", b"\xc1\x0e\xf3\x48\xcd\xc9\xc9\x07\x00\xf2\x48\xcd\xc9\xc9\x07\x00", &["text \"HelloHello\"", "done"]),
        ("a final block alone", b"\xc1\x07\xf3\x48\xcd\xc9\xc9\x07\x00", &[broken]),
        ("two blocks (§7.2.3.5)", b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", &[text, "done"]),
        ("an empty message (§7.2.3.6)", b"\xc1\x01\x00", &["text \"\"", "done"]),
        ("an empty payload", b"\xc1\x00", &[broken]),
        ("as it is", b"\x81\x05Hello", &[text, "done"]),
        ("as it is, in parts", b"\x01\x02He\x80\x03llo", &[text, "done"]),
        ("a part without bytes", b"\x41\x00\x80\x07\xf2\x48\xcd\xc9\xc9\x07\x00", &[text, "done"]),
        ("a ping between", b"\x41\x03\xf2\x48\xcd\x89\x00\x80\x04\xc9\xc9\x07\x00", &["ping []", text, "done"]),
        ("then as it is, in parts", &[HELLO, b"\x01\x02He\x80\x03llo"].concat(), &[text, text, "done"]),
        ("the bit on a later part", b"\x41\x03\xf2\x48\xcd\xc0\x04\xc9\xc9\x07\x00", &[bit]),
        ("the bit on a later part alone", b"\x01\x02He\xc0\x03llo", &[bit]),
        ("the bit on a ping", b"\xc9\x00", &[bit]),
        ("the bit on a close", b"\xc8\x00", &[bit]),
        ("another bit", b"\xa1\x00", &[bit]),
        ("another bit beside it", b"\xe1\x00", &[bit]),
        ("cut", b"\xc1\x05\xf2\x48\xcd\xc9\xc9", &[broken]),
        ("a block of no type", b"\xc1\x02\xff\xff", &[broken]),
        ("no text", b"\xc1\x07\x00\x01\x00\xfe\xff\xff\x00", &["websocket payload: a text is not UTF-8"]),
        ("no text, in parts", b"\x41\x06\x00\x01\x00\xfe\xff\xff\x80\x01\x00", &["websocket payload: a text is not"]),
    ];
    for (sentence, bytes, expected) in table {
        let whole = receive_by(agreed(Role::Client), [bytes], &SMALL).lines;
        let same = whole.iter().zip(expected).all(|(line, start)| line.starts_with(start));
        assert!(same && whole.len() == expected.len(), "{sentence}: {whole:?}");
        let slow = receive_by(agreed(Role::Client), bytes.chunks(1), &SMALL);
        assert_eq!(slow.lines, whole, "{sentence}: byte by byte");
    }
    assert_eq!(receive([HELLO], Role::Client, &SMALL).lines, [bit], "without an agreement");
}

#[test]
fn what_is_inflated_has_the_cap_of_every_message() {
    let mut deflater = Deflater::default();
    let too_long = "limit: a message is too long";
    for (len, expected) in [(1000, "done"), (1001, too_long), (10 << 20, too_long)] {
        let (mut wire, zeros) = (Vec::new(), vec![0; len]);
        let compressed = deflater.deflate(&zeros).to_vec();
        let limits = Limits { message_bytes: if len > 2000 { 12_000 } else { 1000 } };
        assert!(compressed.len() < limits.message_bytes);
        fake::compressed(&mut wire, Kind::Binary, true, &compressed, None);
        let outcome = receive_by(agreed(Role::Client), [&wire[..]], &limits);
        assert_eq!(outcome.lines.last().map(String::as_str), Some(expected), "{len} bytes");
    }
    // Each final block sets all back, which takes longer than the two bytes are worth.
    for (count, expected) in
        [(1000, "binary []"), (1001, "limit: a compressed message has too many")]
    {
        let (mut wire, blocks) = (Vec::new(), [&b"\x03\x00".repeat(count)[..], b"\x00"].concat());
        fake::compressed(&mut wire, Kind::Binary, true, &blocks, None);
        let lines = receive_by(agreed(Role::Client), [&wire[..]], &Limits::default()).lines;
        assert!(lines[0].starts_with(expected), "{count}: {lines:?}");
    }
}

#[test]
fn a_conversation_is_compressed_where_the_server_agrees_and_counts_both_sizes() {
    let long = "a text that says the same, that says the same, that says the same";
    let steps = [(Form::Upgrade, UPGRADE, ""), (MESSAGE, long, long)];
    let mut play = Play::offering(&steps, false, true);
    play.upgrade();
    play.ask();
    assert_eq!(play.sent[0], 0xc1, "compressed");
    let compressed = play.sent.len() as u64 - 6;
    let mut echo = Vec::new();
    let mut deflater = Deflater::default();
    // A heartbeat is answered in the same way.
    send::message_by(Some(&mut deflater), &mut echo, Kind::Text, b"2", None);
    send::message_by(Some(&mut deflater), &mut echo, Kind::Text, long.as_bytes(), None);
    assert_eq!(play.hear(&echo), Disposition::Closing);
    assert_eq!(play.endings(), [(0, Ending::Ok), (1, Ending::Ok)]);
    assert_eq!(play.said(), [long, "3", "close Some(1000)"]);
    let found = play.shared.take_deflated().expect("it was offered");
    let plain = long.len() as u64 + 1;
    assert_eq!((found.agreed, found.declined), (1, 0));
    assert_eq!(found.sent, Sizes { plain, on_wire: compressed + 3 });
    assert_eq!(found.received, Sizes { plain, on_wire: echo.len() as u64 - 4 });
    let again = play.shared.take_deflated().expect("it was offered");
    assert_eq!((again.agreed, again.sent, again.received), (1, Sizes::default(), Sizes::default()));
}

#[test]
fn a_conversation_without_an_agreement_goes_on_as_it_is() {
    let mut play =
        Play::offering(&[(Form::Upgrade, UPGRADE, ""), (MESSAGE, "a", "a")], false, true);
    play.ask();
    let offer = String::from_utf8_lossy(&play.sent).into_owned();
    assert!(offer.contains("permessage-deflate; client_no_context_takeover; server_no_context_"));
    let plain = offer.replace("permessage-deflate", "x");
    play.sent.clear();
    assert_eq!(play.hear(&super::talk::accepted(plain.as_bytes())), Disposition::Open);
    play.ask();
    assert_eq!(play.sent[0], 0x81);
    assert_eq!(play.hear(b"\x81\x01a"), Disposition::Closing);
    let found = play.shared.take_deflated().expect("it was offered");
    assert_eq!((found.agreed, found.declined, found.sent), (0, 1, Sizes::default()));
}

/// A message: its kind, its bytes, the places where it is cut into frames, and whether it is
/// compressed.
type Sent = (Kind, Vec<u8>, Vec<usize>, bool);

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        prop::collection::vec(0..3u8, 0..900),
        any::<String>().prop_map(String::into_bytes),
    ];
    let places = prop::collection::vec(any::<usize>(), 0..4);
    (bytes, places, any::<bool>()).prop_map(|(bytes, places, compressed)| {
        let kind = if str::from_utf8(&bytes).is_ok() { Kind::Text } else { Kind::Binary };
        (kind, bytes, places, compressed)
    })
}

fn write(all: &[Sent], key: Option<[u8; 4]>) -> Vec<u8> {
    let (mut wire, mut deflater) = (Vec::new(), Deflater::default());
    for (kind, bytes, places, compressed) in all {
        let payload = if *compressed { deflater.deflate(bytes).to_vec() } else { bytes.clone() };
        let parts = cut(&payload, places);
        for (at, part) in parts.iter().enumerate() {
            let last = at + 1 == parts.len();
            match at {
                0 if *compressed => fake::compressed(&mut wire, *kind, last, part, key),
                _ => fake::fragment(&mut wire, (at == 0).then_some(*kind), last, part, key),
            }
        }
    }
    wire
}

proptest! {
    #[test]
    fn any_message_comes_back_in_any_frames_and_any_split(
        all in prop::collection::vec(sent(), 0..6),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let plain: Vec<Sent> =
            all.iter().map(|(kind, bytes, ..)| (*kind, bytes.clone(), vec![], false)).collect();
        for (role, key) in [(Role::Client, None), (Role::Server, Some([9, 8, 7, 6]))] {
            let expected = receive([&write(&plain, key)[..]], role, &Limits::default()).lines;
            let wire = write(&all, key);
            let heard = receive_by(agreed(role), cut(&wire, &cuts), &Limits::default());
            prop_assert_eq!(heard.lines, expected);
        }
    }

    #[test]
    fn changed_bytes_are_read_the_same_in_any_split_and_stay_bounded(
        all in prop::collection::vec(sent(), 1..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut wire = write(&all, None);
        for (at, byte) in &changes {
            let at = at.index(wire.len());
            wire[at] = *byte;
        }
        let whole = receive_by(agreed(Role::Client), [&wire[..]], &SMALL);
        let split = receive_by(agreed(Role::Client), cut(&wire, &cuts), &SMALL);
        prop_assert_eq!(&split.lines, &whole.lines);
        prop_assert!(split.held_bytes_max <= 8 * 1024, "{} bytes held", split.held_bytes_max);
    }
}
