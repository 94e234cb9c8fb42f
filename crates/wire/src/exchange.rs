//! The common part of the client machines of all protocols: requests, each of which ends exactly
//! once.
//!
//! To a machine, a request is a tag: whatever its caller knows about it. Every tag that is asked is
//! returned once, with its ending, through `on_outcome`. Each protocol's machine decides how bytes
//! are read and written.
//!
//! [`Exchange`] makes no assumption about order: requests may end individually, in any order. Only
//! [`InOrder`] defines that they end in the order asked, and all together with their connection.

pub use crate::content::Content;
pub use crate::ending::Ending;
use crate::queue::Queue;

/// A request that has ended, or several consecutive ones with the same tag and ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// The tag that the request was asked with.
    pub tag: T,
    /// The number of requests.
    pub count: usize,
    /// The way in which the request ended.
    pub ending: Ending,
    /// Whether the answer was complete, good or bad.
    pub complete: bool,
    /// The status of a complete answer, if the protocol has one.
    pub status: Option<u16>,
    /// When the first byte of the answer came; the current time if the answer came whole.
    pub first_byte_ns: u64,
    /// Length and sketch of the body of a complete answer, if no body was expected to compare it
    /// with.
    pub content: Option<Content>,
}

impl<T> Outcome<T> {
    /// The outcome of one request with a complete answer, good or bad, in a protocol without status
    /// and content.
    #[inline]
    pub fn answered(tag: T, ending: Ending, first_byte_ns: u64) -> Self {
        Outcome { complete: true, ..Outcome::unanswered(tag, ending, first_byte_ns) }
    }

    /// The outcome of one request that ended without a complete answer.
    pub fn unanswered(tag: T, ending: Ending, now_ns: u64) -> Self {
        let (complete, status, content) = (false, None, None);
        Outcome { tag, count: 1, ending, complete, status, first_byte_ns: now_ns, content }
    }
}

/// What may be done with the connection from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The negotiation before the first request is still in progress.
    Opening,
    /// The negotiation failed: the connection is to be closed.
    Refused,
    /// More requests may be asked.
    Open,
    /// No more requests may be asked; the outstanding ones still end individually.
    Draining,
    /// The peer announced its close: no more requests may be asked, and its FIN is expected.
    Closing,
    /// The connection is to be closed because its stream is no longer reliable.
    Broken,
    /// The connection is to be closed because bytes came that belong to no outstanding request.
    Unsolicited,
}

/// How much of a possible 408 came while no request was outstanding. With a 408 the peer says that
/// it waited too long for a request and ends the connection (RFC 9110 §15.5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestTimeout {
    /// Nothing that may be a 408.
    #[default]
    None,
    /// Bytes that may become the head of a 408.
    Begun,
    /// At least the whole head of a 408.
    Received,
}

/// The way in which the peer's side of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerClose {
    /// An orderly close.
    Fin,
    /// A reset, or any other error of the socket.
    Reset,
    /// The destination of the datagrams is not listening (ICMP port unreachable).
    Refused,
}

/// What a machine has for its peer.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Bytes of a stream, in order.
    pub bytes: Vec<u8>,
    /// Datagrams, one behind the other.
    pub datagrams: Vec<u8>,
    /// The length of each datagram; the last may be shorter.
    pub segment_bytes: usize,
}

impl Output {
    /// Forgets everything; the allocated memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
    }
}

/// A timer of a machine, beside the deadlines of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An answer that is a stream has stalled: its next part did not come in time.
    Stall,
    /// A request may end without further input: the machine is to be given an empty one.
    Due,
}

/// What a machine knows of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// A complete answer came on it.
    pub answered: bool,
    /// The answer in progress lasts until the peer ends the connection.
    pub lasts_until_end: bool,
    /// Whether the peer gave up an idle connection; its disposition is then
    /// [`Disposition::Closing`].
    pub request_timeout: RequestTimeout,
    /// Why a [`Disposition::Broken`] connection is broken, in our own words, if the machine knows
    /// more than the ending of its requests.
    pub broken: Option<(Ending, &'static str)>,
}

/// The queue side of a client machine: the requests that were asked and have not ended.
pub trait Exchange<T> {
    /// Notes that a request was written.
    fn ask(&mut self, tag: T) {
        self.ask_alike(tag, 1);
    }

    /// Notes that `count` requests with the same tag were written.
    fn ask_alike(&mut self, tag: T, count: usize);

