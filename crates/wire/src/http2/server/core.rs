//! The server's handling of each frame.

use super::head::{Facts, Fields};
use super::streams::{Past, Phase, Stream, Streams};
use super::{CONNECTION_WINDOW, Config, Event, RequestHead};
use crate::http2::block::Block;
use crate::http2::frame::{
    ErrorCode, write_block, write_ping, write_reset, write_settings_ack, write_window_update,
};
use crate::http2::hpack::{self, Decoder};
use crate::http2::read::{Data, Frame, Piece};
use crate::http2::settings::Settings;
use crate::http2::violation::Violation;
use crate::http2::window::{Overflow, ReceiveWindow, SendWindow};

/// The maximum size of a header list in bytes, with 32 added for each field: the same as for a head
/// of HTTP/1.
const LIST_BYTES: usize = 256 * 1024;
/// The maximum size of a remembered block. A longer block is rare, and differs each time.
const KNOWN_BYTES: usize = 1024;
/// The maximum number of consecutive frames that advance no request. More are an attempt to keep a
/// server busy.
const IDLE_FRAMES_MOST: u32 = 10_000;
/// The maximum number of requests that were reset by either side, less those that were answered.
const RESETS_MOST: u32 = 10_000;
/// `:status: 100` as a literal, with the name from the static table.
const CONTINUE: &[u8] = b"\x08\x03100";

const STREAM_CLOSED: Violation =
    Violation::of_connection(ErrorCode::StreamClosed, "HEADERS on a stream that has ended");

type Handled<M> = Result<Option<Event<M>>, Violation>;

/// The last block, and its meaning.
#[derive(Debug)]
struct Known<M> {
    block: Vec<u8>,
    generation: u64,
    made: M,
    facts: Facts,
}

/// The state of a connection without its reader.
#[derive(Debug)]
pub(super) struct Core<M> {
    pub(super) config: Config,
    pub(super) streams: Streams<M>,
    /// The last reported request, until it is answered or another frame is handled.
    pub(super) current: Option<(u32, M)>,
    /// The number of requests that were reported and not answered, without the current one.
    pub(super) waiting: usize,
    /// The limits that the peer has announced.
    pub(super) peer: Settings,
    pub(super) send: SendWindow,
    /// Whether the peer's table is smaller than ours may be, so that our next block must say so.
    pub(super) resized: bool,
    receive: ReceiveWindow,
    block: Block,
    /// Whether the stream of the open block declares itself as its own dependency.
    self_dependent: bool,
    decoder: Decoder,
    fields: Fields,
    known: Option<Known<M>>,
    /// Whether SETTINGS have come.
    opened: bool,
    /// The last stream that is answered, once GOAWAY is sent.
    last_taken: Option<u32>,
    idle_frames: u32,
    pub(super) resets: u32,
    /// Output that may be written before bodies wait, and whether some have waited for it.
    pub(super) room: usize,
    pub(super) is_full: bool,
}

impl<M: Copy> Core<M> {
    pub(super) fn new(config: Config) -> Self {
        let peer = Settings::default();
        Core {
            config,
            streams: Streams::default(),
            current: None,
            waiting: 0,
            peer,
            send: SendWindow::new(peer.window),
            resized: false,
            receive: ReceiveWindow::new(CONNECTION_WINDOW),
            block: Block::default(),
            self_dependent: false,
            decoder: Decoder::default(),
            fields: Fields::default(),
            known: None,
            opened: false,
            last_taken: None,
            idle_frames: 0,
            resets: 0,
            room: usize::MAX,
            is_full: false,
        }
    }

    /// The highest stream that has begun and is not ignored.
    pub(super) fn last(&self) -> u32 {
        self.last_taken.unwrap_or(self.streams.last())
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.last_taken.is_some()
    }

    pub(super) fn leave(&mut self) -> u32 {
        *self.last_taken.insert(self.streams.last())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.open.is_empty() && self.current.is_none()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting + usize::from(self.current.is_some())
    }

    pub(super) fn is_within_block(&self) -> bool {
        self.block.is_open()
    }

    pub(super) fn is_reading(&self) -> bool {
        self.block.is_open() || self.streams.open.values().any(|open| open.phase == Phase::Reading)
    }

    /// Stores the stream of the current request, which was not answered at once.
    #[inline]
    pub(super) fn keep_current(&mut self) {
        if let Some((stream, made)) = self.current.take() {
            self.waiting += 1;
            let facts = Facts::default();
            self.keep(stream, made, facts, Phase::Waiting);
        }
    }

