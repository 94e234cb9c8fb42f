//! The reference server over HTTP/2: it decides which version a connection speaks, and answers
//! requests on their streams.
//!
//! A waiting request holds up no other. A fault that affects a connection in HTTP/1 affects a
//! stream here. Faults of HTTP/2 alone are refused streams, GOAWAY, windows that are never
//! enlarged, and late SETTINGS.

use trueload_drive::{Net, Token};
use trueload_wire::http2::frame::{ErrorCode, PREFACE};
use trueload_wire::http2::server::{Config, Event, RequestHead, Server as Machine};
use trueload_wire::tls::State;

use super::channel::Channel;
use super::connection::{Connection, Http2, Pending, Speaks};
use super::faults::Fault;
use super::response::Answer;
use super::stream::Next;
use super::waits::Wait;
use super::{Closed, OUTPUT_MOST, QUEUED_MOST, Server};
use crate::protocol::{FaultsPlan, Http2Plan};

/// This many bytes of the preface distinguish HTTP/2: no HTTP/1 request begins with them.
const DECIDED: usize = 4;
/// The time for which a client may still send after our side of the connection has ended.
const LINGER_NS: u64 = 1_000_000_000;

/// The settings of all HTTP/2 connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    config: Config,
    settings_delay_ns: u64,
}

impl Server {
    /// Adds HTTP/2 beside HTTP/1, with the faults that concern it.
    pub fn with_http2(self, plan: Http2Plan, faults: Option<FaultsPlan>) -> Self {
        let faults = faults.unwrap_or_default();
        let config = Config {
            streams: plan.max_streams,
            enlarges: !faults.stall_window,
            // A window that is never enlarged has the protocol's initial size.
            window: if faults.stall_window { 65_535 } else { Config::default().window },
        };
        let settings_delay_ns = faults.settings_delay_ns;
        Server { http2: Some(Habits { config, settings_delay_ns }), ..self }
    }

    /// Decides from the first bytes of a connection which version it speaks. Returns whether the
    /// connection goes on.
    pub(super) fn decide(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        matched: usize,
        bytes: &[u8],
    ) -> bool {
        let expected = &PREFACE[matched..DECIDED];
        let len = expected.len().min(bytes.len());
        let (before, begins) = (&PREFACE[..matched], bytes[..len] == expected[..len]);
        if begins && matched + len < DECIDED {
            connection.speaks = Speaks::Undecided(matched + len);
            return true;
        }
        if begins {
            self.speak_http2(net, connection);
        } else {
            connection.speaks = Speaks::Http1;
        }
        self.take(net, connection, before) && self.take(net, connection, bytes)
    }

    /// Sets the version by ALPN: over TLS the handshake has decided.
    pub(super) fn decide_by_alpn(&mut self, net: &mut impl Net, connection: &mut Connection) {
        let session = connection.tls.as_ref().filter(|session| session.state() == State::Open);
        match session.map(|session| session.alpn()) {
            None => {}
            Some(Some(b"h2")) => self.speak_http2(net, connection),
            Some(_) => connection.speaks = Speaks::Http1,
        }
    }

    fn speak_http2(&mut self, net: &mut impl Net, connection: &mut Connection) {
        let Some(Habits { config, settings_delay_ns }) = self.http2 else { return };
        let machine = Machine::new(config);
        let opened = settings_delay_ns == 0;
        if opened {
            machine.open(&mut self.out);
        } else {
            self.wait_for(connection.token, 0, net.now_ns().saturating_add(settings_delay_ns));
        }
        connection.speaks = Speaks::Http2(Box::new(Http2::new(machine, opened)));
    }

