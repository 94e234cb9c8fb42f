//! Tests of the accounting: waits, retries, violations, and the phases that are still open.

use trueload_load::Load;

use super::super::slot::Slot;
use super::super::slots::Slots;
use super::*;

fn accounting_of(phases: usize) -> Accounting {
    accounting_with(Arc::default(), phases)
}

/// Answers requests one by one, evenly over a time.
fn serve(accounting: &mut Accounting, state: &mut State, during_ns: Range<u64>, count: u64) {
    for number in 0..count {
        let at_ns = during_ns.start + (during_ns.end - during_ns.start) * number / count;
        let tag = issue(accounting, state, at_ns, 1);
        accounting.settle(state, at_ns, &ok(tag, 1));
        accounting.end_batch(at_ns);
    }
}

/// An accounting that shares its number of answers.
fn accounting_with(served_all: Arc<Served>, phases: usize) -> Accounting {
    let mut accounting = Accounting::new(served_all, false, None);
    let load = Load::Closed { active: Arc::default() };
    let (stop, connections) = (Stop::After(10 * S), 1);
    let share = PhaseShare::new(load, stop, connections, 0);
    (0..phases).for_each(|_| accounting.add(share.clone(), 1, false));
    accounting
}

#[test]
fn only_phases_that_have_begun_and_are_not_over_are_looked_at() {
    let mut accounting = accounting_of(1000);
    assert_eq!(accounting.unfinished(), 0..0, "none has begun");
    for current in 1..1000 {
        accounting.current = Some(current);
        // The phase before is still draining when the next begins; earlier ones are over.
        assert_eq!(accounting.unfinished(), current - 1..current + 1);
        accounting.phases[current - 1].state = PhaseState::Done;
    }
    accounting.phases[999].state = PhaseState::Done;
    assert_eq!(accounting.unfinished(), 1000..1000, "all are over");
}

#[test]
fn a_phase_that_is_over_before_an_earlier_one_does_not_hide_it() {
    let mut accounting = accounting_of(3);
    accounting.current = Some(2);
    accounting.phases[1].state = PhaseState::Done;
    assert_eq!(accounting.unfinished(), 0..3);
    accounting.phases[0].state = PhaseState::Done;
    assert_eq!(accounting.unfinished(), 2..3);
}

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A slot without any history.
fn state() -> State {
    Slot::new(trueload_wire::http1::client::Client::<Tag>::default()).state
}

/// Sends `count` requests of the first phase at `now_ns`.
fn issue(accounting: &mut Accounting, state: &mut State, now_ns: u64, count: u64) -> Tag {
    accounting.issue(0, state, count);
    accounting.tag(now_ns, now_ns, 0)
}

fn ok(tag: Tag, count: usize) -> Outcome<Tag> {
    let ending = Ending::Ok;
    let (status, first_byte_ns, content) = (None, tag.sent_ns, None);
    Outcome { tag, count, ending, complete: true, status, first_byte_ns, content }
}

fn unanswered(tag: Tag, ending: Ending) -> Outcome<Tag> {
    Outcome::unanswered(tag, ending, tag.sent_ns)
}

#[test]
fn outcomes_alike_are_one_row_and_others_begin_the_next() {
    let (mut accounting, mut state, mut row) = (accounting_of(1), state(), Row::default());
    let early = issue(&mut accounting, &mut state, 1, 5);
    let late = issue(&mut accounting, &mut state, 2, 1);
    assert!(!row.takes(&ok(early, 2)), "it is the first");
    accounting.begin_row(&mut row, &mut state, (3, None), ok(early, 2));
    assert!(row.takes(&ok(early, 3)), "alike, whatever their number");
    assert!(!row.takes(&ok(late, 1)));
    assert_eq!(accounting.phases[0].meter.ok, 0, "not entered yet");
    accounting.begin_row(&mut row, &mut state, (3, None), ok(late, 1));
    assert_eq!(accounting.phases[0].meter.ok, 5);
    assert_eq!(row.rest(), Some(&ok(late, 1)));
    assert_eq!(Row::default().rest(), None);
}

