//! Messages of the other engines that share a broadcast, as seen by the receivers of this engine.
//!
//! How it works: the first delivery of such a message enters it, with all current listeners as its
//! receivers. Nobody joins while anybody sends, so these are the listeners at the time of the send,
//! less those that we have closed since. The outcome is kept by sender and number, in rows of
//! consecutive messages with the same outcome. Later the front says which messages were sent in a
//! phase ([`Ledger::ask`]). Numbers run on from phase to phase, so each belongs to one phase, even
//! if the next phase begins before the previous one is over. When all messages are over, or the
//! time is up, they are settled ([`Ledger::conclude`]). A message that was sent and never seen is
//! lost for all receivers. A message that was seen and never sent is unsolicited.
//!
//! A message says when it was sent ([`Origin`]), which times its deliveries. A server passes that
//! on, so nothing else is made to depend on it: a message times out relative to when it was first
//! seen here, or at the time that the front names. Its times are kept by the phase that it names,
//! and join that phase's sums when it is settled. When we close a client, it is no longer expected
//! to have messages that had not been seen here by then.
//!
//! Memory: one row of 32 bytes per sender if nothing goes wrong, else up to one per message, at
//! most [`ROWS_MOST`].

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Entry, Handle, Ledger, PAST_MOST, Past, UNKNOWN};
use crate::class::Class;
use crate::lazy::Lazy;

/// The maximum number of rows that wait to be settled. It bounds what a server that makes up
/// messages can cost.
const ROWS_MOST: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// The maximum number of open messages of other engines. One more gives up the oldest.
const OPEN_MOST: usize = 65_536;
/// The maximum number of failed messages that are listed individually.
const FAILED_MOST: usize = 65_536;

/// Which senders are ours: sender numbers are dealt out to the engines round-robin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    index: u32,
    of: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers { index: 0, of: 1 }
    }
}

impl Numbers {
    pub(super) fn new(index: u32, of: u32) -> Self {
        Numbers { index, of: of.max(1) }
    }

    /// The index of the sender among our own, or none if it is another engine's.
    pub(super) fn own(self, sender: u32) -> Option<usize> {
        (sender % self.of == self.index).then_some((sender / self.of) as usize)
    }
}

/// Where and when a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The phase.
    pub phase: u16,
    /// The send time on our clock, to within the bound of the comparison of clocks.
    pub sent_ns: u64,
}

/// A message that did not reach every receiver exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FailedMessage")]
pub struct Failed {
    /// The number of its sender.
    pub sender: u32,
    /// Its number among the messages of that sender.
    pub sequence: u32,
    /// Why it failed: a receiver did not get it in time, or got it twice.
    #[serde(rename = "fault")]
    #[schemars(extend("enum" = [Class::Lost, Class::Duplicate]))]
    pub class: Class,
}

/// The findings of settling a phase, in addition to its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Messages that failed here; only the first ones if there are very many.
    pub failed: Vec<Failed>,
    /// The number of deliveries of messages that nobody sent.
    pub unsolicited: u64,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Came {
    timed: bool,
    expected: u32,
    delivered: u32,
    lost: u32,
    duplicate: u32,
    out_of_order: u32,
}

impl Came {
    fn class(&self) -> Option<Class> {
        let lost = (self.lost > 0).then_some(Class::Lost);
        lost.or_else(|| (self.duplicate > 0).then_some(Class::Duplicate))
    }
}

/// Consecutive messages of one sender with the same outcome.
#[derive(Clone, Copy, Debug)]
struct Row {
    last: u32,
    came: Came,
}

/// The phase that is being settled.
#[derive(Debug)]
struct Asked {
    /// The number of each sender's last message.
    sent: Arc<BTreeMap<u32, u32>>,
    until_ns: u64,
    /// How many of these messages are not over.
    missing: u64,
}

/// The record of other engines' messages that are over.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// The number of senders over all engines.
    senders: u32,
    /// The number of open messages.
    open: usize,
    /// The rows, by sender and number of their first message.
    over: BTreeMap<(u32, u32), Row>,
    /// The last settled message of each sender.
    settled: BTreeMap<u32, u32>,
    /// Copies of messages that were already settled. They are counted with the next phase settled.
    strays: u64,
    spread: Lazy,
    asked: Option<Asked>,
}

impl Foreign {
    fn settled(&self, sender: u32) -> u32 {
        self.settled.get(&sender).copied().unwrap_or(0)
    }

