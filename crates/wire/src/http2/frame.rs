//! Frames (RFC 9113 §4 and §6): their headers, their error codes, and how each type is written.
//!
//! What it must not know: which frames came before, and what a stream is used for.

/// What a client's connection begins with (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Every frame begins with a header of so many bytes.
pub const HEADER_BYTES: usize = 9;
/// What a payload may have until SETTINGS say otherwise; no SETTINGS may say less.
pub const FRAME_BYTES_LEAST: u32 = 1 << 14;
/// The largest payload that SETTINGS may allow.
pub const FRAME_BYTES_MOST: u32 = (1 << 24) - 1;
/// Streams have 31 bits; the highest bit is reserved, and ignored.
pub const STREAM_MOST: u32 = (1 << 31) - 1;

/// The flags of frames.
pub mod flags {
    /// The frame is the last of its stream: DATA, HEADERS.
    pub const END_STREAM: u8 = 0x1;
    /// It acknowledges: SETTINGS, PING.
    pub const ACK: u8 = 0x1;
    /// The block ends with the frame: HEADERS, PUSH_PROMISE, CONTINUATION.
    pub const END_HEADERS: u8 = 0x4;
    /// The first byte says how many at the end are padding: DATA, HEADERS, PUSH_PROMISE.
    pub const PADDED: u8 = 0x8;
    /// Five bytes of priority come first: HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of a body.
    Data,
    /// The fields that begin a stream, or the trailers that end it.
    Headers,
    /// Deprecated, and ignored.
    Priority,
    /// The end of a stream at once.
    RstStream,
    /// What the sender's peer may do.
    Settings,
    /// A stream that the server is about to begin.
    PushPromise,
    /// To be answered with the same bytes.
    Ping,
    /// The sender takes no streams above a number.
    GoAway,
    /// More room for DATA.
    WindowUpdate,
    /// More of a block of fields.
    Continuation,
    /// One of a type that RFC 9113 has not: to be ignored.
    Unknown(u8),
}

impl Kind {
    /// The type as sent.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Kind::Data => 0,
            Kind::Headers => 1,
            Kind::Priority => 2,
            Kind::RstStream => 3,
            Kind::Settings => 4,
            Kind::PushPromise => 5,
            Kind::Ping => 6,
            Kind::GoAway => 7,
            Kind::WindowUpdate => 8,
            Kind::Continuation => 9,
            Kind::Unknown(bits) => bits,
        }
    }

    #[inline]
    pub(super) fn of(bits: u8) -> Self {
        match bits {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::RstStream,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            bits => Kind::Unknown(bits),
        }
    }
}

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// It is no error.
    NoError = 0,
    /// Something else was not as RFC 9113 has it.
    ProtocolError = 1,
    /// The sender failed.
    InternalError = 2,
    /// DATA beyond a window, or a window beyond its bounds.
    FlowControlError = 3,
    /// SETTINGS were not acknowledged.
    SettingsTimeout = 4,
    /// A frame for a stream that its sender had ended.
    StreamClosed = 5,
    /// A frame that is too long, or not as long as its type has to be.
    FrameSizeError = 6,
    /// Nothing was done with the request: it may be sent again.
    RefusedStream = 7,
    /// The sender does not want the answer any more.
    Cancel = 8,
    /// A block of fields could not be decoded.
    CompressionError = 9,
    /// The connection of a CONNECT failed.
    ConnectError = 10,
    /// The peer does too much.
    EnhanceYourCalm = 11,
    /// TLS is not good enough.
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

    /// The code as it was sent; one that is not known is taken for an internal error (RFC 9113 §7).
    #[must_use]
    pub fn of(bits: u32) -> Self {
        Self::ALL.get(bits as usize).copied().unwrap_or(ErrorCode::InternalError)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload, padding included: up to 2^24 - 1.
    pub len: u32,
    /// Its type.
    pub kind: Kind,
    /// Its [`flags`].
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
}

impl Header {
    /// Reads a header.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Header {
            len: u32::from_be_bytes([0, l0, l1, l2]),
            kind: Kind::of(kind),
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_MOST,
        }
    }

    /// The header as it is sent.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let [_, l0, l1, l2] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind.bits(), self.flags, s0, s1, s2, s3]
    }

    /// Appends the header.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Whether a flag is set.
    #[inline]
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a DATA frame.
pub fn write_data(out: &mut Vec<u8>, stream: u32, bytes: &[u8], end_stream: bool) {
    let flags = if end_stream { flags::END_STREAM } else { 0 };
    Header { len: bytes.len() as u32, kind: Kind::Data, flags, stream }.write(out);
    out.extend_from_slice(bytes);
}

/// Appends a block of fields: HEADERS, and as many CONTINUATION frames as it takes with so many bytes in each.
pub fn write_block(
    out: &mut Vec<u8>,
    stream: u32,
    block: &[u8],
    end_stream: bool,
    frame_bytes: u32,
) {
    let mut kind = Kind::Headers;
    let mut flags = if end_stream { flags::END_STREAM } else { 0 };
    let mut rest = block;
    loop {
        let (part, behind) = rest.split_at(rest.len().min(frame_bytes as usize));
        flags |= if behind.is_empty() { flags::END_HEADERS } else { 0 };
        Header { len: part.len() as u32, kind, flags, stream }.write(out);
        out.extend_from_slice(part);
        if behind.is_empty() {
            return;
        }
        (kind, flags, rest) = (Kind::Continuation, 0, behind);
    }
}

/// Appends RST_STREAM.
pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    Header { len: 4, kind: Kind::RstStream, flags: 0, stream }.write(out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// Appends the acknowledgement of SETTINGS.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    Header { len: 0, kind: Kind::Settings, flags: flags::ACK, stream: 0 }.write(out);
}

/// Appends PING, or the answer to it.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], ack: bool) {
    let flags = if ack { flags::ACK } else { 0 };
    Header { len: 8, kind: Kind::Ping, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY: streams above `last` are not taken. The text is for whoever debugs the peer.
pub fn write_goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, text: &str) {
    let len = 8 + text.len() as u32;
    Header { len, kind: Kind::GoAway, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends WINDOW_UPDATE: of a stream, or with 0 of the connection.
#[inline]
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    Header { len: 4, kind: Kind::WindowUpdate, flags: 0, stream }.write(out);
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
                    let header = Header { len, kind: Kind::of(bits), flags: bits ^ 0xff, stream };
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
            let (mut rest, mut told) = (&out[..], Vec::new());
            while let Some((bytes, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
                let header = Header::read(bytes);
                let first = told.is_empty();
                assert_eq!(header.kind == Kind::Headers, first);
                assert_eq!(header.kind == Kind::Continuation, !first);
                assert_eq!(header.has(flags::END_STREAM), first);
                rest = &behind[header.len as usize..];
                assert_eq!(header.has(flags::END_HEADERS), rest.is_empty());
                told.push(header.len);
            }
            assert_eq!(told, lens, "{len}");
        }
    }
}
