//! The ledger: a table of what can happen to a message, and anything that can against a model that keeps everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trueload_meter::{Delivered, Deliveries, Ledger};

use crate::support::decoded;

fn ledger(receivers: u32) -> Ledger {
    let mut ledger = Ledger::default();
    (0..receivers).for_each(|receiver| ledger.join(receiver));
    ledger
}

/// expected, delivered, lost, duplicate, out of order.
fn counts(of: &Deliveries) -> [u64; 5] {
    [of.expected, of.delivered, of.lost, of.duplicate, of.out_of_order]
}

/// What is done to a ledger with three receivers; times are in ns since the start.
enum Do {
    Send(u32, u64),
    Deliver(u32, u32, u32, u64, Delivered),
    GiveUp(u64),
    Drop(u32),
    Leave(u32),
    Cancel,
}

use Delivered::{Again, Late, Once, Unknown};
use Do::{Cancel, Deliver, Drop, GiveUp, Leave, Send};

const CASES: &[(&str, &[Do], [u64; 5])] = &[
    (
        "delivered to all",
        &[
            Send(0, 0),
            Deliver(0, 1, 0, 5, Once),
            Deliver(0, 1, 1, 5, Once),
            Deliver(0, 1, 2, 5, Once),
        ],
        [3, 3, 0, 0, 0],
    ),
    (
        "one misses it",
        &[
            Send(0, 0),
            Deliver(0, 1, 0, 5, Once),
            Deliver(0, 1, 1, 5, Once),
            GiveUp(0),
            Deliver(0, 1, 2, 9, Late),
        ],
        [3, 2, 1, 0, 0],
    ),
    (
        "twice while it is open",
        &[Send(0, 0), Deliver(0, 1, 0, 1, Once), Deliver(0, 1, 0, 2, Again), GiveUp(0)],
        [3, 1, 2, 1, 0],
    ),
    (
        "twice after it was given up, and late twice",
        &[
            Send(0, 0),
            Deliver(0, 1, 0, 1, Once),
            GiveUp(0),
            Deliver(0, 1, 0, 2, Again),
            Deliver(0, 1, 1, 2, Late),
            Deliver(0, 1, 1, 2, Again),
        ],
        [3, 1, 2, 2, 0],
    ),
    (
        "twice after all had it",
        &[
            Send(0, 0),
            Deliver(0, 1, 2, 5, Once),
            Deliver(0, 1, 0, 5, Once),
            Deliver(0, 1, 1, 5, Once),
            Deliver(0, 1, 1, 5, Again),
        ],
        [3, 3, 0, 1, 0],
    ),
    (
        "never sent",
        &[
            Send(0, 0),
            Deliver(0, 2, 0, 1, Unknown),
            Deliver(1, 1, 0, 1, Unknown),
            Deliver(0, 0, 0, 1, Unknown),
            Cancel,
        ],
        [0, 0, 0, 0, 0],
    ),
    (
        "dropped by the peer: what it has not had, and what comes, is lost",
        &[
            Send(0, 0),
            Deliver(0, 1, 2, 1, Once),
            Send(1, 1),
            Drop(2),
            Send(0, 2),
            Deliver(0, 1, 0, 3, Once),
            Deliver(0, 1, 1, 3, Once),
            Deliver(1, 1, 0, 3, Once),
            Deliver(1, 1, 1, 3, Once),
            Deliver(0, 2, 0, 3, Once),
            Deliver(0, 2, 1, 3, Once),
        ],
        [9, 7, 2, 0, 0],
    ),
    (
        "dropped by the peer, then cut short: what is lost stays so, what is open is not expected",
        &[Send(0, 0), Deliver(0, 1, 0, 1, Once), Drop(1), Cancel],
        [2, 1, 1, 0, 0],
    ),
    (
        "closed by us: nothing is expected",
        &[
            Send(0, 0),
            Leave(2),
            Deliver(0, 1, 0, 1, Once),
            Deliver(0, 1, 1, 1, Once),
            Send(0, 2),
            Cancel,
        ],
        [2, 2, 0, 0, 0],
    ),
    (
        "out of order",
        &[
            Send(0, 0),
            Send(0, 0),
            Deliver(0, 2, 0, 1, Once),
            Deliver(0, 1, 0, 1, Once),
            Deliver(0, 1, 1, 1, Once),
            Deliver(0, 2, 1, 1, Once),
            Cancel,
        ],
        [4, 4, 0, 0, 1],
    ),
    (
        "out of order behind one that all have had",
        &[
            Send(0, 0),
            Send(0, 0),
            Deliver(0, 2, 0, 1, Once),
            Deliver(0, 2, 1, 1, Once),
            Deliver(0, 2, 2, 1, Once),
            Deliver(0, 1, 0, 1, Once),
            Cancel,
        ],
        [4, 4, 0, 0, 1],
    ),
    (
        "senders have each an order of their own",
        &[Send(0, 0), Send(1, 0), Deliver(1, 1, 0, 1, Once), Deliver(0, 1, 0, 1, Once), Cancel],
        [2, 2, 0, 0, 0],
    ),
    ("cut short", &[Send(0, 0), Deliver(0, 1, 0, 1, Once), Cancel], [1, 1, 0, 0, 0]),
];

