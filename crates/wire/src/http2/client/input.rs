//! The client's handling of the peer's frames.

use super::answer::Malformed;
use super::flow::{beyond_window, too_large};
use super::streams::{Stream, UNKNOWN, nth_of};
use super::{Blame, Client, Fault, NEVER_NS, State};
use crate::content::Needs;
use crate::exchange::{Disposition, Ending, Exchange, Outcome};
use crate::http2::frame::{ErrorCode, write_goaway, write_ping, write_settings_ack};
use crate::http2::read::{Data, Frame, Piece, Reader};
use crate::http2::settings::{parameter, parameters};
use crate::http2::violation::{Scope, Violation};
use crate::http2::window::Overflow;
use crate::message::{Book, Event};

/// The maximum number of consecutive frames that advance no request: PING, SETTINGS, RST_STREAM of
/// an ended stream, empty DATA, … nghttp2 uses the same limit before it reports a flood.
const IDLE_FRAMES_MOST: u32 = 1000;
/// The first bytes of a server that speaks HTTP/1.
const HTTP1: &[u8] = b"HTTP/";

/// The context for reading the frames of one input.
pub(super) struct Reading<'a, B, F> {
    pub(super) now_ns: u64,
    pub(super) book: &'a B,
    pub(super) output: &'a mut Vec<u8>,
    pub(super) on_outcome: &'a mut F,
}

impl<T: Copy> Client<T> {
    /// Handles input. Each request that it ends is passed to `on_outcome`. What must be sent at
    /// once is appended to `output`. [`Client::waits_to_write`] tells whether more can be written.
    #[inline]
    pub fn handle_input(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        book: &impl Book<T>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        self.silent_from = None;
        let mut reading = Reading { now_ns, book, output, on_outcome };
        let mut reader = std::mem::take(&mut self.reader);
        let read = match self.state {
            State::Opening { .. } => self.read_first(bytes, &mut reader, &mut reading),
            _ => self.read(bytes, &mut reader, &mut reading),
        };
        self.reader = reader;
        match read {
            Ok(()) => {
                self.resets.ask(reading.output);
                self.note(now_ns);
                self.disposition()
            }
            Err(fault) => self.break_off(fault, reading),
        }
    }

