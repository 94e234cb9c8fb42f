//! The messages of a broadcast that are under way: who has received them, the bytes by which they
//! are recognised, and receipts that must be taken back.
//!
//! A message whose receipt came well has still failed if a receiver lost it, or got it twice. The
//! receipt is known first, so it is taken back later: [`Charge`].

use std::collections::VecDeque;
use std::sync::Arc;

use trueload_load::dealt_slot;
use trueload_meter::{Answered, Class, Delivered, Handle, Ledger, Origin};
use trueload_wire::shootout::{Key, Memory, Stamp};

use crate::generator::slot::NEVER;
use crate::protocol::Sent;

/// Messages whose receipts have come may still wait for deliveries: at most this many beyond those
/// in flight.
const OPEN_MOST: usize = 1024;
/// Receipts that can still be taken back.
const RECEIPTS_MOST: usize = 2 * OPEN_MOST;
/// The same with several engines, which report failures at their receivers when a phase is settled.
const RECEIPTS_MOST_SHARED: usize = 65_536;

/// A message that was counted as settled well, and has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    /// The phase it belongs to.
    pub phase: u16,
    /// The message.
    pub key: Key,
    /// The times that were recorded for it.
    pub answered: Answered,
    /// The class of the failure.
    pub class: Class,
}

/// A receipt that came.
#[derive(Debug)]
struct Receipt {
    key: Key,
    phase: u16,
    answered: Answered,
    charged: bool,
}

/// A message that is recognised by its bytes.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    handle: Handle,
}

/// The messages under way on all connections of a thread.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) ledger: Ledger,
    /// The state of settling with the other engines, if there are any.
    pub(super) settling: Option<Settling>,
    /// The index of this engine among several.
    index: u32,
    of: u32,
    /// The seed of the stamps, which all engines have.
    seed: u64,
    /// How far our clock is ahead of the one that all engines share; none until that is known.
    pub(super) ahead_ns: Option<i64>,
    memory: Memory<Known>,
    receipts: VecDeque<Receipt>,
    /// Messages that failed before their receipts came.
    failed_early: VecDeque<(Key, Class)>,
    charges: Vec<Charge>,
    pub(super) timeout_ns: u64,
}

impl UnderWay {
    /// Starts with no messages; deliveries are waited for as long as `timeout_ns`.
    pub(super) fn new(timeout_ns: u64) -> Self {
        UnderWay {
            ledger: Ledger::default(),
            settling: None,
            index: 0,
            of: 1,
            seed: 0,
            ahead_ns: None,
            memory: Memory::default(),
            receipts: VecDeque::new(),
            failed_early: VecDeque::new(),
            charges: Vec::new(),
            timeout_ns,
        }
    }

    /// Makes this engine `index` of `of`, which have the same `seed`.
    pub(super) fn of_part(self, index: u32, of: u32, seed: u64) -> Self {
        let settling = (of > 1).then(Settling::default);
        UnderWay { ledger: Ledger::of_part(index, of), settling, index, of, seed, ..self }
    }

    /// The stamp of a message that we send.
    pub(super) fn stamp(&self, key: Key, phase: u16, sent_ns: u64) -> Stamp {
        let ahead_ns = self.ahead_ns.unwrap_or_default();
        Stamp::new(self.seed, key, phase, sent_ns.wrapping_sub(ahead_ns.cast_unsigned()))
    }

    /// Where a message of another engine came from, unless its stamp is not its own.
    fn origin(&self, key: Key, stamp: Stamp) -> Option<Origin> {
        let ahead_ns = self.ahead_ns.filter(|_| stamp.is_of(self.seed, key))?;
        let sent_ns = stamp.sent_ns.wrapping_add(ahead_ns.cast_unsigned());
        Some(Origin { phase: stamp.phase, sent_ns })
    }

    /// A slot's number as a sender.
    pub(super) fn number(&self, slot: u32) -> u32 {
        dealt_slot(slot, self.of, self.index)
    }

