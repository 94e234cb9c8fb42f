//! Frames (RFC 9113 §4 and §6): their headers, error codes and encoding.
//!
//! Must not know: which frames came before, and what a stream is used for.

/// The first bytes that a client sends on a connection (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The size of a frame's header in bytes.
pub const HEADER_BYTES: usize = 9;
/// The maximum payload before SETTINGS; SETTINGS may not announce less.
pub const FRAME_BYTES_LEAST: u32 = 1 << 14;
/// The largest payload that SETTINGS may allow.
pub const FRAME_BYTES_MOST: u32 = (1 << 24) - 1;
/// The largest stream number: 31 bits. The highest bit is reserved and ignored.
pub const STREAM_MOST: u32 = (1 << 31) - 1;

/// The flags of frames.
pub mod flags {
    /// The frame is the last of its stream (DATA, HEADERS).
    pub const END_STREAM: u8 = 0x1;
    /// The frame is an acknowledgement (SETTINGS, PING).
    pub const ACK: u8 = 0x1;
    /// The block ends with the frame (HEADERS, PUSH_PROMISE, CONTINUATION).
    pub const END_HEADERS: u8 = 0x4;
    /// The first byte is the number of padding bytes at the end (DATA, HEADERS, PUSH_PROMISE).
    pub const PADDED: u8 = 0x8;
    /// Five bytes of priority come first (HEADERS).
    pub const PRIORITY: u8 = 0x20;
}

/// The type of a frame. Types that RFC 9113 does not define are to be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    /// A part of a body.
    pub const DATA: Kind = Kind(0);
    /// The fields that begin a stream, or the trailers that end it.
    pub const HEADERS: Kind = Kind(1);
    /// Deprecated, and ignored.
    pub const PRIORITY: Kind = Kind(2);
    /// Ends a stream immediately.
    pub const RST_STREAM: Kind = Kind(3);
    /// Announces what the other side may do.
    pub const SETTINGS: Kind = Kind(4);
    /// Announces a stream that the server is about to begin.
    pub const PUSH_PROMISE: Kind = Kind(5);
    /// Must be answered with the same bytes.
    pub const PING: Kind = Kind(6);
    /// Announces that the sender accepts no streams above a number.
    pub const GOAWAY: Kind = Kind(7);
    /// Grants more room for DATA.
    pub const WINDOW_UPDATE: Kind = Kind(8);
    /// Continues a block of fields.
    pub const CONTINUATION: Kind = Kind(9);
}

/// The reason why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// No error.
    NoError = 0,
    /// A violation of RFC 9113 without a more specific code.
    ProtocolError = 1,
    /// The sender had an internal failure.
    InternalError = 2,
    /// DATA beyond a window, or a window beyond its bounds.
    FlowControlError = 3,
    /// SETTINGS were not acknowledged.
    SettingsTimeout = 4,
    /// A frame for a stream that its sender had ended.
    StreamClosed = 5,
    /// A frame that is too long, or not as long as its type has to be.
    FrameSizeError = 6,
    /// The request was not processed and may be sent again.
    RefusedStream = 7,
    /// The sender no longer wants the answer.
    Cancel = 8,
    /// A block of fields could not be decoded.
    CompressionError = 9,
    /// The connection of a CONNECT failed.
    ConnectError = 10,
    /// The peer causes too much load.
    EnhanceYourCalm = 11,
    /// The TLS connection is not secure enough.
    InadequateSecurity = 12,
    /// HTTP/1.1 is to be used.
    Http11Required = 13,
}

impl ErrorCode {
    const ALL: [ErrorCode; 14] = [
        ErrorCode::NoError,
        ErrorCode::ProtocolError,
        ErrorCode::InternalError,
        ErrorCode::FlowControlError,
        ErrorCode::SettingsTimeout,
        ErrorCode::StreamClosed,
        ErrorCode::FrameSizeError,
        ErrorCode::RefusedStream,
        ErrorCode::Cancel,
        ErrorCode::CompressionError,
        ErrorCode::ConnectError,
        ErrorCode::EnhanceYourCalm,
        ErrorCode::InadequateSecurity,
        ErrorCode::Http11Required,
    ];

