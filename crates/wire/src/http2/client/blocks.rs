//! The header sections of answers, and the end of an answer.

use super::answer::{Fields, Head};
use super::input::Reading;
use super::streams::{Stream, UNKNOWN};
use super::{Client, Fault};
use crate::exchange::{Ending, Outcome};
use crate::http2::frame::ErrorCode;
use crate::http2::hpack;
use crate::http2::violation::Violation;
use crate::message::{Book, Event, Limits, Location, Wants, is_redirect};

impl<T: Copy> Client<T> {
    /// Handles the beginning of a header block.
    #[inline]
    pub(super) fn begin_block<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        match self.awaiting(number) {
            Some(stream) if !stream.begun => {
                (stream.begun, stream.first_byte_ns) = (true, reading.now_ns);
                Ok(())
            }
            Some(_) => Ok(()),
            None => self.unawaited(number, "an answer on a stream that awaits none"),
        }
    }

    /// Handles a complete header block.
    #[inline]
    pub(super) fn handle_block<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        ends: bool,
        block: &[u8],
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let awaits_head = self.awaiting(number).map(|stream| stream.status == 0);
        if awaits_head == Some(true)
            && !reading.book.wants().is_content()
            && let Some((head, plain)) = self.blocks.recognise(block)
        {
            self.accounting.account.headers_in.note(plain.into(), block.len() as u64);
            self.handle_final(number, head, ends, reading);
            return Ok(());
        }
        self.decode_block(number, ends, block, awaits_head, reading)
    }

    #[inline(never)]
    fn decode_block<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        ends: bool,
        block: &[u8],
        awaits_head: Option<bool>,
        reading: &mut Reading<'_, B, F>,
    ) -> Result<(), Fault> {
        let (book, wants) = (reading.book, reading.book.wants());
        let tag = self.awaiting(number).map(|stream| stream.tag);
        let limits = tag.map_or_else(Limits::default, |tag| book.rules_of(&tag).limits);
        let trailers = awaits_head == Some(false);
        let mut fields = if trailers { Fields::of_trailers() } else { Fields::default() };
        let (mut count, mut plain) = (0, 0);
        let (follows, mut location) = (wants == Wants::Location, Location::Missing);
        let told = tag.filter(|_| wants.is_content());
        if let Some(tag) = told.filter(|_| !trailers) {
            book.note(&tag, Event::Head);
        }
        self.blocks.decode(block, limits.head_bytes, &mut |field| {
            count += 1;
            plain += field.name.len() + field.value.len();
            if follows && field.name == b"location" {
                location.add(field.value);
            }
            fields.add(field.name, field.value);
            match told {
                Some(tag) if trailers => book.note(&tag, Event::Trailer(field.name, field.value)),
                Some(tag) => book.note(&tag, Event::Field(field.name, field.value)),
                None => {}
            }
        })?;
        self.accounting.account.headers_in.note(plain as u64, block.len() as u64);
        if count > limits.header_count {
            let why = "too many header fields";
            return Err(Violation::of_connection(ErrorCode::EnhanceYourCalm, why).into());
        }
        if awaits_head.is_none() {
            // The stream was reset: only the table needed this block.
            return Ok(());
        }
        match fields.finish() {
            Err(malformed) => self.malformed(number, malformed, ends, reading),
            Ok(_) if trailers && ends => self.settle(number, reading),
            Ok(_) if trailers => {
                let endless = (Ending::H2Stream, "trailers that do not end the stream");
                self.malformed(number, endless, false, reading);
            }
            Ok(head) if head.is_interim() => self.handle_interim(number, ends, limits, reading),
            Ok(head) => {
                if follows && is_redirect(head.status) {
                    // Not remembered: each has to be decoded for its Location.
                    if let Some(stream) = self.awaiting(number) {
                        stream.location = Some(Box::new(location));
                    }
                } else if told.is_none() {
                    self.blocks.remember(block, head, plain as u32);
                }
                self.handle_final(number, head, ends, reading);
            }
        }
        Ok(())
    }

    fn handle_interim<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        ends: bool,
        limits: Limits,
        reading: &mut Reading<'_, B, F>,
    ) {
        let Some(stream) = self.awaiting(number) else { return };
        stream.interim = stream.interim.saturating_add(1);
        let too_many = u32::from(stream.interim) > limits.informational;
        if ends {
            let last = (Ending::H2Stream, "an interim answer that ends the stream");
            self.malformed(number, last, true, reading);
        } else if too_many {
            self.fail(number, Ending::Limit, ErrorCode::EnhanceYourCalm, false, reading);
        }
    }

    #[inline(always)]
    fn handle_final<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        head: Head,
        ends: bool,
        reading: &mut Reading<'_, B, F>,
    ) {
        let Some(stream) = self.awaiting(number) else { return };
        stream.coding = head.coding;
        let empty =
            matches!(head.status, 204 | 304) || reading.book.rules_of(&stream.tag).head_request;
        stream.status = head.status;
        stream.left = if empty { 0 } else { head.length.unwrap_or(UNKNOWN) };
        if ends {
            self.settle(number, reading);
        }
    }

    /// Settles the request of a stream whose answer is complete.
    #[inline]
    pub(super) fn settle<B: Book<T>, F: FnMut(Outcome<T>)>(
        &mut self,
        number: u32,
        reading: &mut Reading<'_, B, F>,
    ) {
        let Some(stream) = self.awaiting(number) else { return };
        let Stream { tag, nth, status, first_byte_ns, left, unsent, .. } = *stream;
        let is_whole = matches!(left, 0 | UNKNOWN);
        let (ending, content) = if is_whole {
            stream.body.end(status, reading.book, &tag)
        } else {
            (Ending::Framing, None)
        };
        let location = stream.location.take();
        // Not kept: a stream is large to move.
        drop(self.take(nth));
        if unsent > 0 {
            // The rest of the request is no longer needed.
            self.reset_upload(number, ErrorCode::Cancel, reading.output);
        }
        self.idle_frames = 0;
        if !is_whole {
            // The body is shorter than its content-length.
            return (reading.on_outcome)(Outcome::unanswered(tag, ending, reading.now_ns));
        }
        self.answered = true;
        if let Some(location) = location {
            reading.book.note(&tag, Event::Location(*location));
        }
        let (count, complete, status) = (1, true, Some(status));
        (reading.on_outcome)(Outcome {
            tag,
            count,
            ending,
            complete,
            status,
            first_byte_ns,
            content,
        });
    }
}

impl From<hpack::Error> for Fault {
    fn from(error: hpack::Error) -> Self {
        match error {
            hpack::Error::Limit => {
                let why = "a header list that is too long";
                Violation::of_connection(ErrorCode::EnhanceYourCalm, why).into()
            }
            hpack::Error::Compression(why) => {
                Violation::of_connection(ErrorCode::CompressionError, why).into()
            }
        }
    }
}
