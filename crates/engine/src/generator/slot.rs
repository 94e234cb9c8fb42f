//! A slot: a connection by identity, which survives reconnects.

use std::collections::VecDeque;

use trueload_drive::Outbox;
use trueload_load::Backoff;
use trueload_meter::{Answered, Class, LongWaits};
use trueload_wire::exchange::Exchange;
use trueload_wire::tls;

use super::connection::{ConnectionState, Event};
use super::written::Written;

/// Never, on the engine's clock.
pub(super) const NEVER: u64 = u64::MAX;
/// Fruitless connections in a row after which a slot no longer reconnects at once:
/// a peer that drops every connection is measured, but not stormed.
const FRUITLESS_MOST: u32 = 100;
/// The pause from then on.
const FRUITLESS_PAUSE_NS: u64 = 10_000_000;

/// What is known about a request while it is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The time at which the load asked for it.
    pub scheduled_ns: u64,
    /// The time of its last send: when it was handed to the kernel, once `handed_over`; before,
    /// when it was queued.
    pub sent_ns: u64,
    /// How many answers there were when it was sent, or since when it waits for a connection.
    pub noted: Noted,
    /// The phase that it belongs to.
    pub phase: u16,
    /// It has been sent before, on a connection that went stale.
    pub again: bool,
    /// Whether the kernel has it.
    pub handed_over: bool,
    /// If requests differ: the lower half of its number.
    pub number: u32,
}

/// A count or a time, by what the request waits for: one number, so that a tag stays small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted(u64);

impl Noted {
    /// The request was sent when all threads together had this many answers.
    #[inline]
    pub(super) fn served(count: u64) -> Self {
        Noted(count)
    }

    /// The request was redirected at this time, and waits for its slot's next connection.
    pub(super) fn waits_since(now_ns: u64) -> Self {
        Noted(now_ns)
    }

    #[inline]
    pub(super) fn served_before(self) -> u64 {
        self.0
    }

    pub(super) fn since_ns(self) -> u64 {
        self.0
    }
}

/// The request that a tag belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) phase: u16,
}

impl Tag {
    /// The time at which it is out of time.
    #[inline]
    pub(super) fn deadline_ns(&self, timeout_ns: u64) -> u64 {
        self.sent_ns.saturating_add(timeout_ns)
    }

    #[inline]
    pub(super) fn numbered(&self) -> Numbered {
        Numbered { number: self.number, phase: self.phase }
    }
}

/// The ending of the request settled last on a slot, as long as it may have to be charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    latency_ns: u64,
    service_ns: u64,
    first_byte_ns: u64,
    /// `NEVER` if it had no connection of its own.
    total_ns: u64,
    number: u32,
    phase: u16,
    /// None if it ended well.
    pub(super) failed: Option<Class>,
    /// It was charged with a violation, and is charged with no other.
    pub(super) charged: bool,
}

impl Last {
    pub(super) fn ok(tag: Tag, answered: &Answered) -> Self {
        Last {
            latency_ns: answered.latency_ns,
            service_ns: answered.service_ns,
            first_byte_ns: answered.first_byte_ns,
            total_ns: answered.total_ns.unwrap_or(NEVER),
            number: tag.number,
            phase: tag.phase,
            failed: None,
            charged: false,
        }
    }

    pub(super) fn failed(tag: Tag, class: Class) -> Self {
        let [latency_ns, service_ns, first_byte_ns, total_ns] = [NEVER; 4];
        let (number, phase, failed, charged) = (tag.number, tag.phase, Some(class), false);
        Last { latency_ns, service_ns, first_byte_ns, total_ns, number, phase, failed, charged }
    }

    pub(super) fn whose(&self) -> Numbered {
        Numbered { number: self.number, phase: self.phase }
    }

    /// The times that were recorded when it ended well.
    pub(super) fn answered(&self) -> Answered {
        Answered {
            latency_ns: self.latency_ns,
            service_ns: self.service_ns,
            first_byte_ns: self.first_byte_ns,
            total_ns: (self.total_ns != NEVER).then_some(self.total_ns),
        }
    }
}

/// One slot: the protocol machine, and the generator's state about it.
#[derive(Debug)]
pub(super) struct Slot<C> {
    pub(super) client: C,
    pub(super) state: State,
    /// TLS between the machine and the socket, if any.
    pub(super) tls: Option<Box<Secure>>,
}