#[test]
fn each_message_and_receiver_is_settled_once() {
    for (why, steps, expected) in CASES {
        let mut ledger = ledger(3);
        for step in *steps {
            match step {
                Send(sender, at) => drop(ledger.send(0, *sender, *at)),
                Deliver(sender, sequence, receiver, at, outcome) => {
                    assert_eq!(
                        deliver(&mut ledger, *sender, *sequence, *receiver, *at),
                        *outcome,
                        "{why}"
                    );
                }
                GiveUp(until) => ledger.give_up(*until),
                Drop(receiver) => ledger.drop_out(*receiver),
                Leave(receiver) => ledger.leave(*receiver),
                Cancel => ledger.cancel(),
            }
        }
        assert!(!ledger.is_open(0), "{why}");
        assert_eq!(counts(&ledger.take(0)), *expected, "{why}");
    }
}

fn deliver(ledger: &mut Ledger, sender: u32, sequence: u32, receiver: u32, at: u64) -> Delivered {
    match ledger.find(sender, sequence) {
        Some(handle) => ledger.deliver(handle, receiver, at),
        None => ledger.deliver_over(sender, sequence, receiver),
    }
}

#[test]
fn a_late_delivery_is_no_duplicate_however_many_messages_were_given_up() {
    let mut ledger = ledger(2);
    for at in 1..=1_000 {
        let handle = ledger.send(0, 0, at);
        ledger.deliver(handle, 0, at);
        ledger.give_up(at);
    }
    for sequence in 1..=1_000 {
        assert_eq!(deliver(&mut ledger, 0, sequence, 1, 2_000), Late, "message {sequence}");
    }
    assert_eq!(counts(&ledger.take(0)), [2_000, 1_000, 1_000, 0, 0]);
}

#[test]
fn first_median_p95_and_last_are_the_times_of_those_ranks() {
    let mut ledger = ledger(100);
    let handle = ledger.send(0, 7, 1_000);
    for receiver in 0..100 {
        ledger.deliver(handle, receiver, 1_001 + u64::from(receiver));
    }
    let of = ledger.take(0);
    let ranked = [
        of.histograms.first.encoded(),
        of.histograms.median.encoded(),
        of.histograms.p95.encoded(),
        of.histograms.last.encoded(),
    ]
    .map(decoded);
    assert_eq!(ranked, [[1], [50], [95], [100]]);
    assert_eq!(decoded(of.histograms.delivery.encoded()), (1..=100).collect::<Vec<u64>>());
}

#[test]
fn a_message_that_some_lost_has_no_last_receiver_and_a_median_only_if_half_had_it() {
    for (had, median) in [(49, vec![]), (50, vec![50])] {
        let mut ledger = ledger(100);
        let handle = ledger.send(0, 7, 0);
        (0..had).for_each(|receiver| {
            ledger.deliver(handle, receiver, 1 + u64::from(receiver));
        });
        ledger.give_up(0);
        let of = ledger.take(0);
        assert_eq!(decoded(of.histograms.median.encoded()), median, "{had} had it");
        assert_eq!((of.histograms.p95.encoded(), of.histograms.last.encoded()), (None, None));
    }
}

