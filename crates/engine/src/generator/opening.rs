//! Opens a connection: what a protocol has to agree on before the first request.

use trueload_drive::{Net, PeerClose, Token};
use trueload_meter::Class;
use trueload_wire::exchange;

use super::Generator;
use super::connection::{ConnectionState, Event};
use super::protocol::{Facts, OpenError, Opened, Protocol};
use super::slot::Slot;

impl<P: Protocol> Generator<P> {
    /// Starts the protocol on a new connection, which is secured if TLS is used.
    pub(super) fn begin(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let Slot { client, state, tls, .. } = &mut self.slots[key];
        let alpn = tls.as_deref().and_then(|secure| secure.session.alpn());
        self.codec.output.clear();
        if !self.codec.protocol.open(client, Opened { key, alpn }, &mut self.codec.output) {
            self.opened(net, key);
            return;
        }
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        state.change(Event::AgreementBegun);
        state.until_ns = self.config.deadline_ns(state.attempted_ns);
        self.codec.send_output(net, &mut self.slots[key], token);
        self.slots.arm(key);
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
        key: u32,
        token: Token,
        disposition: exchange::Disposition,
    ) -> bool {
        let state = &mut self.slots[key].state;
        match disposition {
            exchange::Disposition::Opening => {
                state.change(Event::Received);
                false
            }
            exchange::Disposition::Refused => {
                let facts = self.codec.protocol.facts(&self.slots[key].client);
                self.not_opened(net, key, token, &facts.refused);
                false
            }
            _ => {
                self.opened(net, key);
                // Charging an earlier violation may have closed the connection.
                self.slots[key].state.connection.is_open_on(token)
            }
        }
    }

    /// Handles a peer that did not agree.
    pub(super) fn not_opened(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        refused: &OpenError,
    ) {
        net.close(token);
        self.pace.note_reason(refused.class, &refused.why);
        self.attempt_failed(net, key, refused.class);
    }

    /// Handles a peer that went away before it agreed.
    pub(super) fn opening_ended(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        ended: PeerClose,
        received: bool,
    ) {
        let (class, how) = match ended {
            PeerClose::Reset | PeerClose::Refused => (Class::Reset, "reset"),
            PeerClose::Fin if received => (Class::Truncated, "closed"),
            PeerClose::Fin => (Class::Empty, "closed"),
        };
        let Facts { ended, .. } = self.codec.protocol.facts(&self.slots[key].client);
        let why = format!("the peer {how} the connection {ended}").into();
        self.not_opened(net, key, token, &OpenError { class, why });
    }

    /// Handles a peer that did not agree in time.
    pub(super) fn opening_late(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        received: bool,
    ) {
        let class = if received { Class::TimeoutTotal } else { Class::TimeoutFirstByte };
        let why = self.codec.protocol.facts(&self.slots[key].client).late.into();
        self.not_opened(net, key, token, &OpenError { class, why });
    }
}