    fn keep(&mut self, stream: u32, made: M, facts: Facts, phase: Phase) {
        let open = Stream {
            phase,
            made,
            send: SendWindow::new(self.peer.window),
            receive: ReceiveWindow::new(self.config.window),
            length: facts.length,
            received: 0,
            rest: Default::default(),
            rest_ends: false,
        };
        self.streams.open.insert(stream, open);
    }

    #[inline]
    pub(super) fn handle(
        &mut self,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
        read: &mut impl FnMut(RequestHead<'_>) -> M,
    ) -> Handled<M> {
        let frame = match piece {
            Piece::Data(data) if self.opened && !self.block.is_open() => {
                return self.handle_data(data, out);
            }
            Piece::Data(_) => Frame::Unknown,
            Piece::Frame(frame) => frame,
        };
        if !self.opened && !matches!(frame, Frame::Settings(_)) {
            return Err(Violation::protocol("the first frame is not SETTINGS"));
        }
        if self.block.is_open() && !matches!(frame, Frame::Continuation { .. }) {
            return Err(Violation::protocol("a block of fields is interrupted"));
        }
        match frame {
            Frame::Headers { stream, end_stream, end_block, depends_on, part } => {
                self.self_dependent = depends_on == Some(stream);
                if end_block {
                    return self.handle_block(stream, end_stream, part, out, read);
                }
                self.block.begin(stream, end_stream, part).map(|()| None)
            }
            Frame::Continuation { stream, end_block, part } => {
                let mut block = std::mem::take(&mut self.block);
                let handled = match block.go_on(stream, part, end_block)? {
                    None => Ok(None),
                    Some((end_stream, bytes)) => {
                        self.handle_block(stream, end_stream, bytes, out, read)
                    }
                };
                self.block = block;
                handled
            }
            Frame::Reset { stream, .. } => self.handle_reset(stream),
            frame => {
                if !self.handle_control(frame, out)? {
                    self.count_idle()?;
                }
                Ok(None)
            }
        }
    }

    /// Counts a frame that advances no request.
    fn count_idle(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MOST {
            let why = "frames that ask for nothing come without end";
            return Err(Violation::of_connection(ErrorCode::EnhanceYourCalm, why));
        }
        Ok(())
    }

    /// Counts a request that was reset by its client or because it cannot be answered.
    fn count_reset(&mut self) -> Result<(), Violation> {
        self.resets += 1;
        if self.resets > RESETS_MOST {
            let why = "requests that are reset come without end";
            return Err(Violation::of_connection(ErrorCode::EnhanceYourCalm, why));
        }
        Ok(())
    }

    /// Handles a complete block, which begins a request or ends one as its trailers.
    #[inline]
    fn handle_block(
        &mut self,
        stream: u32,
        end_stream: bool,
        block: &[u8],
        out: &mut Vec<u8>,
        read: &mut impl FnMut(RequestHead<'_>) -> M,
    ) -> Handled<M> {
        if let Some(open) = self.streams.open.get(&stream) {
            let is_reading = open.phase == Phase::Reading;
            return self.handle_trailers(stream, is_reading, end_stream, block, out);
        }
        match self.streams.past(stream) {
            Past::Idle if stream.is_multiple_of(2) => {
                return Err(Violation::protocol("a client begins a stream with an even number"));
            }
            Past::Idle => {}
            Past::Skipped => {
                return Err(Violation::protocol("a stream with a lower number than the last"));
            }
            Past::Closed => return Err(STREAM_CLOSED),
            Past::ResetByUs => {
                self.decode(block, true)?;
                return Ok(None);
            }
        }
        self.streams.begin(stream);
        let head = match self.recognise(block) {
            Some(head) => Ok(head),
            None => self.read_head(block, read)?,
        };
        if self.last_taken.is_some() {
            self.streams.note_reset(stream);
            return Ok(None);
        }
        if self.streams.open.len() >= self.config.streams as usize {
            self.streams.note_reset(stream);
            write_reset(out, stream, ErrorCode::RefusedStream);
            self.count_reset()?;
            return Ok(Some(Event::Refused));
        }
        let (made, facts) = match head {
            Ok(head) if !self.self_dependent => head,
            _ => return self.malformed(stream, out),
        };
        if end_stream {
            if facts.length.is_some_and(|length| length > 0) {
                return self.malformed(stream, out);
            }
            self.idle_frames = 0;
            self.current = Some((stream, made));
            return Ok(Some(Event::Request { stream, made }));
        }
        self.keep(stream, made, facts, Phase::Reading);
        if facts.expects_continue {
            write_block(out, stream, CONTINUE, false, self.peer.frame_bytes);
        }
        Ok(None)
    }

    /// The meaning of a block that is the same as the last one.
    #[inline]
    fn recognise(&self, block: &[u8]) -> Option<(M, Facts)> {
        let known = self.known.as_ref()?;
        let same = known.block == block && known.generation == self.decoder.generation();
        same.then_some((known.made, known.facts))
    }

    /// Decodes a block that begins a request. The inner error means that the request is malformed.
    fn read_head(
        &mut self,
        block: &[u8],
        read: &mut impl FnMut(RequestHead<'_>) -> M,
    ) -> Result<Result<(M, Facts), &'static str>, Violation> {
        let before = self.decoder.generation();
        self.decode(block, false)?;
        let (head, facts) = match self.fields.finish() {
            Ok(finished) => finished,
            Err(why) => return Ok(Err(why)),
        };
        let made = read(head);
        let generation = self.decoder.generation();
        if generation == before && block.len() <= KNOWN_BYTES {
            let known = self.known.get_or_insert_with(|| Known {
                block: Vec::new(),
                generation,
                made,
                facts,
            });
            known.block.clear();
            known.block.extend_from_slice(block);
            (known.generation, known.made, known.facts) = (generation, made, facts);
        }
        Ok(Ok((made, facts)))
    }

    fn decode(&mut self, block: &[u8], trailers: bool) -> Result<(), Violation> {
        let Core { decoder, fields, .. } = self;
        fields.begin(trailers);
        decoder.decode(block, LIST_BYTES, &mut |field| fields.add(field)).map_err(|error| {
            let (code, why) = match error {
                hpack::Error::Compression(why) => (ErrorCode::CompressionError, why),
                hpack::Error::Limit => (ErrorCode::EnhanceYourCalm, "a header list is too long"),
            };
            Violation::of_connection(code, why)
        })
    }

    fn handle_trailers(
        &mut self,
        stream: u32,
        is_reading: bool,
        end_stream: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Handled<M> {
        self.decode(block, true)?;
        if !is_reading {
            return self.refuse(stream, STREAM_CLOSED.code, STREAM_CLOSED.why, out);
        }
        if !end_stream || self.fields.finish().is_err() {
            return self.malformed(stream, out);
        }
        self.end_request(stream, out)
    }

    fn end_request(&mut self, stream: u32, out: &mut Vec<u8>) -> Handled<M> {
        let Some(open) = self.streams.open.get_mut(&stream) else { return Ok(None) };
        if open.length.is_some_and(|length| length != open.received) {
            return self.malformed(stream, out);
        }
        open.phase = Phase::Waiting;
        self.waiting += 1;
        self.idle_frames = 0;
        Ok(Some(Event::Request { stream, made: open.made }))
    }

    fn malformed(&mut self, stream: u32, out: &mut Vec<u8>) -> Handled<M> {
        self.streams.open.remove(&stream);
        self.streams.note_reset(stream);
        write_reset(out, stream, ErrorCode::ProtocolError);
        self.count_reset()?;
        Ok(Some(Event::Malformed))
    }

    /// Handles a violation on a stream by resetting it. If the stream has not begun, the violation
    /// ends the connection.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        code: ErrorCode,
        why: &'static str,
        out: &mut Vec<u8>,
    ) -> Handled<M> {
        if let Some(open) = self.streams.open.get(&stream) {
            let phase = open.phase;
            self.count_reset()?;
            self.reset(stream, code, out);
            return Ok(match phase {
                Phase::Reading => Some(Event::Malformed),
                Phase::Waiting => Some(Event::Gone { stream }),
                Phase::Answering => None,
            });
        }
        match self.streams.past(stream) {
            Past::Idle | Past::Skipped => return Err(Violation::of_connection(code, why)),
            Past::ResetByUs => {}
            Past::Closed => {
                self.streams.note_reset(stream);
                write_reset(out, stream, code);
            }
        }
        self.count_idle()?;
        Ok(None)
    }

    #[inline]
    fn handle_data(&mut self, data: Data<'_>, out: &mut Vec<u8>) -> Handled<M> {
        let Data { stream, begins, bytes, end_stream, .. } = data;
        if let Some(len) = begins {
            if self.receive.receive(len).is_err() {
                let why = "DATA beyond the window of the connection";
                return Err(Violation::of_connection(Overflow::CODE, why));
            }
            if let Some(by) = self.receive.release(len) {
                self.receive.grant(by);
                write_window_update(out, 0, by);
            }
        }
        let open = self.streams.open.get_mut(&stream);
        let Some(open) = open.filter(|open| open.phase == Phase::Reading) else {
            let why = "DATA on a stream that the client has ended";
            return match begins {
                Some(_) if self.streams.past(stream) == Past::Idle => {
                    Err(Violation::protocol("DATA on a stream that has not begun"))
                }
                Some(_) => self.refuse(stream, ErrorCode::StreamClosed, why, out),
                None => Ok(None),
            };
        };
        if let Some(len) = begins {
            if open.receive.receive(len).is_err() {
                let why = "DATA beyond the window of its stream";
                return self.refuse(stream, Overflow::CODE, why, out);
            }
            let more = if self.config.enlarges { open.receive.release(len) } else { None };
            if let Some(by) = more.filter(|_| !end_stream) {
                open.receive.grant(by);
                write_window_update(out, stream, by);
            }
        }
        open.received += bytes.len() as u64;
        if open.length.is_some_and(|length| open.received > length) {
            return self.malformed(stream, out);
        }
        if end_stream {
            return self.end_request(stream, out);
        }
        match bytes {
            [] => self.count_idle()?,
            _ => self.idle_frames = 0,
        }
        Ok(None)
    }

    fn handle_reset(&mut self, stream: u32) -> Handled<M> {
        let Some(open) = self.streams.open.remove(&stream) else {
            if self.streams.past(stream) == Past::Idle {
                return Err(Violation::protocol("RST_STREAM on a stream that has not begun"));
            }
            self.count_idle()?;
            return Ok(None);
        };
        self.count_reset()?;
        if open.phase != Phase::Waiting {
            return Ok(None);
        }
        self.waiting -= 1;
        Ok(Some(Event::Gone { stream }))
    }

    /// Handles frames that are not part of a request. Returns whether the frame advanced anything.
    fn handle_control(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<bool, Violation> {
        match frame {
            Frame::Settings(payload) => self.handle_settings(payload, out)?,
            Frame::Ping { ack: false, payload } => write_ping(out, payload, true),
            Frame::WindowUpdate { stream: 0, by } => {
                if self.send.change(by.into()).is_err() {
                    let why = "the window of the connection goes beyond 2^31 - 1";
                    return Err(Violation::of_connection(Overflow::CODE, why));
                }
                return Ok(self.send_what_waits(out));
            }
            Frame::WindowUpdate { stream, by } => {
                if let Some(open) = self.streams.open.get_mut(&stream) {
                    if open.send.change(by.into()).is_err() {
                        let why = "the window of a stream goes beyond 2^31 - 1";
                        return Err(Violation::of_stream(stream, Overflow::CODE, why));
                    }
                    return Ok(self.send_what_waits_on(stream, out));
                }
                if self.streams.past(stream) == Past::Idle {
                    let why = "WINDOW_UPDATE on a stream that has not begun";
                    return Err(Violation::protocol(why));
                }
            }
            Frame::Priority { stream, depends_on } if stream == depends_on => {
                let why = "a stream depends on itself";
                return Err(Violation::of_stream(stream, ErrorCode::ProtocolError, why));
            }
            Frame::Push { .. } => return Err(Violation::protocol("a client pushes")),
            _ => {}
        }
        Ok(false)
    }

    fn handle_settings(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        let before = self.peer;
        self.peer.apply_all(payload)?;
        self.opened = true;
        if self.peer.table_bytes < before.table_bytes.min(hpack::TABLE_BYTES) {
            self.resized = true;
        }
        let by = i64::from(self.peer.window) - i64::from(before.window);
        for open in self.streams.open.values_mut() {
            if open.send.change(by).is_err() {
                let why = "SETTINGS enlarge a window beyond 2^31 - 1";
                return Err(Violation::of_connection(Overflow::CODE, why));
            }
        }
        write_settings_ack(out);
        if by > 0 {
            self.send_what_waits(out);
        }
        Ok(())
    }
}
