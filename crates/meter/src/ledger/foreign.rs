//! Messages of the other engines that share a broadcast, at the receivers of this one.
//!
//! How it works: the first delivery of such a message enters it, for all who listen then: nobody joins while anybody
//! sends, so that is who listened when it was sent, less those whom we closed since. What came of it is kept by its
//! sender and number, in rows of those that came alike, until the front says which messages were sent in a phase
//! ([`Ledger::ask`]): numbers follow each other from phase to phase, so each belongs to one phase, also where a phase
//! follows on another that is not over. When all are over, or the time is up, they are settled
//! ([`Ledger::conclude`]): one that was sent and never seen has been lost by all, and one that was seen and that
//! nobody sent is unsolicited.
//!
//! When a message was sent is known on its engine's clock alone: what is out of time is told from when it was first
//! seen here, and by the time that the front names; and of a client that we close, nothing is expected any more that
//! nobody here had seen by then.
//!
//! Memory: a row of 32 bytes for each sender if nothing goes wrong, else up to one a message, at most [`ROWS_MOST`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, FOREIGN, Handle, Ledger, PAST_MOST, Past};
use crate::class::Class;
use crate::lazy::Lazy;

/// Rows of messages that wait to be settled; a server that makes up messages is not believed beyond that.
const ROWS_MOST: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// Messages of other engines that are open; one more gives up the oldest.
const OPEN_MOST: usize = 65_536;
/// Failed messages that are named one by one.
const FAILED_MOST: usize = 65_536;

/// Which senders are ours: numbers are dealt out in turn over the engines.
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

    /// Which one of ours it is.
    pub(super) fn own(self, sender: u32) -> Option<usize> {
        (sender % self.of == self.index).then_some((sender / self.of) as usize)
    }
}

/// A message that did not reach everybody once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Who sent it.
    pub sender: u32,
    /// Which of the sender's messages.
    pub sequence: u32,
    /// [`Class::Lost`] or [`Class::Duplicate`].
    pub class: Class,
}

/// What the settling of a phase found beside its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Messages that failed here; of very many the first ones.
    pub failed: Vec<Failed>,
    /// Deliveries of messages that nobody sent.
    pub unsolicited: u64,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Came {
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

/// Messages of one sender, one behind the other, that came alike.
#[derive(Clone, Copy, Debug)]
struct Row {
    last: u32,
    came: Came,
}

/// The phase that is being settled.
#[derive(Debug)]
struct Asked {
    /// The last message of each sender.
    sent: Arc<BTreeMap<u32, u32>>,
    until_ns: u64,
    /// Of these messages, how many are not over.
    missing: u64,
}

/// The account of other engines' messages that are over.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// Numbers that senders have.
    senders: u32,
    /// Messages that are open.
    open: usize,
    /// By sender and number of the first message of each row.
    over: BTreeMap<(u32, u32), Row>,
    /// The last message of each sender that has been settled.
    settled: BTreeMap<u32, u32>,
    /// Copies of messages that had been settled: they are told with the next ones.
    strays: u64,
    spread: Lazy,
    asked: Option<Asked>,
}

impl Foreign {
    fn settled(&self, sender: u32) -> u32 {
        self.settled.get(&sender).copied().unwrap_or(0)
    }

    /// The row that a message is in: its key, and it.
    fn row(&self, sender: u32, sequence: u32) -> Option<((u32, u32), Row)> {
        let (key, row) = self.over.range(..=(sender, sequence)).next_back()?;
        (key.0 == sender && row.last >= sequence).then_some((*key, *row))
    }

    /// Whether the message is over, settled or not.
    pub(super) fn is_over(&self, sender: u32, sequence: u32) -> bool {
        (1..=self.settled(sender)).contains(&sequence) || self.row(sender, sequence).is_some()
    }

    /// Whether a later one of the sender is over.
    pub(super) fn has_later(&self, sender: u32, sequence: u32) -> bool {
        let last = self.over.range(..=(sender, u32::MAX)).next_back();
        let last = last.filter(|(key, _)| key.0 == sender).map_or(0, |(_, row)| row.last);
        last.max(self.settled(sender)) > sequence
    }

    /// A message is over.
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
        let came = Came { expected, delivered, lost, duplicate, out_of_order };
        let before = self.over.range_mut(..(sender, sequence)).next_back();
        match before {
            Some((key, row)) if key.0 == sender && row.last + 1 == sequence && row.came == came => {
                row.last = sequence;
            }
            _ => _ = self.over.insert((sender, sequence), Row { last: sequence, came }),
        }
    }

    /// A message that was over has come again.
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

    /// Cuts a row in two, so that one begins with this message.
    fn cut(&mut self, key: (u32, u32), first: u32) {
        let Some(row) = self.over.get_mut(&key) else { return };
        if key.1 < first && first <= row.last {
            let behind = *row;
            row.last = first - 1;
            self.over.insert((key.0, first), behind);
        }
    }

    /// Takes out the rows of a sender up to this message.
    fn take_until(&mut self, sender: u32, last: u32) -> Vec<(u32, Row)> {
        if let Some((key, _)) = self.row(sender, last) {
            self.cut(key, last.saturating_add(1));
        }
        let keys = self.over.range((sender, 0)..=(sender, last)).map(|(key, _)| *key);
        let keys: Vec<_> = keys.collect();
        keys.into_iter().filter_map(|key| Some((key.1, self.over.remove(&key)?))).collect()
    }

    /// How many messages of a sender up to this one are over, and not settled.
    fn count_over(&self, sender: u32, last: u32) -> u64 {
        let rows = self.over.range((sender, 0)..=(sender, last));
        rows.map(|(key, row)| u64::from(row.last.min(last) - key.1) + 1).sum()
    }
}

