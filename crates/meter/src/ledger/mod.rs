//! The ledger of a broadcast: counts each pair of message and receiver exactly once.
//!
//! How it works: a sent message gets an open entry with one bit for every expected receiver; a
//! delivery clears the receiver's bit. An entry is finished when no bit is left or when it is given
//! up; the remaining receivers have then lost it. Deliveries are seen in order of time, so the
//! receiver at any rank is found by counting, without a list of times. A receiver that the peer
//! dropped loses what it has not had and all that is sent from then on. A receiver that we closed
//! is not expected to have anything.
//!
//! Each of several engines has a ledger of its own receivers. Senders are numbered over all
//! engines, dealt out round-robin. A message of another engine is entered when it is first seen
//! here, see [`foreign`].
//!
//! Memory per receiver: one bit for each open message and for each of [`PAST_MOST`] given up, two
//! bits for its state, 4 bytes for the count of its own messages, and some more for the last of them
//! that was given up and is no longer remembered.
//!
//! Must not know: bytes, sockets, the clock.

mod bits;
mod foreign;
mod marks;
mod sums;

use std::collections::{BTreeMap, VecDeque};

pub use foreign::{Failed, Origin, Settled};
pub use sums::{Deliveries, DeliveryHistograms};

use bits::Bits;
use foreign::{Foreign, Numbers};

/// The number of given-up messages whose missing receivers are remembered, to distinguish a late
/// delivery from a duplicate.
const PAST_MOST: usize = 64;
/// Placeholder for the phase of a message of another engine that does not say it.
const UNKNOWN: u16 = u16::MAX;

/// The place in [`Ledger::phases`] of the sums of a phase or, if not `own`, of the times of other
/// engines' messages that name it, until it is settled.
fn sums_at(phase: u16, own: bool) -> usize {
    2 * usize::from(phase) + usize::from(!own)
}

/// Identifies an open message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    place: u32,
    /// Distinguishes the messages that have used this place one after the other.
    serial: u32,
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The first delivery of this message to this receiver.
    Once,
    /// A further delivery of the same message to this receiver.
    Again,
    /// A delivery after the message was given up: it stays lost.
    Late,
    /// A delivery of a message that was never sent.
    Unknown,
}

/// A message that every receiver has had, or that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The phase that it was sent in; none for a message of another engine.
    pub phase: Option<u16>,
    /// The sender's number.
    pub sender: u32,
    /// The number of the message among the sender's own.
    pub sequence: u32,
    /// The number of receivers that did not have it.
    pub lost: u32,
    /// The time of its last delivery, or of its send if there was none.
    pub latest_ns: u64,
}

#[derive(Debug)]
struct Entry {
    serial: u32,
    /// Whether one of our senders sent it.
    own: bool,
    phase: u16,
    /// The place of the sums that its deliveries are timed in, see [`sums_at`].
    sums: usize,
    sender: u32,
    sequence: u32,
    /// Its send time, or when a message of another engine was first seen here.
    sent_ns: u64,
    /// The time from which its deliveries are timed. It may be later than the first of them if it
    /// is another engine's, because clocks are known only to within a bound.
    from_ns: u64,
    latest_ns: u64,
    awaited: Bits,
    /// `expected = delivered + lost + bits of awaited`.
    expected: u32,
    delivered: u32,
    lost: u32,
    duplicate: u32,
    out_of_order: u32,
    /// The index of the rank that is recorded next, and the number of deliveries at which it is
    /// reached.
    mark: u8,
    next_mark: u32,
    /// The next later message of the same sender that was open together with this one.
    follower: Option<Handle>,
    /// Whether a later message of the same sender is already finished.
    overtaken: bool,
}

/// A message that was given up.
#[derive(Debug)]
struct Past {
    phase: u16,
    sender: u32,
    sequence: u32,
    missing: Bits,
}

/// The ledger of one thread.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The receivers expected for a message sent now, and those of them that the peer dropped.
    receivers: Bits,
    receiver_count: u32,
    gone: Bits,
    gone_count: u32,
    /// Which senders are ours, and the number of messages that each of them has sent.
    numbers: Numbers,
    sent: Vec<u32>,
    entries: Vec<Option<Entry>>,
    /// The places of open messages, in the order in which they were sent.
    open: VecDeque<u32>,
    own_open: usize,
    free: Vec<u32>,
    serial: u32,
    past: VecDeque<Past>,
    /// By sender: the last message that was given up, and whose missing receivers are no longer
    /// remembered.
    forgotten: BTreeMap<u32, u32>,
    spare: Vec<Bits>,
    finished: Vec<Finished>,
    /// Two for each phase, see [`sums_at`]: one lookup finds either.
    phases: Vec<Deliveries>,
    foreign: Foreign,
}