/// TLS on a connection.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) session: tls::client::Client,
    /// The time at which the connection was there and the handshake began.
    pub(super) began_ns: u64,
    /// Bytes to be sealed when the socket has room for them.
    pub(super) waiting: Outbox,
    pub(super) sealed: Sealed,
    /// The first requests, if they wait behind what the handshake still had to send.
    pub(super) behind_handshake: Option<Written>,
}

/// The pieces that TLS has sealed and the driver may still have: they tell how much of its queue is
/// the protocol's.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    /// For each piece: bytes of the protocol, and their sealed length.
    pieces: VecDeque<(u32, u32)>,
    /// The sum of the sealed lengths.
    bytes: usize,
}

impl Sealed {
    /// Adds a piece that goes to the driver, which has `queued_bytes` queued before it.
    pub(super) fn push(&mut self, queued_bytes: usize, plain: usize, sealed: usize) {
        while let Some((_, first)) = self.pieces.front()
            && self.bytes - *first as usize >= queued_bytes
        {
            self.bytes -= *first as usize;
            self.pieces.pop_front();
        }
        self.pieces.push_back((plain as u32, sealed as u32));
        self.bytes += sealed;
    }

    /// The least number of the protocol's bytes among `queued_bytes` that the driver has queued.
    pub(super) fn plain_in(&self, queued_bytes: usize) -> usize {
        let (mut left, mut plain) = (queued_bytes, 0);
        for (of_protocol, sealed) in self.pieces.iter().rev() {
            let (of_protocol, sealed) = (*of_protocol as usize, *sealed as usize);
            if left < sealed {
                return plain + left.saturating_sub(sealed - of_protocol);
            }
            (left, plain) = (left - sealed, plain + of_protocol);
        }
        plain
    }
}

/// The state of a slot except its machine.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connection: ConnectionState,
    /// The time that `connection` refers to.
    pub(super) until_ns: u64,
    /// The earliest entry of this slot in the timer heap.
    pub(super) armed_ns: u64,
    /// The time of the last answer on the present connection; before the first, when it was opened.
    pub(super) quiet_since_ns: u64,
    /// The time at which the present connection was attempted.
    pub(super) attempted_ns: u64,
    /// It may ask in this phase, if the phase has any requests left.
    pub(super) may_ask: bool,
    pub(super) last: Option<Last>,
    /// State that only a few slots need: 10,000 connections should not take memory for it.
    trouble: Option<Box<Trouble>>,
    /// Complete answers in this phase.
    pub(super) answers: u64,
    /// The sum of the service times of the good ones.
    pub(super) service_ns: u64,
    /// An attempt has succeeded or failed at least once.
    pub(super) tried: bool,
    pub(super) ever_established: bool,
    /// An answer came on the present connection: it has been kept.
    pub(super) kept: bool,
    /// Bytes of the protocol have come on one of its connections.
    pub(super) proven: bool,
    pub(super) asked: bool,
    /// The index of the address that is tried.
    pub(super) address: u16,
    /// Permitted requests that were not outstanding, and since when (pipelining only).
    pub(super) gap: u32,
    pub(super) gap_since_ns: u64,
    /// It is in the queue of slots that can take a request (open loop only), and since when.
    pub(super) ready: bool,
    pub(super) ready_since_ns: u64,
    /// Since when it is open for requests, within the window.
    pub(super) open_since_ns: u64,
    /// The slot's own number on its thread.
    pub(super) key: u32,
}

/// The record of what went wrong on a slot.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Stale requests to be sent again before any other, and redirected ones to go on.
    pub(super) again: Vec<Tag>,
    /// Violations that no request could yet be charged with.
    pub(super) uncharged: u32,
    pub(super) violation_class: Option<Class>,
    pub(super) backoff: Backoff,
    fruitless: u32,
    /// The time at which the connection was lost, and whether by an orderly close.
    pub(super) lost: Option<(u64, bool)>,
    /// The longest of the long waits on the present connection.
    pub(super) waited_ns: u64,
    pub(super) this_phase: PhaseTrouble,
}

/// The record of what went wrong on a slot in the current phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseTrouble {
    pub(super) waits: LongWaits,
    /// Requests that ended without a complete answer.
    pub(super) unanswered: u64,
    /// Requests that were answered, but not as expected.
    pub(super) bad: u64,
    pub(super) down_ns: u64,
    /// The slot lost its connection, and an attempt at a new one failed.
    pub(super) outage: bool,
    pub(super) outage_ns: u64,
}

