//! Handles what one connection sends, and decides what is due: to itself now, to all, and to itself
//! after that.
//!
//! A [`Desk`] is what the connections of a thread share; it handles the events of one input after
//! the other. Must not know: sockets, TLS, or other connections.

use std::sync::Arc;

use trueload_drive::Token;
use trueload_wire::shootout::{Asked, Dialect, Due};
use trueload_wire::websocket::{Event, Kind, send};

use super::super::Watch;
use super::hub::Hub;
use super::opening::Place;
use super::round::{Round, give_back};

/// RFC 6455 §7.4.1: the request was against the rules of the contract.
const POLICY: u16 = 1008;
/// IANA: try again later.
const TRY_AGAIN: u16 = 1013;

/// The relation of a connection to the contract.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) place: Place,
    /// It gets broadcasts.
    pub(super) listening: bool,
    /// The round in which it last broadcast.
    pub(super) round: u32,
}

/// The state that all connections of a thread share, used by the one that is being handled.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) thread: usize,
    pub(super) dialect: Dialect,
    pub(super) hub: Arc<Hub>,
    pub(super) watch: Watch,
    pub(super) round: Round,
    /// The bytes for the connection being handled: sent now up to `behind`, the rest after the
    /// round.
    pub(super) out: Vec<u8>,
    behind: Option<usize>,
    due: Due,
}

impl Desk {
    pub(super) fn new(thread: usize, hub: Arc<Hub>, dialect: Dialect, watch: Watch) -> Self {
        Desk {
            thread,
            dialect,
            hub,
            watch,
            round: Round::default(),
            out: Vec::new(),
            behind: None,
            due: Due::default(),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        if self.dialect.is_text() { Kind::Text } else { Kind::Binary }
    }

    /// Begins to handle a connection.
    pub(super) fn begin(&mut self) {
        for buffer in [&mut self.out, &mut self.due.to_all, &mut self.due.to_sender] {
            buffer.clear();
            give_back(buffer);
        }
        self.behind = None;
    }

    /// Continues with an open connection. If it has broadcast in this round, its further messages
    /// are answered after that.
    #[inline]
    pub(super) fn begin_open(&mut self, standing: &Standing) {
        if standing.round == self.round.number() {
            self.behind = Some(self.out.len());
        }
    }

    /// Whether the connection being handled waits for the round's end.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Opens a connection, and writes its first message.
    pub(super) fn welcome(&mut self, place: Place) -> Standing {
        let listening = place == Place::Shootout && !self.dialect.is_joined();
        if listening {
            self.hub.join();
        }
        self.due.to_sender.clear();
        if place == Place::Shootout {
            self.dialect.write_welcome(&mut self.due.to_sender);
        }
        self.write_due();
        Standing { place, listening, round: 0 }
    }

    fn write_due(&mut self) {
        if !self.due.to_sender.is_empty() {
            let kind = self.kind();
            send::message(&mut self.out, kind, &self.due.to_sender, None);
        }
    }

    /// Handles one event; a returned code means: close the connection with it.
    #[inline]
    pub(super) fn handle_event(
        &mut self,
        event: Event<'_>,
        standing: &mut Standing,
    ) -> Option<u16> {
        match event {
            Event::Message { kind, payload } if standing.place == Place::Echo => {
                self.watch.seen.requests += 1;
                self.watch.seen.responses += 1;
                send::message(&mut self.out, kind, payload, None);
                None
            }
            Event::Message { payload, .. } => self.answer(payload, standing),
            Event::Ping(payload) => {
                send::pong(&mut self.out, payload, None);
                None
            }
            Event::Pong(_) => None,
            // RFC 6455 §5.5.1: the answer usually has the code that came.
            Event::Close { code, .. } => Some(code.unwrap_or(NO_CODE)),
        }
    }

    fn answer(&mut self, payload: &[u8], standing: &mut Standing) -> Option<u16> {
        let asked = self.dialect.answer(payload, self.hub.listeners(), &mut self.due);
        match asked {
            Asked::Join | Asked::Leave => self.listen(standing, asked == Asked::Join),
            Asked::Echo => {
                self.watch.seen.requests += 1;
                self.watch.seen.responses += 1;
            }
            Asked::Broadcast if self.hub.is_full(self.thread) => return Some(TRY_AGAIN),
            Asked::Broadcast => {
                self.watch.seen.requests += 1;
                self.watch.seen.responses += 1;
                self.round.broadcast(self.kind(), &self.due.to_all);
                standing.round = self.round.number();
                self.behind.get_or_insert(self.out.len());
            }
            Asked::Heartbeat | Asked::Other => {}
            Asked::Error(_) => {
                self.watch.seen.malformed += 1;
                return Some(POLICY);
            }
        }
        self.write_due();
        None
    }

    fn listen(&mut self, standing: &mut Standing, listening: bool) {
        match (standing.listening, listening) {
            (false, true) => self.hub.join(),
            (true, false) => self.hub.leave(),
            _ => {}
        }
        standing.listening = listening;
    }

    /// Notes that the connection is gone.
    pub(super) fn leave(&mut self, standing: &mut Standing) {
        self.listen(standing, false);
    }

    /// Ends the handling of a connection; returns what goes out now. The rest waits for the round's
    /// end.
    pub(super) fn end(&mut self, token: Token) -> &[u8] {
        let now = self.behind.unwrap_or(self.out.len());
        if now < self.out.len() {
            self.round.behind(token, &self.out[now..]);
        }
        &self.out[..now]
    }
}

/// Stands for a close without a code: RFC 6455 §7.4.1 forbids sending this code.
pub(super) const NO_CODE: u16 = 1005;