    /// The number of requests that have not ended.
    fn outstanding(&self) -> usize;

    /// The number of further requests that the connection takes now if at most `depth` may be
    /// outstanding.
    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        depth.saturating_sub(self.outstanding())
    }

    /// What is known of the connection.
    fn standing(&self) -> Standing;

    /// Passes the tags of the outstanding requests to `change`, the newest first, until it returns
    /// false. Consecutive requests with the same tag are passed as one.
    fn change_newest(&mut self, change: impl FnMut(&mut T) -> bool);

    /// Whether the request asked last is known not to have been sent yet, even in part.
    #[inline]
    fn is_unsent(&self) -> bool {
        false
    }

    /// The time at which [`Exchange::handle_timeout`] is due; none if nothing is. `deadline_ns`
    /// gives the deadline of a request.
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&T) -> u64) -> Option<u64>;

    /// Ends the requests that have passed their deadlines. What the peer is to get is added to
    /// `output`. Returns what may be done with the connection, which may stay open if a request can
    /// end alone.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&T) -> u64,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition;

    /// The machine's own timer that goes off next, and when. It is asked in every state that has a
    /// socket.
    #[inline]
    fn next_timer(&self) -> Option<(u64, Timer)> {
        None
    }

    /// Handles a timer of the machine that has gone off.
    fn handle_timer(
        &mut self,
        _now_ns: u64,
        _timer: Timer,
        _output: &mut Output,
        _on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        Disposition::Open
    }

    /// Forgets a request that was to be sent over the next connection ([`Ending::Redirected`], or a
    /// stale one), and has ended before it.
    fn forget(&mut self, _tag: &T) {}

    /// Returns the tags of all outstanding requests, unanswered.
    fn cancel(&mut self) -> impl Iterator<Item = T> + '_;
}

/// The requests that were asked on a connection, in the order in which they end.
#[derive(Debug)]
pub struct Asked<T> {
    outstanding: Queue<T>,
    /// The number of the newest requests that have not been sent yet, even in part.
    unsent: u32,
    answered: bool,
    /// Whether the peer announced its close, so that nothing more may be asked. (Stored here
    /// because a field elsewhere would enlarge each of 100,000 connections.)
    pub(crate) closing: bool,
    /// Why, if the announcement was not an answer. (Stored here for the same reason.)
    pub(crate) request_timeout: RequestTimeout,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        let (outstanding, request_timeout) = (Queue::default(), RequestTimeout::None);
        Asked { outstanding, unsent: 0, answered: false, closing: false, request_timeout }
    }
}

impl<T: Copy + PartialEq> Asked<T> {
    /// The number of requests that have not ended.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.outstanding.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }

    #[inline]
    pub(crate) fn oldest(&self) -> Option<&T> {
        self.outstanding.front()
    }

    /// The oldest request, if incoming bytes can be its answer. A request that was not sent yet
    /// cannot be answered.
    #[inline]
    pub(crate) fn awaited(&self) -> Option<&T> {
        self.oldest().filter(|_| self.len() > self.unsent as usize)
    }

    /// Whether a complete answer came on this connection.
    #[inline]
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }

    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &T> {
        self.outstanding.newest(count)
    }

    /// Takes the oldest request, whose answer is complete.
    #[inline]
    pub(crate) fn answer(&mut self) -> Option<T> {
        self.answer_alike(1).map(|(tag, _)| tag)
    }

    /// Takes the oldest requests, whose answers are complete: at most `most` of them, all with the
    /// same tag, and none that was not sent yet. Returns the tag and their number.
    #[inline]
    pub(crate) fn answer_alike(&mut self, most: usize) -> Option<(T, usize)> {
        let sent = self.len().saturating_sub(self.unsent as usize);
        let taken = self.outstanding.pop_front(most.min(sent).max(1))?;
        self.answered = true;
        Some(taken)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.outstanding.drain()
    }

    /// Ends the unsent requests with the connection, because bytes came that no request awaits.
    #[cold]
    pub(crate) fn end_unsent(
        &mut self,
        now_ns: u64,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        self.end_all(now_ns, Ending::ClosedPipelined, Ending::ClosedPipelined, on_outcome);
        Disposition::Unsolicited
    }

    /// Ends all requests without an answer: the oldest as `first`, the others as `rest`.
    pub(crate) fn end_all(
        &mut self,
        now_ns: u64,
        first: Ending,
        rest: Ending,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let mut ending = first;
        for tag in self.outstanding.drain() {
            on_outcome(Outcome::unanswered(tag, ending, now_ns));
            ending = rest;
        }
    }

    /// Ends all requests because the peer's side has ended. `begun` says whether an answer had
    /// begun.
    pub(crate) fn end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        begun: bool,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let (first, rest) = match (end, begun) {
            (PeerClose::Reset | PeerClose::Refused, _) => (Ending::Reset, Ending::Reset),
            (_, true) => (Ending::Truncated, Ending::ClosedPipelined),
            (_, false) => (Ending::Empty, Ending::ClosedPipelined),
        };
        self.end_all(now_ns, first, rest, on_outcome);
    }
}

