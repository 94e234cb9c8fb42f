//! Splits a byte stream into frames, regardless of how the bytes were cut.
//!
//! How it works: a frame that lies whole in one input is returned in place. A frame that is cut is
//! copied aside until it is complete. DATA is never copied: its parts are returned as they come.
//! All checks on a single frame are made here: lengths, padding, and whether its type belongs to a
//! stream.
//!
//! Must not know: which frames came before, and the states of streams.

use super::frame::{ErrorCode, FRAME_BYTES_LEAST, HEADER_BYTES, Header, Kind, STREAM_MOST, flags};
use super::violation::Violation;

/// A complete frame, without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// HEADERS.
    Headers {
        /// The stream number.
        stream: u32,
        /// Whether the stream ends with the block.
        end_stream: bool,
        /// Whether the block ends with the frame.
        end_block: bool,
        /// The stream that it depends on, if it has a priority.
        depends_on: Option<u32>,
        /// The first part of the block.
        part: &'a [u8],
    },
    /// PRIORITY.
    Priority {
        /// The stream number.
        stream: u32,
        /// The stream that it depends on.
        depends_on: u32,
    },
    /// RST_STREAM.
    Reset {
        /// The stream number.
        stream: u32,
        /// The error code.
        code: ErrorCode,
    },
    /// SETTINGS; [`parameters`](super::settings::parameters) reads them.
    Settings(&'a [u8]),
    /// The acknowledgement of SETTINGS.
    SettingsAck,
    /// PUSH_PROMISE.
    Push {
        /// The stream number.
        stream: u32,
        /// The promised stream.
        promised: u32,
        /// Whether the block ends with the frame.
        end_block: bool,
        /// The first part of the block.
        part: &'a [u8],
    },
    /// PING.
    Ping {
        /// Whether it is an answer.
        ack: bool,
        /// The bytes to be sent back.
        payload: [u8; 8],
    },
    /// GOAWAY.
    GoAway {
        /// The last stream that the peer accepts.
        last: u32,
        /// The error code.
        code: ErrorCode,
    },
    /// WINDOW_UPDATE.
    WindowUpdate {
        /// The stream number; 0 for the connection.
        stream: u32,
        /// The increment, 1 to 2^31 - 1.
        by: u32,
    },
    /// CONTINUATION.
    Continuation {
        /// The stream number.
        stream: u32,
        /// Whether the block ends with the frame.
        end_block: bool,
        /// The next part of the block.
        part: &'a [u8],
    },
    /// A frame of a type that RFC 9113 does not define.
    Unknown,
}

/// The result of reading some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// A part of a DATA frame.
    Data(Data<'a>),
}

/// A part of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The stream number.
    pub stream: u32,
    /// In the first part of a frame, the amount that the whole frame takes from the windows (RFC
    /// 9113 §6.9.1).
    pub begins: Option<u32>,
    /// The next bytes of the body; may be empty.
    pub bytes: &'a [u8],
    /// Whether the frame has no more bytes of the body.
    pub ends: bool,
    /// Whether the frame and its stream end with this part.
    pub end_stream: bool,
}

/// A DATA frame that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    header: Header,
    /// The remaining bytes of the body, and of the padding after it.
    body: u32,
    padding: u32,
}

/// Reads the frames of one connection.
#[derive(Debug)]
pub struct Reader {
    /// The largest payload that is accepted.
    pub(super) frame_bytes: u32,
    open: Option<Open>,
    /// The beginning of a frame that was cut.
    aside: Vec<u8>,
    /// Whether `aside` was returned to the caller and must be emptied.
    handed_out: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Reader { frame_bytes: FRAME_BYTES_LEAST, open: None, aside: Vec::new(), handed_out: false }
    }
}

impl Reader {
    /// Whether a frame has begun and is not complete.
    pub fn is_within_frame(&self) -> bool {
        self.open.is_some() || self.has_cut_frame()
    }

    /// Whether a frame other than DATA has begun and is not complete, or the head of any frame.
    pub fn has_cut_frame(&self) -> bool {
        !(self.aside.is_empty() || self.handed_out)
    }

