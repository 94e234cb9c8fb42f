//! The same servers, with two engines that share the broadcast: what each counts at its own clients comes to what
//! one alone would have counted.

use trueload_load::Stop;
use trueload_sim::scenario::S;
use trueload_wire::shootout::Dialect;

use super::peer::{Fault, Way};
use super::table::{ROWS, Row};
use super::{Cut, Play, Seen, TIMEOUT_NS, counts, play, turns};

fn holds(rows: &[&Row]) {
    for row in rows {
        for dialect in row.dialects {
            let random = (0..3).map(Cut::Random);
            for cut in [Cut::Whole, Cut::Bytes].into_iter().chain(random) {
                let seen = play(row, *dialect, cut, 2);
                let why = format!("{}, {}, {cut:?}: {seen:#?}", row.name, dialect.name());
                (row.check)(&seen, &why);
            }
        }
    }
}

/// Rows of the table in which it matters who sends what: an engine that has lost all its clients leaves its part
/// unsent, and what a client has that is closed depends on how often it had its turn.
const OTHERWISE: &[Row] = &[
    Row::of("drops half the clients, FIN", Fault::DropsHalf(Way::Fin), half_is_gone),
    Row::of("drops half the clients, RST", Fault::DropsHalf(Way::Rst), half_is_gone),
    Row::of("drops half the clients, close frame", Fault::DropsHalf(Way::Frame), half_is_gone),
    Row::of("upgrades every other client", Fault::UpgradesHalf, |seen, why| {
        assert_eq!((seen.established, seen.ok, seen.unsent), (2, 5, 5), "{why}");
        assert_eq!(seen.deliveries, [10, 10, 0, 0, 0], "{why}");
    }),
    Row::of("stalls one subscriber", Fault::Stalls, |seen, why| {
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((delivered, seen.unsent), (31, 0), "the others have had all: {why}");
        assert!(lost > 0 && expected <= 40, "{why}");
        assert_eq!(seen.failed.get("timeout.first_byte"), Some(&1), "{why}");
        assert_eq!(seen.failed.get("lost"), Some(&4), "those that the other engine had had: {why}");
    }),
    Row::of("no receipt", Fault::NoReceipt, |seen, why| {
        assert_eq!((seen.ok, seen.failed.get("timeout.first_byte")), (9, Some(&1)), "{why}");
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((expected - delivered, lost), (0, 0), "{why}");
    }),
    Row::of("says goodbye to a join, and in the middle", Fault::Goodbye, |seen, why| {
        assert_eq!((seen.established, seen.refused.get("ws.closed")), (3, Some(&1)), "{why}");
        assert_eq!(seen.deliveries, [30, 21, 9, 0, 0], "the others have had all: {why}");
        assert_eq!(seen.ok + seen.failed.values().sum::<u64>(), 10, "{why}");
    })
    .where_joined(),
];

fn half_is_gone(seen: &Seen, why: &str) {
    let [expected, delivered, lost, duplicate, _] = seen.deliveries;
    assert_eq!((seen.established, seen.ok, duplicate), (4, 1, 0), "{why}");
    let issued = 10 - seen.unsent;
    assert!(seen.unsent > 0, "one engine has nobody left: {why}");
    assert_eq!(expected, 4 * issued, "who was dropped is still to have what is sent: {why}");
    assert!(delivered == 14 && lost >= 9, "{why}");
}

/// Client 1, of engine 1, has something in place of a message of client 0, of engine 0, that nobody sent.
const MADE_UP: Row = Row::of(
    "a message that another engine did not send",
    Fault::SendsText(
        r#"{"type":"broadcast","payload":{"sender":0,"sequence":99,"padding":"xxxxxxxx"}}"#,
    ),
    |seen, why| {
        let failed = [("lost", 1), ("unsolicited", 1)];
        assert!(seen.failed.iter().map(|(class, count)| (*class, *count)).eq(failed), "{why}");
        let [expected, delivered, lost, duplicate, _] = seen.deliveries;
        assert_eq!((seen.ok, [expected, delivered, lost, duplicate]), (9, [40, 39, 1, 0]), "{why}");
    },
);

