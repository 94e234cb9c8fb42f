//! What is received: messages and control frames.

use super::frame::{Error, Kind, Opcode};

pub(super) const NOTHING_TO_CONTINUE: Error =
    Error::Protocol("a continuation where no message has begun");

/// A received message or control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A complete message; a text is valid UTF-8.
    Message {
        /// Text or binary.
        kind: Kind,
        /// The whole payload, unmasked.
        payload: &'a [u8],
    },
    /// A ping, to be answered by a pong with the same payload, at most 125 bytes.
    Ping(&'a [u8]),
    /// An answer to a ping, or an unsolicited pong.
    Pong(&'a [u8]),
    /// The peer sends nothing more, and expects a close unless it has had one. Later input is
    /// ignored.
    Close {
        /// The close code, if any; it is one that may be sent.
        code: Option<u16>,
        /// The reason as text, at most 123 bytes.
        reason: &'a str,
    },
}

pub(super) fn control(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, Error> {
    Ok(match opcode {
        Opcode::Ping => Event::Ping(payload),
        Opcode::Pong => Event::Pong(payload),
        _ => {
            let (code, reason) = close(payload)?;
            Event::Close { code, reason }
        }
    })
}

fn close(payload: &[u8]) -> Result<(Option<u16>, &str), Error> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload {
            [] => Ok((None, "")),
            _ => Err(Error::Protocol("a close has half a code")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !may_be_sent(code) {
        return Err(Error::Protocol("a close has a code that must not be sent"));
    }
    let reason =
        str::from_utf8(reason).map_err(|_| Error::Payload("the reason of a close is not UTF-8"))?;
    Ok((Some(code), reason))
}

/// Whether the code may be sent: RFC 6455 §7.4 and IANA's "WebSocket Close Code Number Registry",
/// which adds 1012 to 1014.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
