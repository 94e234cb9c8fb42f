//! Handles the end of the peer's side: what becomes of the connection and of the requests
//! outstanding on it.

use trueload_drive::{Conn, Net, PeerClose};
use trueload_wire::exchange::{self, Ending, Exchange, Outcome, RequestTimeout};

use super::Generator;
use super::connection::ConnectionState;
use super::protocol::{ConnectionEnd, Protocol};
use super::slot::Slot;

impl<P: Protocol> Generator<P> {
    /// Handles the end of the peer's side. `known`: how the first outstanding request and those
    /// behind it end, where the machine cannot tell.
    pub(super) fn ended(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        ended: PeerClose,
        known: Option<(Ending, Ending)>,
    ) {
        let now_ns = net.now_ns();
        let Slot { client, state, .. } = &mut self.slots[conn.key];
        if let ConnectionState::Opening { received, .. } = state.connection {
            return self.opening_ended(net, conn, ended, received);
        }
        let request_timeout = client.standing().request_timeout;
        if request_timeout == RequestTimeout::Begun {
            // The 408 that had begun was not completed.
            let class = self.codec.protocol.facts(client).violation;
            return self.violated(net, conn, class);
        }
        let idle = client.outstanding() == 0;
        let closing = matches!(state.connection, ConnectionState::Closing { .. });
        let announced = closing && request_timeout == RequestTimeout::None;
        let orderly = ended == PeerClose::Fin || closing;
        if let ConnectionState::Closing { fin_sent, .. } = state.connection
            && announced
        {
            self.close_policy.ended(fin_sent);
        }
        match known {
            Some(endings) => self.end_all_as(now_ns, conn.key, endings),
            None => self.end_all(now_ns, conn.key, end_of(ended)),
        }
        let Slot { client, state, .. } = &mut self.slots[conn.key];
        let answered = client.standing().answered;
        // A connection that does not count as established was not dropped either.
        let unasked = idle && !announced && state.ever_established;
        let reconnects = self.codec.protocol.reconnects();
        let idled =
            unasked && self.accounting.note_unasked_end(now_ns, state, answered, reconnects);
        let stale = state.waiting_again() > 0;
        let kept_closed = answered && !announced && (idle || (stale && ended == PeerClose::Fin));
        if idled || kept_closed {
            self.accounting.crossings.note_close();
        }
        let state = &mut self.slots[conn.key].state;
        // No pause for a peer that closes each connection, asked or not: connecting again at once
        // after such closes is no storm.
        let fruitful = idled || answered && (idle || stale || ended == PeerClose::Fin);
        let pause_ns = if fruitful { 0 } else { state.fruitless_pause_ns() };
        net.close(conn.token);
        self.lost(net, conn.key, stale || idled || (orderly && idle), pause_ns);
    }

    /// Ends every outstanding request, because the peer's side has ended.
    pub(super) fn end_all(&mut self, now_ns: u64, key: u32, how: exchange::PeerClose) {
        let Slot { client, state, .. } = &mut self.slots[key];
        let accounting = &mut self.accounting;
        let end = ConnectionEnd { now_ns, drawn: accounting.drawn, how };
        self.codec
            .protocol
            .handle_end(client, end, &mut |outcome| accounting.settle(state, now_ns, &outcome));
    }

    /// Ends them with known endings: the first with `first`, those behind it with `rest`.
    fn end_all_as(&mut self, now_ns: u64, key: u32, (first, rest): (Ending, Ending)) {
        let Slot { client, state, .. } = &mut self.slots[key];
        let accounting = &mut self.accounting;
        let end =
            ConnectionEnd { now_ns, drawn: accounting.drawn, how: exchange::PeerClose::Reset };
        let mut next = first;
        self.codec.protocol.handle_end(client, end, &mut |outcome| {
            let ending = std::mem::replace(&mut next, rest);
            accounting.settle(state, now_ns, &Outcome { ending, ..outcome });
        });
    }
}

/// Converts the end of a socket to the form a protocol machine takes.
fn end_of(ended: PeerClose) -> exchange::PeerClose {
    match ended {
        PeerClose::Fin => exchange::PeerClose::Fin,
        PeerClose::Reset => exchange::PeerClose::Reset,
        PeerClose::Refused => exchange::PeerClose::Refused,
    }
}
