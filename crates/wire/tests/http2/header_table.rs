//! The table that the peer's header blocks may refer to, as it was announced.

use trueload_wire::exchange::{Disposition, Ending};
use trueload_wire::http2::client::{Client, Terms};
use trueload_wire::http2::frame::{HEADER_BYTES, Kind, PREFACE};
use trueload_wire::http2::hpack::Encoder;
use trueload_wire::http2::settings::parameters;

use super::peer::Peer;
use super::play::{BROWSER, Play, idempotent};

/// Two requests, the peer has begun, and a table of so many bytes was announced to it.
fn announced(table_bytes: u32) -> Play {
    let mut play = Play::opening(Terms { windows: BROWSER, table_bytes });
    play.rules = idempotent();
    play.receive(Peer::default().settings(&[]));
    play.ask(2);
    play
}

/// A whole answer.
fn answer(stream: u32, block: &[u8]) -> Peer {
    Peer::default().frame(Kind::HEADERS, 5, stream, block)
}

fn resized(to: u32, block: &[u8]) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(4096), Vec::new());
    encoder.resize(to);
    encoder.begin_block(&mut out);
    out.extend_from_slice(block);
    out
}

#[test]
fn a_table_of_another_size_than_4_kib_is_announced() {
    for (table_bytes, expected) in [(4096, None), (0, Some(0)), (65_536, Some(65_536))] {
        let mut out = Vec::new();
        Client::<usize>::default().open(Terms { windows: BROWSER, table_bytes }, &mut out);
        let settings = &out[PREFACE.len()..];
        let len = usize::from(settings[2]);
        let payload = &settings[HEADER_BYTES..HEADER_BYTES + len];
        let found = parameters(payload).find(|(parameter, _)| *parameter == 1);
        assert_eq!(found.map(|(_, value)| value), expected);
    }
}

#[test]
fn a_peer_that_knows_of_a_smaller_table_has_to_shrink_to_it() {
    const INSERTING: &[u8] = &[0x88, 0x76, 1, b'x'];
    for (what, block, ending) in [
        ("it does", resized(0, INSERTING), Ending::Ok),
        ("it does not, and says what it said before", INSERTING.to_vec(), Ending::H2Protocol),
        ("it shrinks too little", resized(1, INSERTING), Ending::H2Protocol),
        ("it names what is gone", resized(0, &[0x88, 0xbe]), Ending::H2Protocol),
    ] {
        let mut play = announced(0);
        play.receive(answer(1, INSERTING));
        assert_eq!(play.endings, [(0, Ending::Ok)], "it need not know yet");
        play.receive(Peer::default().ack());
        let link = play.receive(answer(3, &block));
        assert_eq!(play.endings[1..], [(1, ending)], "{what}");
        assert_eq!(link == Disposition::Open, ending == Ending::Ok, "{what}");
    }
}

#[test]
fn a_peer_may_use_a_larger_table_as_soon_as_it_knows_and_none_that_is_larger_still() {
    for (acknowledges, to, ending) in [
        (true, 8192, Ending::Ok),
        (false, 8192, Ending::Ok),
        (true, 8193, Ending::H2Protocol),
        (false, 8193, Ending::H2Protocol),
    ] {
        let mut play = announced(8192);
        if acknowledges {
            play.receive(Peer::default().ack());
        }
        play.receive(answer(1, &resized(to, &[0x88])));
        assert!(play.endings.contains(&(0, ending)), "{to}: {:?}", play.endings);
    }
}