    /// Reads the first input, to distinguish another protocol from faulty HTTP/2.
    fn read_first<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        bytes: &[u8],
        reader: &mut Reader,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        if let State::Opening { like_http1 } = &mut self.state {
            let rest = &HTTP1[usize::from(*like_http1)..];
            let alike = bytes.iter().zip(rest).take_while(|(one, two)| one == two).count();
            if alike == rest.len() {
                self.accounting.account.http1 += 1;
                return Err(Violation::protocol("the peer answers in HTTP/1").into());
            }
            *like_http1 = if alike == bytes.len() { *like_http1 + alike as u8 } else { 0 };
        }
        self.read(bytes, reader, reading)
    }

    #[inline]
    fn read<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        mut bytes: &[u8],
        reader: &mut Reader,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        loop {
            match reader.next(&mut bytes) {
                Ok(Some(Piece::Data(data))) => self.data(data, reading)?,
                Ok(Some(Piece::Frame(frame))) => self.handle_frame(frame, reading)?,
                Ok(None) => return Ok(()),
                Err(violation) => self.handle_violation(violation, reading)?,
            }
        }
    }

    #[inline]
    fn handle_frame<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        frame: Frame<'_>,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        if self.block.is_open() && !matches!(frame, Frame::Continuation { .. }) {
            return Err(Violation::protocol("a header block is interrupted").into());
        }
        if let State::Opening { .. } = self.state
            && !matches!(frame, Frame::Settings(_))
        {
            return Err(Violation::protocol("the peer does not begin with SETTINGS").into());
        }
        match frame {
            Frame::Headers { stream, end_stream, end_block, part, .. } => {
                self.begin_block(stream, reading)?;
                if end_block {
                    return self.handle_block(stream, end_stream, part, reading);
                }
                Ok(self.block.begin(stream, end_stream, part)?)
            }
            Frame::Continuation { stream, end_block, part } => {
                let mut block = std::mem::take(&mut self.block);
                let whole = block.go_on(stream, part, end_block)?;
                whole.map_or(Ok(()), |(end_stream, whole)| {
                    self.handle_block(stream, end_stream, whole, reading)
                })?;
                self.block = block;
                Ok(())
            }
            Frame::WindowUpdate { stream, by } => self.window_update(stream, by, reading),
            Frame::Reset { stream, code } => self.reset(stream, code, reading),
            Frame::Settings(payload) => self.settings(payload, reading),
            Frame::Ping { ack: true, payload } if self.resets.acknowledged(payload) => Ok(()),
            Frame::Ping { ack, payload } => {
                self.note_idle()?;
                if !ack {
                    write_ping(reading.output, payload, true);
                }
                Ok(())
            }
            Frame::GoAway { last, code } => self.goaway(last, code, reading),
            Frame::Push { .. } => {
                Err(Fault::unsolicited(Blame::Oldest, "a PUSH_PROMISE, although push was refused"))
            }
            Frame::SettingsAck => {
                self.blocks.acknowledged()?;
                self.note_idle()
            }
            Frame::Priority { .. } | Frame::Unknown => self.note_idle(),
        }
    }

    /// Handles a frame that is illegal in itself.
    #[cold]
    fn handle_violation<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        violation: Violation,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let Scope::Stream(stream) = violation.scope else { return Err(violation.into()) };
        if self.block.is_open() || !self.was_opened(stream) {
            return Err(Violation { scope: Scope::Connection, ..violation }.into());
        }
        self.note_idle()?;
        self.fail(stream, Ending::H2Stream, violation.code, false, reading);
        Ok(())
    }

    /// Counts a frame that advances no request.
    pub(super) fn note_idle(&mut self) -> Result<(), Fault> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MOST {
            let why = "too many frames that bring nothing";
            return Err(Violation::of_connection(ErrorCode::EnhanceYourCalm, why).into());
        }
        Ok(())
    }

    /// Removes a stream that has ended.
    #[inline]
    pub(super) fn take(&mut self, nth: u32) -> Option<Stream<T>> {
        let stream = self.streams.remove(nth)?;
        self.flow.held_streams -= u32::from(stream.receive.is_used_up());
        if stream.unsent > 0 {
            self.flow.uploading -= 1;
            self.flow.not_ready(nth);
        }
        Some(stream)
    }

    /// The stream with this number, if it awaits an answer.
    #[inline]
    pub(super) fn awaiting(&mut self, stream: u32) -> Option<&mut Stream<T>> {
        self.streams.get_mut(nth_of(stream)?)
    }

    /// Whether a stream of ours was opened, however long ago.
    fn was_opened(&self, stream: u32) -> bool {
        nth_of(stream).is_some_and(|nth| self.streams.was_opened(nth))
    }

    /// Handles part of an answer on a stream that awaits none.
    #[cold]
    pub(super) fn unawaited(&mut self, stream: u32, why: &'static str) -> Result<(), Fault> {
        if self.resets.may_be_late(stream) {
            return self.note_idle();
        }
        let blame = if self.was_opened(stream) { Blame::Settled } else { Blame::Oldest };
        Err(Fault::unsolicited(blame, why))
    }

    /// Fails the request of a stream; the connection continues. `ended` says that the peer sends no
    /// more on the stream.
    #[cold]
    pub(super) fn fail<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        stream: u32,
        ending: Ending,
        code: ErrorCode,
        ended: bool,
        reading: &mut Reading<'_, B, F>,
    ) {
        let Some(Stream { tag, unsent, .. }) = nth_of(stream).and_then(|nth| self.take(nth)) else {
            return;
        };
        if !ended {
            self.reset_stream(stream, code, reading.output);
        } else if unsent > 0 {
            self.reset_upload(stream, code, reading.output);
        }
        self.idle_frames = 0;
        (reading.on_outcome)(Outcome::unanswered(tag, ending, reading.now_ns));
    }

    /// The same for a malformed header section.
    pub(super) fn malformed<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        stream: u32,
        (ending, _): Malformed,
        ended: bool,
        reading: &mut Reading<'_, B, F>,
    ) {
        self.fail(stream, ending, ErrorCode::ProtocolError, ended, reading);
    }

    /// Ends a connection that is no longer usable: tells the peer why, and ends all requests.
    #[cold]
    fn break_off<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        fault: Fault,
        reading: Reading<'_, B, F>,
    ) -> Disposition {
        let Reading { now_ns, output, on_outcome, .. } = reading;
        self.fault = Some(fault);
        write_goaway(output, 0, fault.code, fault.why);
        if self.disposition() == Disposition::Opening {
            return Disposition::Refused;
        }
        match fault.blame {
            Blame::All if self.outstanding() > 0 => {
                self.end_all(now_ns, fault.ending, on_outcome);
                Disposition::Broken
            }
            Blame::Oldest if self.streams.open() > 0 => {
                self.end_all(now_ns, fault.ending, on_outcome);
                Disposition::Unsolicited
            }
            _ => Disposition::Unsolicited,
        }
    }

    /// Notes that all output was sent, and that all input which had come before was handled. From
    /// now on the peer may use what it was granted.
    #[inline]
    pub fn note_sent(&mut self) {
        if !self.flow.grants.is_empty() {
            self.count_grants();
        }
    }

    #[cold]
    fn count_grants(&mut self) {
        let mut grants = std::mem::take(&mut self.flow.grants);
        for (number, by) in grants.drain(..) {
            match self.awaiting(number) {
                Some(stream) => stream.receive.grant(by),
                None if number == 0 => self.flow.note_granted(by),
                None => {}
            }
        }
        self.flow.grants = grants;
    }
}