#[test]
fn a_wait_is_long_from_a_second_on_while_a_hundred_others_are_answered_on_any_thread() {
    for (wait_ns, here, elsewhere, is_long) in [
        (S, 100, 0, true),
        (S, 99, 0, false),
        (S - 1, 100, 0, false),
        (S, 50, 50, true),
        (S, 50, 49, false),
        (S, 0, 100, true),
        (3 * S, 500, 500, true),
    ] {
        let shared = Arc::default();
        let (mut accounting, mut other) =
            (accounting_with(Arc::clone(&shared), 1), accounting_with(shared, 1));
        let (mut slow, mut quick) = (state(), state());
        let waits = issue(&mut accounting, &mut slow, 5 * S, 1);
        serve(&mut other, &mut quick, 5 * S..5 * S + wait_ns, elsewhere);
        serve(&mut accounting, &mut quick, 5 * S..5 * S + wait_ns, here);
        accounting.end_batch(5 * S + wait_ns);
        accounting.settle(&mut slow, 5 * S + wait_ns, &ok(waits, 1));
        accounting.enter_slot(0, &mut slow);
        let expected = if is_long { vec![wait_ns] } else { Vec::new() };
        let found = &accounting.phases[0].meter.slots.long_waits_ns;
        assert_eq!(*found, expected, "{wait_ns} ns, {here} here, {elsewhere} elsewhere");
    }
}

