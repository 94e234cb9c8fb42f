//! What the reference server of HTTP knows of one connection, and of an answer that it owes.

use std::collections::VecDeque;

use trueload_drive::Token;
use trueload_wire::http1::request::{Request, RequestParser};
use trueload_wire::tls;

use super::response::Route;

/// One open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) token: Token,
    pub(super) parser: RequestParser,
    /// Answers not yet sent because one before them waits.
    pub(super) pending: VecDeque<Pending>,
    /// What lies between the parser and the socket, if anything.
    pub(super) tls: Option<Box<tls::server::Server>>,
}

/// An answer that waits for its time, or for those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) due_ns: u64,
    pub(super) answer: Answer,
}

/// What a request is to be answered with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) route: Route,
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
    pub(super) http10: bool,
}

impl Answer {
    pub(super) fn to(request: &Request<'_>) -> Self {
        Answer {
            route: Route::of(request.path()),
            head_only: request.method == "HEAD",
            keep_alive: request.keep_alive,
            http10: request.http10,
        }
    }
}