// Bodies.
impl<T: Copy> Client<T> {
    /// Handles a part of a DATA frame.
    #[inline]
    fn data<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        data: Data<'_>,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let Data { stream: number, begins, bytes, ends, end_stream } = data;
        if let Some(len) = begins {
            self.begin_data(number, len, end_stream, reading)?;
        }
        let Some(stream) = self.awaiting(number) else { return Ok(()) };
        let rules = reading.book.rules_of(&stream.tag);
        let mut stalls_at_ns = NEVER_NS;
        let streaming = reading.book.streaming();
        let needs = Needs { expected: rules.body.as_deref(), streaming };
        stream.body.take(bytes, stream.coding, needs);
        if let Some(streaming) = streaming {
            if ends {
                stream.body.end_chunk(streaming.rule);
            }
            if rules.accepts(stream.status)
                && let Some(arrived) = stream.body.note_parts(streaming)
            {
                reading.book.note(&stream.tag, Event::Parts(arrived));
                stalls_at_ns = stream.body.stalls_at_ns().unwrap_or(NEVER_NS);
            }
        }
        if reading.book.wants().is_content() {
            reading.book.note(&stream.tag, Event::Body(bytes));
        }
        if stream.left != UNKNOWN {
            match stream.left.checked_sub(bytes.len() as u64) {
                Some(left) => stream.left = left,
                None => {
                    let longer = (Ending::Framing, "a body longer than its content-length");
                    self.bad_data(number, longer, reading);
                    return Ok(());
                }
            }
        }
        self.stalls_at_ns = self.stalls_at_ns.min(stalls_at_ns);
        if end_stream {
            self.settle(number, reading);
        }
        Ok(())
    }

    /// Handles the start of a DATA frame of `len` bytes, including padding. `end_stream` says that
    /// the frame is the last of its stream and has come whole.
    #[inline]
    fn begin_data<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        len: u32,
        end_stream: bool,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        if self.block.is_open() {
            return Err(Violation::protocol("a header block is interrupted").into());
        }
        if let State::Opening { .. } = self.state {
            return Err(Violation::protocol("the peer does not begin with SETTINGS").into());
        }
        let Some(stream) = self.awaiting(number) else {
            self.unawaited(number, "DATA on a stream that awaits none")?;
            return Ok(self.flow.receive(len, reading.output)?);
        };
        let was_held = stream.receive.is_used_up();
        stream.receive.receive(len).map_err(beyond_window)?;
        let grant = if end_stream { None } else { stream.receive.release(len) };
        let (early, held) = (stream.status == 0, stream.receive.is_used_up());
        if let Some(by) = grant {
            self.flow.grant(number, by, reading.output);
        }
        self.flow.held_streams += u32::from(held);
        self.flow.held_streams -= u32::from(was_held);
        self.flow.receive(len, reading.output)?;
        if len == 0 && !end_stream {
            self.note_idle()?;
        }
        if len > 0 {
            self.idle_frames = 0;
        }
        if early {
            self.bad_data(number, (Ending::H2Stream, "DATA before HEADERS"), reading);
        }
        Ok(())
    }

    /// Handles faulty DATA. Whether the frame is the last of its stream is known only when all of
    /// it has come. The stream is reset in either case, so that splits make no difference.
    #[cold]
    fn bad_data<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        stream: u32,
        why: Malformed,
        reading: &mut Reading<'_, B, F>,
    ) {
        self.malformed(stream, why, false, reading);
    }
}

