//! A tunnel through a proxy (CONNECT, RFC 9110 §9.3.6), which carries TLS to the server. Nothing here
//! runs without a proxy.

use std::collections::HashMap;
use trueload_wire::message::Limits;

use trueload_drive::{Conn, Net};
use trueload_meter::Class;
use trueload_wire::http1::response::{Fed, ResponseParser};

use super::Generator;
use super::connection::{ConnectionState, Event};
use super::protocol::Protocol;

/// What proxies have answered so far, by slot.
pub(super) type Tunnels = HashMap<u32, ResponseParser>;

impl<P: Protocol> Generator<P> {
    /// Asks the proxy at the other end of a new connection for a tunnel.
    pub(super) fn begin_tunnel(&mut self, net: &mut impl Net, conn: Conn) {
        let Some(request) = self.config.tls.as_ref().and_then(|tls| tls.tunnel()) else { return };
        let state = &mut self.slots[conn.key].state;
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        state.change(Event::TunnelAsked);
        state.until_ns = self.config.deadline_ns(state.attempted_ns);
        self.tunnels.insert(conn.key, ResponseParser::default());
        net.send(conn.token, request);
        self.slots.arm(conn.key);
    }

    /// Handles what a proxy sends before there is a tunnel: its answer to CONNECT.
    pub(super) fn handle_tunnel(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        bytes: &[u8],
        ending: bool,
    ) {
        let Some(answer) = self.tunnels.get_mut(&conn.key) else { return };
        // As for HEAD: whatever its head says, a good answer has no body. What follows it comes
        // through the tunnel.
        let (taken, status) = match answer.feed(bytes, true, &Limits::default(), &mut |_| ()) {
            Ok((_, Fed::Partial)) => return,
            Ok((taken, Fed::Complete(response))) => (taken, response.status),
            Err(error) => {
                let why = format!("the proxy's answer to CONNECT is not HTTP/1.1: {error}");
                return self.not_tunnelled(net, conn, &why);
            }
        };
        if !(200..300).contains(&status) {
            let why = format!("the proxy answered CONNECT with {status}");
            return self.not_tunnelled(net, conn, &why);
        }
        self.tunnels.remove(&conn.key);
        self.begin_handshake(net, conn);
        let rest = &bytes[taken..];
        let begun = ConnectionState::Handshaking { token: conn.token };
        if !rest.is_empty() && self.slots[conn.key].state.connection == begun {
            self.handle_sealed(net, conn, rest, ending);
        }
    }

    /// Handles a proxy that has opened no tunnel.
    pub(super) fn not_tunnelled(&mut self, net: &mut impl Net, conn: Conn, why: &str) {
        self.tunnels.remove(&conn.key);
        self.not_secured(net, conn, Class::ConnectProxy, why);
    }
}