#[test]
fn the_long_waits_of_a_slot_are_entered_once_and_counted() {
    let mut accounting = accounting_of(1);
    let (mut slow, mut quick) = (state(), state());
    for (sent_ns, wait_ns) in [(S, 2 * S), (4 * S, 3 * S), (8 * S, S)] {
        let waits = issue(&mut accounting, &mut slow, sent_ns, 1);
        serve(&mut accounting, &mut quick, sent_ns..sent_ns + wait_ns, 200);
        accounting.settle(&mut slow, sent_ns + wait_ns, &ok(waits, 1));
    }
    accounting.enter_slot(0, &mut slow);
    let sums = &accounting.phases[0].meter.slots;
    assert_eq!(sums.long_waits_ns, [3 * S]);
    assert_eq!(sums.long_waits, [[3, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!(sums.answers_sum, 3);
}

#[test]
fn a_connection_that_is_lost_without_an_answer_was_waited_on_in_vain() {
    let mut accounting = accounting_of(1);
    for (answered, sent_ns) in [(false, S), (true, 5 * S)] {
        let (mut slow, mut quick) = (state(), state());
        if answered {
            let before = issue(&mut accounting, &mut slow, sent_ns, 1);
            accounting.settle(&mut slow, sent_ns, &ok(before, 1));
        }
        // Both requests of the connection time out, and it is counted once.
        let waits = issue(&mut accounting, &mut slow, sent_ns, 2);
        serve(&mut accounting, &mut quick, sent_ns..sent_ns + 2 * S, 200);
        for ending in [Ending::TimeoutFirstByte; 2] {
            accounting.settle(&mut slow, sent_ns + 2 * S, &unanswered(waits, ending));
        }
        slow.note_lost(sent_ns + 2 * S, false);
        slow.found_again();
        slow.note_lost(sent_ns + 3 * S, false);
        accounting.enter_slot(0, &mut slow);
        let (ended, in_vain) = (2 + u64::from(answered), u64::from(!answered));
        let sums = &accounting.phases[0].meter.slots;
        assert_eq!(sums.long_waits_ns.last(), Some(&(2 * S)));
        let counts = [ended, 2, 2, 0, 0, 0, 0, in_vain, in_vain, 0, 0, 0, 0];
        assert_eq!(sums.long_waits.last(), Some(&counts), "answered: {answered}");
    }
}

#[test]
fn a_slot_is_down_when_it_was_lost_for_more_than_a_second_without_an_orderly_close() {
    for (down_ns, orderly, outage, expected) in [
        (S, false, false, (0, 0, 0)),
        (S + 1, false, false, (1, 0, 0)),
        (S + 1, true, false, (0, 0, 0)),
        (S, false, true, (0, 1, S)),
        (2 * S, true, true, (0, 1, 2 * S)),
    ] {
        let mut accounting = accounting_of(1);
        let mut state = state();
        accounting.phases[0].started_ns = S;
        state.trouble().lost = Some((2 * S, orderly));
        state.trouble().this_phase.outage = outage;
        accounting.phases[0].stopped_ns = 2 * S + down_ns;
        accounting.enter_slot(0, &mut state);
        let sums = &accounting.phases[0].meter.slots;
        let found = (sums.down, sums.outages, sums.outage_ns);
        assert_eq!(found, expected, "{down_ns} ns, orderly {orderly}, outage {outage}");
    }
}

#[test]
fn a_slot_that_was_lost_before_its_phase_is_down_from_the_start_of_it() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    (accounting.phases[0].started_ns, accounting.phases[0].stopped_ns) = (5 * S, 6 * S);
    state.trouble().lost = Some((S, false));
    accounting.enter_slot(0, &mut state);
    assert_eq!(accounting.phases[0].meter.slots.down, 0, "for one second of this phase");
}

#[test]
fn a_stale_request_goes_again_once_and_then_fails() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    // It had been handed over once, and more had been settled than this accounting has seen.
    let tag = Tag { handed_over: true, ..issue(&mut accounting, &mut state, S, 1) };
    accounting.settle(&mut state, S, &unanswered(tag, Ending::Stale));
    assert_eq!((accounting.phases[0].meter.stale, state.waiting_again()), (1, 1));
    assert_eq!(accounting.phases[0].meter.failed_sum(), 0);
    let again = state.trouble().again.remove(0);
    assert!(again.again);
    let again = accounting.tag_again(2 * S, Tag { noted: Noted::waits_since(7), ..again });
    assert_eq!(again.noted.served_before(), 0);
    assert_eq!((again.scheduled_ns, again.sent_ns, again.handed_over), (S, 2 * S, false));
    accounting.settle(&mut state, 2 * S, &unanswered(again, Ending::Stale));
    assert_eq!((accounting.phases[0].meter.stale, state.waiting_again()), (1, 0));
    assert_eq!(accounting.phases[0].meter.failed().collect::<Vec<_>>(), [(Class::Empty, 1)]);
}

#[test]
fn redirected_requests_go_on_and_only_their_wait_for_a_connection_is_no_service() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 2);
    for _ in 0..3 {
        let two = Outcome { count: 2, ..unanswered(tag, Ending::Redirected) };
        accounting.settle(&mut state, 2 * S, &two);
        let again: Vec<_> = state.trouble().again.drain(..).collect();
        assert_eq!(again.len(), 2, "both of a row of them");
        let again = accounting.tag_again(3 * S, again[0]);
        // It was sent at S, and has waited for a connection from 2 S on.
        assert_eq!((again.scheduled_ns, again.sent_ns), (S, 2 * S));
        assert_eq!((again.noted.served_before(), again.handed_over, again.again), (0, true, false));
    }
    let meter = &accounting.phases[0].meter;
    assert_eq!((meter.stale, meter.failed_sum(), meter.issued), (0, 0, 2));
}

#[test]
fn requests_behind_an_announced_close_go_again_each_time() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let mut tag = issue(&mut accounting, &mut state, S, 1);
    for times in 1..4 {
        accounting.settle(&mut state, S, &unanswered(tag, Ending::StaleBehind));
        assert_eq!((accounting.phases[0].meter.stale, state.waiting_again()), (times, 1));
        tag = state.trouble().again.remove(0);
    }
    assert_eq!(accounting.phases[0].meter.failed_sum(), 0);
}

