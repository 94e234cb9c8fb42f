//! What the client machines of all protocols have in common: requests asked in order, each of which
//! ends exactly once.
//!
//! A request is a tag to a machine: whatever its caller knows about it. Every tag that is asked
//! comes back once, with its ending, through `hear`. What is particular to a protocol, how its bytes
//! are read and written, stays with its machine.

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

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard<T> {
    /// What it was asked with.
    pub tag: T,
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
        Heard { tag, ending, complete: false, status: None, first_byte_ns: now_ns }
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
    /// A reset, or any other error of the socket.
    Reset,
}

/// The queue side of a client machine: what was asked and is not yet ended.
pub trait Exchange<T> {
    /// A fresh connection; what was outstanding must have been ended before.
    fn reopen(&mut self);

    /// A request was written.
    fn ask(&mut self, tag: T);

    /// Requests not yet ended.
    fn outstanding(&self) -> usize;

    /// The request whose answer comes next.
    fn oldest(&self) -> Option<&T>;

    /// Whether a complete answer came on this connection.
    fn has_answered(&self) -> bool;

    /// The oldest request is out of time: the connection is given up, and all on it end.
    fn handle_timeout(&mut self, now_ns: u64, hear: &mut impl FnMut(Heard<T>));

    /// Gives back every outstanding request, unanswered.
    fn cancel(&mut self) -> impl Iterator<Item = T> + '_;
}
