//! The reference server of one thread, for WebSocket: `/echo` returns every message as it came,
//! `/ws` follows the contract `ws-shootout` in one dialect.
//!
//! A connection begins with a head (`opening`) and continues as a receiver of frames; `desk`
//! decides what is due for its messages. What is broadcast within a batch of events leaves at its
//! end, as one segment that all listeners share (`round`). The receipts follow. Other threads get
//! the segment through the `hub`. A listener that takes nothing is closed when more than a cap of
//! bytes waits for it.

mod desk;
mod hub;
mod opening;
mod round;

use std::collections::VecDeque;
use std::sync::Arc;

use trueload_drive::{Conn, Net, PeerClose, Program, Token};
use trueload_wire::shootout::Dialect;
use trueload_wire::tls::{self, Buffers};
use trueload_wire::websocket::server::Opening;
use trueload_wire::websocket::{Event, Limits, Receiver, Role, Scratch, send};

pub use hub::Hub;

use super::response::Responses;
use super::watch::{HALF_NS, Overdue};
use super::{Watch, seal};
use desk::{Desk, NO_CODE, Standing};
use hub::Segment;
use opening::{Opened, Place};

/// A connection with more unsent bytes than this gets nothing more; the kernel's buffers hold some
/// MB beyond that.
const UNSENT_BYTES: usize = 768 * 1024;
/// A connection may hold so much of what it sends and does not read: a message of the longest that
/// the generator sends, and its echo.
const ORDINARY_BYTES: usize = 2 * 1024 * 1024 + 64 * 1024;
/// The connections that hold more, together: the protocol has longer messages, but few clients.
const LARGE_BYTES: usize = 64 * 1024 * 1024;
/// The time that a peer has to close once it was told to.
const LINGER_NS: u64 = 1_000_000_000;
/// The interval of Action Cable's pings.
const PING_NS: u64 = 3_000_000_000;

#[derive(Debug)]
struct Connection {
    token: Token,
    state: State,
    /// TLS between the socket and the rest, if any.
    tls: Option<Box<tls::server::Server>>,
    /// A part of the handshake has come.
    is_half_sent: bool,
    /// The bytes that it holds, if they are more than ordinary.
    large: usize,
}

impl Connection {
    fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }
}

#[derive(Debug)]
enum State {
    Opening(Box<Opening>),
    Open(Receiver, Standing),
    /// A close was sent: further input is ignored.
    Closing,
}

/// The next step of a connection after an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoesOn,
    /// A close was sent: it ends when the peer's side does.
    Closes,
    /// It ends now.
    Ends,
}

/// The server of one thread.
#[derive(Debug)]
pub struct Server {
    connections: Vec<Option<Connection>>,
    desk: Desk,
    responses: Responses,
    scratch: Scratch,
    /// The TLS setup; none without TLS.
    tls: Option<tls::server::Setup>,
    buffers: Buffers,
    sealed: Vec<u8>,
    /// Connections that are closing, and until when.
    lingering: VecDeque<(u64, Token)>,
    next_ping_ns: u64,
    /// The bytes of all connections that hold more than is ordinary.
    large: usize,
}

impl Server {
    /// Creates a server without connections; all threads share a hub.
    pub fn new(
        (thread, hub): (usize, Arc<Hub>),
        dialect: Dialect,
        tls: Option<tls::server::Setup>,
        watch: Watch,
    ) -> Self {
        Server {
            connections: Vec::new(),
            desk: Desk::new(thread, hub, dialect, watch),
            responses: Responses::default(),
            scratch: Scratch::default(),
            tls,
            buffers: Buffers::default(),
            sealed: Vec::new(),
            lingering: VecDeque::new(),
            next_ping_ns: if dialect == Dialect::ActionCable { PING_NS } else { u64::MAX },
            large: 0,
        }
    }