    /// Whether one more message may be sent if `concurrent` may be in flight.
    pub(super) fn has_room(&self, concurrent: u32) -> bool {
        self.ledger.open() < concurrent as usize + OPEN_MOST
    }

    /// Notes that a slot sends its next message, and returns the message's number.
    pub(super) fn send(&mut self, phase: u16, slot: u32, now_ns: u64) -> u32 {
        let sender = self.number(slot);
        let sequence = self.ledger.next_sequence(sender);
        self.ledger.send(phase, sender, now_ns);
        if let Some(settling) = &mut self.settling {
            settling.send(phase, sender, sequence);
        }
        sequence
    }

    /// Delivers a message that is recognised by its bytes to a slot; false if it is not recognised.
    #[inline]
    pub(super) fn recognise(&mut self, message: &[u8], slot: u32, now_ns: u64) -> bool {
        let Some(Known { key, handle }) = self.memory.recognise(message) else { return false };
        match self.ledger.deliver(handle, slot, now_ns) {
            Delivered::Once => {}
            Delivered::Again => self.fail(key, Class::Duplicate),
            Delivered::Late | Delivered::Unknown => _ = self.deliver_over(key, slot),
        }
        true
    }

    /// Delivers a parsed broadcast to a slot; false if it was never sent.
    pub(super) fn deliver(
        &mut self,
        key: Key,
        stamp: Option<Stamp>,
        message: &[u8],
        slot: u32,
        now_ns: u64,
    ) -> bool {
        let handle = self.ledger.find(key.sender, key.sequence).or_else(|| {
            let origin = stamp.and_then(|stamp| self.origin(key, stamp));
            self.ledger.discover(key.sender, key.sequence, origin, now_ns)
        });
        let Some(handle) = handle else { return self.deliver_over(key, slot) };
        self.memory.remember(key, Known { key, handle }, message);
        if self.ledger.deliver(handle, slot, now_ns) == Delivered::Again {
            self.fail(key, Class::Duplicate);
        }
        true
    }

    fn deliver_over(&mut self, key: Key, slot: u32) -> bool {
        match self.ledger.deliver_over(key.sender, key.sequence, slot) {
            Delivered::Unknown => return false,
            Delivered::Again => self.fail(key, Class::Duplicate),
            Delivered::Once | Delivered::Late => {}
        }
        true
    }

    /// Notes the receipt of a message.
    pub(super) fn receive(&mut self, key: Key, phase: u16, answered: Answered) {
        let most = if self.of > 1 { RECEIPTS_MOST_SHARED } else { RECEIPTS_MOST };
        if self.receipts.len() == most {
            self.receipts.pop_front();
        }
        self.receipts.push_back(Receipt { key, phase, answered, charged: false });
        if let Some(at) = self.failed_early.iter().position(|(early, _)| *early == key)
            && let Some((_, class)) = self.failed_early.remove(at)
        {
            self.fail(key, class);
        }
    }

    /// Fails a message, once, whatever else becomes of it. A failure of another engine's message is
    /// reported when its phase is settled.
    pub(super) fn fail(&mut self, key: Key, class: Class) {
        if !self.ledger.is_own(key.sender) {
            return;
        }
        let Some(receipt) = self.receipts.iter_mut().rev().find(|receipt| receipt.key == key)
        else {
            if self.failed_early.len() == OPEN_MOST {
                self.failed_early.pop_front();
            }
            if !self.failed_early.iter().any(|(early, _)| *early == key) {
                self.failed_early.push_back((key, class));
            }
            return;
        };
        if !std::mem::replace(&mut receipt.charged, true) {
            let Receipt { key, phase, answered, .. } = *receipt;
            self.charges.push(Charge { phase, key, answered, class });
        }
    }

    /// Marks the sender's last message as charged, because it was charged in another way.
    pub(super) fn charged_otherwise(&mut self, sender: u32) {
        let last = self.receipts.iter_mut().rev().find(|receipt| receipt.key.sender == sender);
        last.into_iter().for_each(|receipt| receipt.charged = true);
    }

