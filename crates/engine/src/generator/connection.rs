//! The state of a slot's connection: its events, and which state each leads to, in one table.
//!
//! An event that the table does not allow in a state changes nothing, and is a defect of ours. A
//! change that comes by itself comes at the slot's `until_ns`.
//!
//! Must not know: sockets beyond their tokens, and why something happens.

use trueload_drive::Token;

/// The state of a slot's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// None; the next attempt is not made before `until_ns`.
    #[default]
    Down,
    /// The peer's queue was full; the same attempt is made again at `until_ns`.
    Busy,
    /// An attempt is under way, at most until then.
    Connecting { token: Token },
    /// There is a connection to a proxy, which has been asked for a tunnel, at most until then.
    Tunnelling { token: Token },
    /// There is a connection, and TLS is being set up on it, at most until then.
    Handshaking { token: Token },
    /// There is a connection, and the protocol agrees with the peer on it, at most until then.
    /// `received`: the peer has sent something.
    Opening { token: Token, received: bool },
    /// Established.
    Open { token: Token },
    /// Nothing more is asked, and the peer's end is waited for until `until_ns`; bytes before it
    /// are unsolicited. `fin_sent`: our side has ended.
    Closing { token: Token, fin_sent: bool },
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An attempt to connect begins.
    Attempted(Token),
    /// An attempt cannot begin: the peer's queue is full.
    QueueFull,
    /// The proxy is asked for a tunnel.
    TunnelAsked,
    /// The TLS handshake begins.
    HandshakeBegun,
    /// The protocol has something to agree on with the peer.
    AgreementBegun,
    /// The peer has sent something, and has not agreed yet.
    Received,
    /// Requests can be asked.
    Opened,
    /// Nothing more is asked. With `fin_sent` our side has ended.
    Ending { fin_sent: bool },
    /// There is no connection any more, or none came about.
    Gone,
}

impl ConnectionState {
    /// The state behind an event; none if the event cannot happen in this one.
    #[inline]
    pub(super) fn after(self, event: Event) -> Option<Self> {
        use ConnectionState::{
            Busy, Closing, Connecting, Down, Handshaking, Open, Opening, Tunnelling,
        };
        Some(match (event, self) {
            (Event::Attempted(token), Down | Busy) => Connecting { token },
            (Event::QueueFull, Down | Busy) => Busy,
            (Event::TunnelAsked, Connecting { token }) => Tunnelling { token },
            (Event::HandshakeBegun, Connecting { token } | Tunnelling { token }) => {
                Handshaking { token }
            }
            (Event::AgreementBegun, Connecting { token } | Handshaking { token }) => {
                Opening { token, received: false }
            }
            (Event::Received, Opening { token, .. }) => Opening { token, received: true },
            (
                Event::Opened,
                Connecting { token } | Handshaking { token } | Opening { token, .. },
            ) => Open { token },
            (Event::Ending { fin_sent }, Open { token } | Closing { token, .. }) => {
                Closing { token, fin_sent }
            }
            (Event::Gone, _) => Down,
            _ => return None,
        })
    }

    /// The socket, if there is one.
    pub(super) fn token(self) -> Option<Token> {
        match self {
            ConnectionState::Down | ConnectionState::Busy => None,
            ConnectionState::Connecting { token }
            | ConnectionState::Tunnelling { token }
            | ConnectionState::Handshaking { token }
            | ConnectionState::Opening { token, .. }
            | ConnectionState::Open { token }
            | ConnectionState::Closing { token, .. } => Some(token),
        }
    }

    /// Whether requests can be asked.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        matches!(self, ConnectionState::Open { .. })
    }

    /// Whether the protocol agrees with the peer.
    #[inline]
    pub(super) fn is_opening(self) -> bool {
        matches!(self, ConnectionState::Opening { .. })
    }

    /// Whether the protocol has a socket.
    #[inline]
    pub(super) fn carries_protocol(self) -> bool {
        use ConnectionState::{Closing, Open, Opening};
        matches!(self, Opening { .. } | Open { .. } | Closing { .. })
    }

    /// Whether this socket is the one that carries the protocol.
    pub(super) fn is_open_on(self, socket: Token) -> bool {
        use ConnectionState::{Closing, Open, Opening};
        matches!(self, Opening { token, .. } | Open { token } | Closing { token, .. } if token == socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token { index: 7, generation: 1 };

    fn states() -> [ConnectionState; 8] {
        use ConnectionState::{
            Busy, Closing, Connecting, Down, Handshaking, Open, Opening, Tunnelling,
        };
        let token = TOKEN;
        [
            Down,
            Busy,
            Connecting { token },
            Tunnelling { token },
            Handshaking { token },
            Opening { token, received: false },
            Open { token },
            Closing { token, fin_sent: false },
        ]
    }

    #[test]
    fn each_event_is_allowed_in_these_states_alone() {
        let ending = Event::Ending { fin_sent: false };
        for (event, allowed) in [
            (Event::Attempted(TOKEN), "11000000"),
            (Event::QueueFull, "11000000"),
            (Event::TunnelAsked, "00100000"),
            (Event::HandshakeBegun, "00110000"),
            (Event::AgreementBegun, "00101000"),
            (Event::Received, "00000100"),
            (Event::Opened, "00101100"),
            (ending, "00000011"),
            (Event::Gone, "11111111"),
        ] {
            let found = states().map(|state| if state.after(event).is_some() { '1' } else { '0' });
            assert_eq!(String::from_iter(found), allowed, "{event:?}");
        }
    }

    #[test]
    fn every_connection_that_is_there_keeps_its_socket_until_it_is_gone() {
        for state in states() {
            for event in [
                Event::TunnelAsked,
                Event::HandshakeBegun,
                Event::AgreementBegun,
                Event::Received,
                Event::Opened,
                Event::Ending { fin_sent: true },
            ] {
                if let Some(next) = state.after(event) {
                    assert_eq!(next.token(), state.token(), "{state:?} {event:?}");
                }
            }
            assert_eq!(state.after(Event::Gone), Some(ConnectionState::Down));
        }
    }
}
