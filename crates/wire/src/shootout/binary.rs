//! The binary dialect: a type byte (`e`, `b`, `r`), the payload's length (4 bytes, big-endian), and
//! the payload. The payload is 8 bytes, which the published method fills with its send time, and
//! padding. We put sender and sequence there, 4 bytes each.

use super::stamp::Padding;
use super::{Asked, Due, Key, Parsed, Wrong};

pub(super) const ECHO: u8 = b'e';
pub(super) const BROADCAST: u8 = b'b';
const RESULT: u8 = b'r';

/// The size of the type byte and the length.
const HEAD_BYTES: usize = 5;
/// The size of the key, which comes before the padding.
const KEY_BYTES: usize = 8;

pub(super) fn write(kind: u8, key: Key, padding: &[u8], out: &mut Vec<u8>) {
    // Cannot overflow in practice: a WebSocket message of 4 GiB exceeds every cap.
    let payload_bytes = u32::try_from(KEY_BYTES + padding.len()).unwrap_or(u32::MAX);
    out.push(kind);
    out.extend_from_slice(&payload_bytes.to_be_bytes());
    out.extend_from_slice(&key.sender.to_be_bytes());
    out.extend_from_slice(&key.sequence.to_be_bytes());
    out.extend_from_slice(padding);
}

pub(super) fn parse(message: &[u8], padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let kind = kind(message)?;
    let (sender, rest) = message[HEAD_BYTES..].split_first_chunk().ok_or(Wrong::Foreign)?;
    let (sequence, found) = rest.split_first_chunk().ok_or(Wrong::Foreign)?;
    let padding = Padding { stamped: padding.stamped && kind != ECHO, ..padding };
    let (stamp, rest) = padding.split(found)?;
    if rest != padding.bytes {
        return Err(Wrong::Altered);
    }
    let key = Key { sender: u32::from_be_bytes(*sender), sequence: u32::from_be_bytes(*sequence) };
    match kind {
        ECHO => Ok(Parsed::Echo(key)),
        BROADCAST => Ok((key, stamp).into()),
        RESULT => Ok(Parsed::Result(key, None)),
        _ => Err(Wrong::Malformed),
    }
}

pub(super) fn answer(message: &[u8], due: &mut Due) -> Result<Asked, Wrong> {
    match kind(message)? {
        ECHO => {
            due.to_sender.extend_from_slice(message);
            Ok(Asked::Echo)
        }
        BROADCAST => {
            due.to_all.extend_from_slice(message);
            due.to_sender.push(RESULT);
            due.to_sender.extend_from_slice(&message[1..]);
            Ok(Asked::Broadcast)
        }
        _ => Err(Wrong::Malformed),
    }
}

/// The type of a message whose length field is correct.
fn kind(message: &[u8]) -> Result<u8, Wrong> {
    let (kind, rest) = message.split_first().ok_or(Wrong::Malformed)?;
    let (payload_bytes, payload) = rest.split_first_chunk().ok_or(Wrong::Malformed)?;
    let as_long = u32::from_be_bytes(*payload_bytes) as usize == payload.len();
    if as_long { Ok(*kind) } else { Err(Wrong::Malformed) }
}
