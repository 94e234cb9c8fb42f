//! The failure classes of faults on a WebSocket: one rule for echoes and broadcasts.
//!
//! A fault ends the request that is outstanding on its connection, with the fault's own class. With
//! none outstanding, nobody waited for the input: it is `unsolicited`, whatever it is, and charged
//! to the request just settled or the next one (design §7). That is the rule for an echo (the
//! default of [`Facts::violation`]). A listener of a broadcast always waits for
//! deliveries, so a wrong message came instead of one: it keeps its class, with or without a
//! request outstanding.

use trueload_meter::{Class, Deflate};
use trueload_wire::http1::ParseError;
use trueload_wire::shootout::Wrong;
use trueload_wire::websocket::{self, Deflated, Fault, OpeningError};

use crate::generator::classes::class_of_ending;
use crate::generator::protocol::{Facts, OpenError};

/// The class of a fault if something is waited for.
pub(super) fn class_of_fault(fault: Fault) -> Class {
    fault.ending().and_then(class_of_ending).unwrap_or(Class::Unsolicited)
}

/// The error of a connection that did not become usable.
pub(super) fn refused(why: websocket::HandshakeError) -> OpenError {
    let class = match why {
        websocket::HandshakeError::Opening(OpeningError::Http(ParseError::Limit(_))) => {
            Class::Limit
        }
        websocket::HandshakeError::Opening(_) => Class::WsHandshake,
        // Refusing a join means refusing the connection.
        websocket::HandshakeError::Join(Fault::Dialect(Wrong::Refused)) => Class::WsHandshake,
        websocket::HandshakeError::Join(fault) => class_of_fault(fault),
    };
    let why = why.to_string();
    // The class is printed before the reason, and some reasons begin with it.
    let detail = why.strip_prefix(class.name()).and_then(|why| why.strip_prefix(": "));
    OpenError { class, why: detail.unwrap_or(&why).to_owned().into() }
}

/// The account of compression.
pub(super) fn deflate(found: Deflated) -> Box<Deflate> {
    let Deflated { agreed, declined, sent, received } = found;
    Box::new(Deflate {
        agreed,
        declined,
        sent_bytes: sent.plain,
        sent_compressed_bytes: sent.on_wire,
        received_bytes: received.plain,
        received_compressed_bytes: received.on_wire,
    })
}

/// The facts of a connection: the violation of an open one, why the last one was refused, and
/// whether this one was upgraded.
pub(super) fn facts(violation: Class, refused: Option<OpenError>, upgraded: bool) -> Facts {
    let unknown = OpenError { class: Class::WsHandshake, why: "not upgraded".into() };
    let (ended, late) = if upgraded {
        (
            "after the upgrade, before a client had joined",
            "the connection was upgraded, and then no client could join in time",
        )
    } else {
        ("before it was upgraded", "the connection was not upgraded in time")
    };
    let refused = refused.unwrap_or(unknown);
    Facts { peer_closes: false, violation, refused, ended, late }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_class_of_what_is_wrong_and_what_settles_nothing_is_unsolicited() {
        let cases = [
            (Fault::Frames(websocket::Error::Protocol("a")), Class::WsProtocol),
            (Fault::Frames(websocket::Error::Payload("a")), Class::WsPayload),
            (Fault::Frames(websocket::Error::Limit("a")), Class::Limit),
            (Fault::Dialect(Wrong::Malformed), Class::WsPayload),
            (Fault::Dialect(Wrong::Foreign), Class::Mismatch),
            (Fault::Dialect(Wrong::Altered), Class::Mismatch),
            (Fault::Dialect(Wrong::Refused), Class::Status),
            (Fault::Dialect(Wrong::Closing), Class::WsClosed),
            (Fault::Closed, Class::WsClosed),
            (Fault::Unsolicited, Class::Unsolicited),
        ];
        for (fault, class) in cases {
            assert_eq!(class_of_fault(fault), class, "{fault:?}");
        }
    }

    #[test]
    fn why_a_connection_was_refused_does_not_say_its_class_again() {
        let opening = OpeningError::Http(ParseError::Limit("a head"));
        assert_eq!(refused(websocket::HandshakeError::Opening(opening)).why, "a head");
        let framing = OpeningError::Http(ParseError::Framing("a head"));
        assert_eq!(refused(websocket::HandshakeError::Opening(framing)).why, "framing: a head");
    }

    #[test]
    fn a_join_that_is_refused_is_a_handshake_that_was_and_any_other_fault_keeps_its_class() {
        let cases = [
            (Fault::Dialect(Wrong::Refused), Class::WsHandshake),
            (Fault::Dialect(Wrong::Malformed), Class::WsPayload),
            (Fault::Dialect(Wrong::Altered), Class::Mismatch),
            (Fault::Dialect(Wrong::Closing), Class::WsClosed),
            (Fault::Closed, Class::WsClosed),
            (Fault::Frames(websocket::Error::Protocol("a")), Class::WsProtocol),
        ];
        for (fault, class) in cases {
            assert_eq!(refused(websocket::HandshakeError::Join(fault)).class, class, "{fault:?}");
        }
    }
}