#[test]
fn two_engines_come_to_what_one_would_whatever_the_server_does() {
    let otherwise = |row: &&Row| OTHERWISE.iter().all(|other| other.name != row.name);
    holds(&ROWS.iter().filter(otherwise).collect::<Vec<_>>());
}

#[test]
fn rows_that_depend_on_who_sends_have_sums_that_agree() {
    let in_table = |row: &Row| ROWS.iter().any(|other| other.name == row.name);
    assert!(OTHERWISE.iter().all(in_table));
    holds(&OTHERWISE.iter().chain([&MADE_UP]).collect::<Vec<_>>());
}

#[test]
fn messages_belong_to_the_phase_in_which_they_were_sent_also_when_the_next_one_follows_at_once() {
    let phases = vec![turns(7, 9, Stop::After(2_000_000)); 2];
    let outcome = Play::new(Fault::Misses, Dialect::Json, phases).of_engines(3).play();
    assert_eq!(outcome.broken, []);
    for (done, lost) in outcome.done.iter().zip([1, 0]) {
        let (mut issued, mut expected, mut found) = (0, 0, 0);
        for done in done {
            let of = done.deliveries.as_ref().expect("deliveries");
            issued += done.meter.issued;
            expected += of.expected;
            found += of.lost;
            assert_eq!(of.expected, of.delivered + of.lost);
            assert_eq!((of.untimed, of.negative), (0, 0), "all engines have one clock");
            assert!(!of.histograms.delivery.is_empty());
            assert!(
                !of.histograms.spread.is_empty() || lost == 0,
                "told with what is settled next"
            );
        }
        assert!(issued > 20, "{issued}");
        assert_eq!((expected, found), (7 * issued, lost));
    }
}

#[test]
fn clients_join_from_phase_to_phase() {
    let rows = [(4, 10), (9, 20), (3, 5), (70, 3), (70, 0)];
    let phases = rows.map(|(clients, messages)| turns(clients, 4, Stop::Requests(messages)));
    let outcome = Play::new(Fault::None, Dialect::Phoenix, phases.into()).of_engines(3).play();
    assert_eq!(outcome.broken, []);
    for ((clients, messages), done) in rows.iter().zip(&outcome.done) {
        assert_eq!(counts(done)[1], messages * u64::from(*clients));
        let ok: u64 = done.iter().map(|done| done.meter.ok).sum();
        assert_eq!(ok, *messages, "{clients} clients");
    }
}

#[test]
fn what_does_not_come_by_the_time_that_the_front_names_is_lost() {
    // Two by each: the second broadcast is the first engine's, and client 1 the other's.
    let phases = vec![turns(4, 4, Stop::Requests(10))];
    let mut it = Play::new(Fault::Misses, Dialect::Json, phases).of_engines(2);
    it.scenario.settle_by_ns = Some(0);
    let outcome = it.play();
    assert_eq!((outcome.broken, counts(&outcome.done[0])[2]), (vec![], 1));
    let took_ns = outcome.done[0].iter().map(|done| done.done_ns - done.started_ns);
    assert!(took_ns.max() < Some(TIMEOUT_NS), "nothing was waited for");
}

#[test]
fn a_stop_before_it_is_settled_ends_it() {
    let phases = vec![turns(4, 2, Stop::Requests(10))];
    let mut it = Play::new(Fault::None, Dialect::Json, phases).of_engines(2);
    (it.scenario.front_ns, it.scenario.stop_ns) = (S, Some(S / 2));
    let outcome = it.play();
    assert_eq!(outcome.broken, []);
    let done = &outcome.done[0];
    assert!(done.iter().all(|done| done.partial), "what the others sent is not known");
    assert_eq!(done.iter().map(|done| done.meter.ok).sum::<u64>(), 10);
}
