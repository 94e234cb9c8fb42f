//! TLS on a slot: its handshake, its input, and its failures. Nothing here runs without TLS.

use trueload_drive::{Conn, Net, Outbox, PeerClose};
use trueload_meter::Class;
use trueload_wire::exchange::{Ending, Exchange};
use trueload_wire::tls::{Buffers, Failure, Kind, State};

use super::Generator;
use super::connection::{ConnectionState, Event};
use super::protocol::{OpenError, Protocol, Received};
use super::slot::{Secure, Slot};

impl<P: Protocol> Generator<P> {
    /// Starts the TLS handshake on a new connection.
    pub(super) fn begin_handshake(&mut self, net: &mut impl Net, conn: Conn) {
        let Some(setup) = &self.config.tls else { return };
        let Slot { tls, state, .. } = &mut self.slots[conn.key];
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        state.change(Event::HandshakeBegun);
        state.until_ns = self.config.deadline_ns(state.attempted_ns);
        self.codec.buffers.clear();
        let begun = setup.connect().and_then(|mut session| {
            session.start(&mut self.codec.buffers)?;
            Ok(session)
        });
        match begun {
            Ok(session) => {
                let (began_ns, waiting) = (net.now_ns(), Outbox::default());
                let (sealed, behind_handshake) = Default::default();
                let secure = Secure { session, began_ns, waiting, sealed, behind_handshake };
                *tls = Some(Box::new(secure));
                net.send(conn.token, &self.codec.buffers.sealed);
                self.slots.arm(conn.key);
            }
            Err(failure) => {
                self.not_secured(net, conn, class_of_failure(failure.kind), &failure.why)
            }
        }
    }

    /// Handles bytes on a connection that carries TLS.
    pub(super) fn handle_sealed(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        bytes: &[u8],
        ending: bool,
    ) {
        let Some(secure) = &mut self.slots[conn.key].tls else { return };
        let session = &mut secure.session;
        let mut buffers = std::mem::take(&mut self.codec.buffers);
        buffers.clear();
        let before = session.state();
        let outcome = session.handle_input(bytes, &mut buffers);
        let opened = before == State::Handshaking && session.state() != State::Handshaking;
        if !buffers.sealed.is_empty() {
            secure.sealed.push(net.queued_bytes(conn.token), 0, buffers.sealed.len());
            net.send(conn.token, &buffers.sealed);
        }
        match (opened, &outcome) {
            (true, _) => self.secured(net, conn),
            (false, Err(failure)) if before == State::Handshaking => {
                self.not_secured(net, conn, class_of_failure(failure.kind), &failure.why);
                self.codec.buffers = buffers;
                return;
            }
            _ => {}
        }
        let over = ending || !matches!(outcome, Ok(State::Handshaking | State::Open));
        self.receive_plain(net, conn, &buffers, over);
        self.codec.buffers = buffers;
        // Handling the input may have ended the connection.
        if !self.slots[conn.key].state.connection.is_open_on(conn.token) {
            return;
        }
        match outcome {
            Ok(State::Closed) => self.ended(net, conn, PeerClose::Fin, None),
            Ok(_) => {}
            Err(failure) => self.session_failed(net, conn, &failure),
        }
    }

    /// Handles unsealed bytes before the slot sends: input is looked at before the next request.
    fn receive_plain(&mut self, net: &mut impl Net, conn: Conn, buffers: &Buffers, over: bool) {
        if !buffers.plain.is_empty() {
            self.slots[conn.key].state.proven = true;
            self.handle_plain(net, conn, Received::Bytes(&buffers.plain), over);
        } else if !over {
            // The handshake may just be done. Or an answer came before, when more was known to
            // follow, and this input has no plain bytes: a ticket, a new key, a part of a record.
            self.fill(net, conn.key);
        }
    }