    /// The row that a message is in, with its key.
    fn row(&self, sender: u32, sequence: u32) -> Option<((u32, u32), Row)> {
        let (key, row) = self.over.range(..=(sender, sequence)).next_back()?;
        (key.0 == sender && row.last >= sequence).then_some((*key, *row))
    }

    /// Whether the message is over, settled or not.
    pub(super) fn is_over(&self, sender: u32, sequence: u32) -> bool {
        (1..=self.settled(sender)).contains(&sequence) || self.row(sender, sequence).is_some()
    }

    /// Whether a later message of the sender is over.
    pub(super) fn has_later(&self, sender: u32, sequence: u32) -> bool {
        let last = self.over.range(..=(sender, u32::MAX)).next_back();
        let last = last.filter(|(key, _)| key.0 == sender).map_or(0, |(_, row)| row.last);
        last.max(self.settled(sender)) > sequence
    }

    /// Enters a message that is over.
    pub(super) fn enter(&mut self, entry: &Entry) {
        let Entry { sender, sequence, expected, delivered, lost, duplicate, out_of_order, .. } =
            *entry;
        self.open -= 1;
        if lost == 0 && delivered > 0 {
            self.spread.record(entry.latest_ns.saturating_sub(entry.sent_ns));
        }
        if let Some(asked) = &mut self.asked
            && asked.sent.get(&sender).is_some_and(|last| sequence <= *last)
        {
            asked.missing = asked.missing.saturating_sub(1);
        }
        let timed = entry.phase != UNKNOWN;
        let came = Came { timed, expected, delivered, lost, duplicate, out_of_order };
        let before = self.over.range_mut(..(sender, sequence)).next_back();
        match before {
            Some((key, row)) if key.0 == sender && row.last + 1 == sequence && row.came == came => {
                row.last = sequence;
            }
            _ => _ = self.over.insert((sender, sequence), Row { last: sequence, came }),
        }
    }

    /// Counts another copy of a message that was over.
    pub(super) fn come_again(&mut self, sender: u32, sequence: u32) {
        let Some((key, row)) = self.row(sender, sequence) else {
            self.strays += 1;
            return;
        };
        let came = Came { duplicate: row.came.duplicate + 1, ..row.came };
        self.cut(key, sequence);
        self.cut((sender, sequence), sequence.saturating_add(1));
        self.over.insert((sender, sequence), Row { last: sequence, came });
    }

    /// Cuts a row in two so that one part begins with this message.
    fn cut(&mut self, key: (u32, u32), first: u32) {
        let Some(row) = self.over.get_mut(&key) else { return };
        if key.1 < first && first <= row.last {
            let behind = *row;
            row.last = first - 1;
            self.over.insert((key.0, first), behind);
        }
    }

    /// Removes and returns the rows of a sender up to this message.
    fn take_until(&mut self, sender: u32, last: u32) -> Vec<(u32, Row)> {
        if let Some((key, _)) = self.row(sender, last) {
            self.cut(key, last.saturating_add(1));
        }
        let keys = self.over.range((sender, 0)..=(sender, last)).map(|(key, _)| *key);
        let keys: Vec<_> = keys.collect();
        keys.into_iter().filter_map(|key| Some((key.1, self.over.remove(&key)?))).collect()
    }

    /// The number of a sender's messages up to this one that are over and not settled.
    fn count_over(&self, sender: u32, last: u32) -> u64 {
        let rows = self.over.range((sender, 0)..=(sender, last));
        rows.map(|(key, row)| u64::from(row.last.min(last) - key.1) + 1).sum()
    }
}

impl Ledger {
    /// Sets the number of senders over all engines: their numbers are 0 to `total` - 1. A smaller
    /// number than before has no effect.
    pub fn expect_senders(&mut self, total: u32) {
        self.foreign.senders = self.foreign.senders.max(total);
    }

