//! The load of a broadcast: a number of messages in flight over all connections, which send in
//! turn. It also handles messages that are over.

use trueload_drive::Net;
use trueload_load::dealt;

use super::{Broadcast, Broadcasting};
use crate::generator::slot::{NEVER, Numbered};

/// Inputs handled on one reading of the clock. Deliveries to thousands of clients come in one
/// batch, and the last read in it would seem as early as the first.
const INPUTS_PER_CLOCK: u32 = 16;
/// Clients send their heartbeats in this many groups, spread over the interval.
const HEARTBEAT_GROUPS: u32 = 64;

/// The state of the turns: which client sends next.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The next sender.
    next: u32,
    inputs: u32,
    /// The next group to send its heartbeat, and when.
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

    /// The time at which the next group sends its heartbeat.
    pub(super) fn heartbeat_ns(&self, every_ns: Option<u64>) -> u64 {
        if every_ns.is_some() { self.heartbeat_ns } else { NEVER }
    }

    /// Returns the next of `count` clients that can send.
    fn next_sender(&mut self, count: u32, can_send: impl Fn(u32) -> bool) -> Option<u32> {
        for _ in 0..count {
            let key = self.next % count;
            self.next = (key + 1) % count;
            if can_send(key) {
                return Some(key);
            }
        }
        None
    }
}

impl Broadcasting {
    /// Sends while one more message may be in flight.
    pub(super) fn take_turns(&mut self, net: &mut impl Net) {
        let mut read = false;
        while let Some(index) = self.phase_with_room(net.now_ns()) {
            let generator = &self.generator;
            let count = generator.slots.len();
            let Some(key) = self.turns.next_sender(count, |key| generator.can_send(key)) else {
                // No client is left to send, and none comes back in this phase.
                let accounting = &mut self.generator.accounting;
                accounting.phases[index].quota = 0;
                accounting.look = true;
                return;
            };
            if !std::mem::replace(&mut read, true) {
                net.read_clock();
            }
            let number = self.under_way().send(index as u16, key, net.now_ns());
            self.generator.send_one(net, index, key, number);
        }
    }

    /// The phase to send for, if it may have one more message in flight.
    fn phase_with_room(&mut self, now_ns: u64) -> Option<usize> {
        let (config, accounting) = (&self.generator.config, &mut self.generator.accounting);
        let (index, phase) = accounting.sending(now_ns)?;
        let concurrent = phase.concurrent().filter(|_| phase.quota > 0)?;
        let concurrent = dealt(concurrent, config.threads, config.thread);
        let unfinished = accounting.unfinished();
        let in_flight: u64 = accounting.phases[unfinished].iter().map(|phase| phase.open).sum();
        let room = in_flight < u64::from(concurrent) && self.under_way().has_room(concurrent);
        room.then_some(index)
    }

    /// Enters messages that are over, and charges those that failed by a delivery.
    #[inline]
    pub(super) fn settle_messages(&mut self) {
        let (accounting, protocol) =
            (&mut self.generator.accounting, &mut self.generator.codec.protocol);
        let phases = &mut accounting.phases;
        let settled = protocol.under_way.settle(|phase, latest_ns| {
            let phase = &mut phases[usize::from(phase)];
            phase.settled_ns = phase.settled_ns.max(latest_ns);
        });
        accounting.look |= settled;
        for charge in protocol.under_way.take_charges() {
            // Sender numbers are dealt out in turn, so a thread has every `threads`-th.
            let key = charge.key.sender / self.generator.config.threads;
            let whose = Numbered { number: charge.key.sequence, phase: charge.phase };
            self.generator.take_back(key, whose, &charge.answered, charge.class);
        }
    }

    /// Gives up deliveries that are out of time, and sends the heartbeats that are due.
    pub(super) fn run_turns(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        self.under_way().give_up(now_ns);
        self.settle_messages();
        let Some(every_ns) = self.generator.codec.protocol.heartbeat_ns() else { return };
        if now_ns >= self.turns.heartbeat_ns {
            self.turns.heartbeat_ns = now_ns + every_ns / u64::from(HEARTBEAT_GROUPS);
            self.turns.group = (self.turns.group + 1) % HEARTBEAT_GROUPS;
            self.send_heartbeats(net);
        }
    }

    fn send_heartbeats(&mut self, net: &mut impl Net) {
        let (first, count) = (self.turns.group, self.generator.slots.len());
        for key in (first..count).step_by(HEARTBEAT_GROUPS as usize) {
            self.generator.send_with(net, key, Broadcast::write_heartbeat);
        }
    }
}
