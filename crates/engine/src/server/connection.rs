//! The state that the reference server of HTTP keeps for one connection, and for an answer that
//! waits.

use std::collections::{HashMap, VecDeque};

use trueload_drive::Token;
use trueload_wire::http1::request::RequestParser;
use trueload_wire::http2::server::Server as Machine;
use trueload_wire::tls;

use super::faults::Slow;
use super::response::Answer;
use super::stream::Streamed;

/// One open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) token: Token,
    pub(super) parser: RequestParser,
    /// Answers not yet sent because one before them waits.
    pub(super) pending: VecDeque<Pending>,
    /// TLS between the parser and the socket, if any.
    pub(super) tls: Option<Box<tls::server::Server>>,
    /// Number of requests up to now, counted only if faults may close the connection.
    pub(super) asked: u32,
    pub(super) speaks: Speaks,
}

/// The version of HTTP that a connection speaks.
#[derive(Debug)]
pub(super) enum Speaks {
    /// HTTP/1.
    Http1,
    /// HTTP/2.
    Http2(Box<Http2>),
    /// None any more: our side has ended, and further input is ignored.
    Lingering,
    /// The first bytes decide; this many bytes of the HTTP/2 preface have come.
    Undecided(usize),
}

impl Connection {
    pub(super) fn new(token: Token, tls: Option<Box<tls::server::Server>>, speaks: Speaks) -> Self {
        let (parser, pending) = (RequestParser::default(), VecDeque::new());
        Connection { token, parser, pending, tls, asked: 0, speaks }
    }

    pub(super) fn waiting(&self) -> usize {
        match &self.speaks {
            Speaks::Http2(http2) => http2.pending.len(),
            _ => self.pending.len(),
        }
    }

    /// Whether a request has come in part.
    pub(super) fn is_within_request(&self) -> bool {
        match &self.speaks {
            Speaks::Http1 => self.parser.started(),
            Speaks::Http2(http2) => http2.machine.is_within_request(),
            Speaks::Undecided(matched) => *matched > 0,
            Speaks::Lingering => false,
        }
    }
}

/// A connection that speaks HTTP/2.
#[derive(Debug)]
pub(super) struct Http2 {
    pub(super) machine: Machine<Answer>,
    /// Answers that wait for their time, by stream.
    pub(super) pending: HashMap<u32, Pending>,
    /// SETTINGS have been sent; until then, everything else is delayed.
    pub(super) opened: bool,
    pub(super) delayed: Vec<u8>,
}

impl Http2 {
    /// Delays what was written until SETTINGS have been sent.
    #[inline]
    pub(super) fn delay(&mut self, out: &mut Vec<u8>) {
        if !self.opened {
            self.delayed.append(out);
        }
    }
}

/// A time that never comes.
pub(super) const NEVER_NS: u64 = u64::MAX;

/// An answer that waits for its time, or for earlier answers.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) due_ns: u64,
    pub(super) answer: Answer,
    /// The rest of it, once it is sent in pieces.
    pub(super) slow: Option<Box<Slow>>,
    /// The rest of it, once it is sent as a stream.
    pub(super) streamed: Option<Box<Streamed>>,
}

impl Pending {
    pub(super) fn new(due_ns: u64, answer: Answer) -> Self {
        Pending { due_ns, answer, slow: None, streamed: None }
    }
}