#[test]
fn a_message_is_over_when_all_have_had_it_who_were_not_dropped() {
    let mut ledger = ledger(4);
    let handle = ledger.send(0, 7, 0);
    ledger.drop_out(3);
    for receiver in 0..3 {
        assert_eq!((ledger.open(), ledger.has_finished()), (1, false));
        ledger.deliver(handle, receiver, 1);
    }
    assert_eq!((ledger.open(), ledger.has_finished()), (0, true));
    assert_eq!(counts(&ledger.take(0)), [4, 3, 1, 0, 0]);
}

#[test]
fn those_listen_who_have_joined_and_were_neither_closed_nor_dropped() {
    let mut ledger = ledger(3);
    ledger.drop_out(1);
    ledger.drop_out(1);
    assert_eq!(ledger.listening(), 2);
    ledger.join(1);
    assert_eq!(ledger.listening(), 3, "it came back");
    ledger.drop_out(2);
    ledger.leave(2);
    assert_eq!(ledger.listening(), 2, "dropped, then closed by us");
    ledger.drop_out(2);
    assert_eq!(ledger.listening(), 2, "who is no receiver cannot be dropped");
}

#[test]
fn a_copy_of_a_message_that_all_had_counts_in_the_phase_in_which_it_comes() {
    let mut ledger = ledger(1);
    let first = ledger.send(0, 0, 0);
    ledger.deliver(first, 0, 1);
    ledger.send(1, 0, 2);
    assert_eq!(deliver(&mut ledger, 0, 1, 0, 3), Again);
    assert_eq!((ledger.take(0).duplicate, ledger.take(1).duplicate), (0, 1));
}

#[test]
fn a_handle_of_a_message_that_is_over_is_not_that_of_the_next() {
    let mut ledger = ledger(1);
    let first = ledger.send(0, 0, 0);
    ledger.deliver(first, 0, 1);
    let second = ledger.send(0, 0, 2);
    assert_eq!(ledger.deliver(first, 0, 3), Unknown);
    assert_eq!(ledger.deliver(second, 0, 3), Once);
}

#[test]
fn phases_have_sums_of_their_own_and_messages_are_told_when_finished() {
    let mut ledger = ledger(2);
    let one = ledger.send(0, 0, 0);
    let two = ledger.send(1, 1, 0);
    for receiver in 0..2 {
        ledger.deliver(two, receiver, 1);
    }
    assert!(ledger.is_open(0) && !ledger.is_open(1));
    let finished: Vec<_> =
        ledger.take_finished().map(|it| (it.phase, it.sender, it.lost)).collect();
    assert_eq!(finished, [(Some(1), 1, 0)]);
    ledger.deliver(one, 0, 2);
    ledger.give_up(0);
    let finished: Vec<_> =
        ledger.take_finished().map(|it| (it.phase, it.sender, it.lost)).collect();
    assert_eq!(finished, [(Some(0), 0, 1)]);
    assert_eq!(counts(&ledger.take(0)), [2, 1, 1, 0, 0]);
    assert_eq!(counts(&ledger.take(1)), [2, 2, 0, 0, 0]);
}

/// Keeps every message, every receiver and every delivery.
#[derive(Default)]
struct Model {
    receivers: BTreeSet<u32>,
    gone: BTreeSet<u32>,
    sent: BTreeMap<u32, u32>,
    messages: Vec<Message>,
    sums: [u64; 5],
    times: Vec<u64>,
    ranked: [Vec<u64>; 4],
}

struct Message {
    key: (u32, u32),
    sent_ns: u64,
    expected: BTreeSet<u32>,
    missing: BTreeSet<u32>,
    /// In the order in which they came.
    had: Vec<(u32, u64)>,
    given_up: bool,
}