    /// The bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.aside.capacity()
    }

    /// Takes the next piece off `input`. `None`: all of it was taken, and more is needed. After a
    /// violation that concerns a stream, its frame was consumed and reading may continue.
    #[inline]
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        input: &mut &'b [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        if self.open.is_some() {
            let piece = self.more_data(input, None);
            // Padding that ends a frame is not a piece, but more input may follow it.
            if piece.is_some() || input.is_empty() {
                return Ok(piece);
            }
        }
        if std::mem::take(&mut self.handed_out) {
            self.aside.clear();
        }
        if !self.aside.is_empty() {
            return self.next_aside(input);
        }
        let Some((bytes, behind)) = input.split_first_chunk::<HEADER_BYTES>() else {
            self.put_aside(input, input.len());
            return Ok(None);
        };
        let header = Header::read(bytes);
        self.check(&header)?;
        if header.kind == Kind::DATA {
            return self.begin_data(header, behind, input);
        }
        let Some((payload, behind)) = behind.split_at_checked(header.len as usize) else {
            self.put_aside(input, input.len());
            return Ok(None);
        };
        *input = behind;
        read_frame(&header, payload).map(|frame| Some(Piece::Frame(frame)))
    }

    /// Reads a frame whose first bytes came in an earlier input.
    #[cold]
    fn next_aside<'a, 'b: 'a>(
        &'a mut self,
        input: &mut &'b [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        self.put_aside(input, HEADER_BYTES.saturating_sub(self.aside.len()));
        let Some(bytes) = self.aside.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = Header::read(bytes);
        self.check(&header)?;
        if header.kind == Kind::DATA {
            // Only the byte with the padding length is put aside, none of the payload.
            if header.has(flags::PADDED) && header.len > 0 {
                self.put_aside(input, (HEADER_BYTES + 1).saturating_sub(self.aside.len()));
                let Some(padding) = self.aside.get(HEADER_BYTES).copied() else { return Ok(None) };
                self.handed_out = true;
                self.open = Some(open_data(header, Some(padding))?);
            } else {
                self.handed_out = true;
                self.open = Some(open_data(header, None)?);
            }
            return Ok(self.more_data(input, Some(header.len)));
        }
        let whole = HEADER_BYTES + header.len as usize;
        self.put_aside(input, whole - self.aside.len());
        if self.aside.len() < whole {
            return Ok(None);
        }
        self.handed_out = true;
        read_frame(&header, &self.aside[HEADER_BYTES..]).map(|frame| Some(Piece::Frame(frame)))
    }

    #[inline]
    fn begin_data<'a>(
        &mut self,
        header: Header,
        behind: &'a [u8],
        input: &mut &'a [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        let mut padding = None;
        *input = behind;
        if header.has(flags::PADDED) && header.len > 0 {
            let Some((first, behind)) = behind.split_first() else {
                self.aside.extend_from_slice(&header.bytes());
                return Ok(None);
            };
            (padding, *input) = (Some(*first), behind);
        }
        self.open = Some(open_data(header, padding)?);
        Ok(self.more_data(input, Some(header.len)))
    }

    /// Reads the next part of the open DATA frame.
    #[inline]
    fn more_data<'a>(&mut self, input: &mut &'a [u8], begins: Option<u32>) -> Option<Piece<'a>> {
        let open = self.open.as_mut()?;
        let (bytes, rest) = input.split_at((open.body as usize).min(input.len()));
        open.body -= bytes.len() as u32;
        let padding = (open.padding as usize).min(rest.len());
        open.padding -= padding as u32;
        *input = &rest[padding..];
        let (stream, ends) = (open.header.stream, open.body == 0);
        let ended = open.body + open.padding == 0;
        let end_stream = ended && open.header.has(flags::END_STREAM);
        if ended {
            self.open = None;
        }
        let is_reported = begins.is_some() || end_stream || !bytes.is_empty();
        is_reported.then_some(Piece::Data(Data { stream, begins, bytes, ends, end_stream }))
    }

    fn put_aside(&mut self, input: &mut &[u8], most: usize) {
        let (taken, rest) = input.split_at(most.min(input.len()));
        self.aside.extend_from_slice(taken);
        *input = rest;
    }

    /// Checks the header alone.
    #[inline]
    fn check(&self, header: &Header) -> Result<(), Violation> {
        if header.len > self.frame_bytes {
            let why = "a frame is longer than allowed";
            return Err(Violation::of_connection(ErrorCode::FrameSizeError, why));
        }
        let of_connection = match header.kind {
            Kind::SETTINGS | Kind::PING | Kind::GOAWAY => true,
            Kind::DATA | Kind::HEADERS | Kind::PRIORITY | Kind::RST_STREAM => false,
            Kind::PUSH_PROMISE | Kind::CONTINUATION => false,
            _ => return Ok(()),
        };
        if of_connection != (header.stream == 0) {
            return Err(Violation::protocol(match of_connection {
                true => "a frame of the connection has a stream",
                false => "a frame of a stream has none",
            }));
        }
        Ok(())
    }
}

