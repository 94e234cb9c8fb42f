//! The load of a broadcast: a number of messages in flight over all connections, which send in
//! turn. It also handles messages that are over.

use trueload_drive::Net;
use trueload_load::dealt;

use super::turns::HEARTBEAT_GROUPS;
use super::{Broadcast, Broadcasting};
use crate::generator::slot::Numbered;

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
