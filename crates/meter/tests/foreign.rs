//! The ledgers of several engines that share a broadcast: a table of what can happen to another engine's message, and
//! anything that can against one ledger that has all receivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use trueload_meter::{Class, Delivered, Deliveries, Failed, Ledger, Origin, Settled};

use crate::support::decoded;

use Delivered::{Again, Late, Once, Unknown};
use Do::{Ask, Conclude, Deliver, Drop, GiveUp, Leave};

type Sent = BTreeMap<u32, u32>;

/// expected, delivered, lost, duplicate, out of order.
fn counts(of: &Deliveries) -> [u64; 5] {
    [of.expected, of.delivered, of.lost, of.duplicate, of.out_of_order]
}

fn deliver(ledger: &mut Ledger, sender: u32, sequence: u32, receiver: u32, at: u64) -> Delivered {
    deliver_from(ledger, None, sender, sequence, receiver, at)
}

fn deliver_from(
    ledger: &mut Ledger,
    origin: Option<Origin>,
    sender: u32,
    sequence: u32,
    receiver: u32,
    at: u64,
) -> Delivered {
    let open = ledger.find(sender, sequence);
    match open.or_else(|| ledger.discover(sender, sequence, origin, at)) {
        Some(handle) => ledger.deliver(handle, receiver, at),
        None => ledger.deliver_over(sender, sequence, receiver),
    }
}

/// What is done to the ledger of engine 0 of 2, with two receivers and senders 0 to 10; odd ones are the other's.
enum Do {
    Deliver(u32, u32, u32, u64, Delivered),
    GiveUp(u64),
    Drop(u32),
    Leave(u32),
    /// So many messages of sender 1 were sent.
    Ask(u32),
    /// Whether it could be, then.
    Conclude(u64, bool),
}

const UNTIL_NS: u64 = 100;

