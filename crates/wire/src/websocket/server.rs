//! The opening handshake of a server (RFC 6455 §4.2): the requirements for a request, and the
//! answer.
//!
//! How it works: the head is kept until it is complete. It then shows what is requested and whether
//! that is granted. A request that is not an opening handshake is still a request, which the caller
//! may answer.
//!
//! Must not know: sockets, and which paths exist.

use super::accept::{self, ACCEPT, Accept, KEY, PROTOCOL, VERSION};
use crate::http1::ParseError;
use crate::http1::kept::{Framed, KeptHead};
use crate::http1::request::path_of;
use crate::message::Limits;

/// The handshake of one connection.
#[derive(Debug)]
pub struct Opening {
    head: KeptHead,
}

impl Default for Opening {
    fn default() -> Self {
        Opening { head: KeptHead::of_request() }
    }
}

/// The reason why a request does not open a connection, with the matching status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// 400: not a handshake as defined by RFC 6455.
    #[error("{0}")]
    Bad(&'static str),
    /// 426: no upgrade was requested, or a version other than 13.
    #[error("{0}")]
    Upgrade(&'static str),
}

impl Rejection {
    /// The end of the status line, and the header lines that belong to it (RFC 9110 §15.5.22, RFC
    /// 6455 §4.4).
    pub fn status(&self) -> (&'static str, &'static str) {
        match self {
            Rejection::Bad(_) => ("400 Bad Request", ""),
            Rejection::Upgrade(_) => (
                "426 Upgrade Required",
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
            ),
        }
    }
}

/// A request whose connection may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    accept: Accept,
}

impl Opening {
    /// Feeds bytes. `Some(n)`: the head is complete, and `n` of the bytes belonged to it. The bytes
    /// after it are frames, if the connection is opened. The error comes at the first byte that
    /// cannot belong to a legal request, or beyond the cap.
    pub fn feed(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, ParseError> {
        self.head.feed(bytes, limits)
    }

    /// The method of a complete head.
    pub fn method(&self) -> &str {
        self.head.request_line().0
    }

    /// The request target of a complete head, as sent.
    pub fn target(&self) -> &str {
        self.head.request_line().1
    }

    /// The path of the target, as defined by [`crate::http1::request::Request::path`].
    pub fn path(&self) -> &str {
        path_of(self.target())
    }

    /// The subprotocols that the client offers, in its order.
    pub fn protocols(&self) -> impl Iterator<Item = &[u8]> {
        self.head.elements(PROTOCOL)
    }

    /// Decides whether a complete head is a valid request for a WebSocket (RFC 6455 §4.2.1).
    pub fn judge(&self) -> Result<Acceptance, Rejection> {
        let bad = |is: bool, why| if is { Ok(()) } else { Err(Rejection::Bad(why)) };
        let head = &self.head;
        let body = head.request_body().map_err(|error| match error {
            ParseError::Framing(why) | ParseError::Limit(why) => Rejection::Bad(why),
        })?;
        if !head.has_element("Upgrade", "websocket") {
            return Err(Rejection::Upgrade("here a client has to ask for Upgrade: websocket"));
        }
        bad(self.method() == "GET", "the method is not GET")?;
        bad(!head.is_http10(), "the request is HTTP/1.0")?;
        bad(matches!(body, Framed::Empty | Framed::Length(0)), "the request has a body")?;
        bad(head.has_element("Connection", "upgrade"), "no Connection: Upgrade")?;
        let one = |name| {
            let mut values = head.values(name);
            values.next().filter(|_| values.next().is_none())
        };
        let version = one(VERSION).ok_or(Rejection::Bad("not one Sec-WebSocket-Version"))?;
        if version != b"13" {
            return Err(Rejection::Upgrade("the Sec-WebSocket-Version is not 13"));
        }
        let key = one(KEY).ok_or(Rejection::Bad("not one Sec-WebSocket-Key"))?;
        bad(accept::is_key(key), "the Sec-WebSocket-Key is not 16 bytes in base64")?;
        Ok(Acceptance { accept: accept::accept(key) })
    }
}

impl Acceptance {
    /// Appends the answer that opens the connection. `protocol` is one that the client offers, or
    /// none.
    pub fn write(&self, protocol: Option<&str>, out: &mut Vec<u8>) {
        let start =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        out.extend_from_slice(start.as_bytes());
        let mut field = |name: &str, value: &[u8]| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        field(ACCEPT, &self.accept);
        if let Some(protocol) = protocol {
            field(PROTOCOL, protocol.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}
