//! Unusual behaviour of an HTTP/2 server: violations of the protocol, and rare but legal behaviour.

use std::collections::VecDeque;

use trueload_wire::http2::frame::ErrorCode;

use super::answers::frame;
use super::{Act, Answer, Http2, Job, Piece};
use crate::peer::{ENDLESS_BYTES, FLOOD_EVERY_NS, FLOOD_PIECE_BYTES, FLOOD_PIECES};
use crate::scenario::{Bytes, End, Http2Trick};

/// The frame that a flood repeats: type, flags, stream and payload.
type Drop<'a> = (u8, u8, Option<u32>, &'a [u8]);

/// A stream with more room than this is not overfilled.
const BEYOND_BYTES_MOST: i64 = 100_000;

impl Http2 {
    /// Plays a trick in place of the answer to a request.
    pub(super) fn play(
        &mut self,
        trick: &Http2Trick,
        stream: u32,
        at_ns: u64,
        acts: &mut Vec<Act>,
    ) {
        use Http2Trick as T;
        match *trick {
            T::Reset(code, percent) => self.reset_behind(stream, code, percent),
            T::Refuse => {
                self.refused.push(stream);
                self.reset_behind(stream, ErrorCode::RefusedStream as u32, 0);
            }
            T::GoAway(behind, code, end) => {
                self.goaway(stream, behind, code, at_ns, acts);
                match end {
                    Some(end) => self.end(at_ns, end, acts),
                    None => self.answer_rightly(stream),
                }
            }
            T::GoAways(first, second) => {
                self.goaway(stream, first, 0, at_ns, acts);
                self.goaway(stream, second, 0, at_ns, acts);
                self.answer_rightly(stream);
            }
            T::Truncate(percent, end) => self.truncate(stream, percent, end, at_ns, acts),
            T::EndBehind(end) => {
                self.send_whole(stream, at_ns, acts);
                self.end(at_ns, end, acts);
            }
            T::Length(by) => self.other_length(stream, by),
            T::Stall(percent) => {
                let pieces = self.part(stream, percent);
                self.answers.insert(stream, Answer::new(pieces, false));
            }
            T::Twice => {
                self.send_whole(stream, at_ns, acts);
                let again = self.whole_answer(stream);
                self.send(at_ns, again, None, acts);
            }
            T::Block(bytes) => self.send_frame(stream, (1, 5, bytes.0), at_ns, acts),
            T::Fields(fields) => self.answer_with_fields(stream, fields),
            T::Frames(frames) => {
                for (kind, flags, payload) in frames {
                    self.send_frame(stream, (*kind, *flags, payload.0), at_ns, acts);
                }
            }
            T::Instead(bytes) => self.send_raw(bytes, at_ns, acts),
            T::Before(bytes) => {
                self.send_raw(bytes, at_ns, acts);
                self.answer_rightly(stream);
            }
            T::Elsewhere(behind) => self.answer_elsewhere(stream, behind, at_ns, acts),
            T::BeyondWindow => self.beyond_window(stream, at_ns, acts),
            T::Flood(kind, flags, on, bytes) => {
                self.flood(stream, (kind, flags, on, bytes.0), at_ns, acts);
            }
            T::FloodUnread(kind, flags, on, bytes) => {
                self.reading_paused = true;
                self.flood(stream, (kind, flags, on, bytes.0), at_ns, acts);
            }
            T::Dribble(every_ns) => {
                let pieces = self.pieces(stream);
                let answer = Answer { every_ns, ..Answer::new(pieces, true) };
                self.answers.insert(stream, answer);
            }
            T::Endless => self.answer_without_end(stream),
            T::Late(by_ns) => self.later(at_ns + by_ns, Job::Late(stream), acts),
            T::ReadsNothing => {
                self.reading_paused = true;
                self.answer_rightly(stream);
            }
        }
    }

    /// Returns this percentage of the right answer's pieces, without the end of the stream.
    fn part(&mut self, stream: u32, percent: u64) -> VecDeque<Piece> {
        let mut pieces = self.pieces(stream);
        pieces.truncate(pieces.len() * percent as usize / 100);
        if let Some(Piece::Fields(_, end) | Piece::Data(_, end)) = pieces.back_mut() {
            *end = false;
        }
        pieces
    }

    fn answer_without_end(&mut self, stream: u32) {
        let fields = vec![(":status".to_owned(), "200".to_owned())];
        let body = Piece::Data(vec![b'x'; ENDLESS_BYTES], false);
        let pieces = [Piece::Fields(fields, false), body].into();
        self.answers.insert(stream, Answer::new(pieces, false));
    }

    fn reset_behind(&mut self, stream: u32, code: u32, percent: u64) {
        let mut pieces = self.part(stream, percent);
        pieces.push_back(Piece::Reset(code));
        self.answers.insert(stream, Answer::new(pieces, false));
    }

    /// Sends GOAWAY. Streams after the last one that it names are not answered any more.
    fn goaway(&mut self, stream: u32, behind: i32, code: u32, at_ns: u64, acts: &mut Vec<Act>) {
        let last = stream.saturating_add_signed(2 * behind);
        self.name_last(at_ns, last, ErrorCode::of(code), acts);
    }

