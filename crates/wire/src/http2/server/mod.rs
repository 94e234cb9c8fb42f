//! The server side of one connection, for the reference server. Requests come in on streams and are
//! answered in any order.
//!
//! How it works: [`Server::next`] reads frames in place until there is an event, and appends
//! whatever must be sent at once: acknowledgements, windows, resets. A request is reported when it
//! is complete; its body is skipped. The caller answers then or later. A block with the same bytes
//! as the one before is not decoded if the generation of the table is the same. Output that exceeds
//! the windows waits and is sent when they open.
//!
//! A violation on a stream resets the stream, and the connection continues. A violation on the
//! connection ends it with GOAWAY (RFC 9113 §5.4). Everything that a peer could send without end
//! has a cap.
//!
//! Must not know: sockets, clocks, which paths exist, and what is answered.

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

/// The limits that a server sets for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of streams at once; one more is refused.
    pub streams: u32,
    /// The window of each stream, in bytes.
    pub window: u32,
    /// Whether streams get more room as they use it up. If not, a body stops where the window ends.
    pub enlarges: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { streams: 1000, window: 1 << 20, enlarges: true }
    }
}

/// The window of a connection, large because many streams may send bodies at once.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// An event caused by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// A request is complete and waits for its answer.
    Request {
        /// The stream number.
        stream: u32,
        /// The caller's value for its head.
        made: M,
    },
    /// A request that was reported and not answered is gone: the client has reset it or broken its
    /// stream.
    Gone {
        /// The stream number.
        stream: u32,
    },
    /// A request violated HTTP/2; its stream was reset.
    Malformed,
    /// A stream above [`Config::streams`] was refused.
    Refused,
    /// The connection is broken: GOAWAY has been written, and nothing more will be read.
    Broken(Violation),
}

/// The machine of one connection. `M` is the caller's value for the head of a request.
#[derive(Debug)]
pub struct Server<M> {
    reader: Reader,
    /// The number of bytes of the preface that have come.
    preface: usize,
    broken: bool,
    core: Core<M>,
}

impl<M: Copy> Server<M> {
    /// A connection on which nothing has come yet.
    pub fn new(config: Config) -> Self {
        Server { reader: Reader::default(), preface: 0, broken: false, core: Core::new(config) }
    }

    /// Appends the server's SETTINGS, which must be the first frame that it sends.
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

    /// Takes bytes off `input` up to the next event; `None` if all were taken. Bytes that must be
    /// sent at once are appended to `out`. `read` turns a request's head into the caller's value.
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
            let handled = match self.reader.next(input) {
                Ok(None) => return None,
                Ok(Some(piece)) => self.core.handle(piece, out, read),
                Err(violation) => Err(violation),
            };
            let handled = match handled {
                Err(Violation { scope: Scope::Stream(stream), code, why }) => {
                    self.core.refuse(stream, code, why, out)
                }
                handled => handled,
            };
            match handled {
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

    /// Resets a stream instead of answering. False if the request is gone.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        self.core.reset(stream, code, out)
    }

    /// Stops accepting streams: those that have begun are answered, later ones ignored.
    pub fn go_away(&mut self, out: &mut Vec<u8>) {
        if !self.core.is_leaving() {
            write_goaway(out, self.core.leave(), ErrorCode::NoError, "");
        }
    }

    /// Whether GOAWAY was sent and everything to be answered has been answered.
    pub fn is_drained(&self) -> bool {
        self.core.is_leaving() && self.core.is_empty()
    }

    /// The number of requests that were reported and not answered.
    pub fn waiting(&self) -> usize {
        self.core.waiting()
    }

    /// Whether part of a request has come, but not its end.
    pub fn is_within_request(&self) -> bool {
        self.core.is_reading() || self.reader.is_within_frame()
    }

    /// Whether part of the preface or of a header section has come, but not its end.
    pub fn is_within_head(&self) -> bool {
        self.preface < PREFACE.len() || self.core.is_within_block() || self.reader.has_cut_frame()
    }

    /// Ends the connection of a client that lets output pile up, with `ENHANCE_YOUR_CALM`.
    pub fn refuse_more(&mut self, out: &mut Vec<u8>) {
        let why = "output is not read";
        self.break_off(Violation::of_connection(ErrorCode::EnhanceYourCalm, why), out);
    }
}

#[cfg(test)]
mod tests;
