//! What the client machines of all protocols have in common: requests, each of which ends exactly once.
//!
//! A request is a tag to a machine: whatever its caller knows about it. Every tag that is asked
//! comes back once, with its ending, through `on_outcome`. What is particular to a protocol, how its bytes
//! are read and written, stays with its machine.
//!
//! [`Exchange`] says nothing about order: requests may end one by one, in any order. That they end in the order in
//! which they were asked, and with their connection, is the business of [`InOrder`] alone.

pub use crate::content::Content;
use crate::queue::Queue;

/// How one request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Answered as expected.
    Ok,
    /// Answered with another status.
    Status,
    /// Answered with other content.
    Mismatch,
    /// The answer is not HTTP as RFC 9112 has it.
    Framing,
    /// The answer passed a cap.
    Limit,
    /// Closed before any byte of the answer.
    Empty,
    /// Closed in the middle of the answer.
    Truncated,
    /// Reset.
    Reset,
    /// Behind a request that ended the connection.
    ClosedPipelined,
    /// The reused connection was closed before any byte of the answer: may be sent again on a fresh one.
    Stale,
    /// The reused connection was reset before any byte of the answer: may be sent again on a fresh one where that reset
    /// was a close of the peer's that the request has crossed.
    StaleReset,
    /// Behind an answer that announced the close: was never to be answered here, may be sent again.
    StaleBehind,
    /// Answered with a 408 that ends the connection: may be sent again where the peer had given up an idle connection, which
    /// the request has crossed. Else [`Ending::Status`].
    StaleTimeout,
    /// The connection, on which nothing had been answered, was closed before any byte of the answer: may be sent again where
    /// that was such a close. Else [`Ending::Empty`].
    UnusedEnd,
    /// The same, but reset. Else [`Ending::Reset`].
    UnusedReset,
    /// No byte of the answer in time.
    TimeoutFirstByte,
    /// The answer was not complete in time.
    TimeoutTotal,
    /// The answer is not WebSocket as RFC 6455 has it.
    WsProtocol,
    /// A text that is not UTF-8.
    WsPayload,
    /// The peer closed the WebSocket before the answer.
    WsClosed,
    /// No answer in time to a datagram, which may have been lost on the way there or back.
    Lost,
    /// Nobody listens where the datagram went (ICMP port unreachable).
    Refused,
    /// The peer has reset the stream of the request, or its answer is not what HTTP/2 (RFC 9113) allows on a stream.
    H2Stream,
    /// The peer has announced the end of its connection (GOAWAY), and has not answered the request.
    H2Goaway,
    /// The peer's bytes are not what HTTP/2 allows on a connection.
    H2Protocol,
    /// A frame of HTTP/2 has a length that it must not have.
    H2FrameSize,
    /// The peer did not heed the flow control of HTTP/2.
    H2Flow,
    /// The peer has announced that it does not answer the request on this connection (GOAWAY): may be sent again on another
    /// one. Else [`Ending::H2Goaway`].
    StaleGoaway,
    /// The peer has refused the stream before it did anything (REFUSED_STREAM): the request may be sent again. Else
    /// [`Ending::H2Stream`].
    StaleRefused,
}

/// A request that has ended, or several that are alike, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// What it was asked with.
    pub tag: T,
    /// How many they are.
    pub count: usize,
    /// How it ended.
    pub ending: Ending,
    /// Its answer came to its end, good or bad.
    pub complete: bool,
    /// The status of a complete answer, where the protocol has one.
    pub status: Option<u16>,
    /// When the first byte of its answer came; `now` when the answer came whole.
    pub first_byte_ns: u64,
    /// What the body of a complete answer was like, where its bytes were not held against those expected.
    pub content: Option<Content>,
}

impl<T> Outcome<T> {
    /// One request with a whole answer, good or bad, whose protocol has neither status nor content.
    #[inline]
    #[must_use]
    pub fn answered(tag: T, ending: Ending, first_byte_ns: u64) -> Self {
        let (complete, status, content) = (true, None, None);
        Outcome { tag, count: 1, ending, complete, status, first_byte_ns, content }
    }

