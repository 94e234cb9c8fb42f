//! The reference server of one thread: HTTP on the same protocol machines and drivers as the
//! generator.
//!
//! It answers `/`, `/perf`, `/bytes/1024`, `/bytes/65536`, `/wait/MS`, `/stream/N/MS`,
//! `/redirect/N` and `/item/…`, and counts what it sees, so that the generator's results can be
//! checked against it. With HTTP/1, answers leave in the order of their requests, including those
//! that wait. With HTTP/2, each leaves when its time has come.

pub mod websocket;

mod channel;
mod connection;
mod due;
mod echo;
mod faults;
mod http2;
mod overdue;
mod record;
mod redirect;
mod response;
mod stream;
mod udp_echo;
mod waits;
mod watch;

use trueload_drive::{Conn, Net, PeerClose, Program, Token};
use trueload_wire::http1::repeat::{Repeated, RequestMemory};
use trueload_wire::http1::request::FedRequest;
use trueload_wire::message::Limits;
use trueload_wire::tls::{self, Buffers, State};

use crate::protocol::Served;

use connection::{Connection, NEVER_NS, Pending, Speaks};
use due::Leaving;
pub use echo::Echo;
pub use faults::{Fault, Faults};
pub use record::{Closed, Interval, Record};
use response::{Answer, Responses};
pub use udp_echo::UdpEcho;
use waits::{Wait, Waits};
pub use watch::{Limits as ConnectionLimits, Watch};

/// The interval at which counts are reported.
const REPORT_NS: u64 = 250_000_000;
/// Answers of one connection that may wait for their time; one more ends the connection.
const WAITING_MOST: usize = 4096;
/// Output of one connection that may wait until its client reads; further answers are not written
/// before.
const OUTPUT_MOST: usize = 256 * 1024;
/// Output that ends a connection: frames that cannot wait, and whose client reads none of them.
const QUEUED_MOST: usize = 2 * OUTPUT_MOST;
/// Input behind so many answers that may wait for their client; more ends the connection.
const UNREAD_MOST: usize = 512 * 1024;

impl Served {
    /// Opens sealed bytes with a session, counts the result, and sends what the session has to say.
    /// Returns whether the connection goes on.
    fn open_sealed(
        &mut self,
        net: &mut impl Net,
        token: Token,
        session: &mut tls::server::Server,
        bytes: &[u8],
        buffers: &mut Buffers,
    ) -> bool {
        buffers.clear();
        let before = session.state();
        let outcome = session.handle_input(bytes, buffers);
        if before == State::Handshaking && session.state() != State::Handshaking {
            match session.is_resumed() {
                true => self.handshakes_resumed += 1,
                false => self.handshakes_full += 1,
            }
        }
        self.tls_failed += u64::from(outcome.is_err());
        self.bytes_in += buffers.plain.len() as u64;
        if !buffers.sealed.is_empty() {
            net.send(token, &buffers.sealed);
        }
        matches!(outcome, Ok(State::Handshaking | State::Open))
    }
}

/// A command to a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// End now.
    Stop,
    /// Report what the record holds since the previous mark. Only for a server that keeps one.
    Mark,
}

/// A report of a server's thread.
#[derive(Clone, Debug)]
pub enum Report {
    /// The counts since it began.
    Counts {
        /// The thread.
        thread: usize,
        /// Its counts.
        seen: Served,
        /// The thread is about to end.
        ended: bool,
    },
    /// The contents of its record, once for every [`Command::Mark`].
    Marked {
        /// The thread.
        thread: usize,
        /// The interval since the previous mark.
        interval: Box<Interval>,
    },
}

/// The server of one thread.
#[derive(Debug)]
pub struct Server {
    watch: Watch,
    /// The record, if one was asked for.
    record: Option<Box<Record>>,
    /// Its deliberate faults, if any.
    faults: Option<Box<Faults>>,
    connections: Vec<Option<Connection>>,
    waits: Waits,
    /// Answers that had to wait, on their way to the kernel.
    leaving: Leaving,
    responses: Responses,
    /// The last request of any connection, and its answer.
    known: RequestMemory<Answer>,
    out: Vec<u8>,
    /// Output of the connection being handled that is not with the kernel yet.
    unsent: usize,
    /// The part of a stream that is being written.
    part: String,
    /// The HTTP/2 settings; none if only HTTP/1 is spoken.
    http2: Option<http2::Habits>,
    /// The TLS setup; none without TLS.
    tls: Option<tls::server::Setup>,
    buffers: Buffers,
    sealed: Vec<u8>,
    limits: Limits,
}

