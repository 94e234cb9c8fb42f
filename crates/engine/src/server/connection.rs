//! The state that the reference server of HTTP keeps for one connection, and for an answer that
//! waits.

use std::collections::VecDeque;

use trueload_drive::Token;
use trueload_wire::http1::request::{Request, RequestParser};
use trueload_wire::tls;

use super::faults::{Fault, Slow};
use super::http2::Talk;
use super::response::Route;
use super::stream::{Shape, Streamed};

/// One open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) token: Token,
    pub(super) parser: RequestParser,
    /// Answers not yet sent because one before them waits.
    pub(super) pending: VecDeque<Pending>,
    /// TLS between the parser and the socket, if any.
    pub(super) tls: Option<Box<tls::server::Server>>,
    /// The rest of the first pending answer, while it is sent in pieces.
    pub(super) slow: Option<Box<Slow>>,
    /// The first pending answer, while it is a stream that is being sent.
    pub(super) stream: Option<Box<Streamed>>,
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
    Http2(Box<Talk>),
    /// None any more: our side has ended, and further input is ignored.
    Lingering,
    /// The first bytes decide; this many bytes of the HTTP/2 preface have come.
    Undecided(usize),
}

impl Connection {
    pub(super) fn new(token: Token, tls: Option<Box<tls::server::Server>>, speaks: Speaks) -> Self {
        let (parser, pending) = (RequestParser::new(), VecDeque::new());
        let (slow, stream) = (None, None);
        Connection { token, parser, pending, tls, slow, stream, asked: 0, speaks }
    }

    /// Number of answers that wait.
    pub(super) fn waiting(&self) -> usize {
        match &self.speaks {
            Speaks::Http2(talk) => talk.waiting(),
            _ => self.pending.len(),
        }
    }

    /// Whether a request has come in part.
    pub(super) fn is_within_request(&self) -> bool {
        match &self.speaks {
            Speaks::Http1 => self.parser.started(),
            Speaks::Http2(talk) => talk.is_within_request(),
            Speaks::Undecided(matched) => *matched > 0,
            Speaks::Lingering => false,
        }
    }
}

/// A time that never comes.
pub(super) const NEVER_NS: u64 = u64::MAX;

/// An answer that waits for its time, or for earlier answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) due_ns: u64,
    pub(super) answer: Answer,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) route: Route,
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
    pub(super) http10: bool,
    /// The deliberate fault of the answer.
    pub(super) fault: Fault,
    /// The connection is deliberately closed after it, whatever it says.
    pub(super) closes: bool,
}

impl Answer {
    pub(super) fn to(request: &Request<'_>) -> Self {
        let route = Route::of(request.method, request.path());
        // In HTTP/1.0 only the close of the connection can end a stream.
        let ends = request.http10 && matches!(route, Route::Stream(_));
        Answer {
            route,
            head_only: request.method == "HEAD",
            keep_alive: request.keep_alive && !ends,
            http10: request.http10,
            fault: Fault::None,
            closes: false,
        }
    }

    /// The stream that is its body, if it has one.
    #[inline]
    pub(super) fn stream(&self) -> Option<Shape> {
        match self.route {
            Route::Stream(shape) if !self.head_only && self.fault != Fault::Error => Some(shape),
            _ => None,
        }
    }

    /// Whether its body is a stream.
    #[inline]
    pub(super) fn is_streamed(&self) -> bool {
        self.stream().is_some()
    }

    /// Whether the connection ends with it.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        !self.keep_alive || self.closes
    }

    /// Its status, as it is sent.
    pub(super) fn status(&self) -> u16 {
        if self.fault == Fault::Error { 500 } else { self.route.status() }
    }
}