impl Ledger {
    /// The ledger of engine `index` of `of` engines.
    pub fn of_part(index: u32, of: u32) -> Self {
        Ledger { numbers: Numbers::new(index, of), ..Ledger::default() }
    }

    /// Adds a receiver, which is expected to have what is sent from now on.
    pub fn join(&mut self, receiver: u32) {
        if self.gone.remove(receiver) {
            self.gone_count -= 1;
        }
        self.receiver_count += u32::from(self.receivers.insert(receiver));
    }

    /// Removes a receiver whose connection we closed: nothing is expected of it any more.
    pub fn leave(&mut self, receiver: u32) {
        if !self.receivers.remove(receiver) {
            return;
        }
        self.receiver_count -= 1;
        if self.gone.remove(receiver) {
            self.gone_count -= 1;
            return;
        }
        self.of_open(receiver, |entry, phases| {
            entry.expected -= 1;
            entry.note_marks(phases);
        });
    }

    /// Drops a receiver whose connection the peer closed. What it has not had, and what will be
    /// sent, is lost.
    pub fn drop_out(&mut self, receiver: u32) {
        if self.receivers.contains(receiver) && self.gone.insert(receiver) {
            self.gone_count += 1;
            self.of_open(receiver, |entry, _| {
                entry.lost += 1;
                entry.aim();
            });
        }
    }

    /// Removes a receiver from every open message that it has not had, and finishes those that are
    /// over with that.
    fn of_open(&mut self, receiver: u32, note: impl Fn(&mut Entry, &mut [Deliveries])) {
        for at in (0..self.open.len()).rev() {
            let place = self.open[at];
            let Some(entry) = self.entries[place as usize].as_mut() else { continue };
            if entry.awaited.remove(receiver) {
                note(entry, &mut self.phases);
                if entry.is_over() {
                    self.finish(place);
                }
            }
        }
    }

    /// The number of receivers, without those that were dropped.
    pub fn listening(&self) -> u32 {
        self.receiver_count - self.gone_count
    }

    /// Whether the sender is one of ours.
    pub fn is_own(&self, sender: u32) -> bool {
        self.numbers.own(sender).is_some()
    }

    /// The number of messages that one of our senders has sent.
    fn sent(&self, sender: u32) -> u32 {
        let own = self.numbers.own(sender);
        own.and_then(|at| self.sent.get(at).copied()).unwrap_or(0)
    }

    /// The number of the next message of one of our senders; the first is 1.
    pub fn next_sequence(&self, sender: u32) -> u32 {
        self.sent(sender).wrapping_add(1)
    }

    /// Enters the next message of one of our senders as sent.
    pub fn send(&mut self, phase: u16, sender: u32, now_ns: u64) -> Handle {
        let sequence = self.next_sequence(sender);
        let at = self.numbers.own(sender).unwrap_or_default();
        if self.sent.len() <= at {
            self.sent.resize(at + 1, 0);
        }
        self.sent[at] = sequence;
        self.sums(phase);
        self.own_open += 1;
        self.enter(Some(Origin { phase, sent_ns: now_ns }), sender, sequence, now_ns)
    }

    fn sums(&mut self, phase: u16) -> &mut Deliveries {
        self.sums_of(phase, true)
    }

    /// The sums of a phase, or of the other engines' messages that name it.
    fn sums_of(&mut self, phase: u16, own: bool) -> &mut Deliveries {
        let at = sums_at(phase, own);
        if self.phases.len() <= at {
            self.phases.resize_with(at + 1, Deliveries::default);
        }
        &mut self.phases[at]
    }

