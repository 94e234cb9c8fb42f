//! A connection of HTTP/1.1 becomes one of HTTP/2, or is of no use.

use proptest::prelude::*;
use trueload_wire::exchange::{Disposition, Ending, Exchange};
use trueload_wire::http1::template::Texts;
use trueload_wire::http2::client::{Terms, Windows};
use trueload_wire::http2::frame::{ErrorCode, PREFACE};

use crate::peer::{OK, Peer};
use crate::play::{BROWSER, Play};

const AGREES: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
const GET: Texts<'_> = Texts { method: "GET", path: "/", headers: &[], body: None };

fn upgrading() -> Play {
    Play::upgrading(&GET, BROWSER).0
}

/// What a server sends that agrees, up to the answer on stream 1.
fn agreed() -> Peer {
    Peer::default().bytes(AGREES.as_bytes()).settings(&[])
}

#[test]
fn the_request_asks_for_the_head_of_what_is_measured_and_says_our_settings() {
    let headers = [
        ("Host", "a:80"),
        ("Content-Length", "3"),
        ("Connection", "close"),
        ("Authorization", "x"),
        ("TE", "gzip"),
        ("N", "{counter}"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let texts = Texts { method: "POST", path: "/{counter}", headers: &headers, body: Some(b"abc") };
    let windows = Windows { stream: 0x0102_0304, connection: 65_535 };
    let (_, sent) = Play::upgrading(&texts, Terms { windows, table_bytes: 4096 });
    // 2: 0, 4: 0x01020304, 6: 262,144
    let expected = "HEAD /0 HTTP/1.1\r\nHost: a:80\r\nAuthorization: x\r\nN: 0\r\n\
        Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
        HTTP2-Settings: AAIAAAAAAAQBAgMEAAYABAAA\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&sent), expected);
}

#[test]
fn behind_a_101_all_is_http_2_and_stream_1_answers_the_upgrade() {
    let mut play = upgrading();
    assert_eq!(play.deliver(AGREES.as_bytes()), Disposition::Opening);
    assert_eq!(play.sent[..PREFACE.len()], *PREFACE);
    play.sent.clear();
    assert_eq!(play.receive(Peer::default().settings(&[])), Disposition::Opening);
    assert_eq!(play.frames(), ["SETTINGS ack"]);
    assert_eq!(play.receive(Peer::default().headers(1, OK, false)), Disposition::Opening);
    assert_eq!(play.receive(Peer::default().data(1, b"hello", true)), Disposition::Open);
    play.ask(2);
    assert_eq!(play.frames(), ["HEADERS 3 end", "HEADERS 5 end"]);
    play.receive(Peer::default().answer(5).answer(3));
    assert_eq!(play.endings, [(1, Ending::Ok), (0, Ending::Ok)]);
    assert_eq!(play.receive(Peer::default().answer(1)), Disposition::Unsolicited, "once is enough");
}

#[test]
fn what_is_no_upgrade_makes_the_connection_useless() {
    let like = |from: &str, to: &str| AGREES.replace(from, to);
    let more = |field: &str| like("Upgrade: h2c", &format!("Upgrade: h2c\r\n{field}"));
    let status = |line: &str| format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n");
    let other = "the server's 101 does not upgrade to h2c";
    let content = "the server's 101 says that it has content";
    let no_http1 = "framing: the status line does not begin with HTTP/1., a digit and a space";
    let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(102);
    for (answer, why) in [
        (status("200 OK"), "the server answered 200 instead of 101"),
        (status("426 Upgrade Required"), "the server answered 426 instead of 101"),
        (like("Upgrade: h2c\r\n", ""), other),
        (like(": h2c", ": websocket"), other),
        (like(": h2c", ": h2c, h2"), other),
        (like(": Upgrade", ": close"), "the server's 101 does not say Connection: Upgrade"),
        (like("/1.1", "/1.0"), "the server's 101 is HTTP/1.0"),
        (more("Content-Length: 5"), content),
        (more("Transfer-Encoding: chunked"), content),
        (endless, "limit: too many 1xx responses"),
        ("\0\0\0\u{4}\0\0\0\0\0".into(), no_http1),
    ] {
        let mut play = upgrading();
        assert_eq!(play.deliver(answer.as_bytes()), Disposition::Refused, "{answer}");
        let found = play.client.why_not_upgraded().expect("why").to_string();
        assert_eq!(found, why);
        assert_eq!(play.sent, b"", "nothing of HTTP/2 is said to a peer that does not speak it");
    }
}

#[test]
fn what_goes_wrong_behind_a_101_is_a_mistake_in_http_2() {
    let begun = || agreed().headers(1, OK, false);
    let twice = Peer::default().bytes(AGREES.as_bytes()).bytes(AGREES.as_bytes());
    let empty = |peer: Peer| peer.data(1, b"", false);
    let hasty = Peer::default().bytes(AGREES.as_bytes()).answer(1);
    for (what, peer, ending) in [
        ("HTTP/1.1 goes on", twice, Ending::H2Protocol),
        ("no SETTINGS", hasty, Ending::H2Protocol),
        ("the answer is reset", begun().reset(1, ErrorCode::Cancel), Ending::H2Protocol),
        ("the answer never ends", begun().times(1001, empty), Ending::Limit),
    ] {
        let mut play = upgrading();
        assert_eq!(play.receive(peer), Disposition::Refused, "{what}");
        assert_eq!(play.client.why_broken().map(|(ending, _)| ending), Some(ending), "{what}");
    }
}

#[test]
fn a_reset_behind_the_answer_to_the_upgrade_is_nobodys() {
    let mut play = upgrading();
    play.receive(agreed().answer(1).reset(1, ErrorCode::NoError));
    play.ask(1);
    assert_eq!(play.receive(Peer::default().answer(3)), Disposition::Open);
    assert_eq!(play.endings, [(0, Ending::Ok)]);
}

proptest! {
    #[test]
    fn an_upgrade_goes_the_same_way_however_it_is_cut(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        interim in 0..3usize,
        goes_on in any::<bool>(),
        change in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
    ) {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(interim);
        let peer = Peer::default().bytes(early.as_bytes()).bytes(AGREES.as_bytes());
        let peer = peer.settings(&[(3, 9)]).headers(1, OK, false);
        let mut bytes = if goes_on { peer.data(1, b"hello", true).ping(false) } else { peer }.0;
        if let Some((place, change)) = change {
            let place = place.index(bytes.len());
            bytes[place] ^= change;
        }
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let receive = |parts: &[&[u8]]| {
            let mut play = upgrading();
            let mut link = Disposition::Opening;
            for part in parts {
                link = play.deliver(part);
                if !matches!(link, Disposition::Opening | Disposition::Open) {
                    break;
                }
            }
            if matches!(link, Disposition::Open) {
                play.ask(1);
            }
            (link, play.sent, play.client.why_broken(), play.client.why_not_upgraded())
        };
        let parts: Vec<_> = places.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
        prop_assert_eq!(receive(&parts), receive(&[&bytes]));
    }
}