    /// The error code for these bits; an unknown code is treated as an internal error (RFC 9113
    /// §7).
    pub fn of(bits: u32) -> Self {
        Self::ALL.get(bits as usize).copied().unwrap_or(ErrorCode::InternalError)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The payload length in bytes, including padding: up to 2^24 - 1.
    pub len: u32,
    /// The type of the frame.
    pub kind: Kind,
    /// The [`flags`] of the frame.
    pub flags: u8,
    /// The stream number; 0 for the connection.
    pub stream: u32,
}

impl Header {
    /// Reads a header.
    #[inline]
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Header {
            len: u32::from_be_bytes([0, l0, l1, l2]),
            kind: Kind(kind),
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_MOST,
        }
    }

    /// The header in its encoded form.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let [_, l0, l1, l2] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind.0, self.flags, s0, s1, s2, s3]
    }

    /// Appends the header.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a DATA frame.
pub fn write_data(out: &mut Vec<u8>, stream: u32, bytes: &[u8], end_stream: bool) {
    let flags = if end_stream { flags::END_STREAM } else { 0 };
    Header { len: bytes.len() as u32, kind: Kind::DATA, flags, stream }.write(out);
    out.extend_from_slice(bytes);
}

/// Appends a block of fields: HEADERS and as many CONTINUATION frames as needed, with at most
/// `frame_bytes` of payload each.
pub fn write_block(out: &mut Vec<u8>, stream: u32, block: &[u8], ends: bool, frame_bytes: u32) {
    let mut kind = Kind::HEADERS;
    let mut flags = if ends { flags::END_STREAM } else { 0 };
    let mut rest = block;
    loop {
        let (part, behind) = rest.split_at(rest.len().min(frame_bytes as usize));
        flags |= if behind.is_empty() { flags::END_HEADERS } else { 0 };
        Header { len: part.len() as u32, kind, flags, stream }.write(out);
        out.extend_from_slice(part);
        if behind.is_empty() {
            return;
        }
        (kind, flags, rest) = (Kind::CONTINUATION, 0, behind);
    }
}

/// Appends RST_STREAM.
pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    Header { len: 4, kind: Kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// Appends an acknowledgement of SETTINGS.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    Header { len: 0, kind: Kind::SETTINGS, flags: flags::ACK, stream: 0 }.write(out);
}

/// Appends a PING or the answer to one.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], ack: bool) {
    let flags = if ack { flags::ACK } else { 0 };
    Header { len: 8, kind: Kind::PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY: streams above `last` are not accepted. The text helps to debug the peer.
pub fn write_goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, text: &str) {
    let len = 8 + text.len() as u32;
    Header { len, kind: Kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends WINDOW_UPDATE for a stream, or for the connection if `stream` is 0.
#[inline]
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    Header { len: 4, kind: Kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&by.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_reserved_bit_is_ignored() {
        for len in [0, 1, 255, 256, 65_536, FRAME_BYTES_MOST] {
            for bits in 0..=12 {
                for stream in [0, 1, 257, STREAM_MOST] {
                    let header = Header { len, kind: Kind(bits), flags: bits ^ 0xff, stream };
                    let mut bytes = header.bytes();
                    assert_eq!(Header::read(&bytes), header);
                    assert_eq!(bytes[3], bits);
                    bytes[5] |= 0x80;
                    assert_eq!(Header::read(&bytes), header, "the reserved bit");
                }
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_rfc_and_unknown_ones_are_internal_errors() {
        for (at, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!((ErrorCode::of(at as u32), code as usize), (code, at));
        }
        assert_eq!(ErrorCode::of(14), ErrorCode::InternalError);
        assert_eq!(ErrorCode::of(u32::MAX), ErrorCode::InternalError);
    }

    #[test]
    fn a_long_block_goes_on_in_frames_behind_it_and_only_the_last_ends_it() {
        for (len, lens) in [(0, &[0][..]), (9, &[9]), (10, &[10]), (11, &[10, 1]), (20, &[10, 10])]
        {
            let (block, mut out) = (vec![7; len], Vec::new());
            write_block(&mut out, 3, &block, true, 10);
            let (mut rest, mut found) = (&out[..], Vec::new());
            while let Some((bytes, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
                let header = Header::read(bytes);
                let first = found.is_empty();
                assert_eq!(header.kind == Kind::HEADERS, first);
                assert_eq!(header.kind == Kind::CONTINUATION, !first);
                assert_eq!(header.has(flags::END_STREAM), first);
                rest = &behind[header.len as usize..];
                assert_eq!(header.has(flags::END_HEADERS), rest.is_empty());
                found.push(header.len);
            }
            assert_eq!(found, lens, "{len}");
        }
    }
}