impl Ledger {
    /// Senders have the numbers from 0 to below `total`, over all engines; there may once have been more.
    pub fn expect_senders(&mut self, total: u32) {
        self.foreign.senders = self.foreign.senders.max(total);
    }

    /// A message that is not open is seen: enters it if it is another engine's, and its first delivery here.
    pub fn discover(&mut self, sender: u32, sequence: u32, now_ns: u64) -> Option<Handle> {
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
        Some(self.enter(FOREIGN, sender, sequence, now_ns))
    }

    /// The other engines' messages of a phase, by the number of each sender's last one, are to be over by `until_ns`.
    /// One phase at a time, in their order.
    pub fn ask(&mut self, sent: Arc<BTreeMap<u32, u32>>, until_ns: u64) {
        let missing = |(sender, last): (&u32, &u32)| {
            let sent = u64::from(last.saturating_sub(self.foreign.settled(*sender)));
            sent.saturating_sub(self.foreign.count_over(*sender, *last))
        };
        let foreign = sent.iter().filter(|(sender, _)| !self.is_own(**sender));
        let missing = foreign.map(missing).sum();
        self.foreign.asked = Some(Asked { sent, until_ns, missing });
    }

    /// Whether what was asked for can be settled.
    #[must_use]
    pub fn can_conclude(&self, now_ns: u64) -> bool {
        let asked = self.foreign.asked.as_ref();
        asked.is_some_and(|asked| asked.missing == 0 || asked.until_ns <= now_ns)
    }

    /// When what was asked for is out of time.
    #[must_use]
    pub fn asked_until_ns(&self) -> Option<u64> {
        self.foreign.asked.as_ref().map(|asked| asked.until_ns)
    }

    /// Settles what was asked for, as messages of `phase`. What is not over is lost. If it is the `last` phase that was
    /// begun, nobody has sent what is seen beyond it.
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
        let sums = self.sums(phase);
        sums.duplicate += strays;
        sums.spread.add(&spread);
        found
    }

    /// Settles the messages of one sender up to this one.
    fn settle_sender(&mut self, phase: u16, sender: u32, last: u32, failed: &mut Vec<Failed>) {
        let mut next = self.foreign.settled(sender) + 1;
        for (first, row) in self.foreign.take_until(sender, last) {
            self.lose_unseen(phase, sender, next..first, failed);
            next = row.last + 1;
            let (count, came) = (u64::from(next - first), row.came);
            let sums = self.sums(phase);
            sums.expected += count * u64::from(came.expected);
            sums.delivered += count * u64::from(came.delivered);
            sums.untimed += count * u64::from(came.delivered);
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

    /// Messages that were sent, and of which nobody here has had a copy.
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
        for sequence in unseen.clone().rev().take(PAST_MOST) {
            let missing = self.receivers.clone();
            self.remember(Past { phase, sender, sequence, missing });
        }
        name(failed, sender, unseen, Class::Lost);
    }

    /// Places of open messages of other engines, the oldest first.
    fn foreign_places(&self, which: impl Fn(&Entry) -> bool) -> Vec<u32> {
        let of = |place: &&u32| {
            let entry = self.entries[**place as usize].as_ref();
            entry.is_some_and(|entry| !entry.is_own() && which(entry))
        };
        self.open.iter().filter(of).copied().collect()
    }

    /// Who has not had an open message has lost it.
    pub(super) fn lose(&mut self, place: u32) {
        if let Some(entry) = &mut self.entries[place as usize] {
            entry.lost = entry.expected - entry.delivered;
        }
        self.finish(place);
    }
}

/// Names messages as failed.
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
            if let Some(handle) = ledger.discover(1 + 2 * message, 1, 1) {
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
        let open = ledger.discover(3, 1, 1).expect("new");
        ledger.discover(3, 2, 1).expect("new");
        for sequence in 1..=OPEN_MOST as u32 {
            let handle = ledger.discover(1, sequence, 1).expect("new");
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
                let handle = ledger.discover(sender, sequence, 1).expect("new");
                ledger.deliver(handle, 0, 1);
            }
        }
        assert_eq!(ledger.foreign.over.len(), 2);
    }
}
