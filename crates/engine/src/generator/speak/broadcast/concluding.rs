//! Settles a phase of a broadcast with the other engines that share it.
//!
//! Each engine reports what it sent, settles what it is asked about, and charges its messages that
//! failed elsewhere. Only then is the phase over; until then it is held.

use std::sync::Arc;

use trueload_meter::{Class, Failed, Settled};
use trueload_wire::shootout::Key;

use super::{Broadcasting, UnderWay};
use crate::generator::messages::Report;
use crate::generator::phase::PhaseState;
use crate::protocol::Sent;

impl UnderWay {
    /// Whether other engines take part in this broadcast.
    pub(super) fn is_shared(&self) -> bool {
        self.settling.is_some()
    }

    /// Returns the messages sent in a phase whose own messages are over, unless they have been
    /// reported.
    fn take_sent(&mut self, phase: u16) -> Option<Sent> {
        self.settling.as_mut()?.sent(phase).take()
    }

    /// Asks to settle the messages of all engines in a phase. Messages of other engines are waited
    /// for until `until_ns`, by default as long as deliveries are.
    pub(super) fn ask(&mut self, phase: u16, sent: Arc<Sent>, until_ns: Option<u64>, now_ns: u64) {
        let until_ns = until_ns.unwrap_or_else(|| now_ns.saturating_add(self.timeout_ns));
        if let Some(settling) = &mut self.settling {
            settling.waiting.push_back((phase, sent, until_ns));
        }
        self.ask_next();
    }

    fn ask_next(&mut self) {
        let Some(settling) = self.settling.as_mut().filter(|it| it.current.is_none()) else {
            return;
        };
        if let Some((phase, sent, until_ns)) = settling.waiting.pop_front() {
            settling.current = Some(phase);
            self.ledger.ask(sent, until_ns);
        }
    }

    /// Settles this phase, if it is next and can be settled; `last` if no phase was begun after it.
    fn conclude(&mut self, phase: u16, last: bool, now_ns: u64) -> Option<Settled> {
        let settling = self.settling.as_mut().filter(|it| it.current == Some(phase))?;
        if !self.ledger.can_conclude(now_ns) {
            return None;
        }
        settling.current = None;
        let settled = self.ledger.conclude(phase, last);
        self.ask_next();
        Some(settled)
    }
}

impl Broadcasting {
    /// Settles the held phases whose own messages are over, in their order: the ledger forgets what
    /// came before a phase that it has concluded.
    pub(super) fn settle_phases(&mut self, now_ns: u64) {
        for index in self.generator.accounting.unfinished() {
            let phase = &self.generator.accounting.phases[index];
            let sent = phase.state == PhaseState::Draining && phase.open == 0;
            if !phase.held {
                continue;
            }
            if !sent || self.under_way().ledger.is_open(index as u16) {
                return;
            }
            self.settle_phase(index, now_ns);
        }
    }

    /// Reports first what was sent, and then, once it is known, the fate of the other engines'
    /// messages.
    fn settle_phase(&mut self, index: usize, now_ns: u64) {
        if let Some(sent) = self.under_way().take_sent(index as u16) {
            return self.generator.link.report(Report::Sent(index, sent));
        }
        let last = index + 1 == self.generator.accounting.phases.len();
        let Some(settled) = self.under_way().conclude(index as u16, last, now_ns) else { return };
        for _ in 0..settled.unsolicited {
            let meter = &mut self.generator.accounting.phases[index].meter;
            meter.scheduled += 1;
            meter.issued += 1;
            meter.record_failed(Class::Unsolicited);
        }
        self.generator.link.report(Report::Settled(index, settled.failed));
    }

    /// Charges our messages that failed at other engines, and lets the phase end.
    pub(super) fn charge(&mut self, index: usize, failed: &[Failed]) {
        for Failed { sender, sequence, class } in failed {
            self.under_way().fail(Key { sender: *sender, sequence: *sequence }, *class);
        }
        if let Some(phase) = self.generator.accounting.phases.get_mut(index) {
            phase.held = false;
        }
        self.settle_messages();
    }
}