    fn place(&mut self, token: Token) -> Option<&mut Option<Connection>> {
        let place = self.connections.get_mut(token.index as usize)?;
        place.as_ref().is_some_and(|connection| connection.token == token).then_some(place)
    }

    /// Handles plain bytes of a connection, and leaves what is due for it on the desk.
    #[inline]
    fn take(&mut self, connection: &mut Connection, mut bytes: &[u8]) -> Next {
        if let State::Opening(opening) = &mut connection.state {
            let (dialect, out) = (self.desk.dialect, &mut self.desk.out);
            match opening::open(opening, bytes, dialect, &self.responses, out) {
                Opened::Not => return Next::GoesOn,
                Opened::At(place, len) => {
                    bytes = &bytes[len..];
                    let standing = self.desk.welcome(place);
                    connection.state = State::Open(Receiver::new(Role::Server), standing);
                }
                Opened::Refused => {
                    self.desk.watch.seen.malformed += 1;
                    return Next::Ends;
                }
            }
        }
        let State::Open(receiver, standing) = &mut connection.state else { return Next::GoesOn };
        self.desk.begin_open(standing);
        let (mut close, mut asked) = (None, false);
        let (desk, limits) = (&mut self.desk, Limits::default());
        let fed = receiver.feed(bytes, &limits, &mut self.scratch, &mut |event| {
            if close.is_none() {
                asked = matches!(event, Event::Close { .. });
                close = desk.handle_event(event, standing);
            }
        });
        if let (None, Err(error)) = (close, fed) {
            self.desk.watch.seen.malformed += 1;
            close = Some(error.close_code());
        }
        let Some(code) = close else { return Next::GoesOn };
        // A connection that has broadcast in this round still gets that message, and its receipt,
        // before the close.
        if !self.desk.is_behind() {
            self.desk.leave(standing);
        }
        let code = Some(code).filter(|code| *code != NO_CODE);
        send::close(&mut self.desk.out, code, "", None);
        // RFC 6455 §7.1.1: once both have sent a close, the server ends the connection.
        if asked { Next::Ends } else { Next::Closes }
    }