const BAD_LENGTH: Violation =
    Violation::of_connection(ErrorCode::FrameSizeError, "a frame is not as long as its type");
const BAD_PADDING: Violation = Violation::protocol("the padding is longer than its frame");

fn open_data(header: Header, padding: Option<u8>) -> Result<Open, Violation> {
    let (len, padding) = match (header.has(flags::PADDED), padding) {
        (true, None) => return Err(BAD_LENGTH),
        (_, padding) => (header.len - u32::from(padding.is_some()), padding.unwrap_or(0)),
    };
    let body = len.checked_sub(padding.into()).ok_or(BAD_PADDING)?;
    Ok(Open { header, body, padding: padding.into() })
}

/// The payload without its padding.
fn unpadded<'a>(header: &Header, payload: &'a [u8]) -> Result<&'a [u8], Violation> {
    if !header.has(flags::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(BAD_LENGTH)?;
    let len = rest.len().checked_sub(usize::from(*padding)).ok_or(BAD_PADDING)?;
    Ok(&rest[..len])
}

fn be_u32(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

#[inline]
fn read_frame<'a>(header: &Header, payload: &'a [u8]) -> Result<Frame<'a>, Violation> {
    let Header { stream, .. } = *header;
    Ok(match header.kind {
        Kind::HEADERS => return read_headers(header, payload),
        Kind::SETTINGS if header.has(flags::ACK) => match payload {
            [] => Frame::SettingsAck,
            _ => return Err(BAD_LENGTH),
        },
        Kind::SETTINGS if payload.len().is_multiple_of(6) => Frame::Settings(payload),
        Kind::SETTINGS => return Err(BAD_LENGTH),
        Kind::WINDOW_UPDATE => {
            let by = be_u32(payload.try_into().map_err(|_| BAD_LENGTH)?) & STREAM_MOST;
            if by == 0 {
                let (code, why) = (ErrorCode::ProtocolError, "WINDOW_UPDATE of 0");
                return Err(match stream {
                    0 => Violation::of_connection(code, why),
                    stream => Violation::of_stream(stream, code, why),
                });
            }
            Frame::WindowUpdate { stream, by }
        }
        Kind::PING => {
            let payload = payload.try_into().map_err(|_| BAD_LENGTH)?;
            Frame::Ping { ack: header.has(flags::ACK), payload }
        }
        Kind::RST_STREAM => {
            let code = be_u32(payload.try_into().map_err(|_| BAD_LENGTH)?);
            Frame::Reset { stream, code: ErrorCode::of(code) }
        }
        Kind::GOAWAY => match *payload {
            [l0, l1, l2, l3, c0, c1, c2, c3, ..] => Frame::GoAway {
                last: be_u32([l0, l1, l2, l3]) & STREAM_MOST,
                code: ErrorCode::of(be_u32([c0, c1, c2, c3])),
            },
            _ => return Err(BAD_LENGTH),
        },
        Kind::CONTINUATION => {
            let end_block = header.has(flags::END_HEADERS);
            Frame::Continuation { stream, end_block, part: payload }
        }
        Kind::PRIORITY => {
            let Ok([d0, d1, d2, d3, _]) = <[u8; 5]>::try_from(payload) else {
                let (code, why) = (ErrorCode::FrameSizeError, BAD_LENGTH.why);
                return Err(Violation::of_stream(stream, code, why));
            };
            Frame::Priority { stream, depends_on: be_u32([d0, d1, d2, d3]) & STREAM_MOST }
        }
        Kind::PUSH_PROMISE => {
            let rest = unpadded(header, payload)?;
            let (promised, part) = rest.split_first_chunk::<4>().ok_or(BAD_LENGTH)?;
            let promised = be_u32(*promised) & STREAM_MOST;
            let end_block = header.has(flags::END_HEADERS);
            Frame::Push { stream, promised, end_block, part }
        }
        _ => Frame::Unknown,
    })
}

#[inline]
fn read_headers<'a>(header: &Header, payload: &'a [u8]) -> Result<Frame<'a>, Violation> {
    let (mut part, mut depends_on) = (unpadded(header, payload)?, None);
    if header.has(flags::PRIORITY) {
        let ([d0, d1, d2, d3, _], rest) = part.split_first_chunk::<5>().ok_or(BAD_LENGTH)?;
        depends_on = Some(be_u32([*d0, *d1, *d2, *d3]) & STREAM_MOST);
        part = rest;
    }
    Ok(Frame::Headers {
        stream: header.stream,
        end_stream: header.has(flags::END_STREAM),
        end_block: header.has(flags::END_HEADERS),
        depends_on,
        part,
    })
}

#[cfg(test)]
mod tests;