    /// Enters a message of another engine at its first delivery here, with its origin if that is
    /// known. Returns none if the message is not another engine's, is over, has an implausible
    /// number, or if there are too many rows.
    pub fn discover(
        &mut self,
        sender: u32,
        sequence: u32,
        origin: Option<Origin>,
        now_ns: u64,
    ) -> Option<Handle> {
        let foreign = &self.foreign;
        let plausible = sender < foreign.senders && sequence > 0 && sequence < u32::MAX;
        let known = self.is_own(sender) || foreign.is_over(sender, sequence);
        if !plausible || known || foreign.over.len() >= ROWS_MOST {
            return None;
        }
        if foreign.open == OPEN_MOST {
            let oldest = self.foreign_places(|_| true).first().copied();
            oldest.into_iter().for_each(|place| self.lose(place));
        }
        self.foreign.open += 1;
        if let Some(Origin { phase, .. }) = origin {
            self.sums_of(phase, false);
        }
        Some(self.enter(origin, sender, sequence, now_ns))
    }

    /// Asks for the other engines' messages of a phase, given the number of each sender's last one,
    /// to be over by `until_ns`. Phases are asked for one at a time, in order.
    pub fn ask(&mut self, sent: Arc<BTreeMap<u32, u32>>, until_ns: u64) {
        let missing = |(sender, last): (&u32, &u32)| {
            let sent = u64::from(last.saturating_sub(self.foreign.settled(*sender)));
            sent.saturating_sub(self.foreign.count_over(*sender, *last))
        };
        let foreign = sent.iter().filter(|(sender, _)| !self.is_own(**sender));
        let missing = foreign.map(missing).sum();
        self.foreign.asked = Some(Asked { sent, until_ns, missing });
    }

    /// Whether the phase asked for can be settled.
    pub fn can_conclude(&self, now_ns: u64) -> bool {
        let asked = self.foreign.asked.as_ref();
        asked.is_some_and(|asked| asked.missing == 0 || asked.until_ns <= now_ns)
    }

    /// The time at which the phase asked for times out.
    pub fn asked_until_ns(&self) -> Option<u64> {
        self.foreign.asked.as_ref().map(|asked| asked.until_ns)
    }

    /// Settles the messages asked for as those of `phase`; what is not over is lost. If `phase` is
    /// the `last` one that was begun, messages seen beyond it were sent by nobody.
    pub fn conclude(&mut self, phase: u16, last: bool) -> Settled {
        let Some(Asked { sent, .. }) = self.foreign.asked.take() else { return Settled::default() };
        let late = self.foreign_places(|entry| {
            last || sent.get(&entry.sender).is_some_and(|last| entry.sequence <= *last)
        });
        late.into_iter().for_each(|place| self.lose(place));
        let mut found = Settled::default();
        let numbers = self.numbers;
        for (sender, last) in sent.iter().filter(|(sender, _)| numbers.own(**sender).is_none()) {
            self.settle_sender(phase, *sender, *last, &mut found.failed);
        }
        if last {
            let rows = std::mem::take(&mut self.foreign.over);
            let came = |((_, first), Row { last, came }): ((u32, u32), Row)| {
                (u64::from(last - first) + 1) * u64::from(came.delivered + came.duplicate)
            };
            found.unsolicited = rows.into_iter().map(came).sum();
            let foreign = &self.foreign;
            let sent = |past: &Past| {
                numbers.own(past.sender).is_some() || past.sequence <= foreign.settled(past.sender)
            };
            self.past.retain(sent);
        }
        let (strays, spread) =
            (std::mem::take(&mut self.foreign.strays), std::mem::take(&mut self.foreign.spread));
        let times = std::mem::take(self.sums_of(phase, false));
        let sums = self.sums(phase);
        sums.duplicate += strays;
        sums.histograms.spread.add(&spread);
        sums.merge(&times);
        found
    }

    /// Settles the messages of one sender up to `last`.
    fn settle_sender(&mut self, phase: u16, sender: u32, last: u32, failed: &mut Vec<Failed>) {
        let mut next = self.foreign.settled(sender) + 1;
        for (first, row) in self.foreign.take_until(sender, last) {
            self.lose_unseen(phase, sender, next..first, failed);
            next = row.last + 1;
            let (count, came) = (u64::from(next - first), row.came);
            let sums = self.sums(phase);
            sums.expected += count * u64::from(came.expected);
            sums.delivered += count * u64::from(came.delivered);
            sums.untimed += if came.timed { 0 } else { count * u64::from(came.delivered) };
            sums.lost += count * u64::from(came.lost);
            sums.duplicate += count * u64::from(came.duplicate);
            sums.out_of_order += count * u64::from(came.out_of_order);
            if let Some(class) = came.class() {
                name(failed, sender, first..next, class);
            }
        }
        self.lose_unseen(phase, sender, next..last.saturating_add(1), failed);
        let settled = self.foreign.settled.entry(sender).or_default();
        *settled = last.max(*settled);
    }

