//! Frames that only peers in tests send: parts of messages, whole ones of compressed bytes, and
//! pings.

use super::frame::{Kind, Opcode};
use super::send::{self, frame, short};

/// Appends a part of a message. `kind` is given for its first part, none for the others.
pub fn fragment(
    out: &mut Vec<u8>,
    kind: Option<Kind>,
    last: bool,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    frame(out, kind.map_or(Opcode::Continuation, Opcode::from), last, payload, key);
}

/// Appends the first part of a compressed message; the others are like those of any message.
pub fn compressed(out: &mut Vec<u8>, kind: Kind, last: bool, payload: &[u8], key: Option<[u8; 4]>) {
    send::compressed(out, kind, last, payload, key);
}

/// Appends a ping; a payload is cut after 125 bytes.
pub fn ping(out: &mut Vec<u8>, payload: &[u8], key: Option<[u8; 4]>) {
    frame(out, Opcode::Ping, true, short(payload), key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_written() {
        let mut parts = Vec::new();
        fragment(&mut parts, Some(Kind::Text), false, b"Hel", None);
        fragment(&mut parts, None, true, b"lo", None);
        assert_eq!(parts, b"\x01\x03Hel\x80\x02lo");
        let mut asked = Vec::new();
        ping(&mut asked, b"Hello", None);
        assert_eq!(asked, b"\x89\x05Hello");
    }
}