    /// Handles bytes on a connection that carries TLS.
    fn take_sealed(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Next {
        let Some(session) = &mut connection.tls else { return Next::Ends };
        let (token, mut buffers) = (connection.token, std::mem::take(&mut self.buffers));
        let seen = &mut self.desk.watch.seen;
        let open = seen.open_sealed(net, token, session, bytes, &mut buffers);
        let next = self.take(connection, &buffers.plain);
        self.buffers = buffers;
        if open { next } else { Next::Ends }
    }

    /// Sends what is due for a connection, and keeps or ends it.
    #[inline]
    fn flush(&mut self, net: &mut impl Net, mut connection: Connection, next: Next) {
        let token = connection.token;
        let now = self.desk.end(token);
        let len = now.len() as u64;
        pass(net, &mut connection, now, &mut self.sealed);
        self.desk.watch.seen.bytes_out += len;
        if !self.has_room_for(net, &mut connection) {
            self.desk.watch.seen.malformed += 1;
            net.close(token);
            return self.forget(connection);
        }
        self.connections[token.index as usize] = Some(connection);
        if self.desk.round.is_large() || (next != Next::GoesOn && !self.desk.round.is_empty()) {
            self.end_round(net);
        }
        match next {
            Next::GoesOn => {}
            Next::Closes => self.linger(net, token),
            Next::Ends => self.finish(net, token),
        }
    }

    /// Notes how much a connection holds. Returns whether there is room for it.
    fn has_room_for(&mut self, net: &impl Net, connection: &mut Connection) -> bool {
        let State::Open(receiver, _) = &connection.state else { return true };
        let held = receiver.buffered_bytes() + net.unsent_bytes(connection.token);
        let large = if held > ORDINARY_BYTES { held } else { 0 };
        self.large = self.large - connection.large + large;
        connection.large = large;
        large == 0 || self.large <= LARGE_BYTES
    }

    /// Ends connections on which too little happens: a handshake stays half-sent, nothing comes at
    /// all, or the last bytes of an ended connection are not read.
    fn end_overdue(&mut self, net: &mut impl Net) {
        for (token, why) in self.desk.watch.overdue(net.now_ns()) {
            let Some(Some(connection)) = self.place(token) else {
                net.close(token);
                continue;
            };
            if why == Overdue::Idle || connection.is_opening() {
                self.desk.watch.seen.timed_out += 1;
                self.finish(net, token);
            }
        }
        let Server { desk, connections, .. } = self;
        desk.watch.drop_past(net, |wait| {
            let connection = connections.get(wait.index as usize).and_then(Option::as_ref);
            let connection = connection.filter(|connection| connection.token == wait.token())?;
            Some(if connection.is_opening() { wait.due_ns } else { 0 })
        });
    }

    /// Ends our side after we sent a close; the peer has some time to end, too. If we closed at
    /// once, bytes of the peer on their way would reset the connection, and what we sent could be
    /// lost.
    fn linger(&mut self, net: &mut impl Net, token: Token) {
        let Some(Some(connection)) = self.place(token) else { return };
        let tls = connection.tls.take();
        let state = std::mem::replace(&mut connection.state, State::Closing);
        if let State::Open(_, mut standing) = state {
            self.desk.leave(&mut standing);
        }
        if let Some(mut session) = tls {
            seal(net, token, &mut session, &[], false, &mut self.sealed);
        }
        net.end_sending(token);
        self.lingering.push_back((net.now_ns() + LINGER_NS, token));
    }

    /// Ends a connection once everything has been sent.
    fn finish(&mut self, net: &mut impl Net, token: Token) {
        let Some(mut connection) = self.place(token).and_then(Option::take) else { return };
        if let Some(session) = &mut connection.tls {
            seal(net, token, session, &[], false, &mut self.sealed);
        }
        self.desk.watch.finish(net, token);
        self.forget(connection);
    }

    fn forget(&mut self, connection: Connection) {
        self.large -= connection.large;
        self.desk.watch.closed(connection.token);
        if let State::Open(_, mut standing) = connection.state {
            self.desk.leave(&mut standing);
        }
    }

    /// Sends the broadcasts of this round to all listeners, and then the receipts.
    fn end_round(&mut self, net: &mut impl Net) {
        let (segment, ended) = self.desk.round.end();
        self.desk.hub.post(self.desk.thread, &segment);
        self.deliver(net, &segment);
        for (token, bytes) in ended.receipts() {
            let place = self.connections.get_mut(token.index as usize).and_then(Option::as_mut);
            if let Some(connection) = place.filter(|connection| connection.token == token) {
                pass(net, connection, bytes, &mut self.sealed);
                self.desk.watch.seen.bytes_out += bytes.len() as u64;
            }
        }
        self.desk.round.take_back(ended);
    }

    /// Sends a segment to the listeners of this thread.
    fn deliver(&mut self, net: &mut impl Net, segment: &Segment) {
        if segment.frames.is_empty() {
            return;
        }
        for index in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[index] else { continue };
            let State::Open(_, Standing { listening: true, .. }) = connection.state else {
                continue;
            };
            self.desk.watch.seen.deliveries += segment.messages;
            self.share(net, index, &segment.frames);
        }
    }

    /// Sends shared bytes to one connection, or closes it if it takes nothing.
    #[inline]
    fn share(&mut self, net: &mut impl Net, index: usize, bytes: &Arc<[u8]>) {
        let Some(connection) = &mut self.connections[index] else { return };
        let token = connection.token;
        if net.unsent_bytes(token) > UNSENT_BYTES {
            self.desk.watch.seen.slow += 1;
            net.close(token);
            if let Some(connection) = self.connections[index].take() {
                self.forget(connection);
            }
            return;
        }
        self.desk.watch.seen.bytes_out += bytes.len() as u64;
        match &mut connection.tls {
            None => net.send_shared(token, bytes, 0..bytes.len()),
            Some(session) => seal(net, token, session, bytes, true, &mut self.sealed),
        }
    }

