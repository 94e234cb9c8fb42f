//! Tests of the record in virtual time.

use proptest::prelude::*;

use super::*;
use crate::protocol;

const MS: u64 = 1_000_000;

fn report(record: &mut Record, now_ns: u64) -> protocol::Interval {
    record.mark(now_ns).report("m".into())
}

#[test]
fn peaks_and_means_are_over_time_and_not_over_events() {
    let mut record = Record::begin(0);
    record.opened(0, 0);
    record.opened(250 * MS, 1);
    record.requested(250 * MS, 0, 1);
    record.requested(500 * MS, 1, 1);
    record.answered(750 * MS, 0, 200, 1);
    record.closed(750 * MS, 0, Closed::ByClient { half_sent: false });
    let seen = report(&mut record, 1000 * MS);
    assert_eq!((seen.connections.now, seen.connections.peak), (1, 2));
    assert!((seen.connections.mean - 1.5).abs() < 1e-9, "{:?}", seen.connections);
    assert_eq!((seen.open_requests.now, seen.open_requests.peak), (1, 2));
    assert!((seen.open_requests.mean - 1.0).abs() < 1e-9, "{:?}", seen.open_requests);
}

#[test]
fn the_series_has_a_span_for_each_quarter_of_a_second_and_parts_of_one_at_the_ends() {
    let mut record = Record::begin(100 * MS);
    record.opened(100 * MS, 0);
    record.requested(200 * MS, 0, 3);
    record.answered(260 * MS, 0, 200, 1);
    record.answered(900 * MS, 0, 200, 2);
    let seen = report(&mut record, 900 * MS);
    let times: Vec<(u64, u64)> = seen.series.iter().map(|span| (span.began_ns, span.ns)).collect();
    let expected = [(100, 150), (250, 250), (500, 250), (750, 150)].map(|(a, b)| (a * MS, b * MS));
    assert_eq!(times, expected);
    let answered: Vec<u64> = seen.series.iter().map(|span| span.answered).collect();
    assert_eq!(answered, [0, 1, 0, 2]);
    let peaks: Vec<u32> = seen.series.iter().map(|span| span.open_requests_peak).collect();
    assert_eq!(peaks, [3, 3, 2, 2]);
    assert!((seen.series[0].open_requests_mean - 1.0).abs() < 1e-9, "3 for a third of it");
}

#[test]
fn a_gap_is_from_an_answer_to_the_next_request_on_its_connection() {
    let mut record = Record::begin(0);
    for key in [0, 1] {
        record.opened(0, key);
        record.requested(0, key, 1);
        record.answered(10 * MS, key, 200, 1);
    }
    record.requested(15 * MS, 0, 1);
    record.requested(16 * MS, 0, 1);
    record.answered(17 * MS, 0, 200, 1);
    record.requested(18 * MS, 0, 1);
    record.requested(40 * MS, 1, 1);
    let gaps = report(&mut record, 50 * MS).gap_ns.expect("two gaps");
    assert_eq!((gaps.count, gaps.min, gaps.max), (2, 5 * MS, 30 * MS), "pipelined ones are none");
}

#[test]
fn a_request_whose_client_leaves_is_aborted_and_one_that_the_server_leaves_is_dropped() {
    let mut record = Record::begin(0);
    for key in 0..3 {
        record.opened(0, key);
        record.requested(0, key, 2);
        record.answered(0, key, 404, 1);
    }
    record.closed(MS, 0, Closed::ByClient { half_sent: true });
    record.closed(MS, 1, Closed::ByServer);
    let seen = report(&mut record, 2 * MS);
    assert_eq!((seen.aborted, seen.half_sent, seen.dropped, seen.closed), (1, 1, 1, 2));
    assert_eq!((seen.requests, seen.answered, seen.ok, seen.open_requests.now), (6, 3, 0, 1));
    assert_eq!(seen.statuses.get("404"), Some(&3));
}

#[test]
fn connections_are_counted_by_how_often_they_were_used_in_the_interval_open_ones_too() {
    let mut record = Record::begin(0);
    for (key, requests) in [(0, 1), (1, 4), (2, 0), (3, 1)] {
        record.opened(0, key);
        (0..requests).for_each(|_| {
            record.requested(MS, key, 1);
            record.answered(MS, key, 200, 1);
        });
    }
    record.closed(2 * MS, 0, Closed::ByClient { half_sent: false });
    let seen = report(&mut record, 3 * MS);
    let each = seen.requests_per_connection.expect("used connections");
    assert_eq!((seen.used_once, seen.unused), (2, 1));
    assert_eq!((each.count, each.min, each.p50, each.max), (3, 1, 1, 4));
    record.requested(4 * MS, 1, 1);
    let seen = report(&mut record, 5 * MS);
    assert_eq!((seen.used_once, seen.unused, seen.accepted), (1, 2, 0), "of the next interval");
}

#[test]
fn a_place_that_is_used_again_is_another_connection() {
    let mut record = Record::begin(0);
    record.opened(0, 0);
    record.requested(0, 0, 1);
    record.answered(MS, 0, 200, 1);
    record.closed(MS, 0, Closed::ByServer);
    record.opened(5 * MS, 0);
    record.requested(9 * MS, 0, 1);
    let seen = report(&mut record, 10 * MS);
    assert_eq!((seen.accepted, seen.closed, seen.connections.now), (2, 1, 1));
    assert_eq!(seen.gap_ns, None, "the answer was on another connection");
}

