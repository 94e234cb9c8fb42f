//! Gives a part of the load to an engine that joins while a phase is sending.
//!
//! Arrivals of an open loop change hands exactly at the time of the change. Connections that are no
//! longer this engine's send nothing from then on, and are closed once their last answer is there.

use std::sync::Arc;

use trueload_drive::{Conn, Net};

use super::Generator;
use super::messages::NewPart;
use super::phase::PhaseState;
use super::protocol::Protocol;
use super::slot::NEVER;

/// The changes that are still to come: their times, and the slots kept from then on.
#[derive(Debug, Default)]
pub(super) struct Parting(Vec<(u64, u32)>);

impl Parting {
    /// The time of the next change.
    pub(super) fn due_ns(&self) -> u64 {
        self.0.first().map_or(NEVER, |(at_ns, _)| *at_ns)
    }
}

impl<P: Protocol> Generator<P> {
    /// Prepares for another part of the load.
    pub(super) fn take_part(&mut self, part: NewPart) {
        let Some(index) = self.accounting.current else { return };
        let phase = &mut self.accounting.phases[index];
        let config = Arc::make_mut(&mut self.config);
        (config.thread, config.threads, config.turns) = (part.thread, part.threads, part.turns);
        phase.hand_over(config, part.from_ns);
        let kept = config.own_slots(phase.share.connections);
        self.parting.0.push((phase.started_ns + part.from_ns, kept));
    }

    /// Gives up slots once the time has come.
    pub(super) fn part_if_due(&mut self, net: &mut impl Net) {
        while self.parting.due_ns() <= net.now_ns() {
            let (_, kept) = self.parting.0.remove(0);
            let sending = self.accounting.current_mut().map(|phase| phase.state);
            if sending != Some(PhaseState::Sending) {
                return;
            }
            self.ready.truncate(kept);
            for key in self.slots.give_up_from(kept) {
                self.fill(net, key);
            }
        }
    }

    /// Closes the connection of a slot that was given up, if nothing is outstanding on it.
    pub(super) fn leave(&mut self, net: &mut impl Net, conn: Conn) {
        self.codec.take_leave(net, &mut self.slots[conn.key], conn.token);
        net.close(conn.token);
        self.lost(net, conn.key, true, 0);
    }

    /// Whether the slot was given up and its connection can be closed.
    pub(super) fn can_leave(&self, key: u32) -> bool {
        let slot = &self.slots[key];
        self.slots.is_given_up(key)
            && slot.state.waiting_again() == 0
            && slot.state.connection.is_open()
    }
}