/// Why, what is done, what it counts, what failed, and deliveries of what nobody sent.
type Case = (&'static str, &'static [Do], [u64; 5], &'static [(u32, Class)], u64);

const CASES: &[Case] = &[
    (
        "delivered to all",
        &[Deliver(1, 1, 0, 5, Once), Deliver(1, 1, 1, 6, Once), Ask(1), Conclude(6, true)],
        [2, 2, 0, 0, 0],
        &[],
        0,
    ),
    (
        "delivered after it was asked for",
        &[
            Ask(1),
            Conclude(4, false),
            Deliver(1, 1, 0, 5, Once),
            Conclude(5, false),
            Deliver(1, 1, 1, 6, Once),
            Conclude(6, true),
        ],
        [2, 2, 0, 0, 0],
        &[],
        0,
    ),
    (
        "one beyond the last settles none of those that were asked for",
        &[
            Ask(2),
            Deliver(1, 3, 0, 1, Once),
            Deliver(1, 3, 1, 1, Once),
            Deliver(1, 2, 0, 2, Once),
            Deliver(1, 2, 1, 2, Once),
            Conclude(3, false),
            Deliver(1, 1, 0, 4, Once),
            Deliver(1, 1, 1, 4, Once),
            Conclude(4, true),
        ],
        [4, 4, 0, 0, 4],
        &[],
        2,
    ),
    (
        "some were over when it was asked for",
        &[
            Deliver(1, 1, 0, 1, Once),
            Deliver(1, 1, 1, 1, Once),
            Deliver(1, 2, 0, 2, Once),
            Deliver(1, 2, 1, 2, Once),
            Deliver(1, 3, 0, 3, Once),
            Deliver(1, 3, 1, 3, Once),
            Ask(4),
            Conclude(3, false),
            Deliver(1, 4, 0, 4, Once),
            Deliver(1, 4, 1, 4, Once),
            Conclude(4, true),
        ],
        [8, 8, 0, 0, 0],
        &[],
        0,
    ),
    (
        "never seen",
        &[Ask(2), Conclude(99, false), Conclude(100, true), Deliver(1, 2, 0, 101, Late)],
        [4, 0, 4, 0, 0],
        &[(1, Class::Lost), (2, Class::Lost)],
        0,
    ),
    (
        "one misses it, and has it late",
        &[
            Deliver(1, 1, 0, 5, Once),
            GiveUp(5),
            Ask(1),
            Conclude(6, true),
            Deliver(1, 1, 1, 9, Late),
        ],
        [2, 1, 1, 0, 0],
        &[(1, Class::Lost)],
        0,
    ),
    (
        "one misses it until the time is up",
        &[Deliver(1, 1, 0, 5, Once), Ask(1), Conclude(99, false), Conclude(100, true)],
        [2, 1, 1, 0, 0],
        &[(1, Class::Lost)],
        0,
    ),
    (
        "twice while it is open, and when it is over",
        &[
            Deliver(1, 1, 0, 5, Once),
            Deliver(1, 1, 0, 5, Again),
            Deliver(1, 1, 1, 6, Once),
            Deliver(1, 1, 1, 7, Again),
            Ask(1),
            Conclude(8, true),
        ],
        [2, 2, 0, 2, 0],
        &[(1, Class::Duplicate)],
        0,
    ),
    (
        "twice, in the middle of those that came well",
        &[
            Deliver(1, 1, 0, 1, Once),
            Deliver(1, 1, 1, 1, Once),
            Deliver(1, 2, 0, 2, Once),
            Deliver(1, 2, 1, 2, Once),
            Deliver(1, 3, 0, 3, Once),
            Deliver(1, 3, 1, 3, Once),
            Deliver(1, 2, 1, 4, Again),
            Ask(3),
            Conclude(8, true),
        ],
        [6, 6, 0, 1, 0],
        &[(2, Class::Duplicate)],
        0,
    ),
    (
        "out of order, seen in that order",
        &[
            Deliver(1, 2, 0, 1, Once),
            Deliver(1, 1, 0, 2, Once),
            Deliver(1, 1, 1, 2, Once),
            Deliver(1, 2, 1, 3, Once),
            Ask(2),
            Conclude(8, true),
        ],
        [4, 4, 0, 0, 1],
        &[],
        0,
    ),
    (
        "out of order behind one that all have had",
        &[
            Deliver(1, 2, 0, 1, Once),
            Deliver(1, 2, 1, 1, Once),
            Deliver(1, 1, 0, 2, Once),
            Ask(2),
            Conclude(100, true),
        ],
        [4, 3, 1, 0, 1],
        &[(1, Class::Lost)],
        0,
    ),
    (
        "dropped by the peer: what it has not had is lost, also what is not seen",
        &[Deliver(1, 1, 0, 1, Once), Drop(1), Ask(2), Conclude(100, true)],
        [4, 1, 3, 0, 0],
        &[(1, Class::Lost), (2, Class::Lost)],
        0,
    ),
    (
        "closed by us: nothing is expected",
        &[
            Deliver(1, 1, 0, 1, Once),
            Leave(1),
            Ask(2),
            Deliver(1, 2, 0, 2, Once),
            Conclude(2, true),
        ],
        [2, 2, 0, 0, 0],
        &[],
        0,
    ),
    (
        "sent by nobody: a number that there is not, a message beyond the last, and number 0",
        &[
            Deliver(11, 1, 0, 1, Unknown),
            Deliver(1, 0, 0, 1, Unknown),
            Deliver(1, u32::MAX, 0, 1, Unknown),
            Deliver(1, 7, 0, 1, Once),
            Deliver(1, 7, 0, 1, Again),
            Deliver(3, 1, 0, 1, Once),
            Ask(0),
            Conclude(2, true),
        ],
        [0, 0, 0, 0, 0],
        &[],
        3,
    ),
    (
        "ours are no concern of the others",
        &[Deliver(2, 1, 0, 1, Unknown), Ask(0), Conclude(2, true)],
        [0, 0, 0, 0, 0],
        &[],
        0,
    ),
];

#[test]
fn another_engines_message_is_settled_once_at_each_receiver() {
    for (why, steps, expected, failed, unsolicited) in CASES {
        let mut ledger = Ledger::of_part(0, 2);
        ledger.expect_senders(11);
        (0..2).for_each(|receiver| ledger.join(receiver));
        let mut settled = Settled::default();
        for step in *steps {
            match step {
                Deliver(sender, sequence, receiver, at, outcome) => {
                    let found = deliver(&mut ledger, *sender, *sequence, *receiver, *at);
                    assert_eq!(found, *outcome, "{why}");
                }
                GiveUp(until) => ledger.give_up(*until),
                Drop(receiver) => ledger.drop_out(*receiver),
                Leave(receiver) => ledger.leave(*receiver),
                Ask(last) => ledger.ask(Arc::new(Sent::from([(1, *last)])), UNTIL_NS),
                Conclude(now_ns, can) => {
                    assert_eq!(ledger.can_conclude(*now_ns), *can, "{why}, at {now_ns}");
                    if *can {
                        settled = ledger.conclude(0, true);
                    }
                }
            }
        }
        let failed: Vec<Failed> = failed
            .iter()
            .map(|(sequence, class)| Failed { sender: 1, sequence: *sequence, class: *class })
            .collect();
        assert_eq!(settled, Settled { failed, unsolicited: *unsolicited }, "{why}");
        let of = ledger.take(0);
        assert_eq!((counts(&of), of.untimed), (*expected, of.delivered), "{why}");
    }
}

#[test]
fn a_copy_of_what_was_settled_is_told_with_the_next_phase() {
    let mut ledger = Ledger::of_part(1, 2);
    ledger.expect_senders(4);
    ledger.join(0);
    assert_eq!(deliver(&mut ledger, 0, 1, 0, 1), Once);
    ledger.ask(Arc::new(Sent::from([(0, 1)])), 9);
    ledger.conclude(0, true);
    assert_eq!(deliver(&mut ledger, 0, 1, 0, 2), Again);
    ledger.ask(Arc::new(Sent::new()), 9);
    ledger.conclude(1, true);
    assert_eq!(counts(&ledger.take(0)), [1, 1, 0, 0, 0]);
    assert_eq!(counts(&ledger.take(1)), [0, 0, 0, 1, 0]);
}

#[test]
fn what_was_asked_for_has_its_time_until_it_is_settled() {
    let mut ledger = Ledger::of_part(0, 2);
    assert_eq!(ledger.asked_until_ns(), None);
    ledger.ask(Arc::new(Sent::new()), 70);
    assert_eq!(ledger.asked_until_ns(), Some(70));
    ledger.conclude(0, true);
    assert_eq!(ledger.asked_until_ns(), None);
}

#[test]
fn settling_the_messages_of_others_leaves_ours_open() {
    let mut ledger = Ledger::of_part(0, 2);
    ledger.join(0);
    let own = ledger.send(0, 0, 1);
    ledger.ask(Arc::new(Sent::new()), 1);
    ledger.conclude(0, true);
    assert_eq!((ledger.open(), ledger.deliver(own, 0, 2)), (1, Once));
}

#[test]
fn a_message_that_nobody_waits_for_any_more_has_no_receivers_that_are_apart() {
    let mut ledger = Ledger::of_part(0, 2);
    ledger.expect_senders(4);
    ledger.join(0);
    ledger.discover(1, 1, None, 100);
    ledger.leave(0);
    ledger.ask(Arc::new(Sent::from([(1, 1)])), 300);
    assert!(ledger.can_conclude(101));
    ledger.conclude(0, true);
    let of = ledger.take(0);
    assert_eq!((counts(&of), of.histograms.spread.encoded()), ([0; 5], None));
}

/// Only messages that all had tell how far their receivers are apart.
#[test]
fn receivers_of_a_foreign_message_are_as_far_apart_as_its_first_and_last_delivery() {
    let mut ledger = Ledger::of_part(0, 2);
    ledger.expect_senders(4);
    (0..2).for_each(|receiver| ledger.join(receiver));
    for (sequence, apart_ns) in [(1, 7), (2, 30)] {
        deliver(&mut ledger, 1, sequence, 0, 100);
        deliver(&mut ledger, 1, sequence, 1, 100 + apart_ns);
    }
    deliver(&mut ledger, 1, 3, 0, 200);
    ledger.ask(Arc::new(Sent::from([(1, 3)])), 300);
    ledger.conclude(0, true);
    let of = ledger.take(0);
    assert_eq!(counts(&of), [6, 5, 1, 0, 0]);
    let mut sum = Deliveries::default();
    sum.merge(&of);
    sum.merge(&of);
    assert_eq!((sum.untimed, decoded(of.histograms.spread.encoded())), (10, vec![7, 30]));
    assert_eq!(decoded(sum.histograms.spread.encoded()), [7, 7, 30, 30]);
}

/// Engine 0 of 2, with two receivers. Each message of sender 1: when it was sent on our clock, when each receiver had
/// it, and the times that are recorded; then how many came too early, and by how much at most.
#[test]
fn deliveries_of_foreign_messages_are_timed_from_when_their_engine_sent_them() {
    type Message = (Option<u64>, [u64; 2]);
    type Case<'a> = (&'a str, &'a [Message], &'a [u64], (u64, u64));
    let cases: [Case<'_>; 4] = [
        ("a clock that is right", &[(Some(60), [100, 130])], &[40, 70], (0, 0)),
        ("ahead of ours, within the bound", &[(Some(105), [100, 130])], &[1, 25], (1, 5)),
        ("at the same time", &[(Some(100), [100, 130])], &[1, 30], (0, 0)),
        ("unknown, beside a known one", &[(None, [90, 91]), (Some(95), [97, 99])], &[2, 4], (0, 0)),
    ];
    for (why, messages, times, negative) in cases {
        let mut ledger = Ledger::of_part(0, 2);
        ledger.expect_senders(4);
        (0..2).for_each(|receiver| ledger.join(receiver));
        for (sequence, (sent_ns, came_ns)) in (1..).zip(messages) {
            let origin = sent_ns.map(|sent_ns| Origin { phase: 3, sent_ns });
            for (receiver, at) in (0..).zip(came_ns) {
                deliver_from(&mut ledger, origin, 1, sequence, receiver, *at);
            }
        }
        let untimed = 2 * messages.iter().filter(|(sent_ns, _)| sent_ns.is_none()).count() as u64;
        ledger.ask(Arc::new(Sent::from([(1, messages.len() as u32)])), 300);
        ledger.conclude(3, true);
        let of = ledger.take(3);
        assert_eq!((of.delivered, of.untimed), (2 * messages.len() as u64, untimed), "{why}");
        // A histogram has no 0: its least value is 1 ns.
        assert_eq!(decoded(of.histograms.delivery.encoded()), times, "{why}");
        assert_eq!(
            (decoded(of.histograms.first.encoded()), decoded(of.histograms.last.encoded())),
            (vec![times[0]], vec![times[1]])
        );
        assert_eq!((of.negative, of.negative_max_ns), negative, "{why}");
    }
}