    /// Writes the whole right answer, whether or not there is room for it.
    fn whole_answer(&mut self, stream: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in self.pieces(stream) {
            match piece {
                Piece::Fields(fields, end) => self.write_fields(stream, &fields, end, &mut out),
                Piece::Data(body, end) => {
                    frame(&mut out, 0, u8::from(end), stream, &body);
                    self.reader.spend(stream, body.len());
                }
                Piece::Reset(_) | Piece::Pause(_) => {}
            }
        }
        out
    }

    fn send_whole(&mut self, stream: u32, at_ns: u64, acts: &mut Vec<Act>) {
        let bytes = self.whole_answer(stream);
        let start = self.reader.end_answer(stream, false);
        self.whole += u64::from(start.is_some());
        self.send(at_ns, bytes, start, acts);
    }

    fn truncate(&mut self, stream: u32, percent: u64, end: End, at_ns: u64, acts: &mut Vec<Act>) {
        let mut bytes = self.whole_answer(stream);
        bytes.truncate(bytes.len() * percent as usize / 100);
        self.send(at_ns, bytes, None, acts);
        self.end(at_ns, end, acts);
    }

    fn other_length(&mut self, stream: u32, by: i64) {
        let mut pieces = self.pieces(stream);
        let body: usize = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Data(body, _) => body.len(),
                _ => 0,
            })
            .sum();
        let length = (body as i64 + by).max(0).to_string();
        let other = |fields: &mut Vec<(String, String)>| {
            fields.retain(|(name, _)| name != "content-length");
            fields.push(("content-length".to_owned(), length.clone()));
        };
        pieces.iter_mut().for_each(|piece| match piece {
            Piece::Fields(fields, _)
                if fields.iter().any(|(name, value)| name == ":status" && value != "103") =>
            {
                other(fields)
            }
            _ => {}
        });
        // Without a body any length is right, and then the answer is complete.
        self.answers.insert(stream, Answer::new(pieces, self.head));
    }

    fn answer_with_fields(&mut self, stream: u32, fields: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let fields = fields.iter().map(owned).collect();
        let pieces = [Piece::Fields(fields, false), Piece::Data(b"hello".to_vec(), true)].into();
        self.answers.insert(stream, Answer::new(pieces, false));
    }

    fn send_frame(
        &mut self,
        stream: u32,
        (kind, flags, payload): (u8, u8, &[u8]),
        at_ns: u64,
        acts: &mut Vec<Act>,
    ) {
        self.reader.lenient = true;
        let mut bytes = Vec::new();
        frame(&mut bytes, kind, flags, stream, payload);
        if kind < 2 && flags & 1 != 0 {
            self.reader.end_answer(stream, true);
        }
        self.send(at_ns, bytes, None, acts);
    }

    fn send_raw(&mut self, bytes: Bytes, at_ns: u64, acts: &mut Vec<Act>) {
        self.reader.lenient = true;
        self.send(at_ns, bytes.0.to_vec(), None, acts);
    }

    fn answer_elsewhere(&mut self, stream: u32, behind: i32, at_ns: u64, acts: &mut Vec<Act>) {
        let other = stream.saturating_add_signed(behind);
        let bytes = self.whole_answer(other);
        // The other stream may be open, or already opened by a request that has not arrived. Then
        // this answer settles it.
        let (settles, start) = self.reader.answered_elsewhere(other);
        self.whole += u64::from(settles);
        self.send(at_ns, bytes, start, acts);
    }

    /// Sends more than there is room for, unless the room is very large.
    fn beyond_window(&mut self, stream: u32, at_ns: u64, acts: &mut Vec<Act>) {
        let room = self.reader.room(stream).max(0);
        if room > BEYOND_BYTES_MOST {
            return self.answer_rightly(stream);
        }
        let mut bytes = Vec::new();
        self.write_fields(stream, &[(":status".to_owned(), "200".to_owned())], false, &mut bytes);
        let beyond = vec![b'y'; 16_384];
        for _ in 0..room / 16_384 + 2 {
            frame(&mut bytes, 0, 0, stream, &beyond);
        }
        self.send(at_ns, bytes, None, acts);
    }

    fn flood(&mut self, stream: u32, drop: Drop<'_>, at_ns: u64, acts: &mut Vec<Act>) {
        self.reader.lenient = true;
        let (kind, flags, on, payload) = drop;
        let mut first = Vec::new();
        match kind {
            // A CONTINUATION or a DATA frame needs HEADERS before it.
            9 => frame(&mut first, 1, 0, stream, &[0x88]),
            0 => frame(&mut first, 1, 4, stream, &[0x88]),
            // The first RST_STREAM ends the stream.
            3 => {
                self.reader.end_answer(on.unwrap_or(stream), true);
            }
            _ => {}
        }
        self.send(at_ns, first, None, acts);
        let mut piece = Vec::new();
        while piece.len() < FLOOD_PIECE_BYTES {
            frame(&mut piece, kind, flags, on.unwrap_or(stream), payload);
        }
        for _ in 0..FLOOD_PIECES {
            self.send(at_ns, piece.clone(), None, acts);
            self.busy_until_ns += FLOOD_EVERY_NS;
        }
    }
}
