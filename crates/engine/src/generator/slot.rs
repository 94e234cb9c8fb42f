//! A slot: a connection by identity, which survives reconnects.

use std::collections::VecDeque;

use trueload_drive::{Outbox, Token};
use trueload_load::Backoff;
use trueload_meter::{Answered, Class, LongWaits};
use trueload_wire::exchange::Exchange;
use trueload_wire::tls;

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
    /// When the load asked for it.
    pub scheduled_ns: u64,
    /// When it was last sent: handed to the kernel, once `handed_over`; before, when it was queued.
    pub sent_ns: u64,
    /// How many requests had been settled by then, over all threads.
    pub settled_before: u64,
    /// The phase that it belongs to.
    pub phase: u16,
    /// It has been sent before, on a connection that went stale.
    pub again: bool,
    /// Whether the kernel has it.
    pub handed_over: bool,
    /// Where requests differ: the lower half of its number.
    pub number: u32,
}

/// Which request a tag is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) phase: u16,
}

impl Tag {
    /// When it is out of time.
    #[inline]
    pub(super) fn deadline_ns(&self, timeout_ns: u64) -> u64 {
        self.sent_ns.saturating_add(timeout_ns)
    }

    #[inline]
    pub(super) fn numbered(&self) -> Numbered {
        Numbered { number: self.number, phase: self.phase }
    }
}

/// Where a slot's connection stands. What comes of it by itself comes at the slot's `until_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// None; the next attempt is not made before `until_ns`.
    Down,
    /// An attempt is under way, at most until then.
    Connecting { token: Token },
    /// The peer's queue was full; the same attempt goes on then.
    Busy,
    /// There is a connection, and TLS is set up on it, at most until then.
    Handshaking { token: Token },
    /// There is a connection, and the protocol agrees with the peer on it, at most until then; whether that was heard of.
    Opening { token: Token, heard: bool },
    /// Established.
    Open { token: Token },
    /// Nothing more is asked, and the peer's end is waited for until then; bytes that come before it are unsolicited.
    /// `fin_sent`: our side has ended.
    Closing { token: Token, fin_sent: bool },
}

impl ConnectionState {
    /// The socket, if there is one.
    pub(super) fn token(self) -> Option<Token> {
        match self {
            ConnectionState::Down | ConnectionState::Busy => None,
            ConnectionState::Connecting { token }
            | ConnectionState::Handshaking { token }
            | ConnectionState::Opening { token, .. }
            | ConnectionState::Open { token }
            | ConnectionState::Closing { token, .. } => Some(token),
        }
    }

    /// Whether this socket is the one that carries the protocol.
    pub(super) fn is_open_on(&self, socket: Token) -> bool {
        matches!(self, ConnectionState::Opening { token, .. } | ConnectionState::Open { token } | ConnectionState::Closing { token, .. } if *token == socket)
    }
}

/// How the request settled last on a slot ended, as long as it may have to be charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    latency_ns: u64,
    service_ns: u64,
    first_byte_ns: u64,
    /// `NEVER` without a connection of its own.
    total_ns: u64,
    number: u32,
    phase: u16,
    /// None when it ended well.
    pub(super) failed: Option<Class>,
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
        }
    }

    pub(super) fn failed(tag: Tag, class: Class) -> Self {
        let [latency_ns, service_ns, first_byte_ns, total_ns] = [NEVER; 4];
        let (number, phase, failed) = (tag.number, tag.phase, Some(class));
        Last { latency_ns, service_ns, first_byte_ns, total_ns, number, phase, failed }
    }

    /// Which request it was.
    pub(super) fn whose(&self) -> Numbered {
        Numbered { number: self.number, phase: self.phase }
    }

    /// What was recorded of it when it ended well.
    pub(super) fn answered(&self) -> Answered {
        Answered {
            latency_ns: self.latency_ns,
            service_ns: self.service_ns,
            first_byte_ns: self.first_byte_ns,
            total_ns: (self.total_ns != NEVER).then_some(self.total_ns),
        }
    }
}

/// One slot: the machine, and what the generator keeps about it.
#[derive(Debug)]
pub(super) struct Slot<C> {
    pub(super) client: C,
    pub(super) state: State,
    /// What lies between the machine and the socket, if anything.
    pub(super) tls: Option<Box<Secure>>,
}

/// TLS on a connection.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) session: tls::client::Client,
    /// When the connection was there, and the handshake began.
    pub(super) began_ns: u64,
    /// What is to be sealed when the socket has room for it.
    pub(super) waiting: Outbox,
    pub(super) sealed: Sealed,
}

/// What TLS has sealed and the driver may still have, piece by piece: how much of the queue is the protocol's.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    /// Bytes of the protocol, and those that became of them.
    pieces: VecDeque<(u32, u32)>,
    /// The sum of the latter.
    bytes: usize,
}