impl<C> Slot<C> {
    /// Whether it has a connection on which requests can be sent, or were sent.
    pub(super) fn is_open(&self) -> bool {
        use ConnectionState::{Closing, Open};
        matches!(self.state.connection, Open { .. } | Closing { .. })
    }
}

impl<C: Exchange<Tag>> Slot<C> {
    pub(super) fn new(client: C) -> Self {
        let state =
            State { until_ns: NEVER, armed_ns: NEVER, open_since_ns: NEVER, ..State::default() };
        Slot { client, state, tls: None }
    }

    /// The time at which the next timer of the machine goes off.
    #[inline]
    fn timer_ns(&self) -> u64 {
        self.client.next_timer().map_or(NEVER, |(at_ns, _)| at_ns)
    }

    /// The time at which something is due: an attempt, a timeout, the end of a wait for FIN.
    pub(super) fn due_ns(&self, timeout_ns: u64) -> u64 {
        match self.state.connection {
            ConnectionState::Open { .. } => {
                let deadline_ns = |tag: &Tag| tag.deadline_ns(timeout_ns);
                let deadline_ns = self.client.next_timeout_ns(deadline_ns).unwrap_or(NEVER);
                deadline_ns.min(self.timer_ns()).min(self.state.until_ns)
            }
            state if state.carries_protocol() => self.timer_ns().min(self.state.until_ns),
            _ => self.state.until_ns,
        }
    }
}

impl State {
    /// Marks the slot as without a connection; the next attempt is not made before this time.
    pub(super) fn down_until(&mut self, until_ns: u64) {
        self.change(Event::Gone);
        self.until_ns = until_ns;
    }

    #[inline]
    pub(super) fn change(&mut self, event: Event) {
        let next = self.connection.after(event);
        debug_assert!(next.is_some(), "{event:?} on a connection that is {:?}", self.connection);
        self.connection = next.unwrap_or(self.connection);
    }

    /// The time between two moments in which it was open, times `depth` places, less the places
    /// that waited for their refill. It may be below 0: what a gap takes off may have been added
    /// elsewhere.
    pub(super) fn permitted_ns(&self, depth: u64, from_ns: u64, to_ns: u64) -> i128 {
        if self.open_since_ns == NEVER {
            return 0;
        }
        let within = |since_ns: u64| i128::from(to_ns.saturating_sub(since_ns.max(from_ns)));
        let unused_ns = within(self.gap_since_ns) * i128::from(self.gap);
        within(self.open_since_ns) * i128::from(depth) - unused_ns
    }