impl Server {
    /// Creates a server without connections.
    pub fn new(tls: Option<tls::server::Setup>, watch: Watch) -> Self {
        Server {
            watch,
            record: None,
            faults: None,
            connections: Vec::new(),
            waits: Waits::default(),
            leaving: Leaving::default(),
            responses: Responses::default(),
            known: RequestMemory::default(),
            out: Vec::new(),
            unsent: 0,
            part: String::new(),
            http2: None,
            tls,
            buffers: Buffers::default(),
            sealed: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Adds a record that begins now.
    pub fn with_record(self, now_ns: u64) -> Self {
        Server { record: Some(Box::new(Record::begin(now_ns))), ..self }
    }

    /// Adds faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        Server { faults: Some(Box::new(faults)), ..self }
    }

    /// Reads requests from `bytes` and answers them, until one has to wait or the connection is to
    /// end. Returns whether the connection goes on.
    fn take(&mut self, net: &mut impl Net, connection: &mut Connection, bytes: &[u8]) -> bool {
        match connection.speaks {
            Speaks::Http1 => self.take_http1(net, connection, bytes),
            Speaks::Http2(_) => self.take_http2(net, connection, bytes),
            Speaks::Undecided(matched) => self.decide(net, connection, matched, bytes),
            Speaks::Lingering => true,
        }
    }

    fn take_http1(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        mut bytes: &[u8],
    ) -> bool {
        while !bytes.is_empty() {
            if connection.is_held() && connection.pending.len() >= WAITING_MOST {
                connection.unread.extend_from_slice(bytes);
                return connection.unread.len() <= UNREAD_MOST;
            }
            let parser = &mut connection.parser;
            if let Some(Repeated { count, len, made }) = self.known.recognise(parser, bytes) {
                bytes = &bytes[len..];
                if !(0..count).all(|_| self.answer(net, connection, made)) {
                    return false;
                }
                continue;
            }
            let awaited = !parser.started();
            let (consumed, answer) = match parser.feed(bytes, &self.limits) {
                Ok((_, FedRequest::Partial)) => return true,
                Ok((consumed, FedRequest::ExpectsContinue)) => {
                    self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    bytes = &bytes[consumed..];
                    continue;
                }
                Ok((consumed, FedRequest::Complete(request))) => {
                    (consumed, Answer::to_http1(&request))
                }
                Err(_) => {
                    self.malformed();
                    // If the connection may be meant for HTTP/2, it is unknown whether the peer
                    // could read an answer.
                    let is_known = self.http2.is_none() || connection.tls.is_some();
                    if connection.pending.is_empty() && is_known {
                        self.responses.malformed(&mut self.out);
                    }
                    return false;
                }
            };
            if awaited {
                self.known.remember(&bytes[..consumed], answer);
            }
            bytes = &bytes[consumed..];
            if !self.answer(net, connection, answer) {
                return false;
            }
        }
        true
    }

    /// Answers now, or queues the answer behind one that waits.
    #[inline]
    fn answer(&mut self, net: &mut impl Net, connection: &mut Connection, answer: Answer) -> bool {
        let (answer, wait_ns) = self.note_request(net, connection, answer);
        let (now_ns, token) = (net.now_ns(), connection.token);
        let plain = matches!(answer.fault, Fault::None | Fault::Error | Fault::Refuse);
        let plain = plain && !answer.is_streamed();
        let has_room = self.has_room();
        if connection.pending.is_empty() && wait_ns == 0 && plain && has_room {
            self.responses.write(&mut self.out, answer);
            self.answered(now_ns, token.index, answer);
            return !answer.is_last();
        }
        let due_ns = now_ns.saturating_add(wait_ns).saturating_add(self.delay_ns(answer));
        connection.pending.push_back(Pending::new(due_ns, answer));
        self.watch.seen.waiting += 1;
        if connection.pending.len() == 1 {
            match has_room || due_ns > now_ns {
                true => self.wait_for(token, 0, due_ns),
                false => connection.hold(),
            }
        }
        connection.is_held() || connection.pending.len() <= WAITING_MOST
    }

    /// Begins to write to a connection.
    #[inline]
    fn begin_output(&mut self, net: &impl Net, connection: &Connection) {
        self.out.clear();
        self.unsent = net.unsent_bytes(connection.token) + connection.delayed_bytes();
    }

    /// Whether an answer may be written to the connection being handled.
    #[inline]
    fn has_room(&self) -> bool {
        self.out.len() + self.unsent <= OUTPUT_MOST
    }

    /// Counts a request. Returns its answer with any fault, and how long it has to wait.
    #[inline]
    fn note_request(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        answer: Answer,
    ) -> (Answer, u64) {
        let answer = self.spoiled(connection, answer);
        if let Some(faults) = &self.faults {
            net.spend(faults.plan.work_ns);
        }
        let wait_ns = answer.route.wait_ns();
        if wait_ns > 0 || answer.is_streamed() {
            // The batch may have begun before the client sent the request: its answer would leave
            // too early.
            net.read_clock();
        }
        self.watch.seen.requests += 1;
        self.record(|record| record.requested(net.now_ns(), connection.token.index, 1));
        (answer, wait_ns)
    }

    /// The answer with the fault drawn for it.
    #[inline]
    fn spoiled(&mut self, connection: &mut Connection, answer: Answer) -> Answer {
        let Some(faults) = &mut self.faults else { return answer };
        connection.asked += 1;
        let (fault, closes) = (faults.draw(), faults.closes(connection.asked));
        let keep_alive = answer.keep_alive && (!closes || faults.plan.close_silently);
        if fault == Fault::Stall {
            self.note_fault(fault);
        }
        Answer { fault, closes, keep_alive, ..answer }
    }

    /// How late an answer begins because of its fault; a stream stalls later.
    fn delay_ns(&self, answer: Answer) -> u64 {
        if answer.is_streamed() { 0 } else { self.stall_ns(answer.fault) }
    }

    fn stall_ns(&self, fault: Fault) -> u64 {
        let faults = self.faults.as_ref().filter(|_| fault == Fault::Stall);
        faults.map_or(0, |faults| faults.plan.stall_ns.unwrap_or(NEVER_NS))
    }

    /// Notes something in the record, if there is one.
    #[inline]
    fn record(&mut self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.record {
            note(record);
        }
    }

    /// Counts input that was not HTTP.
    fn malformed(&mut self) {
        self.watch.seen.malformed += 1;
        self.record(|record| record.malformed());
    }

    fn note_fault(&mut self, fault: Fault) {
        self.record(|record| record.fault(fault));
    }

    fn answered(&mut self, now_ns: u64, key: u32, answer: Answer) {
        self.watch.seen.responses += 1;
        self.record(|record| record.answered(now_ns, key, answer.status(), 1));
        if answer.fault == Fault::Error {
            self.note_fault(Fault::Error);
        }
        if answer.closes {
            self.note_fault(Fault::Close);
        }
    }

    /// Answers input that consists only of the known request, once or many times, from shared
    /// bytes. Returns whether it did.
    #[inline]
    fn answer_known(&mut self, net: &mut impl Net, key: u32, bytes: &[u8]) -> bool {
        let Some(connection) = &self.connections[key as usize] else { return false };
        let plain = connection.tls.is_none() && matches!(connection.speaks, Speaks::Http1);
        if !plain || !connection.pending.is_empty() || self.faults.is_some() {
            return false;
        }
        let known = self.known.recognise(&connection.parser, bytes);
        let Some(known) = known.filter(|known| known.len == bytes.len()) else { return false };
        let Some((shared, range)) = self.responses.shared(known.made, known.count) else {
            return false;
        };
        self.watch.seen.requests += known.count as u64;
        self.watch.seen.responses += known.count as u64;
        self.watch.seen.bytes_in += bytes.len() as u64;
        self.watch.seen.bytes_out += range.len() as u64;
        if let Some(record) = &mut self.record {
            let (now_ns, count) = (net.now_ns(), known.count as u32);
            record.note_received(bytes.len());
            record.requested(now_ns, key, count);
            record.note_sent(range.len());
            record.answered(now_ns, key, known.made.route.status(), count);
        }
        net.send_shared(connection.token, shared, range);
        true
    }

    /// Sends what was written, and keeps or ends the connection.
    #[inline]
    fn flush(&mut self, net: &mut impl Net, mut connection: Connection, goes_on: bool) {
        let token = connection.token;
        if let Speaks::Http2(http2) = &mut connection.speaks {
            http2.delay(&mut self.out);
        }
        let len = self.out.len();
        self.watch.seen.bytes_out += len as u64;
        self.record(|record| record.note_sent(len));
        if let Some(session) = &mut connection.tls {
            seal(net, token, session, &self.out, goes_on, &mut self.sealed);
        } else if !self.out.is_empty() {
            net.send(token, &self.out);
        }
        if goes_on {
            if connection.is_held() && !net.hold_reading(token) {
                self.wait_for(token, 0, net.now_ns());
            }
            self.connections[token.index as usize] = Some(connection);
        } else if matches!(connection.speaks, Speaks::Http2(_)) {
            self.linger(net, connection);
        } else {
            self.watch.finish(net, token);
            self.forget(net.now_ns(), &connection, Closed::ByServer);
        }
    }

    /// Handles bytes on a connection that carries TLS. Returns whether it goes on.
    fn take_sealed(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> bool {
        let Some(session) = &mut connection.tls else { return false };
        let (token, mut buffers) = (connection.token, std::mem::take(&mut self.buffers));
        let open = self.watch.seen.open_sealed(net, token, session, bytes, &mut buffers);
        self.record(|record| record.note_received(buffers.plain.len()));
        if matches!(connection.speaks, Speaks::Undecided(_)) {
            self.decide_by_alpn(net, connection);
        }
        let goes_on = self.take(net, connection, &buffers.plain);
        self.buffers = buffers;
        goes_on && open
    }

    /// Handles bytes that are not just the known request.
    fn handle_bytes(&mut self, net: &mut impl Net, key: u32, bytes: &[u8]) {
        let place = &mut self.connections[key as usize];
        let Some(mut connection) =
            place.take_if(|connection| !matches!(connection.speaks, Speaks::Lingering))
        else {
            return;
        };
        self.begin_output(net, &connection);
        let goes_on = match connection.tls {
            None => {
                self.watch.seen.bytes_in += bytes.len() as u64;
                self.record(|record| record.note_received(bytes.len()));
                self.take(net, &mut connection, bytes)
            }
            Some(_) => self.take_sealed(net, &mut connection, bytes),
        };
        self.note_half(net.now_ns(), &mut connection);
        self.flush(net, connection, goes_on);
    }

    fn forget(&mut self, now_ns: u64, connection: &Connection, how: Closed) {
        self.record(|record| record.closed(now_ns, connection.token.index, how));
        let left = connection.waiting();
        self.watch.seen.aborted += left as u64;
        self.watch.seen.waiting -= left as u32;
        self.watch.closed(connection.token);
    }
}

/// Sends plaintext over TLS; with `close_notify` if it is the last.
fn seal(
    net: &mut impl Net,
    token: Token,
    session: &mut tls::server::Server,
    plain: &[u8],
    goes_on: bool,
    sealed: &mut Vec<u8>,
) {
    sealed.clear();
    if !plain.is_empty() {
        session.seal(plain, sealed);
    }
    if !goes_on {
        session.close(sealed);
    }
    if !sealed.is_empty() {
        net.send(token, sealed);
    }
}

impl Program for Server {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.hand_over(net);
        net.read_clock();
        let (now_ns, record) = (net.now_ns(), &mut self.record);
        self.watch.wake(|| record.as_mut().map(|record| record.mark(now_ns)));
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        self.responses.begin(net);
        let index = token.index as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        let Some(tls) = self.watch.accept(net, token, self.tls.as_ref()) else {
            return token.index;
        };
        let speaks = match self.http2 {
            Some(_) => Speaks::Undecided(0),
            None => Speaks::Http1,
        };
        self.connections[index] = Some(Connection::new(token, tls, speaks));
        self.record(|record| record.opened(net.now_ns(), token.index));
        token.index
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        self.watch.heard(net.now_ns(), conn.token);
        if !self.answer_known(net, conn.key, bytes) {
            self.handle_bytes(net, conn.key, bytes);
        }
        // A burst of requests must not hold up due answers.
        if self.waits.next_ns().is_some() {
            self.look_for_due(net);
        }
    }

    /// Goes on with answers that have waited for room.
    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.watch.heard(net.now_ns(), conn.token);
        let place = &mut self.connections[conn.key as usize];
        if place.as_mut().is_some_and(Connection::release) {
            self.send_due(net, Wait::of(conn.token, 0, 0));
        }
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        let connection = self.connections[conn.key as usize].take();
        let is_open = |connection: &Connection| !matches!(connection.speaks, Speaks::Lingering);
        if let Some(connection) = connection.filter(is_open) {
            let state = connection.tls.as_ref().map(|session| session.state());
            self.watch.seen.tls_failed += u64::from(state == Some(State::Handshaking));
            let half_sent = connection.is_within_request();
            self.forget(net.now_ns(), &connection, Closed::ByClient { half_sent });
        }
        self.watch.finish(net, conn.token);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.send_turn(net);
        let now_ns = net.now_ns();
        if now_ns >= self.watch.next_ns() {
            self.responses.refresh(net);
            self.record(|record| record.pass(now_ns));
            self.end_overdue(net);
        }
        self.watch.look(now_ns);
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.hand_over(net);
    }

    fn wake_at_ns(&self) -> Option<u64> {
        let look_ns = self.watch.next_ns();
        let due_ns = self.waits.next_ns().map(|due_ns| self.leaving.wake_ns(due_ns));
        Some(due_ns.map_or(look_ns, |due_ns| due_ns.min(look_ns)))
    }

    fn is_done(&self) -> bool {
        self.watch.is_finished()
    }
}