    /// Enters a message that all current listeners are to have. Without an origin its deliveries
    /// are not timed.
    fn enter(&mut self, origin: Option<Origin>, sender: u32, sequence: u32, now_ns: u64) -> Handle {
        let own = self.is_own(sender);
        let mut awaited = self.spare.pop().unwrap_or_default();
        awaited.assign_difference(&self.receivers, &self.gone);
        self.serial = self.serial.wrapping_add(1);
        let place = self.free.pop().unwrap_or(self.entries.len() as u32);
        let handle = Handle { place, serial: self.serial };
        let mut entry = Entry {
            serial: self.serial,
            own,
            phase: origin.map_or(UNKNOWN, |origin| origin.phase),
            sums: origin.map_or(usize::MAX, |origin| sums_at(origin.phase, own)),
            sender,
            sequence,
            sent_ns: now_ns,
            from_ns: origin.map_or(now_ns, |origin| origin.sent_ns),
            latest_ns: now_ns,
            awaited,
            expected: self.receiver_count,
            delivered: 0,
            lost: self.gone_count,
            duplicate: 0,
            out_of_order: 0,
            mark: 0,
            next_mark: 0,
            follower: self.line_up(sender, sequence, handle),
            overtaken: !own && self.foreign.has_later(sender, sequence),
        };
        entry.aim();
        let over = entry.is_over();
        match self.entries.get_mut(place as usize) {
            Some(room) => *room = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        self.open.push_back(place);
        if over {
            self.finish(place);
        }
        handle
    }

    /// Links a message into the open messages of its sender. It becomes the follower of the one
    /// before it; the one behind it is returned as its own follower.
    fn line_up(&mut self, sender: u32, sequence: u32, handle: Handle) -> Option<Handle> {
        let (mut before, mut behind) = (None, None);
        for place in &self.open {
            let Some(entry) = self.entries[*place as usize].as_ref() else { continue };
            if entry.sender != sender {
                continue;
            }
            let found = (entry.sequence, Handle { place: *place, serial: entry.serial });
            if entry.sequence < sequence {
                before = before.filter(|(best, _)| *best > found.0).or(Some(found));
            } else {
                behind = behind.filter(|(best, _)| *best < found.0).or(Some(found));
            }
        }
        if let Some((_, before)) = before
            && let Some(before) = self.entries[before.place as usize].as_mut()
        {
            before.follower = Some(handle);
        }
        behind.map(|(_, behind)| behind)
    }

    /// Finds the open message of this sender and number.
    pub fn find(&self, sender: u32, sequence: u32) -> Option<Handle> {
        let known = |entry: &Entry| entry.sequence == sequence && entry.sender == sender;
        self.open.iter().find_map(|place| {
            let entry = self.entries[*place as usize].as_ref().filter(|entry| known(entry))?;
            Some(Handle { place: *place, serial: entry.serial })
        })
    }

    /// Records that an open message has reached a receiver. `now_ns` must not decrease from call to
    /// call.
    #[inline]
    pub fn deliver(&mut self, handle: Handle, receiver: u32, now_ns: u64) -> Delivered {
        let entry = self.entries.get_mut(handle.place as usize).and_then(Option::as_mut);
        let Some(entry) = entry.filter(|entry| entry.serial == handle.serial) else {
            return Delivered::Unknown;
        };
        if !entry.awaited.remove(receiver) {
            entry.duplicate += 1;
            return Delivered::Again;
        }
        entry.delivered += 1;
        entry.latest_ns = now_ns;
        if let Some(sums) = self.phases.get_mut(entry.sums) {
            sums.time(entry.from_ns, now_ns);
        }
        if entry.overtaken || entry.follower.is_some() {
            self.note_order(handle.place, receiver);
        }
        let Some(entry) = self.entries[handle.place as usize].as_mut() else {
            return Delivered::Once;
        };
        if entry.delivered >= entry.next_mark {
            entry.note_marks(&mut self.phases);
            if entry.is_over() {
                self.finish(handle.place);
            }
        }
        Delivered::Once
    }

    /// Records that a message that is not open has reached a receiver: it is over, or was never
    /// sent. Where it is no longer known who has missed what, it is taken for late: nobody is to be
    /// accused of having sent it twice.
    pub fn deliver_over(&mut self, sender: u32, sequence: u32, receiver: u32) -> Delivered {
        let own = self.is_own(sender);
        let over = if own {
            sequence > 0 && sequence <= self.sent(sender)
        } else {
            self.foreign.is_over(sender, sequence)
        };
        if !over {
            return Delivered::Unknown;
        }
        let known = |past: &&mut Past| past.sender == sender && past.sequence == sequence;
        let mut phase = self.phases.len().checked_sub(1).map(|last| (last / 2) as u16);
        if let Some(past) = self.past.iter_mut().find(known) {
            if past.missing.remove(receiver) {
                return Delivered::Late;
            }
            phase = Some(past.phase);
        } else if self.forgotten.get(&sender).is_some_and(|last| sequence <= *last) {
            return Delivered::Late;
        }
        if !own {
            self.foreign.come_again(sender, sequence);
        } else if let Some(phase) = phase {
            self.sums(phase).duplicate += 1;
        }
        Delivered::Again
    }

    /// Counts a delivery as out of order if the receiver has already had a later message of the
    /// same sender.
    fn note_order(&mut self, place: u32, receiver: u32) {
        let Some(entry) = self.entries[place as usize].as_ref() else { return };
        let (mut overtaken, mut next) = (entry.overtaken, entry.follower);
        while !overtaken && let Some(later) = next.and_then(|handle| self.entry(handle)) {
            overtaken = !later.awaited.contains(receiver);
            next = later.follower;
        }
        if let Some(entry) = &mut self.entries[place as usize] {
            entry.out_of_order += u32::from(overtaken);
        }
    }

    /// The message of a handle, if it is still open.
    fn entry(&self, handle: Handle) -> Option<&Entry> {
        let entry = self.entries.get(handle.place as usize)?.as_ref();
        entry.filter(|entry| entry.serial == handle.serial)
    }

    /// The send time of the open message that has been open longest.
    pub fn oldest_ns(&self) -> Option<u64> {
        let place = self.open.front()?;
        self.entries[*place as usize].as_ref().map(|entry| entry.sent_ns)
    }

    /// The number of open messages of our own senders.
    pub fn open(&self) -> usize {
        self.own_open
    }

    /// Whether a message of this phase is open.
    pub fn is_open(&self, phase: u16) -> bool {
        self.open.iter().any(|place| {
            let entry = self.entries[*place as usize].as_ref();
            entry.is_some_and(|entry| entry.own && entry.phase == phase)
        })
    }

    /// Gives up messages that were sent until `until_ns`: receivers that have not had them lost
    /// them.
    pub fn give_up(&mut self, until_ns: u64) {
        while self.oldest_ns().is_some_and(|sent_ns| sent_ns <= until_ns) {
            let Some(place) = self.open.front().copied() else { return };
            self.lose(place);
        }
    }

    /// Cuts the run short: of an open message, only what was delivered or lost by now counts.
    pub fn cancel(&mut self) {
        while let Some(place) = self.open.front().copied() {
            if let Some(entry) = &mut self.entries[place as usize] {
                entry.expected = entry.delivered + entry.lost;
            }
            self.finish(place);
        }
    }

    /// Returns the messages that were finished since the last call.
    pub fn take_finished(&mut self) -> std::vec::Drain<'_, Finished> {
        self.finished.drain(..)
    }