    /// Gives up messages that are out of time.
    pub(super) fn give_up(&mut self, now_ns: u64) {
        if self.oldest_due_ns() <= now_ns {
            self.ledger.give_up(now_ns.saturating_sub(self.timeout_ns));
        }
    }

    /// The next time at which something is due.
    pub(super) fn next_ns(&self) -> u64 {
        self.oldest_due_ns().min(self.ledger.asked_until_ns().unwrap_or(NEVER))
    }

    /// The time at which the next message is out of time.
    fn oldest_due_ns(&self) -> u64 {
        self.ledger.oldest_ns().map_or(NEVER, |sent_ns| sent_ns.saturating_add(self.timeout_ns))
    }

    /// Handles the messages that are over. `over` is called for each with its phase and the time of
    /// its last delivery. Returns true if there were any.
    pub(super) fn settle(&mut self, mut over: impl FnMut(u16, u64)) -> bool {
        if !self.ledger.has_finished() {
            return false;
        }
        let mut lost = Vec::new();
        for finished in self.ledger.take_finished() {
            let key = Key { sender: finished.sender, sequence: finished.sequence };
            self.memory.forget(key);
            if let Some(phase) = finished.phase {
                over(phase, finished.latest_ns);
            }
            if finished.lost > 0 {
                lost.push(key);
            }
        }
        lost.into_iter().for_each(|key| self.fail(key, Class::Lost));
        true
    }

    /// Takes the messages whose receipts have to be taken back.
    pub(super) fn take_charges(&mut self) -> Vec<Charge> {
        std::mem::take(&mut self.charges)
    }
}

/// The phases that are settled with other engines.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// The messages sent in each phase; none once they have been reported.
    sent: Vec<Option<Sent>>,
    /// Settlements asked for and not begun: phase, messages sent, and until when to wait for them.
    pub(super) waiting: VecDeque<(u16, Arc<Sent>, u64)>,
    pub(super) current: Option<u16>,
}

impl Settling {
    pub(super) fn sent(&mut self, phase: u16) -> &mut Option<Sent> {
        let at = usize::from(phase);
        if self.sent.len() <= at {
            self.sent.resize_with(at + 1, || Some(Sent::default()));
        }
        &mut self.sent[at]
    }

    /// Notes that one of our clients sends a message.
    pub(super) fn send(&mut self, phase: u16, sender: u32, sequence: u32) {
        if let Some(sent) = self.sent(phase) {
            sent.insert(sender, sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of two engines, whose clock is so far ahead of the common one.
    fn engine(index: u32, ahead_ns: Option<i64>) -> UnderWay {
        UnderWay { ahead_ns, ..UnderWay::new(1).of_part(index, 2, 5) }
    }

    #[test]
    fn a_send_time_comes_to_the_receivers_clock_however_far_apart_the_clocks_are() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        const SENT_NS: u64 = 123_456_789;
        let key = Key { sender: 0, sequence: 1 };
        let clocks = [(0, 0), (5, -7), (-HOUR_NS, 40 * HOUR_NS), (9_000 * HOUR_NS, -HOUR_NS)];
        for (sender_ahead_ns, receiver_ahead_ns) in clocks {
            let sender = engine(0, Some(sender_ahead_ns));
            let receiver = engine(1, Some(receiver_ahead_ns));
            let common_ns = SENT_NS.wrapping_sub(sender_ahead_ns.cast_unsigned());
            let sent_ns = common_ns.wrapping_add(receiver_ahead_ns.cast_unsigned());
            let stamp = sender.stamp(key, 3, SENT_NS);
            let origin = Some(Origin { phase: 3, sent_ns });
            assert_eq!(receiver.origin(key, stamp), origin, "{sender_ahead_ns}");
            let other = Key { sequence: 2, ..key };
            assert_eq!(receiver.origin(other, stamp), None, "another message's");
            assert_eq!(engine(1, None).origin(key, stamp), None, "clocks are not compared yet");
        }
    }
}
