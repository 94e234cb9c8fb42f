//! The load of a broadcast: so many messages in flight over all connections, which send them in turn; and what has
//! to be seen to when a message is over.

use trueload_drive::Net;
use trueload_load::{Load, dealt};
use trueload_wire::exchange::Exchange;

use super::Generator;
use super::phase::Phase;
use super::protocol::Protocol;
use super::slot::{Link, Tag};

/// So many inputs are heard on one reading of the clock: deliveries to thousands come in one batch, and what is read
/// last in it would seem as early as the first.
const INPUTS_PER_CLOCK: u32 = 16;
/// Clients say their heartbeats in so many groups, spread over the time between two.
const HEARTBEAT_GROUPS: u32 = 64;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The next sender.
    next: u32,
    inputs: u32,
    /// The next group to say its heartbeat, and when.
    group: u32,
    heartbeat_ns: u64,
}

impl Turns {
    /// Whether the clock is to be read before the next input.
    #[inline]
    pub(super) fn is_clock_due(&mut self) -> bool {
        self.inputs = self.inputs.wrapping_add(1);
        self.inputs.is_multiple_of(INPUTS_PER_CLOCK)
    }

    /// When the next group says its heartbeat.
    pub(super) fn heartbeat_ns(&self, every_ns: Option<u64>) -> u64 {
        if every_ns.is_some() { self.heartbeat_ns } else { super::slot::NEVER }
    }
}

impl Phase {
    /// How many messages may be in flight, under turns.
    pub(super) fn concurrent(&self) -> Option<u32> {
        match self.share.load {
            Load::Turns { concurrent } => Some(concurrent),
            _ => None,
        }
    }
}

impl<P: Protocol> Generator<P> {
    /// Sends as long as one more may be in flight.
    pub(super) fn take_turns(&mut self, net: &mut impl Net) {
        let mut read = false;
        loop {
            let Some((index, phase)) = self.book.sending(net.now_ns()) else { return };
            let Some(concurrent) = phase.concurrent().filter(|_| phase.quota > 0) else { return };
            let concurrent = dealt(concurrent, self.config.threads, self.config.thread);
            let in_flight: u64 = self.book.phases.iter().map(|phase| phase.open).sum();
            if in_flight >= u64::from(concurrent) {
                return;
            }
            let room = self.protocol.under_way().is_some_and(|way| way.has_room(concurrent));
            if !room {
                return;
            }
            let Some(key) = self.next_sender() else {
                // Nobody is left to send, and nobody comes back in this phase.
                self.book.phases[index].quota = 0;
                self.book.look = true;
                return;
            };
            if !std::mem::replace(&mut read, true) {
                net.read_clock();
            }
            self.send_turn(net, index, key);
        }
    }

    /// The next client that has a connection and may send.
    fn next_sender(&mut self) -> Option<u32> {
        let count = self.slots.len() as u32;
        for _ in 0..count {
            let key = self.turns.next % count;
            self.turns.next = (key + 1) % count;
            let state = &self.slots[key as usize].state;
            if matches!(state.link, Link::Open { .. }) && state.quota > 0 {
                return Some(key);
            }
        }
        None
    }

    fn send_turn(&mut self, net: &mut impl Net, index: usize, key: u32) {
        let now_ns = net.now_ns();
        let Some(under_way) = self.protocol.under_way() else { return };
        let number = under_way.send(index as u16, key, now_ns);
        let tag = Tag { number, ..self.book.tag(now_ns, now_ns, index) };
        let slot = &mut self.slots[key as usize];
        slot.client.ask(tag);
        self.book.issue(index, &mut slot.state, 1);
        self.write(net, key, 1);
    }

    /// Messages that are over are entered, those that failed by a delivery charged, and the next ones sent.
    #[inline]
    pub(super) fn end_turns(&mut self, net: &mut impl Net) {
        if self.protocol.under_way().is_some() {
            self.settle_messages();
            self.take_turns(net);
        }
    }

    pub(super) fn settle_messages(&mut self) {
        let Some(under_way) = self.protocol.under_way() else { return };
        let phases = &mut self.book.phases;
        let settled = under_way.settle(|phase, latest_ns| {
            let phase = &mut phases[usize::from(phase)];
            phase.settled_ns = phase.settled_ns.max(latest_ns);
        });
        self.book.look |= settled;
        for charge in under_way.take_charges() {
            self.book.take_back(charge.phase, &charge.answered, charge.class);
            // Numbers are dealt out in turn: a part has every `threads`-th.
            let key = charge.key.sender / self.config.threads;
            if let Some(slot) = self.slots.get_mut(key as usize) {
                slot.state.forget_last(charge.phase, charge.key.sequence);
            }
        }
    }

    /// What waits for deliveries, or for a sign of life, longer than it may.
    pub(super) fn run_turns(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        if let Some(under_way) = self.protocol.under_way() {
            under_way.give_up(now_ns);
            self.settle_messages();
        }
        let Some(every_ns) = self.protocol.heartbeat_ns() else { return };
        if now_ns >= self.turns.heartbeat_ns {
            self.turns.heartbeat_ns = now_ns + every_ns / u64::from(HEARTBEAT_GROUPS);
            self.turns.group = (self.turns.group + 1) % HEARTBEAT_GROUPS;
            self.say_heartbeats(net);
        }
    }

    fn say_heartbeats(&mut self, net: &mut impl Net) {
        let (first, count) = (self.turns.group, self.slots.len() as u32);
        for key in (first..count).step_by(HEARTBEAT_GROUPS as usize) {
            if let Link::Open { token } = self.slots[key as usize].state.link {
                self.said.clear();
                self.protocol.write_heartbeat(&mut self.said);
                self.say(net, key, token);
            }
        }
    }

    /// Whether messages of a phase are under way.
    pub(super) fn is_under_way(&mut self, index: usize) -> bool {
        self.protocol.under_way().is_some_and(|under_way| under_way.is_open(index as u16))
    }

    /// We end a slot's connection, whose peer was silent for too long: what it has not had is lost, and nothing
    /// is expected of it any more.
    pub(super) fn abandon(&mut self, key: u32) {
        if let Some(under_way) = self.protocol.under_way() {
            under_way.drop_out(key);
            under_way.leave(key);
        }
    }
}