#[test]
fn times_of_foreign_messages_wait_for_the_phase_that_they_name() {
    let mut ledger = Ledger::of_part(0, 2);
    ledger.expect_senders(4);
    ledger.join(0);
    for (sequence, phase, took_ns) in [(1, 0, 7), (2, 1, 30)] {
        let origin = Some(Origin { phase, sent_ns: 100 - took_ns });
        deliver_from(&mut ledger, origin, 1, sequence, 0, 100);
    }
    for (phase, last, times) in [(0, 1, [7]), (1, 2, [30])] {
        ledger.ask(Arc::new(Sent::from([(1, last)])), 300);
        ledger.conclude(phase, phase == 1);
        assert_eq!(decoded(ledger.take(phase).histograms.delivery.encoded()), times);
    }
}

/// Engines that share a broadcast, and one that has it alone.
struct Shared {
    /// Where and when each message was sent.
    origins: BTreeMap<(u32, u32), Origin>,
    parts: Vec<Ledger>,
    whole: Ledger,
    of: u32,
    away: Vec<u32>,
    sent: Vec<Sent>,
    last_sent_ns: Vec<u64>,
    settled: usize,
    forged: u64,
    unsolicited: u64,
}

const RECEIVERS: u32 = 6;
/// Beyond the receivers' own: numbers that never send.
const SENDERS: u32 = 12;

