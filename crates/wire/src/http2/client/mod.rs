//! The client side of one connection. Requests go out on streams, and each ends on its own, in any
//! order (RFC 9113).
//!
//! How it works: [`Client::handle_input`] reads frames in place; only cut frames are stored until
//! the rest has come. What must be sent at once, such as acknowledgements and windows, is appended
//! to its output. Requests wait in order until the peer permits them a stream. [`Client::write`]
//! begins as many as it may, in one buffer, and sends their bodies as far as the windows allow.
//! Every request that is asked is returned exactly once, with its ending.
//!
//! A violation on a stream ends its request, and the stream is reset. A violation on the connection
//! ends all requests. The peer may still send on a stream that we reset, until it knows. A PING
//! after the reset shows when that is over.
//!
//! Must not know: sockets, phases, and what requests look like before they are encoded.

mod account;
mod answer;
mod blocks;
mod flow;
mod input;
mod memory;
mod output;
mod reset;
mod streams;

use crate::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose, Standing, Timer};
use crate::message::Book;

use account::Accounting;
use flow::Flow;
pub use flow::{Terms, Windows};
use memory::Blocks;
use reset::Resets;
use streams::{Stream, Streams};

use super::block::Block;
use super::frame::{ErrorCode, write_reset};
use super::read::Reader;
use super::settings::Settings;

/// A time that never comes.
const NEVER_NS: u64 = u64::MAX;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The peer has not sent its SETTINGS yet. `like_http1` is the number of bytes received that
    /// match the start of an HTTP/1 answer.
    Opening {
        like_http1: u8,
    },
    Open,
    /// The peer announced the end (GOAWAY) and answers up to the stream `last`.
    Draining {
        last: u32,
        error: bool,
    },
}

/// The machine of one connection. `T` is what the caller knows about a request.
#[derive(Debug)]
pub struct Client<T> {
    state: State,
    streams: Streams<T>,
    reader: Reader,
    /// The header block in progress.
    block: Block,
    blocks: Blocks,
    peer: Settings,
    flow: Flow,
    resets: Resets,
    /// Set when requests have timed out and nothing has been received since. Streams from this
    /// number on were opened after that.
    silent_from: Option<u32>,
    /// No stream has stalled before this time: a lower bound, so that it need not follow each part.
    stalls_at_ns: u64,
    /// The number of frames since the last one that advanced a request.
    idle_frames: u32,
    answered: bool,
    accounting: Accounting,
    /// The reason why the connection is broken.
    fault: Option<Fault>,
}

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    blame: Blame,
    /// The ending of the outstanding requests.
    ending: Ending,
    /// The error code that is sent to the peer.
    code: ErrorCode,
    why: &'static str,
}

/// Who is charged with the fault of a connection. Where one request is, it is the one that ended
/// last, and counts as `unsolicited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// Each outstanding request.
    All,
    /// The oldest open request: bytes came that may have been meant as its answer.
    Oldest,
    /// The request that was settled last: bytes came behind its answer.
    Settled,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client {
            state: State::Opening { like_http1: 0 },
            streams: Streams::default(),
            reader: Reader::default(),
            block: Block::default(),
            blocks: Blocks::default(),
            peer: Settings::default(),
            flow: Flow::new(Windows::RFC),
            resets: Resets::default(),
            silent_from: None,
            stalls_at_ns: NEVER_NS,
            idle_frames: 0,
            answered: false,
            accounting: Accounting::default(),
            fault: None,
        }
    }
}