impl Sealed {
    /// One more piece goes to the driver, which has so many bytes queued before it.
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

    /// How many bytes of the protocol are among so many that the driver has queued, at least.
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

/// Everything about a slot but its machine.
#[derive(Debug)]
pub(super) struct State {
    pub(super) connection: ConnectionState,
    /// What `connection` says about it.
    pub(super) until_ns: u64,
    /// The earliest entry of this slot in the timer heap.
    pub(super) armed_ns: u64,
    /// When the last answer on the present connection came; before the first, when it was opened.
    pub(super) quiet_since_ns: u64,
    /// When the present connection was attempted.
    pub(super) attempted_ns: u64,
    /// Requests that it may still send in this phase, if there are any: the phase has a bound, or none.
    pub(super) quota: u64,
    pub(super) last: Option<Last>,
    /// What only few slots have to remember: 10,000 connections should not take memory for it.
    trouble: Option<Box<Trouble>>,
    /// Complete answers in this phase.
    pub(super) answers: u64,
    /// The service times of those that were good, added up.
    pub(super) service_ns: u64,
    /// An attempt has been decided at least once, either way.
    pub(super) tried: bool,
    pub(super) ever_established: bool,
    /// An answer came on the present connection: it has been kept.
    pub(super) kept: bool,
    /// Bytes of the protocol came on one of its connections.
    pub(super) proven: bool,
    /// Asked in this phase.
    pub(super) asked: bool,
    /// Which of the addresses is tried.
    pub(super) address: u16,
    /// Permitted requests that were not outstanding, since when (pipelining only).
    pub(super) gap: u32,
    pub(super) gap_since_ns: u64,
    /// In the queue of slots that can take a request (open loop only), since when.
    pub(super) ready: bool,
    pub(super) ready_since_ns: u64,
    /// Open for requests since, within the window.
    pub(super) open_since_ns: u64,
}

/// What went wrong on a slot.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Stale requests to be sent again before any other.
    pub(super) again: Vec<Tag>,
    /// Violations that no request could yet be charged with.
    pub(super) uncharged: u32,
    pub(super) violation_class: Option<Class>,
    pub(super) backoff: Backoff,
    fruitless: u32,
    /// When the connection was lost, and whether by an orderly close.
    pub(super) lost: Option<(u64, bool)>,
    /// The longest of the long waits on the present connection.
    pub(super) waited_ns: u64,
    pub(super) this_phase: PhaseTrouble,
}

/// What went wrong on a slot in the current phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseTrouble {
    pub(super) waits: LongWaits,
    /// Requests that ended without a complete answer.
    pub(super) unanswered: u64,
    /// Requests that were answered, but not as expected.
    pub(super) bad: u64,
    pub(super) down_ns: u64,
    /// Lost its connection, and an attempt at a new one failed.
    pub(super) outage: bool,
    pub(super) outage_ns: u64,
}

impl<C> Slot<C> {
    /// Whether it has a connection on which requests can be sent, or were.
    pub(super) fn is_open(&self) -> bool {
        use ConnectionState::{Closing, Open};
        matches!(self.state.connection, Open { .. } | Closing { .. })
    }
}

impl<C: Exchange<Tag> + Default> Slot<C> {
    pub(super) fn new() -> Self {
        let state = State {
            connection: ConnectionState::Down,
            until_ns: NEVER,
            armed_ns: NEVER,
            quiet_since_ns: 0,
            attempted_ns: 0,
            quota: 0,
            last: None,
            trouble: None,
            answers: 0,
            service_ns: 0,
            tried: false,
            ever_established: false,
            kept: false,
            proven: false,
            asked: false,
            address: 0,
            gap: 0,
            gap_since_ns: 0,
            ready: false,
            ready_since_ns: 0,
            open_since_ns: NEVER,
        };
        Slot { client: C::default(), state, tls: None }
    }

    /// When something is due: an attempt, a timeout, the end of a wait for FIN.
    pub(super) fn due_ns(&self, timeout_ns: u64) -> u64 {
        match self.state.connection {
            ConnectionState::Open { .. } => {
                let deadline_ns = |tag: &Tag| tag.deadline_ns(timeout_ns);
                let deadline_ns = self.client.next_timeout_ns(deadline_ns).unwrap_or(NEVER);
                deadline_ns.min(self.state.until_ns)
            }
            _ => self.state.until_ns,
        }
    }
}

impl State {
    /// There is no connection; the next attempt is not made before this time.
    pub(super) fn down_until(&mut self, until_ns: u64) {
        (self.connection, self.until_ns) = (ConnectionState::Down, until_ns);
    }

