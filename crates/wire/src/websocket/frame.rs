//! The head of a frame (RFC 6455 §5.2), and the reasons for which frames are refused.
//!
//! How it works: a head is read from a slice that begins with it. An error in its first two bytes
//! is reported before the others have come.
//!
//! Must not know: which frames came before, and payloads.

// Autobahn's longest messages are 16 MiB; ours are up to 1 MiB.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The limit of RFC 6455 §5.5.
pub(super) const CONTROL_BYTES: usize = 125;
/// The maximum: two bytes, the longest length and a key.
pub(super) const HEADER_BYTES: usize = 14;

/// One end of a connection. A client masks what it sends, a server must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that opened the connection.
    Client,
    /// The end that accepted the connection.
    Server,
}

/// What an end accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) role: Role,
    /// Messages may be compressed: permessage-deflate was agreed to.
    pub(super) deflates: bool,
}

impl From<Role> for End {
    fn from(role: Role) -> Self {
        End { role, deflates: false }
    }
}

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// Caps on the size of one message. A message exactly as large as a cap is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The payload of one message in bytes, all fragments together.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: MESSAGE_BYTES }
    }
}

/// The reason why frames were refused. The text names the mistake and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes cannot be frames as defined by RFC 6455.
    #[error("websocket: {0}")]
    Protocol(&'static str),
    /// A text or the reason of a close frame is not UTF-8, or a message cannot be decompressed.
    #[error("websocket payload: {0}")]
    Payload(&'static str),
    /// A message is longer than the [`Limits`] allow.
    #[error("limit: {0}")]
    Limit(&'static str),
}

pub(super) const TOO_LONG: Error = Error::Limit("a message is too long");

impl Error {
    /// The code to close the connection with (RFC 6455 §7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            Error::Protocol(_) => 1002,
            Error::Payload(_) => 1007,
            Error::Limit(_) => 1009,
        }
    }

    /// The mistake, without its category.
    pub fn why(&self) -> &'static str {
        let (Error::Protocol(why) | Error::Payload(why) | Error::Limit(why)) = self;
        why
    }
}

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    #[inline]
    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

impl From<Kind> for Opcode {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Opcode::Text,
            Kind::Binary => Opcode::Binary,
        }
    }
}

/// The head of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) last: bool,
    /// The message that begins with it is compressed (RFC 7692 §6).
    pub(super) compressed: bool,
    /// The payload length in bytes, within the cap.
    pub(super) len: usize,
    pub(super) key: Option<[u8; 4]>,
}

const FIN: u8 = 0x80;
const RSV: u8 = 0x70;
const RSV1: u8 = 0x40;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LEN: u8 = 0x7f;