#[test]
fn the_clock_of_throughput_goes_from_the_first_request_to_the_last_answer() {
    let mut record = Record::begin(0);
    let seen = report(&mut record, MS);
    assert_eq!((seen.first_request_ns, seen.last_answer_ns), (None, None));
    record.opened(MS, 0);
    record.requested(2 * MS, 0, 1);
    record.answered(12 * MS, 0, 200, 1);
    record.requested(13 * MS, 0, 1);
    record.answered(24 * MS, 0, 200, 1);
    let seen = report(&mut record, 30 * MS);
    assert_eq!((seen.first_request_ns, seen.last_answer_ns), (Some(2 * MS), Some(24 * MS)));
}

#[test]
fn threads_are_put_together_span_by_span() {
    let mut sum: Option<Interval> = None;
    for (key, at_ns) in [(0, 0), (1, 300 * MS)] {
        let mut record = Record::begin(0);
        record.opened(at_ns, key);
        record.requested(at_ns, key, 1);
        record.answered(400 * MS, key, 200, 1);
        let interval = record.mark(500 * MS);
        match &mut sum {
            None => sum = Some(interval),
            Some(sum) => sum.merge(&interval),
        }
    }
    let seen = sum.expect("two threads").report("m".into());
    assert_eq!((seen.threads, seen.requests, seen.answered, seen.ok), (2, 2, 2, 2));
    assert_eq!((seen.connections.peak, seen.first_request_ns), (2, Some(0)));
    assert!((seen.connections.mean - 1.4).abs() < 1e-9, "{:?}", seen.connections);
    let series: Vec<(u64, u64)> = seen.series.iter().map(|span| (span.requests, span.ns)).collect();
    assert_eq!(series, [(1, 250 * MS), (1, 250 * MS)]);
}

/// An event on one of four connections, or a mark.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Open(u32),
    Request(u32),
    Answer(u32),
    Close(u32, Closed),
    Mark,
}

fn happenings() -> impl Strategy<Value = Vec<(u64, Happening)>> {
    let key = || 0..4u32;
    let how = prop_oneof![
        any::<bool>().prop_map(|half_sent| Closed::ByClient { half_sent }),
        Just(Closed::ByServer)
    ];
    let happening = prop_oneof![
        3 => key().prop_map(Happening::Open),
        6 => key().prop_map(Happening::Request),
        6 => key().prop_map(Happening::Answer),
        1 => (key(), how).prop_map(|(key, how)| Happening::Close(key, how)),
        1 => Just(Happening::Mark),
    ];
    prop::collection::vec((0..200 * MS, happening), 0..120)
}

/// The intervals of a record that is given these events, with or without their marks.
fn played(events: &[(u64, Happening)], marks: bool) -> Vec<protocol::Interval> {
    let mut record = Record::begin(0);
    let (mut now_ns, mut open, mut waiting) = (0, [false; 4], [0; 4]);
    let mut intervals = Vec::new();
    for (after_ns, happening) in events {
        now_ns += after_ns;
        match *happening {
            Happening::Open(key) if !open[key as usize] => {
                open[key as usize] = true;
                record.opened(now_ns, key);
            }
            Happening::Request(key) if open[key as usize] => {
                waiting[key as usize] += 1;
                record.requested(now_ns, key, 1);
            }
            Happening::Answer(key) if waiting[key as usize] > 0 => {
                waiting[key as usize] -= 1;
                record.answered(now_ns, key, 200, 1);
            }
            Happening::Close(key, how) if open[key as usize] => {
                (open[key as usize], waiting[key as usize]) = (false, 0);
                record.closed(now_ns, key, how);
            }
            Happening::Mark if marks => intervals.push(report(&mut record, now_ns)),
            _ => {}
        }
    }
    intervals.push(report(&mut record, now_ns));
    intervals
}

fn areas(seen: &protocol::Interval) -> [f64; 2] {
    let ns = (seen.at_ns - seen.began_ns) as f64;
    [seen.connections.mean * ns, seen.open_requests.mean * ns]
}

proptest! {
    #[test]
    fn intervals_add_up_to_what_one_interval_holds(events in happenings()) {
        let whole = played(&events, false).remove(0);
        let parts = played(&events, true);
        let sum = |of: fn(&protocol::Interval) -> u64| parts.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|seen| seen.requests), whole.requests);
        prop_assert_eq!(sum(|seen| seen.answered), whole.answered);
        prop_assert_eq!(sum(|seen| seen.ok), whole.ok);
        prop_assert_eq!(sum(|seen| seen.aborted), whole.aborted);
        prop_assert_eq!(sum(|seen| seen.dropped), whole.dropped);
        prop_assert_eq!(sum(|seen| seen.half_sent), whole.half_sent);
        prop_assert_eq!(sum(|seen| seen.accepted), whole.accepted);
        prop_assert_eq!(sum(|seen| seen.closed), whole.closed);
        let gaps = |seen: &protocol::Interval| seen.gap_ns.as_ref().map_or(0, |gaps| gaps.count);
        prop_assert_eq!(sum(gaps), gaps(&whole));
        for at in [0, 1] {
            let area: f64 = parts.iter().map(|seen| areas(seen)[at]).sum();
            prop_assert!((area - areas(&whole)[at]).abs() <= 1e-6 * area.max(1.0));
        }
        let peak = parts.iter().map(|seen| seen.open_requests.peak).max();
        prop_assert_eq!(peak, Some(whole.open_requests.peak));
        prop_assert!(parts.windows(2).all(|pair| pair[0].at_ns == pair[1].began_ns));
    }

    #[test]
    fn every_request_is_counted_once(events in happenings()) {
        let mut open_before = 0;
        for seen in played(&events, true) {
            let ended = seen.answered + seen.aborted + seen.dropped;
            let open = u64::from(seen.open_requests.now);
            prop_assert_eq!(open_before + seen.requests, ended + open);
            open_before = open;
            let spans: u64 = seen.series.iter().map(|span| span.ns).sum();
            prop_assert_eq!(spans, seen.at_ns - seen.began_ns, "the series covers the interval");
        }
    }
}
