//! Writing frames: each function appends to the output.
//!
//! How it works: with a `key` the payload is masked by it, as a client must do; a server passes
//! none. A key should be new for each frame (RFC 6455 §5.3); the caller provides it.
//!
//! Must not know: what was sent before.

use super::deflate::Deflater;
use super::frame::{CONTROL_BYTES, Header, Kind, Opcode};
use super::mask;

/// Appends one message as one frame.
#[inline]
pub fn message(out: &mut Vec<u8>, kind: Kind, payload: &[u8], key: Option<[u8; 4]>) {
    frame(out, kind.into(), true, payload, key);
}

/// Appends one message as one frame, compressed if there is a `deflater`.
#[inline]
pub fn message_by(
    deflater: Option<&mut Deflater>,
    out: &mut Vec<u8>,
    kind: Kind,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    match deflater {
        None => message(out, kind, payload, key),
        Some(deflater) => compressed(out, kind, true, deflater.deflate(payload), key),
    }
}

/// Appends the first part of a compressed message.
pub(super) fn compressed(
    out: &mut Vec<u8>,
    kind: Kind,
    last: bool,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    let (opcode, len) = (kind.into(), payload.len());
    append(out, Header { opcode, last, compressed: true, len, key }, payload);
}

/// Appends the answer to a ping, with its payload.
pub fn pong(out: &mut Vec<u8>, payload: &[u8], key: Option<[u8; 4]>) {
    frame(out, Opcode::Pong, true, short(payload), key);
}

/// Appends a close frame. The reason is sent only with a code, and is cut at a character boundary
/// after at most 123 bytes.
pub fn close(out: &mut Vec<u8>, code: Option<u16>, reason: &str, key: Option<[u8; 4]>) {
    let mut payload = Vec::with_capacity(CONTROL_BYTES);
    if let Some(code) = code {
        payload.extend_from_slice(&code.to_be_bytes());
        let whole = |end: &usize| reason.is_char_boundary(*end);
        let end = (0..=reason.len().min(CONTROL_BYTES - 2)).rev().find(whole).unwrap_or(0);
        payload.extend_from_slice(&reason.as_bytes()[..end]);
    }
    frame(out, Opcode::Close, true, &payload, key);
}

pub(super) fn short(payload: &[u8]) -> &[u8] {
    payload.get(..CONTROL_BYTES).unwrap_or(payload)
}

#[inline]
pub(super) fn frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    last: bool,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    append(out, Header { opcode, last, compressed: false, len: payload.len(), key }, payload);
}

#[inline]
fn append(out: &mut Vec<u8>, header: Header, payload: &[u8]) {
    header.write(out);
    let at = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = header.key {
        mask::apply(&mut out[at..], key, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn frames_are_those_of_the_rfc() {
        // RFC 6455 §5.7.
        let key = Some([0x37, 0xfa, 0x21, 0x3d]);
        let masked_hello = [0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let hello = |out: &mut Vec<u8>| message(out, Kind::Text, b"Hello", None);
        assert_eq!(written(hello), b"\x81\x05Hello");
        let masked = written(|out| message(out, Kind::Text, b"Hello", key));
        assert_eq!(masked, [&[0x81, 0x85][..], &masked_hello].concat());
        let pong = written(|out| pong(out, b"Hello", key));
        assert_eq!(pong, [&[0x8a, 0x85][..], &masked_hello].concat());
        let long = written(|out| message(out, Kind::Binary, &[7; 256], None));
        assert_eq!(long[..5], [0x82, 0x7e, 1, 0, 7]);
        let longer = written(|out| message(out, Kind::Binary, &[7; 65_536], None));
        assert_eq!(longer[..11], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0, 7]);
    }

    #[test]
    fn a_control_frame_never_has_more_than_125_bytes() {
        let long = written(|out| pong(out, &[0; 126], None));
        assert_eq!(long.len(), 127);
        let reason = "é".repeat(100);
        let cut = written(|out| close(out, Some(1000), &reason, None));
        assert_eq!(cut[..4], [0x88, 124, 3, 232]);
        assert_eq!(&cut[4..], "é".repeat(61).as_bytes());
        assert_eq!(written(|out| close(out, None, "unsaid", None)), [0x88, 0]);
    }
}