    /// The time for which the connection had been quiet at a moment.
    pub(super) fn quiet_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.quiet_since_ns)
    }

    /// The same, but 0 for a connection without an answer yet: peers give a first request more
    /// time.
    pub(super) fn kept_quiet_ns(&self, at_ns: u64) -> u64 {
        if self.kept { self.quiet_ns(at_ns) } else { 0 }
    }

    /// The record of trouble here, to be added to.
    pub(super) fn trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_default()
    }

    /// The record of trouble here, if there is any.
    #[inline]
    pub(super) fn had_trouble(&mut self) -> Option<&mut Trouble> {
        self.trouble.as_deref_mut()
    }

    /// Whether the next request on its open connection is held back.
    #[inline]
    pub(super) fn is_held_back(&self) -> bool {
        self.until_ns != NEVER
    }

    /// Stale requests that wait to be sent again.
    #[inline]
    pub(super) fn waiting_again(&self) -> usize {
        self.trouble.as_ref().map_or(0, |trouble| trouble.again.len())
    }

    /// The request that is sent next on the next connection, if one waits for it.
    pub(super) fn first_waiting(&self) -> Option<Tag> {
        self.trouble.as_ref()?.again.first().copied()
    }

    pub(super) fn take_waiting(&mut self) -> Option<Tag> {
        let again = &mut self.had_trouble()?.again;
        (!again.is_empty()).then(|| again.remove(0))
    }

    /// Notes that no request needs the connection that was lost, so that it is not down.
    pub(super) fn is_missed_no_longer(&mut self) {
        if let Some(Trouble { lost: Some((_, orderly)), .. }) = self.had_trouble() {
            *orderly = true;
        }
    }

    /// Whether violations wait for a request to be charged with.
    pub(super) fn has_uncharged(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.uncharged > 0)
    }

    /// The pause before the next attempt after a connection was lost without a complete answer.
    pub(super) fn fruitless_pause_ns(&mut self) -> u64 {
        let trouble = self.trouble();
        trouble.fruitless += 1;
        if trouble.fruitless > FRUITLESS_MOST { FRUITLESS_PAUSE_NS } else { 0 }
    }

    /// Forgets the request settled last if it has been charged, so that it is not charged again.
    pub(super) fn forget_last(&mut self, charged: Numbered) {
        self.last = self.last.take().filter(|last| last.whose() != charged);
    }

    #[inline]
    pub(super) fn answered(&mut self, count: u64) {
        self.answers += count;
        if let Some(trouble) = self.had_trouble() {
            trouble.fruitless = 0;
        }
    }

    /// Notes requests that ended well, each with this service time: the next pause is the first
    /// again.
    #[inline]
    pub(super) fn ended_well(&mut self, count: u64, service_ns: u64) {
        self.service_ns = self.service_ns.saturating_add(service_ns.saturating_mul(count));
        if let Some(trouble) = self.had_trouble() {
            trouble.backoff.reset();
        }
    }

    /// Notes that there is a connection: the earlier one is no longer missed.
    pub(super) fn found_again(&mut self) {
        if let Some(trouble) = self.had_trouble() {
            (trouble.lost, trouble.waited_ns) = (None, 0);
        }
    }

    /// Notes the loss of the connection. One without any answer may have been waited on for long.
    pub(super) fn note_lost(&mut self, now_ns: u64, orderly: bool) {
        let kept = self.kept;
        let trouble = self.trouble();
        trouble.lost = Some((now_ns, orderly));
        if !kept && trouble.waited_ns > 0 {
            trouble.this_phase.waits.note_unanswered(trouble.waited_ns);
        }
    }

    /// Takes the trouble of the phase before, and starts to count again.
    pub(super) fn take_phase_trouble(&mut self) -> PhaseTrouble {
        self.had_trouble()
            .map(|trouble| std::mem::take(&mut trouble.this_phase))
            .unwrap_or_default()
    }

    /// Notes how long the slot has been down, when that ends or when the phase does.
    pub(super) fn note_down(&mut self, now_ns: u64, since_ns: u64) {
        let Some(trouble) = self.had_trouble() else { return };
        let Some((lost_ns, orderly)) = trouble.lost else { return };
        let down_ns = now_ns.saturating_sub(lost_ns.max(since_ns));
        let phase = &mut trouble.this_phase;
        if !orderly {
            phase.down_ns = phase.down_ns.max(down_ns);
        }
        if phase.outage {
            phase.outage_ns = phase.outage_ns.max(down_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Protocol;
    use super::super::{OverHttp1, Plain};
    use super::*;

    // 100,000 connections must take at most 50 MB (docs/performance.md).
    #[test]
    fn a_slot_takes_little_memory() {
        type Client = <OverHttp1<Plain> as Protocol>::Client;
        let bytes = size_of::<Slot<Client>>();
        assert!(bytes <= 224, "a slot takes {bytes} bytes");
        assert!(size_of::<Tag>() <= 32, "a tag takes {} bytes", size_of::<Tag>());
    }

    #[test]
    fn what_is_queued_is_known_by_the_pieces_that_it_was_sealed_in() {
        let mut sealed = Sealed::default();
        // Four requests of 27 bytes, one by one, sealed to 49 bytes each. Behind them two together.
        let queued = [0, 49, 98, 147, 196];
        for (queued_bytes, (plain, bytes)) in
            queued.into_iter().zip([(27, 49), (27, 49), (27, 49), (27, 49), (54, 76)])
        {
            sealed.push(queued_bytes, plain, bytes);
        }
        // If a piece has left in part, no more is counted than is surely there.
        let rows =
            [(272, 162), (271, 161), (224, 135), (223, 135), (76, 54), (30, 8), (22, 0), (0, 0)];
        for (queued_bytes, plain) in rows {
            assert_eq!(sealed.plain_in(queued_bytes), plain, "{queued_bytes} bytes are queued");
        }
        // Pieces that have left are forgotten.
        sealed.push(0, 27, 49);
        assert_eq!((sealed.pieces.len(), sealed.bytes), (1, 49));
        // Bytes that TLS sent for itself before them are not the protocol's.
        assert_eq!(sealed.plain_in(1_000), 27);
    }
}
