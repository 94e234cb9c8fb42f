//! The server of one connection, for the reference server: requests come in on streams, and are answered in any order.
//!
//! How it works: [`Server::next`] reads frames where they lie until there is something to tell, and appends what has to be
//! said at once: acknowledgements, windows, resets. A request is told when it is whole, its body skipped; the caller answers
//! it then or later. A block that is the same as the one before under the same generation of the table is not decoded.
//! What finds no room in the windows waits, and leaves as they open.
//!
//! A mistake on a stream resets it, and the connection goes on; one on the connection ends it with GOAWAY (RFC 9113 §5.4).
//! Everything that a peer could send without end has a cap.
//!
//! What it must not know: sockets, clocks, which paths exist, and what is answered.

mod core;
mod head;
mod output;
mod streams;

use self::core::Core;
pub use self::head::RequestHead;
use super::frame::{ErrorCode, PREFACE, write_goaway, write_window_update};
use super::read::Reader;
use super::settings::{self, parameter};
use super::violation::{Scope, Violation};
use super::window::{WINDOW_FIRST, WINDOW_MOST};

/// What a server permits its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Streams at once; one more is refused.
    pub streams: u32,
    /// The window of each stream, in bytes.
    pub window: u32,
    /// Streams get more room as they use it up. If not, a body stops where the window ends.
    pub enlarges: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { streams: 1000, window: 1 << 20, enlarges: true }
    }
}

/// The window of a connection is so large: many streams may send bodies at once.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// What a client has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// A request is whole, and waits for its answer.
    Request {
        /// Its stream.
        stream: u32,
        /// What was made of its head.
        made: M,
    },
    /// A request that was told, and not answered, is gone: the client has reset it, or broken its stream.
    Gone {
        /// Its stream.
        stream: u32,
    },
    /// A request was not as HTTP/2 has it; its stream was reset.
    Malformed,
    /// A stream above [`Config::streams`] was refused.
    Refused,
    /// The connection is broken: GOAWAY has been written, and nothing more will be read.
    Broken(Violation),
}

/// The machine of one connection. `M` is what the caller makes of a request's head.
#[derive(Debug)]
pub struct Server<M> {
    reader: Reader,
    /// Bytes of the preface that have come.
    preface: usize,
    broken: bool,
    core: Core<M>,
}

impl<M: Copy> Server<M> {
    /// A connection on which nothing has come yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Server { reader: Reader::default(), preface: 0, broken: false, core: Core::new(config) }
    }

    /// Appends the server's SETTINGS. They have to be the first that it sends.
    pub fn open(&self, out: &mut Vec<u8>) {
        let Config { streams, window, .. } = self.core.config;
        settings::write(
            out,
            &[
                (parameter::MAX_CONCURRENT_STREAMS, streams),
                (parameter::INITIAL_WINDOW_SIZE, window.min(WINDOW_MOST)),
            ],
        );
        write_window_update(out, 0, CONNECTION_WINDOW - WINDOW_FIRST);
    }

    /// Takes bytes off `input` up to the next event; `None` when all were taken. What has to be said at once is appended to
    /// `out`; what a request is to the caller is made by `read`.
    #[inline]
    pub fn next(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        read: &mut impl FnMut(RequestHead<'_>) -> M,
    ) -> Option<Event<M>> {
        self.core.keep_current();
        if self.broken {
            *input = &[];
            return None;
        }
        if self.preface < PREFACE.len()
            && let Err(violation) = self.take_preface(input)
        {
            return Some(self.break_off(violation, out));
        }
        loop {
            let told = match self.reader.next(input) {
                Ok(None) => return None,
                Ok(Some(piece)) => self.core.handle(piece, out, read),
                Err(violation) => Err(violation),
            };
            let told = match told {
                Err(Violation { scope: Scope::Stream(stream), code, why }) => {
                    self.core.refuse(stream, code, why, out)
                }
                told => told,
            };
            match told {
                Ok(None) => {}
                Ok(Some(event)) => return Some(event),
                Err(violation) => return Some(self.break_off(violation, out)),
            }
        }
    }

    fn take_preface(&mut self, input: &mut &[u8]) -> Result<(), Violation> {
        let expected = &PREFACE[self.preface..];
        let (taken, rest) = input.split_at(expected.len().min(input.len()));
        if taken != &expected[..taken.len()] {
            return Err(Violation::protocol("the connection does not begin with the preface"));
        }
        self.preface += taken.len();
        *input = rest;
        Ok(())
    }

    fn break_off(&mut self, violation: Violation, out: &mut Vec<u8>) -> Event<M> {
        self.broken = true;
        write_goaway(out, self.core.last(), violation.code, violation.why);
        Event::Broken(violation)
    }

    /// Answers a request: a block of fields, and a body; without one the stream ends with the block. False: it is gone.
    #[inline]
    pub fn answer(&mut self, stream: u32, block: &[u8], body: &[u8], out: &mut Vec<u8>) -> bool {
        self.core.answer(stream, block, body, out)
    }

    /// Begins an answer, whose body follows in parts. False: the request is gone.
    pub fn answer_head(&mut self, stream: u32, block: &[u8], out: &mut Vec<u8>) -> bool {
        self.core.answer_head(stream, block, false, out)
    }

    /// The next part of a body, and whether it is the last. False: the request is gone.
    pub fn answer_body(&mut self, stream: u32, part: &[u8], last: bool, out: &mut Vec<u8>) -> bool {
        self.core.answer_body(stream, part, last, out)
    }

    /// Resets a stream instead of an answer to it. False: the request is gone.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        self.core.reset(stream, code, out)
    }

    /// Takes no more streams: those that have begun are answered, later ones ignored.
    pub fn go_away(&mut self, out: &mut Vec<u8>) {
        if !self.core.is_leaving() {
            write_goaway(out, self.core.leave(), ErrorCode::NoError, "");
        }
    }

    /// Whether everything that will be answered has been.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.core.is_leaving() && self.core.is_empty()
    }

    /// Requests that were told, and have not been answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.core.waiting()
    }

    /// Whether a part of a request has come whose end has not.
    #[must_use]
    pub fn is_within_request(&self) -> bool {
        self.core.is_reading() || self.reader.is_within_frame()
    }
}

#[cfg(test)]
mod tests;