impl<T: Copy> Client<T> {
    /// Handles the end of the peer's side. Every outstanding request ends with it; the ending
    /// depends on how much of its answer has come.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        if let Some(Fault { ending, .. }) = self.fault {
            // We end the connection.
            return self.end_all(now_ns, ending, on_outcome);
        }
        let alone = self.outstanding() == 1;
        let goaway = matches!(self.state, State::Draining { error: true, .. });
        let answered = self.answered;
        let unused = !answered && alone;
        for nth in self.streams.numbers_from(0) {
            let Some(Stream { tag, begun, .. }) = self.take(nth) else { continue };
            let idempotent = book.rules_of(&tag).idempotent;
            let ending = match end {
                _ if goaway && !begun => Ending::H2Goaway,
                PeerClose::Fin if begun => Ending::Truncated,
                PeerClose::Fin if idempotent && answered => Ending::Stale,
                PeerClose::Fin if idempotent && unused => Ending::UnusedEnd,
                PeerClose::Fin => Ending::Empty,
                _ if begun || !idempotent => Ending::Reset,
                _ if alone && answered => Ending::StaleReset,
                _ if unused => Ending::UnusedReset,
                _ => Ending::Reset,
            };
            on_outcome(Outcome::unanswered(tag, ending, now_ns));
        }
        let ending = if end == PeerClose::Fin { Ending::Stale } else { Ending::Reset };
        self.end_waiting(now_ns, ending, on_outcome);
        self.note(now_ns);
    }

    /// Ends all requests with a connection that is broken, the oldest open one last.
    #[cold]
    fn end_all(&mut self, now_ns: u64, ending: Ending, on_outcome: &mut impl FnMut(Outcome<T>)) {
        self.end_waiting(now_ns, ending, on_outcome);
        for nth in self.streams.numbers_from(0).into_iter().rev() {
            if let Some(Stream { tag, .. }) = self.take(nth) {
                on_outcome(Outcome::unanswered(tag, ending, now_ns));
            }
        }
        self.note(now_ns);
    }

    /// Ends the requests that have no stream yet with the connection. They were never sent. If the
    /// connection has answered anything, such a request may be sent again as often as this happens,
    /// else once.
    fn end_waiting(
        &mut self,
        now_ns: u64,
        unanswered: Ending,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let ending = if self.answered { Ending::StaleBehind } else { unanswered };
        for tag in self.streams.drain_waiting() {
            on_outcome(Outcome::unanswered(tag, ending, now_ns));
        }
    }

    /// Gives up a silent connection: all outstanding requests time out too.
    #[cold]
    fn give_up(&mut self, now_ns: u64, on_outcome: &mut impl FnMut(Outcome<T>)) -> Disposition {
        for nth in self.streams.numbers_from(0) {
            if let Some(late) = self.take(nth) {
                on_outcome(late.out_of_time(now_ns));
            }
        }
        for tag in self.streams.drain_waiting() {
            on_outcome(Outcome::unanswered(tag, Ending::TimeoutFirstByte, now_ns));
        }
        self.note(now_ns);
        Disposition::Broken
    }

    /// Ends each request whose answer is a stream that has stalled, and resets its stream.
    #[cold]
    fn end_stalled(
        &mut self,
        now_ns: u64,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let mut stalled = Vec::new();
        self.stalls_at_ns = NEVER_NS;
        for stream in self.streams.iter_mut() {
            let stalls_at_ns = stream.body.stalls_at_ns().unwrap_or(NEVER_NS);
            if stalls_at_ns <= now_ns {
                stalled.push(stream.nth);
            } else {
                self.stalls_at_ns = self.stalls_at_ns.min(stalls_at_ns);
            }
        }
        for nth in stalled {
            let Some(late) = self.take(nth) else { continue };
            self.reset_stream(2 * nth + 1, ErrorCode::Cancel, output);
            on_outcome(Outcome::unanswered(late.tag, Ending::TimeoutStall, now_ns));
        }
    }

    /// Resets a stream on which the peer may still send.
    fn reset_stream(&mut self, stream: u32, code: ErrorCode, output: &mut Vec<u8>) {
        self.accounting.account.resets += 1;
        self.resets.reset(stream, code, output);
    }

    /// Resets a stream that the peer has ended and for which the rest of our request has become
    /// useless.
    #[cold]
    fn reset_upload(&mut self, stream: u32, code: ErrorCode, output: &mut Vec<u8>) {
        self.accounting.account.resets += 1;
        write_reset(output, stream, code);
    }

    /// What may be done with the connection from now on.
    #[inline]
    fn disposition(&self) -> Disposition {
        match self.state {
            State::Opening { .. } => Disposition::Opening,
            State::Open if self.streams.exhausted() => Disposition::Draining,
            State::Open => Disposition::Open,
            State::Draining { .. } => Disposition::Draining,
        }
    }
}