// Frames about the connection.
impl<T: Copy> Client<T> {
    fn settings<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        payload: &[u8],
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let first = matches!(self.state, State::Opening { .. });
        if !first {
            self.note_idle()?;
        }
        for (number, value) in parameters(payload) {
            if number == parameter::ENABLE_PUSH && value == 1 {
                return Err(Violation::protocol("a server that announces push").into());
            }
            let before = i64::from(self.peer.window);
            self.peer.apply(number, value)?;
            if number == parameter::INITIAL_WINDOW_SIZE {
                self.change_windows(i64::from(value) - before)?;
            }
        }
        write_settings_ack(reading.output);
        if first {
            self.state = State::Open;
        } else {
            self.accounting.account.announce(self.peer);
        }
        Ok(())
    }

    /// Changes the send window of each stream.
    fn change_windows(&mut self, by: i64) -> Result<(), Fault> {
        for stream in self.streams.iter_mut() {
            let had_room = stream.send.room() > 0;
            stream.send.change(by).map_err(too_large)?;
            match (had_room, stream.send.room() > 0) {
                _ if stream.unsent == 0 => {}
                (false, true) => self.flow.ready.push_back(stream.nth),
                (true, false) => self.flow.not_ready(stream.nth),
                _ => {}
            }
        }
        Ok(())
    }

    fn window_update<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        by: u32,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        if self.flow.uploading == 0 {
            self.note_idle()?;
        }
        if number == 0 {
            return Ok(self.flow.send.change(i64::from(by)).map_err(too_large)?);
        }
        if !self.was_opened(number) {
            return Err(Violation::protocol("a WINDOW_UPDATE on an idle stream").into());
        }
        let Some(stream) = self.awaiting(number) else { return Ok(()) };
        let had_room = stream.send.room() > 0;
        if stream.send.change(i64::from(by)).is_err() {
            // Only this stream ends by it (RFC 9113 §6.9.1).
            self.fail(number, Ending::H2Flow, Overflow::CODE, false, reading);
            return Ok(());
        }
        if !had_room && stream.send.room() > 0 && stream.unsent > 0 {
            let nth = stream.nth;
            self.flow.ready.push_back(nth);
        }
        Ok(())
    }

    fn reset<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        code: ErrorCode,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let opened = nth_of(number).filter(|nth| self.streams.was_opened(*nth));
        let Some(nth) = opened else {
            return Err(Violation::protocol("a RST_STREAM on an idle stream").into());
        };
        let Some(Stream { tag, begun, .. }) = self.take(nth) else { return self.note_idle() };
        // The peer says that it did nothing: whatever the method is, it may be asked again.
        let again = code == ErrorCode::RefusedStream && !begun;
        let ending = if again { Ending::StaleRefused } else { Ending::H2Stream };
        self.accounting.account.returned += u64::from(again);
        self.idle_frames = 0;
        (reading.on_outcome)(Outcome::unanswered(tag, ending, reading.now_ns));
        Ok(())
    }

    /// Handles GOAWAY: streams above `last` are not answered (RFC 9113 §6.8). The peer has done
    /// nothing for them, so they may be asked again, whatever their method is (§8.7).
    fn goaway<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        last: u32,
        code: ErrorCode,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let mut error = code != ErrorCode::NoError;
        if let State::Draining { last: before, error: erred } = self.state {
            if last > before {
                return Err(Violation::protocol("a GOAWAY whose last stream rises").into());
            }
            error |= erred;
            self.note_idle()?;
        } else {
            self.accounting.account.goaways += 1;
        }
        self.state = State::Draining { last, error };
        for nth in self.streams.numbers_from(last.div_ceil(2)) {
            let Some(Stream { tag, begun, .. }) = self.take(nth) else { continue };
            // No answer may begin on such a stream: then what the peer says cannot be trusted.
            let ending = if begun { Ending::H2Goaway } else { Ending::StaleGoaway };
            self.accounting.account.returned += u64::from(!begun);
            (reading.on_outcome)(Outcome::unanswered(tag, ending, reading.now_ns));
        }
        self.accounting.account.returned += self.streams.waiting() as u64;
        self.end_waiting(reading.now_ns, Ending::StaleGoaway, reading.on_outcome);
        Ok(())
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        let Violation { code, why, .. } = violation;
        let ending = match code {
            ErrorCode::FrameSizeError => Ending::H2FrameSize,
            ErrorCode::FlowControlError => Ending::H2Flow,
            ErrorCode::EnhanceYourCalm => Ending::Limit,
            _ => Ending::H2Protocol,
        };
        Fault { blame: Blame::All, ending, code, why }
    }
}

impl Fault {
    /// The fault for bytes that belong to no outstanding request.
    fn unsolicited(blame: Blame, why: &'static str) -> Self {
        Fault { blame, ending: Ending::H2Protocol, code: ErrorCode::ProtocolError, why }
    }
}
