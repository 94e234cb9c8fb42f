//! What the client machines of all protocols have in common: requests asked in order, each of which
//! ends exactly once.
//!
//! A request is a tag to a machine: whatever its caller knows about it. Every tag that is asked
//! comes back once, with its ending, through `hear`. What is particular to a protocol, how its bytes
//! are read and written, stays with its machine.

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
    /// Behind an answer that announced the close: was never to be answered here, may be sent again.
    StaleBehind,
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
}

/// A request that has ended, or several that are alike, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard<T> {
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
}

impl<T> Heard<T> {
    /// A request that ended without a complete answer.
    #[must_use]
    pub fn unanswered(tag: T, ending: Ending, now_ns: u64) -> Self {
        Heard { tag, count: 1, ending, complete: false, status: None, first_byte_ns: now_ns }
    }
}

/// What may be done with the connection from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// What has to be agreed on before the first request is still under way.
    Opening,
    /// It came to nothing: to be closed.
    Refused,
    /// More may be asked.
    Open,
    /// The peer has announced its close: nothing more may be asked, the FIN is to come.
    Closing,
    /// To be closed: the stream cannot be trusted any more.
    Broken,
    /// To be closed: bytes came that settle no outstanding request.
    Unsolicited,
}

/// How the peer's side of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An orderly close.
    Fin,
    /// A close that anybody on the way could have made (TLS without `close_notify`): what lasts until the end of the
    /// connection may be cut short.
    Cut,
    /// The same, in the middle of a record: a part of what comes next has come.
    Torn,
    /// A reset, or any other error of the socket.
    Reset,
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

    /// The request whose answer comes next.
    fn oldest(&self) -> Option<&T>;

    /// Whether a complete answer came on this connection.
    fn has_answered(&self) -> bool;

    /// So many of the requests asked last have not begun to leave: what comes next is no answer to them.
    fn hold_back(&mut self, _unsent: usize) {}

    /// The oldest request is out of time: the connection is given up, and all on it end. `in_record`: something has
    /// come that could not be read yet.
    fn handle_timeout(&mut self, now_ns: u64, in_record: bool, hear: &mut impl FnMut(Heard<T>));

    /// Of a connection that is [`Link::Broken`], where the machine knows more than how its request ended: why, in words of
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
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Asked { outstanding: Queue::default(), unsent: 0, answered: false, closing: false }
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
    pub(crate) fn end_unsent(&mut self, now_ns: u64, hear: &mut impl FnMut(Heard<T>)) -> Link {
        self.end_all(now_ns, Ending::ClosedPipelined, Ending::ClosedPipelined, hear);
        Link::Unsolicited
    }

    /// All end without an answer: the oldest so, those behind it so.
    pub(crate) fn end_all(
        &mut self,
        now_ns: u64,
        first: Ending,
        rest: Ending,
        hear: &mut impl FnMut(Heard<T>),
    ) {
        let mut ending = first;
        for tag in self.outstanding.drain() {
            hear(Heard::unanswered(tag, ending, now_ns));
            ending = rest;
        }
    }

    /// The peer's side has ended, and what lasts until then is no answer; `begun` tells whether one had begun.
    pub(crate) fn end(
        &mut self,
        now_ns: u64,
        end: End,
        begun: bool,
        hear: &mut impl FnMut(Heard<T>),
    ) {
        let (first, rest) = match (end, begun) {
            (End::Reset, _) => (Ending::Reset, Ending::Reset),
            (End::Torn, _) | (_, true) => (Ending::Truncated, Ending::ClosedPipelined),
            (_, false) => (Ending::Empty, Ending::ClosedPipelined),
        };
        self.end_all(now_ns, first, rest, hear);
    }
}

/// A machine whose requests end in the order in which they were asked.
pub trait InOrder<T> {
    /// A fresh connection.
    fn reset(&mut self);

    /// What was asked.
    fn asked(&self) -> &Asked<T>;

    /// The same, to be changed.
    fn asked_mut(&mut self) -> &mut Asked<T>;

    /// Whether a part of the next answer has come.
    fn has_begun(&self) -> bool;

    /// See [`Exchange::why_broken`].
    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        None
    }
}

impl<T: Copy + PartialEq + 'static, M: InOrder<T>> Exchange<T> for M {
    fn reopen(&mut self) {
        debug_assert!(self.asked().is_empty());
        self.reset();
    }

    #[inline]
    fn ask_alike(&mut self, tag: T, count: usize) {
        self.asked_mut().outstanding.push_back(tag, count);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.asked().len()
    }

    #[inline]
    fn oldest(&self) -> Option<&T> {
        self.asked().oldest()
    }

    fn has_answered(&self) -> bool {
        self.asked().has_answered()
    }

    #[inline]
    fn hold_back(&mut self, unsent: usize) {
        self.asked_mut().unsent = u32::try_from(unsent).unwrap_or(u32::MAX);
    }

    fn handle_timeout(&mut self, now_ns: u64, in_record: bool, hear: &mut impl FnMut(Heard<T>)) {
        let begun = in_record || self.has_begun();
        let first = if begun { Ending::TimeoutTotal } else { Ending::TimeoutFirstByte };
        self.asked_mut().end_all(now_ns, first, Ending::TimeoutFirstByte, hear);
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        InOrder::why_broken(self)
    }

    fn cancel(&mut self) -> impl Iterator<Item = T> + '_ {
        self.asked_mut().drain()
    }
}