impl<T: Copy> Exchange<T> for Client<T> {
    #[inline]
    fn ask_alike(&mut self, tag: T, count: usize) {
        self.accounting.count(&self.peer);
        self.streams.wait(tag, count);
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.streams.open() + self.streams.waiting()
    }

    /// More requests may be asked than the peer permits streams: they wait, and their time runs.
    #[inline]
    fn capacity(&self, depth: usize) -> usize {
        match self.state {
            State::Draining { .. } => 0,
            _ => depth.saturating_sub(self.outstanding()).min(self.streams.left()),
        }
    }

    fn standing(&self) -> Standing {
        let faults = self.fault.filter(|fault| fault.blame == Blame::All);
        let broken = faults.map(|Fault { ending, why, .. }| (ending, why));
        Standing { answered: self.answered, broken, ..Standing::default() }
    }

    #[inline]
    fn change_newest(&mut self, change: impl FnMut(&mut T) -> bool) {
        self.streams.change_newest(change);
    }

    /// Requests get their streams in the order asked, so the oldest request times out first.
    #[inline]
    fn next_timeout_ns(&self, deadline_ns: impl Fn(&T) -> u64) -> Option<u64> {
        self.streams.oldest_tag().map(deadline_ns)
    }

    /// Ends each request that times out, without effect on the others, and resets its stream. A
    /// living peer acknowledges the PING that follows. If nothing comes before a request times out
    /// that was sent later, the connection is given up.
    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&T) -> u64,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let output = &mut output.bytes;
        if self.streams.oldest_tag().is_none_or(|tag| deadline_ns(tag) > now_ns) {
            self.resets.ask(output);
            self.note(now_ns);
            return self.disposition();
        }
        while let Some(tag) = self.streams.oldest_tag()
            && deadline_ns(tag) <= now_ns
        {
            let Some(nth) = self.streams.oldest().map(|stream| stream.nth) else {
                let waited = self.streams.next_waiting();
                waited.into_iter().for_each(|tag| {
                    on_outcome(Outcome::unanswered(tag, Ending::TimeoutFirstByte, now_ns));
                });
                continue;
            };
            if self.silent_from.is_some_and(|from| nth >= from) {
                return self.give_up(now_ns, on_outcome);
            }
            let Some(late) = self.take(nth) else { break };
            self.reset_stream(2 * nth + 1, ErrorCode::Cancel, output);
            on_outcome(late.out_of_time(now_ns));
        }
        self.silent_from.get_or_insert(self.streams.next());
        self.resets.ask(output);
        self.note(now_ns);
        self.disposition()
    }

    #[inline]
    fn next_timer(&self) -> Option<(u64, Timer)> {
        (self.stalls_at_ns != NEVER_NS).then_some((self.stalls_at_ns, Timer::Stall))
    }

    fn handle_timer(
        &mut self,
        now_ns: u64,
        _timer: Timer,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        self.end_stalled(now_ns, &mut output.bytes, on_outcome);
        self.resets.ask(&mut output.bytes);
        self.note(now_ns);
        self.disposition()
    }

    fn cancel(&mut self) -> impl Iterator<Item = T> + '_ {
        let numbers = self.streams.numbers_from(0);
        let mut tags: Vec<T> =
            numbers.into_iter().filter_map(|nth| self.take(nth)).map(|one| one.tag).collect();
        tags.extend(self.streams.drain_waiting());
        tags.into_iter()
    }
}