impl Shared {
    fn new(of: u32) -> Self {
        let mut parts: Vec<Ledger> = (0..of).map(|index| Ledger::of_part(index, of)).collect();
        let mut whole = Ledger::default();
        for receiver in 0..RECEIVERS {
            parts[(receiver % of) as usize].join(receiver / of);
            whole.join(receiver);
        }
        parts.iter_mut().for_each(|part| part.expect_senders(SENDERS));
        let (sent, last_sent_ns) = (vec![Sent::new()], vec![0]);
        let (away, settled, forged, unsolicited) = (vec![], 0, 0, 0);
        let origins = BTreeMap::new();
        Shared { origins, parts, whole, of, away, sent, last_sent_ns, settled, forged, unsolicited }
    }

    /// The engine that a number is dealt to, and which of its own it is there.
    fn at(&mut self, number: u32) -> (&mut Ledger, u32) {
        (&mut self.parts[(number % self.of) as usize], number / self.of)
    }

    fn take(&mut self, step: &Step, now_ns: u64) -> Result<(), TestCaseError> {
        let phase = self.sent.len() - 1;
        match *step {
            Step::Send(sender) => {
                self.at(sender).0.send(phase as u16, sender, now_ns);
                self.whole.send(phase as u16, sender, now_ns);
                let last = self.whole.next_sequence(sender) - 1;
                let origin = Origin { phase: phase as u16, sent_ns: now_ns };
                self.origins.insert((sender, last), origin);
                self.sent[phase].insert(sender, last);
                self.last_sent_ns[phase] = now_ns;
            }
            Step::Deliver { sender, sequence, receiver } if !self.away.contains(&receiver) => {
                if (1..self.whole.next_sequence(sender)).contains(&sequence) {
                    let origin = self.origins.get(&(sender, sequence)).copied();
                    let (part, local) = self.at(receiver);
                    let found = deliver_from(part, origin, sender, sequence, local, now_ns);
                    let expected = deliver(&mut self.whole, sender, sequence, receiver, now_ns);
                    prop_assert_eq!(found, expected);
                }
            }
            Step::Forge { sender, receiver } if !self.away.contains(&receiver) => {
                let (of, (part, local)) = (self.of, self.at(receiver));
                let own = sender % of == receiver % of;
                let found = deliver(part, sender, 1, local, now_ns);
                prop_assert_eq!(found == Unknown, own);
                self.forged += u64::from(matches!(found, Once | Again));
            }
            Step::Deliver { .. } | Step::Forge { .. } => {}
            Step::Drop(receiver) | Step::Leave(receiver) if self.away.contains(&receiver) => {}
            Step::Drop(receiver) => {
                let (part, local) = self.at(receiver);
                part.drop_out(local);
                self.whole.drop_out(receiver);
                self.away.push(receiver);
            }
            Step::Leave(receiver) => {
                let (part, local) = self.at(receiver);
                part.leave(local);
                self.whole.leave(receiver);
                self.away.push(receiver);
            }
            Step::Phase => {
                self.sent.push(Sent::new());
                self.last_sent_ns.push(now_ns);
            }
            Step::Settle => self.settle(),
        }
        Ok(())
    }