#[test]
fn a_violation_is_charged_to_the_request_settled_last_or_kept_for_the_next() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 1);
    accounting.settle(&mut state, S + MS, &ok(tag, 1));
    assert_eq!(accounting.phases[0].meter.ok, 1);
    accounting.violated(&mut state, Class::Unsolicited);
    assert!(!state.has_uncharged());
    let meter = &accounting.phases[0].meter;
    assert_eq!((meter.ok, meter.failed().collect::<Vec<_>>()), (0, vec![(Class::Unsolicited, 1)]));
    accounting.violated(&mut state, Class::Framing);
    assert!(state.has_uncharged(), "nothing was settled since");
    assert_eq!(state.trouble().violation_class, Some(Class::Framing));
    assert_eq!(accounting.phases[0].meter.failed_sum(), 1);
}

#[test]
fn a_violation_behind_the_last_request_is_charged_to_one_that_was_sent() {
    for (sentence, answered, debts, [issued, ok_left, failed]) in [
        ("to one of another slot", 1, [0, 0, 1], [1, 0, 1]),
        ("to one of its own", 3, [0, 0, 1], [3, 2, 1]),
        ("two to two", 2, [1, 0, 1], [2, 0, 2]),
        ("more than there are requests", 1, [0, 0, 3], [1, 0, 1]),
        ("nothing was sent", 0, [0, 2, 1], [1, 0, 1]),
    ] {
        let mut accounting = accounting_of(1);
        let mut slots = Slots::<trueload_wire::http1::client::Client<Tag>>::new(S);
        slots.grow(3, Default::default);
        for key in 0..answered {
            let state = &mut slots[key].state;
            let tag = issue(&mut accounting, state, S, 1);
            accounting.settle(state, S + MS, &ok(tag, 1));
        }
        for (key, count) in (0..).zip(debts) {
            slots[key].state.trouble().uncharged = count;
        }
        slots.charge_debts(&mut accounting, 0);
        let meter = &accounting.phases[0].meter;
        let found = [meter.issued, meter.ok, meter.failed_sum()];
        assert_eq!(found, [issued, ok_left, failed], "{sentence}");
        assert_eq!(meter.scheduled, issued, "{sentence}");
    }
}

#[test]
fn a_violation_changes_the_class_of_a_request_that_had_failed() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 1);
    accounting.settle(&mut state, S, &unanswered(tag, Ending::Status));
    accounting.violated(&mut state, Class::Unsolicited);
    assert_eq!(accounting.phases[0].meter.failed().collect::<Vec<_>>(), [(Class::Unsolicited, 1)]);
}

#[test]
fn what_was_counted_of_a_phase_that_is_over_is_not_changed() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 1);
    accounting.settle(&mut state, S + MS, &ok(tag, 1));
    accounting.phases[0].state = PhaseState::Done;
    accounting.violated(&mut state, Class::Unsolicited);
    assert!(state.has_uncharged());
    let answered = Answered { latency_ns: MS, service_ns: MS, first_byte_ns: 0, total_ns: None };
    accounting.take_back(0, &answered, Class::Reset);
    assert_eq!((accounting.phases[0].meter.ok, accounting.phases[0].meter.failed_sum()), (1, 0));
}

#[test]
fn a_request_that_had_ended_well_is_taken_back() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 1);
    accounting.settle(&mut state, S + MS, &ok(tag, 1));
    let answered = Answered { latency_ns: MS, service_ns: MS, first_byte_ns: 0, total_ns: None };
    accounting.take_back(0, &answered, Class::Reset);
    let meter = &accounting.phases[0].meter;
    assert_eq!((meter.ok, meter.failed().collect::<Vec<_>>()), (0, vec![(Class::Reset, 1)]));
}

#[test]
fn a_request_that_could_not_be_sent_is_counted_and_over_at_once() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    accounting.charge(0, &mut state, 3 * S, (0, Class::ConnectRefused));
    let phase = &accounting.phases[0];
    assert_eq!((phase.open, phase.settled_ns), (0, 3 * S));
    assert_eq!((phase.meter.scheduled, phase.meter.issued, phase.meter.failed_sum()), (1, 1, 1));
    assert!(accounting.take_look(), "it may have ended the phase");
    assert!(!accounting.take_look(), "told once");
}