    /// Reads requests from `bytes`, and answers those that need not wait. Returns whether the
    /// connection goes on.
    pub(super) fn take_http2(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> bool {
        // Taken out, so that both can be changed; only a pointer moves.
        let Speaks::Http2(mut http2) = std::mem::replace(&mut connection.speaks, Speaks::Http1)
        else {
            return false;
        };
        http2.machine.set_room(OUTPUT_MOST.saturating_sub(self.unsent));
        let (mut rest, mut goes_on) = (bytes, true);
        let mut make = |head: RequestHead<'_>| Answer::to(head.method, head.path());
        while goes_on && let Some(event) = http2.machine.next(&mut rest, &mut self.out, &mut make) {
            goes_on = match event {
                Event::Request { stream, made } => {
                    self.answer_stream(net, connection, &mut http2, stream, made)
                }
                Event::Gone { stream } => {
                    if http2.pending.remove(&stream).is_some() {
                        self.gone(net.now_ns(), connection.token);
                    }
                    true
                }
                Event::Refused => true,
                Event::Malformed => {
                    self.malformed();
                    true
                }
                Event::Broken(_) => {
                    self.malformed();
                    false
                }
            };
        }
        goes_on &= !http2.machine.is_drained();
        if goes_on && self.out.len() + self.unsent > QUEUED_MOST {
            http2.machine.refuse_more(&mut self.out);
            self.malformed();
            goes_on = false;
        }
        self.wake_stalled(net.now_ns(), connection.token, &mut http2);
        connection.speaks = Speaks::Http2(http2);
        goes_on
    }

    /// Ends our side, and reads until the client ends. A close with unread input would be a reset,
    /// and the client would lose the last answers.
    pub(super) fn linger(&mut self, net: &mut impl Net, mut connection: Connection) {
        let token = connection.token;
        self.forget(net.now_ns(), &connection, Closed::ByServer);
        connection.speaks = Speaks::Lingering;
        self.connections[token.index as usize] = Some(connection);
        net.end_sending(token);
        self.wait_for(token, 0, net.now_ns().saturating_add(LINGER_NS));
    }

    /// Answers now, or when the time has come. Returns whether the connection goes on.
    #[inline]
    fn answer_stream(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        http2: &mut Http2,
        stream: u32,
        answer: Answer,
    ) -> bool {
        let (answer, wait_ns) = self.note_request(net, connection, answer);
        let (now_ns, token) = (net.now_ns(), connection.token);
        if self.faults.as_ref().is_some_and(|faults| faults.goes_away(connection.asked)) {
            http2.machine.go_away(&mut self.out);
            self.note_fault(Fault::GoAway);
        }
        if let Fault::Reset | Fault::Refuse = answer.fault {
            let refused = answer.fault == Fault::Refuse;
            let code = if refused { ErrorCode::RefusedStream } else { ErrorCode::InternalError };
            http2.machine.reset(stream, code, &mut self.out);
            self.note_fault(answer.fault);
            self.record(|record| record.unanswered(now_ns, token.index, false));
            return !answer.closes;
        }
        let plain = matches!(answer.fault, Fault::None | Fault::Error) && !answer.is_streamed();
        let has_room = self.has_room();
        if wait_ns == 0 && plain && has_room {
            let (block, body) = self.responses.of_stream(answer);
            http2.machine.answer(stream, &block, body, &mut self.out);
            drop(block);
            self.end_on_stream(now_ns, token.index, http2, answer);
            return !answer.closes;
        }
        let due_ns = now_ns.saturating_add(wait_ns).saturating_add(self.delay_ns(answer));
        http2.pending.insert(stream, Pending::new(due_ns, answer));
        self.watch.seen.waiting += 1;
        match has_room || due_ns > now_ns {
            true => self.wait_for(token, stream, due_ns),
            false => http2.held.push_back(stream),
        }
        true
    }

    /// Writes what has waited for room, as far as there is some now. Returns whether the connection
    /// goes on.
    fn go_on_with_streams(&mut self, net: &mut impl Net, connection: &mut Connection) -> bool {
        let token = connection.token;
        let Speaks::Http2(http2) = &mut connection.speaks else { return true };
        http2.machine.set_room(OUTPUT_MOST.saturating_sub(self.unsent));
        http2.machine.go_on(&mut self.out);
        self.wake_stalled(net.now_ns(), token, http2);
        let mut goes_on = true;
        while goes_on
            && self.has_room()
            && let Speaks::Http2(http2) = &mut connection.speaks
            && let Some(stream) = http2.held.pop_front()
        {
            goes_on = self.write_due_on_stream(net, connection, Wait::of(token, stream, 0));
        }
        goes_on
    }

    /// Goes on with the streams whose windows have opened.
    fn wake_stalled(&mut self, now_ns: u64, token: Token, http2: &mut Http2) {
        let Http2 { machine, stalled, .. } = http2;
        stalled.retain(|stream| {
            let is_stalled = machine.is_waiting_to_send(*stream);
            if !is_stalled {
                self.waits.push(Wait::of(token, *stream, now_ns));
            }
            is_stalled
        });
    }

    /// Ends an answer. If it closes the connection, GOAWAY follows, unless the close is silent.
    #[inline]
    fn end_on_stream(&mut self, now_ns: u64, key: u32, http2: &mut Http2, answer: Answer) {
        let silently = self.faults.as_ref().is_some_and(|faults| faults.plan.close_silently);
        if answer.closes && !silently {
            http2.machine.go_away(&mut self.out);
        }
        self.answered(now_ns, key, answer);
    }

    /// Handles a request whose stream is gone before its answer.
    fn gone(&mut self, now_ns: u64, token: Token) {
        self.watch.seen.waiting -= 1;
        self.watch.seen.aborted += 1;
        self.record(|record| record.unanswered(now_ns, token.index, true));
    }

    /// Writes the due answer of a stream; for stream 0 SETTINGS that were delayed, and what has
    /// waited for room. Returns whether the connection goes on.
    pub(super) fn write_due_on_stream(
        &mut self,
        net: &mut impl Net,
        connection: &mut Connection,
        wait: Wait,
    ) -> bool {
        let Speaks::Http2(http2) = &mut connection.speaks else { return true };
        if wait.stream == 0 {
            if !http2.opened {
                http2.opened = true;
                http2.machine.open(&mut self.out);
                self.unsent -= http2.delayed.len();
                self.out.append(&mut http2.delayed);
            }
            return self.go_on_with_streams(net, connection);
        }
        if !self.has_room() {
            http2.held.push_back(wait.stream);
            return true;
        }
        let (now_ns, token) = (net.now_ns(), connection.token);
        let Some(mut pending) = http2.pending.remove(&wait.stream) else { return true };
        let answer = pending.answer;
        let mut channel = Channel::Stream { machine: &mut http2.machine, stream: wait.stream };
        let next = match answer.fault {
            _ if answer.is_streamed() => self.write_parts(now_ns, &mut pending, &mut channel),
            Fault::Cut => {
                channel.head(&self.responses, answer, &mut self.out);
                let half = answer.body().len() / 2;
                channel.body(&answer.body()[..half], false, &mut self.out);
                Next::Cut
            }
            Fault::Slow => self.write_piece(now_ns, &mut pending, &mut channel),
            _ => {
                let (block, body) = self.responses.of_stream(answer);
                http2.machine.answer(wait.stream, &block, body, &mut self.out);
                Next::End
            }
        };
        match next {
            Next::Part(due_ns) => {
                http2.pending.insert(wait.stream, pending);
                if due_ns > now_ns {
                    self.wait_for(token, wait.stream, due_ns);
                } else if http2.machine.is_waiting_to_send(wait.stream) {
                    http2.stalled.push(wait.stream);
                } else {
                    http2.held.push_back(wait.stream);
                }
                return true;
            }
            Next::Cut | Next::Gone => {
                if next == Next::Cut {
                    http2.machine.reset(wait.stream, ErrorCode::InternalError, &mut self.out);
                    self.note_fault(Fault::Cut);
                }
                self.gone(now_ns, token);
                return true;
            }
            Next::End => {}
        }
        self.watch.seen.waiting -= 1;
        self.end_on_stream(now_ns, token.index, http2, answer);
        if answer.route.wait_ns() > 0 && answer.fault != Fault::Slow {
            self.leaves(now_ns, wait.due_ns);
        }
        !answer.closes && !http2.machine.is_drained()
    }
}