    /// Counts messages as lost that were sent and that no receiver here has had.
    fn lose_unseen(
        &mut self,
        phase: u16,
        sender: u32,
        unseen: std::ops::Range<u32>,
        failed: &mut Vec<Failed>,
    ) {
        let lost = unseen.len() as u64 * u64::from(self.receiver_count);
        if lost == 0 {
            return;
        }
        let sums = self.sums(phase);
        sums.expected += lost;
        sums.lost += lost;
        if unseen.len() > PAST_MOST {
            self.forget(sender, unseen.end - 1 - PAST_MOST as u32);
        }
        for sequence in unseen.clone().rev().take(PAST_MOST) {
            let missing = self.receivers.clone();
            self.remember(Past { phase, sender, sequence, missing });
        }
        name(failed, sender, unseen, Class::Lost);
    }

    /// The places of the selected open messages of other engines, oldest first.
    fn foreign_places(&self, which: impl Fn(&Entry) -> bool) -> Vec<u32> {
        let of = |place: &&u32| {
            let entry = self.entries[**place as usize].as_ref();
            entry.is_some_and(|entry| !entry.own && which(entry))
        };
        self.open.iter().filter(of).copied().collect()
    }

    /// Gives up an open message: it is lost for every receiver that has not had it.
    pub(super) fn lose(&mut self, place: u32) {
        if let Some(entry) = &mut self.entries[place as usize] {
            entry.lost = entry.expected - entry.delivered;
        }
        self.finish(place);
    }
}

/// Lists messages as failed, as far as there is room.
fn name(failed: &mut Vec<Failed>, sender: u32, these: std::ops::Range<u32>, class: Class) {
    let room = FAILED_MOST.saturating_sub(failed.len());
    failed.extend(these.take(room).map(|sequence| Failed { sender, sequence, class }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Delivered;

    #[test]
    fn what_a_server_makes_up_takes_bounded_memory() {
        let mut ledger = Ledger::of_part(0, 2);
        ledger.expect_senders(u32::MAX);
        (0..2).for_each(|receiver| ledger.join(receiver));
        for message in 0..2 * ROWS_MOST as u32 {
            if let Some(handle) = ledger.discover(1 + 2 * message, 1, None, 1) {
                assert_eq!(ledger.deliver(handle, 0, 1), Delivered::Once);
                ledger.give_up(1);
            }
        }
        assert_eq!(ledger.foreign.over.len(), ROWS_MOST);
        let sender = 1 + 2 * ROWS_MOST as u32;
        assert_eq!(ledger.deliver_over(sender, 1, 0), Delivered::Unknown);
        ledger.ask(Arc::default(), 2);
        assert_eq!(ledger.conclude(0, true).unsolicited, ROWS_MOST as u64);
    }

    #[test]
    fn senders_are_dealt_out_in_turn() {
        let own = |index, of| (0..7).map(|sender| Numbers::new(index, of).own(sender)).collect();
        let places: Vec<Option<usize>> = own(1, 3);
        assert_eq!(places, [None, Some(0), None, None, Some(1), None, None]);
        let all: Vec<Option<usize>> = own(0, 0);
        assert_eq!(all, (0..7).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn messages_that_are_over_make_room_for_others() {
        let mut ledger = Ledger::of_part(0, 2);
        ledger.expect_senders(4);
        ledger.join(0);
        let open = ledger.discover(3, 1, None, 1).expect("new");
        ledger.discover(3, 2, None, 1).expect("new");
        for sequence in 1..=OPEN_MOST as u32 {
            let handle = ledger.discover(1, sequence, None, 1).expect("new");
            ledger.deliver(handle, 0, 1);
        }
        assert_eq!(ledger.deliver(open, 0, 1), Delivered::Once);
    }

    #[test]
    fn messages_that_come_well_take_a_row_for_each_sender() {
        let mut ledger = Ledger::of_part(0, 2);
        ledger.expect_senders(4);
        ledger.join(0);
        for sequence in 1..=1000 {
            for sender in [1, 3] {
                let handle = ledger.discover(sender, sequence, None, 1).expect("new");
                ledger.deliver(handle, 0, 1);
            }
        }
        assert_eq!(ledger.foreign.over.len(), 2);
    }
}