    /// The time from one moment to the other in which it was open, once for each of `depth` places, less those that
    /// waited for their refill. Wraps: what a gap takes off may have been added elsewhere.
    pub(super) fn permitted_ns(&self, depth: u64, from_ns: u64, to_ns: u64) -> u64 {
        if self.open_since_ns == NEVER {
            return 0;
        }
        let within = |since_ns: u64| to_ns.saturating_sub(since_ns.max(from_ns));
        let unused_ns = within(self.gap_since_ns) * u64::from(self.gap);
        (within(self.open_since_ns) * depth).wrapping_sub(unused_ns)
    }

    /// For how long the connection had been quiet at a time.
    pub(super) fn quiet_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.quiet_since_ns)
    }

    /// The same, of a connection that was kept after an answer: peers give a first request more time.
    pub(super) fn kept_quiet_ns(&self, at_ns: u64) -> u64 {
        if self.kept { self.quiet_ns(at_ns) } else { 0 }
    }

    /// What went wrong here, to be added to.
    pub(super) fn trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_default()
    }

    /// What went wrong here, if anything did.
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

    /// Violations wait for a request to be charged with.
    pub(super) fn has_uncharged(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.uncharged > 0)
    }

    /// The pause before the next attempt after a connection was lost without a complete answer.
    pub(super) fn fruitless_pause_ns(&mut self) -> u64 {
        let trouble = self.trouble();
        trouble.fruitless += 1;
        if trouble.fruitless > FRUITLESS_MOST { FRUITLESS_PAUSE_NS } else { 0 }
    }

    /// The request settled last has been charged: it is not to be charged again.
    pub(super) fn forget_last(&mut self, charged: Numbered) {
        self.last = self.last.take().filter(|last| last.whose() != charged);
    }

    /// Complete answers came.
    #[inline]
    pub(super) fn answered(&mut self, count: u64) {
        self.answers += count;
        if let Some(trouble) = self.had_trouble() {
            trouble.fruitless = 0;
        }
    }

    /// Requests ended well, each so long after its send: the next pause is the first again.
    #[inline]
    pub(super) fn ended_well(&mut self, count: u64, service_ns: u64) {
        self.service_ns = self.service_ns.saturating_add(service_ns.saturating_mul(count));
        if let Some(trouble) = self.had_trouble() {
            trouble.backoff.reset();
        }
    }

    /// A connection is there: the one before is no longer missed.
    pub(super) fn found_again(&mut self) {
        if let Some(trouble) = self.had_trouble() {
            (trouble.lost, trouble.waited_ns) = (None, 0);
        }
    }

    /// The connection is gone: one that was never answered may have been waited on for long.
    pub(super) fn note_lost(&mut self, now_ns: u64, orderly: bool) {
        let kept = self.kept;
        let trouble = self.trouble();
        trouble.lost = Some((now_ns, orderly));
        if !kept && trouble.waited_ns > 0 {
            trouble.this_phase.waits.note_unanswered(trouble.waited_ns);
        }
    }

    /// Starts to count anew for a phase; what went wrong in the one before.
    pub(super) fn take_phase_trouble(&mut self) -> PhaseTrouble {
        self.had_trouble()
            .map(|trouble| std::mem::take(&mut trouble.this_phase))
            .unwrap_or_default()
    }

    /// Notes for how long the slot has been down when that ends, or when the phase does.
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
    use super::*;

    // 100,000 connections are to take 50 MB (docs/performance.md).
    #[test]
    fn a_slot_takes_little_memory() {
        let bytes = size_of::<Slot<trueload_wire::http1::client::Client<Tag>>>();
        assert!(bytes <= 224, "a slot takes {bytes} bytes");
    }

    #[test]
    fn what_is_queued_is_told_by_the_pieces_that_it_was_sealed_in() {
        let mut sealed = Sealed::default();
        // Four requests of 27 bytes, one by one; 49 each as they leave. Behind them two together.
        let queued = [0, 49, 98, 147, 196];
        for (queued_bytes, (plain, bytes)) in
            queued.into_iter().zip([(27, 49), (27, 49), (27, 49), (27, 49), (54, 76)])
        {
            sealed.push(queued_bytes, plain, bytes);
        }
        // Of one that has left in part no more is counted than is surely there.
        let rows =
            [(272, 162), (271, 161), (224, 135), (223, 135), (76, 54), (30, 8), (22, 0), (0, 0)];
        for (queued_bytes, plain) in rows {
            assert_eq!(sealed.plain_in(queued_bytes), plain, "{queued_bytes} bytes are queued");
        }
        // What has left is forgotten.
        sealed.push(0, 27, 49);
        assert_eq!((sealed.pieces.len(), sealed.bytes), (1, 49));
        // What was said for TLS alone before them is none of the protocol's.
        assert_eq!(sealed.plain_in(1_000), 27);
    }
}