#[test]
fn the_last_open_request_may_end_its_phase() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    let tag = issue(&mut accounting, &mut state, S, 2);
    accounting.settle(&mut state, S, &ok(tag, 1));
    assert!(!accounting.take_look(), "one is open");
    accounting.cancel(&mut state, S, tag);
    assert!(accounting.take_look());
    assert_eq!((accounting.phases[0].open, accounting.phases[0].meter.cancelled), (0, 1));
}

#[test]
fn a_connection_is_dropped_when_it_ends_soon_and_the_first_phase_answers_for_those_before_it() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    state.quiet_since_ns = S;
    assert!(!accounting.note_unasked_end(S + DROPPED_WITHIN_NS, &state, false, false));
    assert_eq!(accounting.early_dropped, 0, "it was kept for a while");
    assert!(!accounting.note_unasked_end(S + DROPPED_WITHIN_NS - 1, &state, false, false));
    accounting.early.record_connect(MS);
    accounting.take_over_early();
    accounting.take_over_early();
    assert_eq!(accounting.phases[0].meter.dropped, 1, "taken over once");
    assert!(accounting.phases[0].meter.times.clone().encoded().connect.is_some());
    accounting.current = Some(0);
    assert!(!accounting.note_unasked_end(S + IDLE_LEAST_NS - 1, &state, false, true));
    assert_eq!((accounting.phases[0].meter.dropped, accounting.early_dropped), (2, 0));
    assert!(!accounting.note_unasked_end(S, &state, true, true), "it was kept, and ended at once");
    assert_eq!(accounting.phases[0].meter.dropped, 2);
}

#[test]
fn a_connection_that_the_peer_ends_when_it_was_quiet_for_a_while_was_idle() {
    let mut accounting = accounting_of(1);
    let mut state = state();
    accounting.current = Some(0);
    state.quiet_since_ns = S;
    for (answered, quiet_ns) in [(false, 3 * IDLE_LEAST_NS), (true, 5 * IDLE_LEAST_NS)] {
        assert!(
            accounting.note_unasked_end(S + quiet_ns, &state, answered, true),
            "answered: {answered}"
        );
    }
    let meter = &accounting.phases[0].meter;
    assert_eq!((meter.idle_closed.count, meter.idle_closed.after_ns), (2, 3 * IDLE_LEAST_NS));
    assert_eq!(meter.dropped, 0);
}

#[test]
fn what_crosses_the_end_of_an_idle_connection_is_sent_again_where_that_explains_it() {
    use Ending::{StaleTimeout, UnusedEnd, UnusedReset};
    let round_trip_ns = MS;
    for (sentence, quiet_ns, took_ns, closes, again) in [
        ("sooner than an answer", IDLE_LEAST_NS, round_trip_ns / 2 - 1, 0, true),
        ("as soon as an answer", IDLE_LEAST_NS, round_trip_ns / 2, 0, false),
        ("as others that it has ended", IDLE_LEAST_NS, 2 * round_trip_ns, 1, true),
        ("too late to have crossed it", IDLE_LEAST_NS, 9 * MS, 1, false),
        ("the connection was in use", IDLE_LEAST_NS - 1, 0, 1, false),
    ] {
        for ending in [StaleTimeout, UnusedEnd, UnusedReset] {
            let mut accounting = accounting_of(1);
            let mut state = state();
            state.quiet_since_ns = S;
            accounting.crossings.note_connected(round_trip_ns);
            (0..closes).for_each(|_| accounting.crossings.note_close());
            let tag = issue(&mut accounting, &mut state, S + quiet_ns, 1);
            accounting.settle(&mut state, S + quiet_ns + took_ns, &unanswered(tag, ending));
            let meter = &accounting.phases[0].meter;
            assert_eq!((meter.stale == 1, meter.failed_sum() == 0), (again, again), "{sentence}");
            assert_eq!(meter.stale_resets == 1, again && ending == UnusedReset, "{sentence}");
        }
    }
}

