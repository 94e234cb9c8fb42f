//! Sessions whose answers are streams, and whose connections change their version.

use std::sync::Arc;
use std::time::Duration;

use trueload_engine::generator::{Requests, Scenario, StepPace, Target, Text, Users};
use trueload_load::Mix;
use trueload_meter::Class;
use trueload_wire::message::{Rules, Site, Texts};
use trueload_wire::parts::{Kind, Rule};
use trueload_wire::session::{Extractor, Script, Take};

use super::peer::Answer;
use super::play::{Asks, PINNED, Play, Speaks};
use super::{redirects, sessions, streams};

/// A log-in, a page by its token, and one more by what the page said.
fn users(stream: bool, follow: Option<u8>) -> Users {
    let site = Site { host: "h".to_owned(), secure: false };
    let mut script = Script::new(site).over_http2();
    if follow.is_some() {
        script = script.following();
    }
    let host = [("Host".to_owned(), "h".to_owned())];
    let json = |value: &str| {
        let from = Extractor::json(&format!("/{value}")).expect("a pointer");
        vec![Take { value: value.to_owned(), from }]
    };
    for (path, takes) in
        [("/login", json("token")), ("/page/{token}", json("next")), ("/last/{next}", vec![])]
    {
        let texts = Texts { method: "GET", path, headers: &host, body: None };
        script.add(&texts, takes).expect("known values");
    }
    let pace = StepPace { repeat: 1, ..StepPace::default() };
    let rules = Rules { idempotent: true, ..Rules::default() };
    let target = Target { text: Text::Session, whole: None, rules };
    let order = Mix::new(&[1]).expect("an order");
    let requests =
        Requests::new(vec![target; 3], order, 1, true, (0, 1)).in_sessions([pace; 3], None);
    let rule = Rule { kind: Kind::Chunks, end: None, stall_ns: Some(super::STALL_NS) };
    Users::new(Scenario {
        script: Arc::new(script),
        requests: Arc::new(requests),
        follow,
        seed: 1,
        run: 1,
        unix_time: Duration::ZERO,
        stream: stream.then_some(rule),
    })
}

/// An answer with a value, which is cut between its parts.
fn telling(value: &str) -> Answer {
    let (key, text) = value.split_once('=').expect("a pair");
    Answer::ok(&["{\"", key, "\":\"", text, "\"}"])
}

const LAST: [&str; 2] = ["a", "b"];

#[test]
fn values_are_taken_from_the_whole_stream_and_each_part_counts_once() {
    for speaks in [Speaks::Http1, Speaks::Http2, Speaks::Either] {
        let mut play = Play::begin(users(true, Some(2)), speaks, Asks::at_once(1, 2));
        for session in 0..2 {
            // The log-in is redirected once: what that says is neither a part nor a value.
            let base = 4 * session;
            let moved = Answer::redirect("/in").with("set-cookie", "s=1; Path=/");
            for (nth, (asked, answer)) in [
                ("GET /login", moved),
                ("GET /in", telling("token=t7")),
                ("GET /page/t7", telling("next=n8")),
                ("GET /last/n8", Answer::ok(&LAST)),
            ]
            .into_iter()
            .enumerate()
            {
                play.at(u64::from(10 * base) + 10 * nth as u64 + 10);
                assert_eq!(play.asked(), [asked], "{speaks:?}");
                play.answer(&[(base + nth as u32, &answer)]);
            }
        }
        let (done, _) = play.end();
        assert_eq!(sessions(&done), (2, 2, 0), "{speaks:?}");
        assert_eq!(streams(&done), (2 * (5 + 5 + 2), 6), "{speaks:?}");
        assert_eq!(redirects(&done).0, [(0, 4), (1, 2)], "{speaks:?}");
        assert_eq!((done.meter.issued, done.meter.failed_sum()), (6, 0), "{speaks:?}");
    }
}

#[test]
fn a_stream_that_fails_ends_its_session_and_the_steps_behind_it_are_skipped() {
    for speaks in PINNED {
        for (answer, class, parts) in [
            (telling("token=t").begun(), Class::TimeoutStall, 5),
            (telling("other=t"), Class::Extract, 5),
            (Answer::ok(&[]), Class::Mismatch, 0),
        ] {
            let mut play = Play::begin(users(true, None), speaks, Asks::at_once(1, 1));
            play.at(10);
            assert_eq!(play.asked(), ["GET /login"]);
            play.answer(&[(0, &answer)]);
            let (done, _) = play.end();
            assert_eq!(sessions(&done), (1, 0, 1), "{speaks:?}, {class}");
            assert_eq!(done.meter.failed().collect::<Vec<_>>(), [(class, 1)], "{speaks:?}");
            let skipped: Vec<_> = done.meter.targets.iter().map(|step| step.skipped).collect();
            assert_eq!(skipped, [0, 1, 1], "{speaks:?}, {class}");
            // A stream that came to its end is whole, whatever is missing in it.
            let whole = u64::from(class == Class::Extract);
            assert_eq!(streams(&done), (parts, whole), "{speaks:?}, {class}");
        }
    }
}

#[test]
fn a_session_keeps_what_it_knows_when_its_next_connection_speaks_another_version() {
    // Versions of the connections; how each but the last ends: announced with an answer or not.
    for order in [[true, false, true], [true, true, false]] {
        for announced in [true, false] {
            let mut play = Play::begin(users(false, None), Speaks::Either, Asks::at_once(1, 1));
            for (step, (asked, answer)) in [
                ("GET /login", telling("token=t7")),
                ("GET /page/t7", telling("next=n8")),
                ("GET /last/n8", Answer::ok(&LAST)),
            ]
            .into_iter()
            .enumerate()
            {
                play.at(20 * step as u64 + 10);
                assert_eq!(play.asked(), [asked], "{order:?}, step {step}");
                assert_eq!(play.peer().over_http2, order[step]);
                let is_last = step == 2;
                let closes = announced && !is_last;
                play.answer(&[(0, &if closes { answer.closing() } else { answer })]);
                if is_last {
                    break;
                }
                if !announced {
                    assert_eq!(play.asked().len(), 1, "it goes stale");
                }
                play.end_connection();
                play.at(20 * step as u64 + 15);
                play.connected(order[step + 1]);
            }
            let (done, _) = play.end();
            assert_eq!(sessions(&done), (1, 1, 0), "{order:?}");
            let stale = if announced { 0 } else { 2 };
            assert_eq!((done.meter.issued, done.meter.stale), (3, stale), "{order:?}");
            let account = done.account.expect("connections count");
            assert_eq!((account.connections, account.chose_http1), (2, 1), "{order:?}");
            assert_eq!(done.meter.failed_sum(), 0);
            assert_eq!(account.goaways > 0, announced);
        }
    }
}