    /// A request that ended without a complete answer.
    #[must_use]
    pub fn unanswered(tag: T, ending: Ending, now_ns: u64) -> Self {
        let (complete, status, content) = (false, None, None);
        Outcome { tag, count: 1, ending, complete, status, first_byte_ns: now_ns, content }
    }
}

/// What may be done with the connection from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// What has to be agreed on before the first request is still under way.
    Opening,
    /// It came to nothing: to be closed.
    Refused,
    /// More may be asked.
    Open,
    /// Nothing more may be asked, and what is outstanding still ends.
    Draining,
    /// The peer has announced its close: nothing more may be asked, the FIN is to come.
    Closing,
    /// To be closed: the stream cannot be trusted any more.
    Broken,
    /// To be closed: bytes came that settle no outstanding request.
    Unsolicited,
}

/// What came while nothing was asked, where it may be a 408: the peer has waited for a request for too long, and ends the
/// connection (RFC 9110 §15.5.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Farewell {
    /// Nothing of the kind.
    #[default]
    None,
    /// What may become its head.
    Begun,
    /// Its head, at least.
    Said,
}

/// How the peer's side of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// An orderly close.
    Fin,
    /// A reset, or any other error of the socket.
    Reset,
    /// Nobody listens for these datagrams (ICMP port unreachable).
    Refused,
}

/// The queue side of a client machine: what was asked and is not yet ended.
pub trait Exchange<T> {
    /// A fresh connection; what was outstanding must have been ended before.
    fn reopen(&mut self);

    /// A request was written.
    fn ask(&mut self, tag: T) {
        self.ask_alike(tag, 1);
    }

    /// So many requests were written, about which all is the same.
    fn ask_alike(&mut self, tag: T, count: usize);

    /// Requests not yet ended.
    fn outstanding(&self) -> usize;

    /// How many more requests the connection takes now, of `depth` that are to be outstanding at most.
    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        depth.saturating_sub(self.outstanding())
    }

    /// Whether a complete answer came on this connection.
    fn has_answered(&self) -> bool;

    /// Gives the tags of what is outstanding to `change`, those asked last first, until it returns false. Requests that are
    /// alike, one behind the other, have one tag.
    fn change_newest(&mut self, change: impl FnMut(&mut T) -> bool);

    /// Whether the request asked last is known not to have begun to leave.
    #[inline]
    fn is_held_back(&self) -> bool {
        false
    }

    /// When [`Exchange::handle_timeout`] is due; none while nothing is. `deadline_ns` says until when a request may last.
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&T) -> u64) -> Option<u64>;

    /// Requests that have not ended by their deadlines are out of time. What is to be told to the peer is added to `output`.
    /// Returns what may be done with the connection: it may live on where a request can end alone.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&T) -> u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition;

    /// Whether the answer under way lasts until the peer ends the connection.
    fn lasts_until_end(&self) -> bool {
        false
    }

    /// Whether the peer has given up an idle connection, which is [`Disposition::Closing`] then.
    fn farewell(&self) -> Farewell {
        Farewell::None
    }

    /// Of a connection that is [`Disposition::Broken`], where the machine knows more than how its request ended: why, in words of
    /// our own.
    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        None
    }

    /// Gives back every outstanding request, unanswered.
    fn cancel(&mut self) -> impl Iterator<Item = T> + '_;
}

/// What was asked on a connection, in the order in which it ends.
#[derive(Debug)]
pub struct Asked<T> {
    outstanding: Queue<T>,
    /// How many of them, the last ones, have not begun to leave.
    unsent: u32,
    answered: bool,
    /// The peer has announced its close: nothing more is to be asked. (It is here because 100,000
    /// connections have no room for it elsewhere.)
    pub(crate) closing: bool,
    /// Why, if it was not an answer that did. (Here for the same reason.)
    pub(crate) farewell: Farewell,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        let (outstanding, farewell) = (Queue::default(), Farewell::None);
        Asked { outstanding, unsent: 0, answered: false, closing: false, farewell }
    }
}

impl<T: Copy + PartialEq> Asked<T> {
    /// Requests not yet ended.
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