    /// Handles the end of the handshake: from here on the slot has a connection.
    fn secured(&mut self, net: &mut impl Net, conn: Conn) {
        let now_ns = net.now_ns();
        let tls = self.slots[conn.key].tls.as_deref();
        let Some(Secure { session, began_ns, .. }) = tls else { return };
        let (resumed, took_ns) = (session.is_resumed(), now_ns - began_ns);
        if self.pace.secured.is_none() {
            self.pace.secured = session.secured();
        }
        let times = match self.accounting.current_mut() {
            Some(phase) => &mut phase.meter.times,
            None => &mut self.accounting.early,
        };
        times.record_handshake(took_ns, resumed);
        self.note_handshake(now_ns, conn.key, resumed);
        self.begin(net, conn);
    }

    /// Handles a failed handshake.
    pub(super) fn not_secured(&mut self, net: &mut impl Net, conn: Conn, class: Class, why: &str) {
        net.close(conn.token);
        self.pace.note_reason(class, why);
        self.attempt_failed(net, conn.key, class);
    }

    /// Handles the end of the peer's side of a connection that carries TLS.
    pub(super) fn sealed_ended(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        let ConnectionState::Handshaking { .. } = self.slots[conn.key].state.connection else {
            let known = self.known_from_tls(conn.key, ended);
            return self.ended(net, conn, ended, known);
        };
        match ended {
            PeerClose::Fin => {
                let failure = Failure::eof();
                self.not_secured(net, conn, class_of_failure(failure.kind), &failure.why);
            }
            PeerClose::Reset | PeerClose::Refused => {
                let why = "the peer reset the connection in the middle of the handshake";
                self.not_secured(net, conn, Class::Reset, why);
            }
        }
    }

    /// The endings of requests on a connection whose end TLS does not vouch for, where their
    /// machine cannot know. Anybody on the path can send a FIN, or a reset, without a
    /// `close_notify` before it.
    fn known_from_tls(&self, key: u32, ended: PeerClose) -> Option<(Ending, Ending)> {
        // The machine has not been given a partial record, but a part of the next answer has come
        // all the same.
        let in_record = self.is_in_record(key);
        match ended {
            PeerClose::Fin if in_record || self.slots[key].client.standing().lasts_until_end => {
                Some((Ending::Truncated, Ending::ClosedPipelined))
            }
            PeerClose::Reset if in_record => Some((Ending::Reset, Ending::Reset)),
            PeerClose::Fin | PeerClose::Reset | PeerClose::Refused => None,
        }
    }

    /// Whether a part of a record has come.
    pub(super) fn is_in_record(&self, key: u32) -> bool {
        self.slots[key].tls.as_deref().is_some_and(|tls| tls.session.is_in_record())
    }

    /// Handles a TLS failure on an open connection.
    fn session_failed(&mut self, net: &mut impl Net, conn: Conn, failure: &Failure) {
        let now_ns = net.now_ns();
        let class = class_of_failure(failure.kind);
        self.pace.note_reason(class, &failure.why);
        let Slot { client, state, .. } = &mut self.slots[conn.key];
        if failure.kind == Kind::Alert && !state.proven {
            // TLS 1.3 tells a client only after the handshake that its certificate is refused or
            // missing.
            state.ever_established = false;
        }
        if state.connection.is_opening() {
            let refused = OpenError { class, why: failure.why.clone().into() };
            return self.not_opened(net, conn, &refused);
        }
        if client.outstanding() == 0 {
            match failure.kind {
                Kind::Alert => self.ended(net, conn, PeerClose::Reset, None),
                _ => self.violated(net, conn, class),
            }
            return;
        }
        self.fail_all(now_ns, conn.key, class);
        self.broken(net, conn);
    }
}

fn class_of_failure(kind: Kind) -> Class {
    match kind {
        Kind::Protocol => Class::TlsProtocol,
        Kind::Certificate => Class::TlsCert,
        Kind::Eof => Class::TlsEof,
        Kind::Alpn => Class::TlsAlpn,
        Kind::Alert => Class::TlsAlert,
        Kind::Version => Class::TlsVersion,
    }
}
