//! Conversations: requests, the upgrade, then messages, however the server's bytes are split.

use proptest::prelude::*;
use trueload_wire::exchange::{Disposition, Ending, Exchange, InOrder, Output, PeerClose, Timer};
use trueload_wire::message::Form;
use trueload_wire::websocket::{Kind, fake, send};

use super::talk::{AWAITED, MESSAGE, Play, SENT, UPGRADE, accepted};

fn text(message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    send::message(&mut out, Kind::Text, message.as_bytes(), None);
    out
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_log_in_comes_before_the_upgrade_and_the_last_step_says_good_bye() {
    let mut play = Play::of(
        &[
            (Form::Request, "POST /login HTTP/1.1\r\nHost: h\r\n\r\n", ""),
            (Form::Upgrade, UPGRADE, ""),
            (MESSAGE, "join", "joined"),
            (SENT, "bye", ""),
        ],
        false,
    );
    play.ask();
    assert!(play.sent.starts_with(b"POST /login"));
    assert_eq!(play.hear(OK), Disposition::Open);
    play.sent.clear();
    play.upgrade();
    play.ask();
    assert_eq!(play.hear(&text("joined as 7")), Disposition::Open);
    assert_eq!(play.book.heard.borrow().as_slice(), b"okjoined as 7");
    assert_eq!(play.ask(), Disposition::Closing);
    assert_eq!(play.said(), ["join", "bye", "close Some(1000)"]);
    assert_eq!(play.endings(), (0..4).map(|step| (step, Ending::Ok)).collect::<Vec<_>>());
    assert_eq!((play.shared.heard().received, play.shared.heard().unexpected), (1, 0));
}

#[test]
fn what_comes_before_its_step_is_kept_for_it() {
    let steps = [(Form::Upgrade, UPGRADE, ""), (AWAITED, "", "hello"), (MESSAGE, "a", "b")];
    let mut play = Play::of(&steps, false);
    play.upgrade();
    assert_eq!(play.hear(&[text("hello"), text("b")].concat()), Disposition::Open);
    assert_eq!(play.outcomes.len(), 1);
    assert_eq!(play.ask(), Disposition::Open);
    assert_eq!(play.ask(), Disposition::Closing);
    assert_eq!(play.endings(), [(0, Ending::Ok), (1, Ending::Ok), (2, Ending::Ok)]);
}

#[test]
fn a_message_that_no_step_awaits_ends_the_conversation_unless_it_is_allowed() {
    for (ignores, disposition, ending) in
        [(false, Disposition::Broken, Ending::Mismatch), (true, Disposition::Closing, Ending::Ok)]
    {
        let steps = [(Form::Upgrade, UPGRADE, ""), (MESSAGE, "a", "b")];
        let mut play = Play::of(&steps, ignores);
        play.upgrade();
        play.ask();
        let heard = play.hear(&[text("news"), text("b")].concat());
        assert_eq!((heard, play.outcomes[1].ending), (disposition, ending));
        assert_eq!(play.shared.heard().unexpected, 1);
        let (ending, why) = match ignores {
            true => (Ending::TimeoutFirstByte, "came instead of what the step expects"),
            false => (Ending::Mismatch, "came, and no step expects it"),
        };
        assert_eq!(play.shared.reasons(), [(ending, format!("\"news\" {why}"))]);
    }
}

#[test]
fn a_server_that_closes_or_refuses_is_told_with_its_words() {
    let mut closing = Vec::new();
    send::close(&mut closing, Some(1008), "no room", None);
    let refused = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
    let steps = [(Form::Upgrade, UPGRADE, ""), (MESSAGE, "a", "b")];
    let mut play = Play::of(&steps, false);
    play.upgrade();
    play.ask();
    assert_eq!(play.hear(&closing), Disposition::Closing);
    assert_eq!(play.outcomes[1].ending, Ending::WsClosed);
    assert_eq!(
        play.shared.reasons()[0].1,
        "the server closed the WebSocket with 1008: \"no room\""
    );
    let mut play = Play::of(&steps, false);
    play.ask();
    assert_eq!(play.hear(refused), Disposition::Broken);
    assert_eq!((play.outcomes[0].ending, play.outcomes[0].status), (Ending::Status, Some(403)));
    assert_eq!(play.shared.reasons()[0].1, "the server answered 403 instead of 101");
    let asks = "GET /chat HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Protocol: v1, v2\r\n\r\n";
    let mut play = Play::of(&[(Form::Upgrade, asks, ""), (MESSAGE, "a", "b")], false);
    play.ask();
    let answer = accepted(&play.sent);
    assert_eq!(play.hear(&answer), Disposition::Broken);
    assert_eq!(play.outcomes[0].ending, Ending::WsHandshake);
    let why = "the server's 101 chooses none of the subprotocols that were asked for";
    assert_eq!(play.shared.reasons()[0].1, why);
}

#[test]
fn a_step_whose_connection_is_gone_fails_and_so_does_one_that_is_cut() {
    let steps = [(Form::Upgrade, UPGRADE, ""), (MESSAGE, "a", "b")];
    let mut play = Play::of(&steps, false);
    play.upgrade();
    play.client.reset();
    assert_eq!(play.ask(), Disposition::Broken);
    assert_eq!(play.outcomes[1].ending, Ending::WsClosed);
    let mut play = Play::of(&steps, false);
    play.upgrade();
    play.ask();
    let Play { client, book, outcomes, .. } = &mut play;
    client.handle_end(9, PeerClose::Fin, book, &mut |one| outcomes.push(one));
    assert_eq!(play.outcomes[1].ending, Ending::Empty);
}

#[test]
fn pings_are_answered_and_a_flood_of_them_is_not_an_answer() {
    let steps = [(Form::Upgrade, UPGRADE, ""), (MESSAGE, "a", "b")];
    let mut play = Play::of(&steps, false);
    play.upgrade();
    play.ask();
    let mut ping = Vec::new();
    fake::ping(&mut ping, b"p", None);
    assert_eq!(play.hear(&ping), Disposition::Open);
    assert_eq!(play.hear(&text("2")), Disposition::Open);
    assert_eq!(play.said(), ["a", "Pong([112])", "3"]);
    assert_eq!(play.shared.heard().received, 0);
    assert_eq!(play.hear(&ping.repeat(1000)), Disposition::Broken);
    assert_eq!(play.outcomes[1].ending, Ending::Limit);
}

#[test]
fn a_message_that_does_not_come_in_its_time_fails_the_step() {
    let late = Form::Message { is_text: true, sends: true, awaits: true, within_ns: Some(100) };
    let mut play =
        Play::of(&[(Form::Upgrade, UPGRADE, ""), (late, "a", "b"), (late, "a", "b")], true);
    play.upgrade();
    play.ask();
    assert_eq!(play.client.next_timer(), Some((107, Timer::Stall)));
    play.now_ns = 106;
    assert_eq!(play.hear(&text("b")), Disposition::Open);
    assert_eq!(play.client.next_timer(), None);
    play.ask();
    assert_eq!(play.hear(&text("news")), Disposition::Open);
    let Play { client, outcomes, .. } = &mut play;
    let mut output = Output::default();
    for (now_ns, disposition) in [(205, Disposition::Open), (206, Disposition::Broken)] {
        let told =
            client.handle_timer(now_ns, Timer::Stall, &mut output, &mut |one| outcomes.push(one));
        assert_eq!(told, disposition);
    }
    let endings = [(0, Ending::Ok), (1, Ending::Ok), (2, Ending::TimeoutFirstByte)];
    assert_eq!(play.endings(), endings);
    assert_eq!(play.shared.reasons()[0].1, "\"news\" came instead of what the step expects");
}

#[test]
fn gaps_and_deliveries_are_timed() {
    let steps = [(Form::Upgrade, UPGRADE, ""), (AWAITED, "", "end")];
    let mut play = Play::of(&steps, true);
    play.upgrade();
    play.ask();
    for (now_ns, message) in [
        (100, "x stamp-0000000700000000000000ff"),
        (300, "x stamp-0000000700000000000000ff"),
        (350, "x stamp-0000000800000000000000ff"),
    ] {
        play.now_ns = now_ns;
        play.hear(&text(message));
    }
    let heard = play.shared.heard();
    assert_eq!((&heard.gaps_ns, &heard.delivered_ns), (&vec![200, 50], &vec![0, 45]));
}

proptest! {
    #[test]
    fn a_split_makes_no_difference(cuts in proptest::collection::vec(1usize..20, 1..40)) {
        let steps = [
            (Form::Upgrade, UPGRADE, ""),
            (AWAITED, "", "hello"),
            (MESSAGE, "a", "b"),
            (SENT, "c", ""),
        ];
        let mut play = Play::of(&steps, true);
        play.ask();
        let mut bytes = accepted(&play.sent);
        play.sent.clear();
        for message in ["hello", "news", "b", "more"] {
            bytes.extend(text(message));
        }
        let (mut at, mut cuts) = (0, cuts.into_iter().cycle());
        while at < bytes.len() {
            let end = bytes.len().min(at + cuts.next().unwrap_or(1));
            let _ = play.hear(&bytes[at..end]);
            at = end;
            while play.client.outstanding() == 0 && play.next < steps.len() {
                play.ask();
            }
        }
        prop_assert_eq!(play.endings(), (0..4).map(|step| (step, Ending::Ok)).collect::<Vec<_>>());
        prop_assert_eq!(play.said(), ["a", "c", "close Some(1000)"]);
    }
}