    /// The oldest, if what comes can be its answer: none that has not begun to leave is answered.
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

    /// The oldest has its answer, whole.
    #[inline]
    pub(crate) fn answer(&mut self) -> Option<T> {
        self.answer_alike(1).map(|(tag, _)| tag)
    }

    /// The oldest have their answers, whole: those that are alike, `most` of them at most, and none that has not begun
    /// to leave. Says how many they are.
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

    /// Bytes came that no request awaits: those that have not begun to leave end with the connection.
    #[cold]
    pub(crate) fn end_unsent(
        &mut self,
        now_ns: u64,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        self.end_all(now_ns, Ending::ClosedPipelined, Ending::ClosedPipelined, on_outcome);
        Disposition::Unsolicited
    }

    /// All end without an answer: the oldest so, those behind it so.
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

    /// The peer's side has ended, and what lasts until then is no answer; `begun` tells whether one had begun.
    pub(crate) fn end(
        &mut self,
        now_ns: u64,
        end: PeerEnd,
        begun: bool,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let (first, rest) = match (end, begun) {
            (PeerEnd::Reset | PeerEnd::Refused, _) => (Ending::Reset, Ending::Reset),
            (_, true) => (Ending::Truncated, Ending::ClosedPipelined),
            (_, false) => (Ending::Empty, Ending::ClosedPipelined),
        };
        self.end_all(now_ns, first, rest, on_outcome);
    }
}

/// A machine whose requests end in the order in which they were asked.
pub trait InOrder {
    /// What its caller knows about a request. (No parameter: then nobody elsewhere can say that a machine of this crate is
    /// in order, and those that are not implement [`Exchange`] themselves.)
    type Tag: Copy + PartialEq + 'static;

    /// A fresh connection.
    fn reset(&mut self);

    /// What was asked.
    fn asked(&self) -> &Asked<Self::Tag>;

    /// The same, to be changed.
    fn asked_mut(&mut self) -> &mut Asked<Self::Tag>;

    /// So many of the requests asked last have not begun to leave: what comes next is no answer to them.
    #[inline]
    fn hold_back(&mut self, unsent: usize) {
        self.asked_mut().unsent = u32::try_from(unsent).unwrap_or(u32::MAX);
    }

    /// Whether a part of the next answer has come.
    fn has_begun(&self) -> bool;

    /// See [`Exchange::lasts_until_end`].
    fn lasts_until_end(&self) -> bool {
        false
    }

    /// See [`Exchange::why_broken`].
    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        None
    }
}

impl<M: InOrder> Exchange<M::Tag> for M {
    fn reopen(&mut self) {
        debug_assert!(self.asked().is_empty());
        self.reset();
    }

    #[inline]
    fn ask_alike(&mut self, tag: M::Tag, count: usize) {
        self.asked_mut().outstanding.push_back(tag, count);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.asked().len()
    }

    fn has_answered(&self) -> bool {
        self.asked().has_answered()
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut M::Tag) -> bool) {
        self.asked_mut().outstanding.change_newest(change);
    }

    #[inline]
    fn is_held_back(&self) -> bool {
        self.asked().unsent > 0
    }

    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&M::Tag) -> u64) -> Option<u64> {
        self.asked().oldest().map(deadline_ns)
    }

    /// The connection is given up with the oldest request, and all on it end.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&M::Tag) -> u64,
        _output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<M::Tag>),
    ) -> Disposition {
        if self.next_timeout_ns(deadline_ns).is_none_or(|due_ns| due_ns > now_ns) {
            return Disposition::Open;
        }
        let first = if self.has_begun() { Ending::TimeoutTotal } else { Ending::TimeoutFirstByte };
        self.asked_mut().end_all(now_ns, first, Ending::TimeoutFirstByte, on_outcome);
        Disposition::Broken
    }

    fn lasts_until_end(&self) -> bool {
        InOrder::lasts_until_end(self)
    }

    fn farewell(&self) -> Farewell {
        self.asked().farewell
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        InOrder::why_broken(self)
    }

    fn cancel(&mut self) -> impl Iterator<Item = M::Tag> + '_ {
        self.asked_mut().drain()
    }
}