#[test]
fn answers_that_ended_requests_well_are_counted_by_their_kind_in_the_phase_of_their_request() {
    let (mut accounting, mut state) = (accounting_of(2), state());
    let content = |bytes| Some(Content { bytes, sketch: bytes });
    let tag = issue(&mut accounting, &mut state, S, 5);
    accounting.settle(&mut state, S, &Outcome { content: content(13), ..ok(tag, 3) });
    // The next phase has begun: an answer to a request of the phase before still belongs there.
    accounting.current = Some(1);
    accounting.settle(&mut state, S, &Outcome { content: content(0), ..ok(tag, 1) });
    let failed = Outcome { content: content(7), ending: Ending::Status, ..ok(tag, 1) };
    accounting.settle(&mut state, S, &failed);
    let kinds = |phase: usize| {
        let known = accounting.phases[phase].meter.kinds.known();
        known.iter().map(|kind| (kind.bytes, kind.count)).collect::<Vec<_>>()
    };
    assert_eq!((kinds(0), kinds(1)), (vec![(13, 3), (0, 1)], vec![]));
}

/// The classes of the rows of a log, with their counts; none for those that ended well.
fn logged(accounting: &mut Accounting) -> std::collections::BTreeMap<Option<Class>, u64> {
    let mut found = std::collections::BTreeMap::new();
    for row in accounting.phases[0].log.as_mut().expect("a log").rows() {
        let class = if row.end_ns == 0 { Some(Class::Lost) } else { row.class };
        *found.entry(class).or_default() += 1;
        let times = [row.due_ns, row.sent_ns, row.first_byte_ns, row.end_ns];
        assert!(times.into_iter().filter(|at_ns| *at_ns > 0).is_sorted(), "{times:?}");
    }
    found
}

proptest::proptest! {
    #[test]
    fn a_log_has_each_request_with_its_class(
        steps in proptest::collection::vec((0_u8..7, 1_u64..4), 0..60),
    ) {
        let (mut accounting, mut state) = (accounting_of(1), state());
        accounting.begin_log(1_000, 0);
        let mut now_ns = 1_000;
        for (kind, count) in steps {
            now_ns += 1_000;
            if kind == 0 {
                accounting.charge(0, &mut state, now_ns, (0, Class::ConnectRefused));
                continue;
            }
            let tag = issue(&mut accounting, &mut state, now_ns - 500, count);
            match kind {
                1 => accounting.settle(&mut state, now_ns, &ok(tag, count as usize)),
                2 => {
                    accounting.settle(&mut state, now_ns, &ok(tag, count as usize));
                    accounting.violated(&mut state, Class::Unsolicited);
                }
                3 => {
                    let each = Outcome::answered(tag, Ending::Status, now_ns - 100);
                    (0..count).for_each(|_| accounting.settle(&mut state, now_ns, &each));
                    accounting.violated(&mut state, Class::Framing);
                }
                4 => {
                    let each = unanswered(tag, Ending::TimeoutFirstByte);
                    (0..count).for_each(|_| accounting.settle(&mut state, now_ns, &each));
                }
                5 => (0..count).for_each(|_| accounting.cancel(&mut state, now_ns, tag)),
                _ => (0..count)
                    .for_each(|_| accounting.fail(&mut state, now_ns, tag, Class::Reset)),
            }
        }
        let meter = &accounting.phases[0].meter;
        let mut expected: std::collections::BTreeMap<_, _> =
            meter.failed().map(|(class, count)| (Some(class), count)).collect();
        let cancelled = (Some(Class::Lost), meter.cancelled);
        expected.extend([(None, meter.ok), cancelled].into_iter().filter(|(_, count)| *count > 0));
        let issued = meter.issued;
        let found = logged(&mut accounting);
        proptest::prop_assert_eq!(found.values().sum::<u64>(), issued);
        proptest::prop_assert_eq!(found, expected);
    }
}