    /// Whether any message was finished since the last [`Ledger::take_finished`].
    #[inline]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Returns the sums of a phase that has no open messages any more.
    pub fn take(&mut self, phase: u16) -> Deliveries {
        self.phases.get_mut(sums_at(phase, true)).map(std::mem::take).unwrap_or_default()
    }

    fn finish(&mut self, place: u32) {
        let Some(entry) = self.entries[place as usize].take() else { return };
        self.open.retain(|open| *open != place);
        self.free.push(place);
        let Entry { own, phase, sender, sequence, lost, latest_ns, .. } = entry;
        if own {
            self.own_open -= 1;
            self.sums(phase).add_message(&entry);
        } else {
            self.foreign.enter(&entry);
        }
        for other in self.entries.iter_mut().flatten() {
            other.overtaken |= other.sender == sender && other.sequence < sequence;
        }
        if lost > 0 {
            self.remember(Past { phase, sender, sequence, missing: entry.awaited });
        } else {
            self.spare.push(entry.awaited);
        }
        let phase = own.then_some(phase);
        self.finished.push(Finished { phase, sender, sequence, lost, latest_ns });
    }

    /// Remembers the missing receivers of a message that was given up.
    fn remember(&mut self, past: Past) {
        if self.past.len() == PAST_MOST
            && let Some(Past { sender, sequence, missing, .. }) = self.past.pop_front()
        {
            self.forget(sender, sequence);
            self.spare.push(missing);
        }
        self.past.push_back(past);
    }

    /// Notes that it is no longer remembered who has missed this message.
    fn forget(&mut self, sender: u32, sequence: u32) {
        let last = self.forgotten.entry(sender).or_default();
        *last = sequence.max(*last);
    }
}