    /// Settles the oldest phase that is not, unless it is the one that sends.
    fn settle(&mut self) {
        if self.settled + 1 == self.sent.len() {
            return;
        }
        let (phase, until_ns) = (self.settled, self.last_sent_ns[self.settled]);
        self.whole.give_up(until_ns);
        let sent = Arc::new(self.sent[phase].clone());
        let last = phase + 2 == self.sent.len() && self.sent[phase + 1].is_empty();
        for part in &mut self.parts {
            part.give_up(until_ns);
            part.ask(Arc::clone(&sent), until_ns);
            self.unsolicited += part.conclude(phase as u16, last).unsolicited;
        }
        self.settled += 1;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Deliver { sender: u32, sequence: u32, receiver: u32 },
    Forge { sender: u32, receiver: u32 },
    Drop(u32),
    Leave(u32),
    Phase,
    Settle,
}

fn any_step() -> impl Strategy<Value = Step> {
    let receiver = || 0..RECEIVERS;
    prop_oneof![
        6 => receiver().prop_map(Step::Send),
        40 => (receiver(), 1..5u32, receiver())
            .prop_map(|(sender, sequence, receiver)| Step::Deliver { sender, sequence, receiver }),
        1 => (RECEIVERS..SENDERS, receiver())
            .prop_map(|(sender, receiver)| Step::Forge { sender, receiver }),
        1 => receiver().prop_map(Step::Drop),
        1 => receiver().prop_map(Step::Leave),
        2 => Just(Step::Phase),
        2 => Just(Step::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn engines_that_share_a_broadcast_come_to_what_one_would(
        of in 1..5u32,
        steps in prop::collection::vec(any_step(), 0..160),
    ) {
        let mut shared = Shared::new(of);
        let mut now_ns = 0;
        for step in steps.iter().chain([&Step::Phase]) {
            now_ns += 1;
            shared.take(step, now_ns)?;
        }
        while shared.settled + 1 < shared.sent.len() {
            shared.settle();
        }
        prop_assert_eq!(shared.unsolicited, shared.forged);
        let mut twice = [0; 2];
        for phase in 0..shared.sent.len() as u16 {
            let (whole, mut sum) = (shared.whole.take(phase), Deliveries::default());
            for part in &mut shared.parts {
                prop_assert_eq!(part.open(), 0);
                sum.merge(&part.take(phase));
            }
            let [mut found, mut expected] = [counts(&sum), counts(&whole)];
            // A copy of a message of which nothing is known any more counts in the phase in which it came.
            twice[0] += std::mem::take(&mut found[3]);
            twice[1] += std::mem::take(&mut expected[3]);
            prop_assert_eq!(found, expected, "phase {}", phase);
            prop_assert_eq!(sum.expected, sum.delivered + sum.lost);
            prop_assert_eq!((sum.untimed, sum.negative), (0, 0));
            prop_assert_eq!(decoded(sum.histograms.delivery.encoded()), decoded(whole.histograms.delivery.encoded()), "phase {}", phase);
        }
        prop_assert_eq!(twice[0], twice[1]);
    }
}