impl Header {
    /// Reads the head at the start of `bytes`, as received by this end; also returns its length.
    /// `None`: more bytes are needed. A data frame may have at most `room` bytes of payload.
    #[inline]
    pub(super) fn read(
        bytes: &[u8],
        end: End,
        room: usize,
    ) -> Result<Option<(Self, usize)>, Error> {
        let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
        let (opcode, last, short) = check_start(first, second, end)?;
        let (len, rest) = match short {
            126 => {
                let Some((len, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
                (minimal(u64::from(u16::from_be_bytes(*len)), 126)?, rest)
            }
            127 => {
                let Some((len, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
                (minimal(u64::from_be_bytes(*len), 1 << 16)?, rest)
            }
            short => (u64::from(short), rest),
        };
        let len = usize::try_from(len).ok().filter(|&len| opcode.is_control() || len <= room);
        let len = len.ok_or(TOO_LONG)?;
        let (key, rest) = match end.role {
            Role::Client => (None, rest),
            Role::Server => {
                let Some((key, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
                (Some(*key), rest)
            }
        };
        let compressed = first & RSV1 != 0;
        Ok(Some((Header { opcode, last, compressed, len, key }, bytes.len() - rest.len())))
    }

    /// Appends the head.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let first = self.opcode as u8 | if self.last { FIN } else { 0 };
        let first = first | if self.compressed { RSV1 } else { 0 };
        let masked = if self.key.is_some() { MASKED } else { 0 };
        match self.len {
            len @ 0..=125 => out.extend_from_slice(&[first, masked | len as u8]),
            len @ 126..=0xffff => {
                let [high, low] = (len as u16).to_be_bytes();
                out.extend_from_slice(&[first, masked | 126, high, low]);
            }
            len => {
                out.extend_from_slice(&[first, masked | 127]);
                out.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        if let Some(key) = self.key {
            out.extend_from_slice(&key);
        }
    }
}

/// Checks the first two bytes. Returns the opcode, whether the frame is the last of its message,
/// and the seven bits of its length.
#[inline]
fn check_start(first: u8, second: u8, end: End) -> Result<(Opcode, bool, u8), Error> {
    // Only the first frame of a message says that it is compressed.
    if first & RSV != 0 && !(end.deflates && first & RSV == RSV1 && matches!(first & OPCODE, 1 | 2))
    {
        return Err(Error::Protocol("a reserved bit is set"));
    }
    let opcode = match first & OPCODE {
        0 => Opcode::Continuation,
        1 => Opcode::Text,
        2 => Opcode::Binary,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        _ => return Err(Error::Protocol("an unknown opcode")),
    };
    match (end.role, second & MASKED != 0) {
        (Role::Client, true) => return Err(Error::Protocol("a server's frame is masked")),
        (Role::Server, false) => return Err(Error::Protocol("a client's frame is not masked")),
        _ => {}
    }
    let (last, short) = (first & FIN != 0, second & LEN);
    if opcode.is_control() && !last {
        return Err(Error::Protocol("a control frame is fragmented"));
    }
    if opcode.is_control() && usize::from(short) > CONTROL_BYTES {
        return Err(Error::Protocol("a control frame has more than 125 bytes"));
    }
    Ok((opcode, last, short))
}

/// Checks that a length could not have been encoded in fewer bytes (RFC 6455 §5.2). Its highest bit
/// needs no check, because the cap is far below.
fn minimal(len: u64, least: u64) -> Result<u64, Error> {
    if len < least {
        return Err(Error::Protocol("a length is not in its shortest form"));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_is_as_short_as_can_be() {
        for (len, bytes) in
            [(0, 2), (1, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10), (1 << 40, 10)]
        {
            for (role, key) in [(Role::Client, None), (Role::Server, Some([1, 2, 3, 4]))] {
                for (opcode, last) in
                    [(Opcode::Text, true), (Opcode::Binary, false), (Opcode::Continuation, true)]
                {
                    let header = Header { opcode, last, compressed: false, len, key };
                    let mut wire = Vec::new();
                    header.write(&mut wire);
                    let expected = bytes + key.map_or(0, |_| 4);
                    assert_eq!(wire.len(), expected, "{header:?}");
                    let read = Header::read(&wire, role.into(), usize::MAX);
                    assert_eq!(read, Ok(Some((header, expected))));
                    for cut in 0..expected {
                        let read = Header::read(&wire[..cut], role.into(), usize::MAX);
                        assert_eq!(read, Ok(None));
                    }
                }
            }
        }
    }

    #[test]
    fn a_head_that_must_not_be_is_refused_as_soon_as_it_shows() {
        let (client, server) = (Role::Client, Role::Server);
        for (sentence, bytes, role, expected) in [
            ("RSV1", &[0xc1, 0][..], client, "websocket: a reserved bit is set"),
            ("RSV2", &[0xa1, 0], client, "websocket: a reserved bit is set"),
            ("RSV3", &[0x91, 0], client, "websocket: a reserved bit is set"),
            ("opcode 3", &[0x83, 0], client, "websocket: an unknown opcode"),
            ("opcode 7", &[0x87, 0], client, "websocket: an unknown opcode"),
            ("opcode 11", &[0x8b, 0], client, "websocket: an unknown opcode"),
            ("opcode 15", &[0x8f, 0], client, "websocket: an unknown opcode"),
            ("masked", &[0x81, 0x80], client, "websocket: a server's frame is masked"),
            ("unmasked", &[0x81, 0], server, "websocket: a client's frame is not masked"),
            ("half a ping", &[0x09, 0], client, "websocket: a control frame is fragmented"),
            ("a long ping", &[0x89, 126], client, "websocket: a control frame has more than"),
            ("a longer ping", &[0x89, 127], client, "websocket: a control frame has more than"),
            ("125 in 2", &[0x82, 126, 0, 125], client, "websocket: a length is not in its"),
            ("0 in 8", &[0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0], client, "websocket: a length is"),
            ("64 Ki - 1 in 8", &[0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255], client, "websocket: a l"),
            ("101 bytes", &[0x82, 101], client, "limit: a message is too long"),
            ("2^16", &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0], client, "limit: a message is too long"),
            ("2^63", &[0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0], client, "limit: a message is too"),
            ("2^64 - 1", &[0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255], client, "limit: a"),
        ] {
            let read = Header::read(bytes, role.into(), 100).expect_err(sentence);
            assert!(read.to_string().starts_with(expected), "{sentence}: {read}");
        }
        assert!(Header::read(&[0x82, 100], client.into(), 100).is_ok());
        let ping = Header::read(&[0x89, 125], client.into(), 100);
        assert!(ping.is_ok(), "no cap on control frames");
    }

    #[test]
    fn only_the_first_frame_of_a_message_says_that_it_is_compressed_and_only_if_agreed() {
        for first in 0..=u8::MAX {
            let head = [first, 0];
            let read = |deflates| Header::read(&head, End { role: Role::Client, deflates }, 100);
            let plain = Header::read(&[first & !RSV1, 0], Role::Client.into(), 100);
            let begins = matches!(first & 0x3f, 1 | 2);
            let expected = match plain {
                Ok(Some((header, len))) if begins => {
                    Ok(Some((Header { compressed: first & RSV1 != 0, ..header }, len)))
                }
                _ => read(false),
            };
            assert_eq!(read(true), expected, "{first:#x}");
            if first & RSV1 != 0 {
                let why = "a reserved bit is set";
                assert_eq!(read(false), Err(Error::Protocol(why)), "{first:#x}");
            }
        }
    }
}