impl Model {
    fn send(&mut self, sender: u32, now_ns: u64) {
        let sequence = self.sent.entry(sender).or_default();
        *sequence += 1;
        let (expected, missing) = (self.receivers.clone(), self.receivers.clone());
        let key = (sender, *sequence);
        self.messages.push(Message {
            key,
            sent_ns: now_ns,
            expected,
            missing,
            had: vec![],
            given_up: false,
        });
    }

    fn deliver(&mut self, key: (u32, u32), receiver: u32, now_ns: u64) -> Delivered {
        let Some(at) = self.messages.iter().position(|message| message.key == key) else {
            return Unknown;
        };
        let later = self.messages.iter().any(|other| {
            let over = other.had.len() >= other.expected.len() || other.given_up;
            let had = other.had.iter().any(|(had, _)| *had == receiver);
            other.key.0 == key.0 && other.key.1 > key.1 && (had || over)
        });
        let message = &mut self.messages[at];
        if !message.missing.remove(&receiver) {
            self.sums[3] += 1;
            return Again;
        }
        if message.given_up {
            return Late;
        }
        message.had.push((receiver, now_ns - message.sent_ns));
        self.sums[4] += u64::from(later);
        Once
    }

    fn finish(&mut self) {
        for message in &self.messages {
            let had =
                message.had.iter().filter(|(receiver, _)| message.expected.contains(receiver));
            let (had, expected) = (had.count(), message.expected.len());
            self.sums[0] += expected as u64;
            self.sums[1] += had as u64;
            self.sums[2] += (expected - had) as u64;
            self.times.extend(message.had.iter().map(|(_, took)| *took));
            for (ranked, percent) in self.ranked.iter_mut().zip([0usize, 50, 95, 100]) {
                let rank = (expected * percent).div_ceil(100).max(1);
                ranked.extend(message.had.get(rank - 1).map(|(_, took)| *took));
            }
        }
        self.times.sort_unstable();
        self.ranked.iter_mut().for_each(|ranked| ranked.sort_unstable());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Deliver { sender: u32, sequence: u32, receiver: u32 },
    GiveUp,
    Drop(u32),
}

const RECEIVERS: u32 = 5;

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..RECEIVERS).prop_map(Step::Send),
        24 => (0..RECEIVERS, 0..5u32, 0..RECEIVERS)
            .prop_map(|(sender, sequence, receiver)| Step::Deliver { sender, sequence, receiver }),
        1 => Just(Step::GiveUp),
        1 => (0..RECEIVERS).prop_map(Step::Drop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_agrees_with_a_model_that_keeps_everything(steps in prop::collection::vec(any_step(), 0..120)) {
        let mut ledger = ledger(RECEIVERS);
        let mut model = Model { receivers: (0..RECEIVERS).collect(), ..Model::default() };
        let mut now_ns = 0;
        for step in steps {
            now_ns += 1;
            match step {
                Step::Send(sender) => {
                    ledger.send(0, sender, now_ns);
                    model.send(sender, now_ns);
                }
                Step::Deliver { sender, sequence, receiver } if !model.gone.contains(&receiver) => {
                    let outcome = deliver(&mut ledger, sender, sequence, receiver, now_ns);
                    prop_assert_eq!(outcome, model.deliver((sender, sequence), receiver, now_ns));
                }
                Step::Deliver { .. } => {}
                Step::GiveUp => {
                    ledger.give_up(now_ns);
                    model.messages.iter_mut().for_each(|message| message.given_up = true);
                }
                Step::Drop(receiver) => {
                    ledger.drop_out(receiver);
                    model.gone.insert(receiver);
                }
            }
        }
        ledger.give_up(now_ns);
        model.finish();
        prop_assert_eq!(ledger.open(), 0);
        let of = ledger.take(0);
        prop_assert_eq!(counts(&of), model.sums);
        prop_assert_eq!(decoded(of.histograms.delivery.encoded()), model.times);
        prop_assert_eq!([of.histograms.first.encoded(), of.histograms.median.encoded(), of.histograms.p95.encoded(), of.histograms.last.encoded()].map(decoded), model.ranked);
    }
}