/// A machine whose requests end in the order in which they were asked.
pub trait InOrder: Default {
    /// What the caller knows about a request. (An associated type, not a parameter, so that no
    /// other crate can implement [`InOrder`] for a machine of this crate. Machines that are not in
    /// order can then implement [`Exchange`] themselves.)
    type Tag: Copy + PartialEq + 'static;

    /// Prepares for a fresh connection. All outstanding requests must have been ended before.
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// The requests that were asked.
    fn asked(&self) -> &Asked<Self::Tag>;

    /// Mutable access to [`InOrder::asked`].
    fn asked_mut(&mut self) -> &mut Asked<Self::Tag>;

    /// Notes that the newest `unsent` requests have not been sent yet: what comes next cannot
    /// answer them.
    #[inline]
    fn note_unsent(&mut self, unsent: usize) {
        self.asked_mut().unsent = u32::try_from(unsent).unwrap_or(u32::MAX);
    }

    /// Whether part of the next answer has come.
    fn has_begun(&self) -> bool;

    /// See [`Standing::lasts_until_end`].
    fn lasts_until_end(&self) -> bool {
        false
    }

    /// See [`Standing::broken`].
    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        None
    }

    /// The time at which the answer in progress has stalled, if it is a stream; none for never.
    #[inline]
    fn stalls_at_ns(&self) -> Option<u64> {
        None
    }

    /// How the oldest request ends when that timer goes off.
    fn stalled(&self) -> Ending {
        Ending::TimeoutStall
    }

    /// See [`Timer::Due`].
    #[inline]
    fn is_due(&self) -> bool {
        false
    }
}

impl<M: InOrder> Exchange<M::Tag> for M {
    #[inline]
    fn ask_alike(&mut self, tag: M::Tag, count: usize) {
        self.asked_mut().outstanding.push_back(tag, count);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.asked().len()
    }

    fn standing(&self) -> Standing {
        Standing {
            answered: self.asked().has_answered(),
            lasts_until_end: self.lasts_until_end(),
            request_timeout: self.asked().request_timeout,
            broken: self.why_broken(),
        }
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut M::Tag) -> bool) {
        self.asked_mut().outstanding.change_newest(change);
    }

    #[inline]
    fn is_unsent(&self) -> bool {
        self.asked().unsent > 0
    }

    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&M::Tag) -> u64) -> Option<u64> {
        self.asked().oldest().map(deadline_ns)
    }

    /// Gives the connection up with its oldest request: all requests end.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&M::Tag) -> u64,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<M::Tag>),
    ) -> Disposition {
        if self.next_timeout_ns(&deadline_ns).is_none_or(|due_ns| due_ns > now_ns) {
            return Disposition::Open;
        }
        let begun = self.has_begun();
        let first = if begun { Ending::TimeoutTotal } else { Ending::TimeoutFirstByte };
        self.asked_mut().end_all(now_ns, first, Ending::TimeoutFirstByte, on_outcome);
        Disposition::Broken
    }

    #[inline]
    fn next_timer(&self) -> Option<(u64, Timer)> {
        if self.is_due() {
            return Some((0, Timer::Due));
        }
        self.stalls_at_ns().map(|at_ns| (at_ns, Timer::Stall))
    }

    /// Gives the connection up with its stalled answer: all requests end.
    fn handle_timer(
        &mut self,
        now_ns: u64,
        _timer: Timer,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<M::Tag>),
    ) -> Disposition {
        if self.stalls_at_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return Disposition::Open;
        }
        let (first, rest) = (self.stalled(), Ending::TimeoutFirstByte);
        self.asked_mut().end_all(now_ns, first, rest, on_outcome);
        Disposition::Broken
    }

    fn cancel(&mut self) -> impl Iterator<Item = M::Tag> + '_ {
        self.asked_mut().drain()
    }
}
