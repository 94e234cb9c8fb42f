//! Opens a connection: what a protocol has to agree on before the first request.

use trueload_drive::{Conn, Net, PeerClose};
use trueload_meter::Class;
use trueload_wire::exchange::Disposition;

use super::Generator;
use super::connection::{ConnectionState, Event};
use super::protocol::{Facts, OpenError, Opened, Protocol};
use super::slot::Slot;

impl<P: Protocol> Generator<P> {
    /// Starts the protocol on a new connection, which is secured if TLS is used.
    pub(super) fn begin(&mut self, net: &mut impl Net, conn: Conn) {
        let Slot { client, state, tls, .. } = &mut self.slots[conn.key];
        let alpn = tls.as_deref().and_then(|secure| secure.session.alpn());
        let opened = Opened { key: conn.key, alpn };
        self.codec.output.clear();
        if !self.codec.protocol.open(client, opened, &mut self.codec.output) {
            self.opened(net, conn.key);
            return;
        }
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        state.change(Event::AgreementBegun);
        state.until_ns = self.config.deadline_ns(state.attempted_ns);
        self.codec.send_output(net, &mut self.slots[conn.key], conn.token);
        self.slots.arm(conn.key);
    }

    /// Sends what `write` has the protocol write, such as a heartbeat, if the slot's connection is
    /// open.
    pub(super) fn send_with(
        &mut self,
        net: &mut impl Net,
        key: u32,
        write: impl FnOnce(&mut P, &mut Vec<u8>),
    ) {
        if let ConnectionState::Open { token } = self.slots[key].state.connection {
            self.codec.output.clear();
            write(&mut self.codec.protocol, &mut self.codec.output.bytes);
            self.codec.send_output(net, &mut self.slots[key], token);
        }
    }

    /// Handles input on a connection that is not usable yet; true if it is usable now.
    pub(super) fn is_agreed(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        disposition: Disposition,
    ) -> bool {
        let state = &mut self.slots[conn.key].state;
        match disposition {
            Disposition::Opening => {
                state.change(Event::Received);
                false
            }
            Disposition::Refused => {
                let facts = self.codec.protocol.facts(&self.slots[conn.key].client);
                self.not_opened(net, conn, &facts.refused);
                false
            }
            _ => {
                self.opened(net, conn.key);
                // Charging an earlier violation may have closed the connection.
                self.slots[conn.key].state.connection.is_open_on(conn.token)
            }
        }
    }

    /// Handles a peer that did not agree.
    pub(super) fn not_opened(&mut self, net: &mut impl Net, conn: Conn, refused: &OpenError) {
        net.close(conn.token);
        self.pace.note_reason(refused.class, &refused.why);
        self.attempt_failed(net, conn.key, refused.class);
    }

    /// Handles a peer that went away before it agreed.
    pub(super) fn opening_ended(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        ended: PeerClose,
        received: bool,
    ) {
        let (class, how) = match ended {
            PeerClose::Reset | PeerClose::Refused => (Class::Reset, "reset"),
            PeerClose::Fin if received => (Class::Truncated, "closed"),
            PeerClose::Fin => (Class::Empty, "closed"),
        };
        let Facts { ended, .. } = self.codec.protocol.facts(&self.slots[conn.key].client);
        let why = format!("the peer {how} the connection {ended}").into();
        self.not_opened(net, conn, &OpenError { class, why });
    }

    /// Handles a peer that did not agree in time.
    pub(super) fn opening_late(&mut self, net: &mut impl Net, conn: Conn, received: bool) {
        let class = if received { Class::TimeoutTotal } else { Class::TimeoutFirstByte };
        let why = self.codec.protocol.facts(&self.slots[conn.key].client).late.into();
        self.not_opened(net, conn, &OpenError { class, why });
    }
}
