//! The state that the reference server of HTTP keeps for one connection, and for an answer that
//! waits.

use std::collections::{HashMap, VecDeque};

use trueload_drive::Token;
use trueload_wire::http1::request::RequestParser;
use trueload_wire::http2::server::Server as Machine;
use trueload_wire::tls::{self, State};

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
    /// The first of these answers waits for room in the output.
    held: bool,
    /// Bytes that came while more answers than enough waited for room.
    pub(super) unread: Vec<u8>,
    /// The time since when a part of a head has been there without its end; 0 if there is none.
    pub(super) half_since_ns: u64,
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
        Connection {
            token,
            parser: RequestParser::default(),
            pending: VecDeque::new(),
            held: false,
            unread: Vec::new(),
            half_since_ns: 0,
            tls,
            asked: 0,
            speaks,
        }
    }

    /// Whether it has this token, and is not lingering.
    pub(super) fn is_served(&self, token: Token) -> bool {
        self.token == token && !matches!(self.speaks, Speaks::Lingering)
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

    /// Whether a part of a head, or of what comes before it, has come, but not its end.
    pub(super) fn is_within_head(&self) -> bool {
        if self.tls.as_ref().is_some_and(|session| session.state() == State::Handshaking) {
            return true;
        }
        match &self.speaks {
            Speaks::Http1 => self.parser.is_within_head(),
            Speaks::Http2(http2) => http2.machine.is_within_head(),
            Speaks::Undecided(matched) => *matched > 0,
            Speaks::Lingering => false,
        }
    }

    /// Whether something is to be done when the wait for this stream, or for the connection, is
    /// over.
    pub(super) fn waits_for(&self, stream: u32) -> bool {
        match &self.speaks {
            Speaks::Http2(http2) => stream == 0 || http2.pending.contains_key(&stream),
            Speaks::Lingering => true,
            _ => !self.pending.is_empty(),
        }
    }

    /// Holds the first of the waiting answers until there is room, and all behind it.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    /// Ends the hold; false if there was none.
    pub(super) fn release(&mut self) -> bool {
        std::mem::take(&mut self.held) || self.is_held()
    }

    /// Whether answers wait for room in the output.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        match &self.speaks {
            Speaks::Http2(http2) => http2.is_held(),
            _ => self.held,
        }
    }

    /// Bytes that are written and not given to the driver yet.
    pub(super) fn delayed_bytes(&self) -> usize {
        if let Speaks::Http2(http2) = &self.speaks { http2.delayed.len() } else { 0 }
    }
}

/// A connection that speaks HTTP/2.
#[derive(Debug)]
pub(super) struct Http2 {
    pub(super) machine: Machine<Answer>,
    /// Answers that wait for their time, by stream.
    pub(super) pending: HashMap<u32, Pending>,
    /// Streams whose due answers wait for room in the output.
    pub(super) held: VecDeque<u32>,
    /// Streams whose next part is due, and the one before it waits for a window.
    pub(super) stalled: Vec<u32>,
    /// SETTINGS have been sent; until then, everything else is delayed.
    pub(super) opened: bool,
    pub(super) delayed: Vec<u8>,
}

impl Http2 {
    pub(super) fn new(machine: Machine<Answer>, opened: bool) -> Self {
        Http2 {
            machine,
            pending: HashMap::new(),
            held: VecDeque::new(),
            stalled: Vec::new(),
            opened,
            delayed: Vec::new(),
        }
    }

    /// Whether output waits for room; before SETTINGS nothing is sent that could make some.
    fn is_held(&self) -> bool {
        self.opened && (!self.held.is_empty() || self.machine.is_full())
    }

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