    /// Sends a ping to every connection at `/ws`.
    fn ping(&mut self, net: &mut impl Net) {
        let (mut message, mut frame) = (Vec::new(), Vec::new());
        self.desk.dialect.write_ping(net.unix_time().as_secs(), &mut message);
        send::message(&mut frame, self.desk.kind(), &message, None);
        let frame: Arc<[u8]> = Arc::from(frame);
        for index in 0..self.connections.len() {
            let state = self.connections[index].as_ref().map(|connection| &connection.state);
            if let Some(State::Open(_, Standing { place: Place::Shootout, .. })) = state {
                self.share(net, index, &frame);
            }
        }
    }
}

/// Sends bytes, sealed if TLS carries them.
#[inline]
fn pass(net: &mut impl Net, connection: &mut Connection, bytes: &[u8], sealed: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match &mut connection.tls {
        None => net.send(connection.token, bytes),
        Some(session) => seal(net, connection.token, session, bytes, true, sealed),
    }
}

impl Program for Server {
    fn handle_wake(&mut self, net: &mut impl Net) {
        for segment in self.desk.hub.take(self.desk.thread) {
            self.deliver(net, &segment);
        }
        self.desk.watch.wake(|| None);
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        self.responses.begin(net);
        let index = token.index as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        let Some(tls) = self.desk.watch.accept(net, token, self.tls.as_ref()) else {
            return token.index;
        };
        let state = State::Opening(Box::default());
        let connection = Connection { token, state, tls, is_half_sent: false, large: 0 };
        self.connections[index] = Some(connection);
        token.index
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        self.desk.watch.heard(net.now_ns(), conn.token);
        let Some(mut connection) = self.connections[conn.key as usize].take() else { return };
        self.desk.begin();
        let next = match connection.tls {
            None => {
                self.desk.watch.seen.bytes_in += bytes.len() as u64;
                self.take(&mut connection, bytes)
            }
            Some(_) => self.take_sealed(net, &mut connection, bytes),
        };
        if connection.is_opening() && !std::mem::replace(&mut connection.is_half_sent, true) {
            self.desk.watch.look_again(conn.token, net.now_ns() + HALF_NS);
        }
        self.flush(net, connection, next);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.desk.watch.heard(net.now_ns(), conn.token);
        if let Some(mut connection) = self.connections[conn.key as usize].take() {
            self.has_room_for(net, &mut connection);
            self.connections[conn.key as usize] = Some(connection);
        }
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        if let Some(connection) = self.connections[conn.key as usize].take() {
            let state = connection.tls.as_ref().map(|session| session.state());
            self.desk.watch.seen.tls_failed += u64::from(state == Some(tls::State::Handshaking));
            self.forget(connection);
        }
        self.desk.watch.finish(net, conn.token);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        while let Some((until_ns, token)) = self.lingering.front().copied() {
            if until_ns > now_ns {
                break;
            }
            self.lingering.pop_front();
            self.finish(net, token);
        }
        if now_ns >= self.next_ping_ns {
            self.next_ping_ns = now_ns + PING_NS;
            self.ping(net);
        }
        if now_ns >= self.desk.watch.next_ns() {
            self.responses.refresh(net);
            self.end_overdue(net);
        }
        self.desk.watch.look(now_ns);
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        if !self.desk.round.is_empty() {
            self.end_round(net);
        }
    }

    fn wake_at_ns(&self) -> Option<u64> {
        let linger_ns = self.lingering.front().map_or(u64::MAX, |(until_ns, _)| *until_ns);
        Some(linger_ns.min(self.desk.watch.next_ns()).min(self.next_ping_ns))
    }

    fn is_done(&self) -> bool {
        self.desk.watch.is_finished()
    }
}
