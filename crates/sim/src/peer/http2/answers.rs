//! Writes the answers of an HTTP/2 server, in all their forms, as far as the client's windows
//! permit.

use std::collections::VecDeque;

use trueload_wire::http2::frame::{Header, Kind, flags, write_block, write_data, write_ping};
use trueload_wire::http2::hpack::Indexing;

use super::{Act, Answer, Http2, Job, Part, Piece};
use crate::peer::Reply;
use crate::scenario::{BODY, Style};

/// Maximum payload of a DATA or HEADERS frame that the peer writes.
const FRAME_BYTES_MOST: i64 = 16_384;

impl Http2 {
    /// Builds the right answer in one of its possible forms, as pieces.
    pub(super) fn pieces(&mut self, stream: u32) -> VecDeque<Piece> {
        if let Some(reply) = self.reply(stream) {
            return self.pieces_of(&reply);
        }
        let varied = self.manner.http2.varied;
        let status = if let Style::Status(status) = self.manner.style { status } else { 200 };
        let body = match self.manner.style {
            Style::Large(bytes) => "y".repeat(bytes),
            _ => BODY.to_owned(),
        };
        let chance = &mut self.chance;
        let field = |name: &str, value: String| (name.to_owned(), value);
        let mut fields = vec![field(":status", status.to_string())];
        if !(varied && chance.one_in(3)) {
            fields.push(field("content-length", body.len().to_string()));
        }
        if varied && chance.one_in(3) {
            fields.push(field("date", format!("it is {}", chance.below(100))));
        }
        let mut pieces = VecDeque::new();
        if varied && chance.one_in(6) {
            pieces.push_back(Piece::Fields(vec![field(":status", "103".to_owned())], false));
        }
        if self.head {
            pieces.push_back(Piece::Fields(fields, true));
            return pieces;
        }
        pieces.push_back(Piece::Fields(fields, false));
        let trailers = varied && chance.one_in(6);
        let mut rest = body.as_bytes();
        while varied && chance.one_in(2) {
            let (part, behind) = rest.split_at(chance.below(rest.len() as u64 + 1) as usize);
            pieces.push_back(Piece::Data(part.to_vec(), false));
            rest = behind;
        }
        let alone = varied && chance.one_in(6);
        pieces.push_back(Piece::Data(rest.to_vec(), !trailers && !alone));
        if trailers {
            pieces.push_back(Piece::Fields(vec![field("x-sum", "1".to_owned())], true));
        } else if alone {
            pieces.push_back(Piece::Data(Vec::new(), true));
        }
        pieces
    }

    /// The pieces of a site's answer, in one of the forms of its version.
    fn pieces_of(&mut self, reply: &Reply) -> VecDeque<Piece> {
        let mut pieces = of_reply(reply);
        let varied = self.manner.http2.varied;
        if varied && self.chance.one_in(6) {
            let fields = vec![(":status".to_owned(), "103".to_owned())];
            pieces.push_front(Piece::Fields(fields, false));
        }
        if varied
            && self.chance.one_in(6)
            && let Some(Piece::Data(_, end)) = pieces.back_mut()
        {
            *end = false;
            // What stands in a trailer is no value of a header (RFC 9110 section 6.5.1).
            let trailers = vec![("x-value".to_owned(), "late".to_owned())];
            pieces.push_back(Piece::Fields(trailers, true));
        }
        pieces
    }

    /// The answer of a site to the request of a stream.
    fn reply(&self, stream: u32) -> Option<Reply> {
        self.talking.as_ref()?.site.reply(&self.reader.asked(stream)?)
    }

    /// Notes that the right answer of a stream whose request began at `start` was sent whole.
    /// Returns the offset of the request that it settles: that of the first hop.
    fn note_whole(
        &mut self,
        reply: Option<&Reply>,
        frames: u64,
        start: Option<u64>,
    ) -> Option<u64> {
        let (Some(talking), Some(reply)) = (&self.talking, reply) else { return start };
        let chunks = talking.counts_frames();
        talking.site.note_whole(reply.parts.map(|parts| if chunks { frames } else { parts }));
        if reply.leads {
            self.redirected.entry(reply.whole).or_insert(start?);
            return Some(u64::MAX);
        }
        self.redirected.remove(&reply.whole).or(start)
    }

    /// Sends whatever can be sent now.
    pub(super) fn pump(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        if !self.opened || self.over {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        self.send(at_ns, owed, None, acts);
        let open = &self.reader.streams;
        self.answers.retain(|stream, _| open.contains_key(stream));
        let free = self.answers.iter().filter(|(_, answer)| answer.not_before_ns <= at_ns);
        let mut streams: Vec<u32> = free.map(|(stream, _)| *stream).collect();
        while !streams.is_empty() && !self.over {
            // Streams take turns, or are drawn at random.
            let nth =
                if self.manner.http2.varied { self.chance.below(streams.len() as u64) } else { 0 };
            let stream = streams[nth as usize];
            if !self.go_on_with(stream, at_ns, acts) {
                streams.swap_remove(nth as usize);
                streams.sort_unstable();
            }
        }
        self.leave(at_ns, acts);
    }

    /// Sends the next piece of a stream's answer. Returns false if nothing is left to send or there
    /// is no room.
    fn go_on_with(&mut self, stream: u32, at_ns: u64, acts: &mut Vec<Act>) -> bool {
        let Some(mut answer) = self.answers.remove(&stream) else { return false };
        let Some(piece) = answer.pieces.pop_front() else { return false };
        let mut bytes = Vec::new();
        if self.manner.http2.varied && self.chance.one_in(16) {
            self.write_beside(&mut bytes);
        }
        let ended = match piece {
            Piece::Fields(fields, end) => {
                self.write_fields(stream, &fields, end, &mut bytes);
                end
            }
            Piece::Data(body, end) => {
                let (sent, before) = (!body.is_empty(), bytes.len());
                let left = self.write_body(stream, body, end, &mut bytes);
                answer.frames += u64::from(sent && bytes.len() > before);
                if let Some(left) = left {
                    let moved = !bytes.is_empty();
                    answer.pieces.push_front(Piece::Data(left, end));
                    self.answers.insert(stream, answer);
                    self.send(at_ns, bytes, None, acts);
                    return moved;
                }
                end
            }
            Piece::Pause(ns) => {
                let not_before_ns = at_ns + ns;
                self.later(not_before_ns, Job::Resume, acts);
                self.answers.insert(stream, Answer { not_before_ns, ..answer });
                return false;
            }
            Piece::Reset(code) => {
                frame(&mut bytes, 3, 0, stream, &code.to_be_bytes());
                self.reader.end_answer(stream, true);
                false
            }
        };
        let reply = if ended { self.reply(stream) } else { None };
        let start = if ended { self.reader.end_answer(stream, false) } else { None };
        let whole = ended && answer.right;
        let start =
            if whole { self.note_whole(reply.as_ref(), answer.frames, start) } else { start };
        if answer.every_ns > 0 {
            self.dribble(at_ns, bytes, start, answer.every_ns, acts);
        } else {
            self.send(at_ns, bytes, start.filter(|_| whole), acts);
        }
        if ended {
            self.whole += u64::from(whole);
            self.answered |= whole;
            return false;
        }
        self.answers.insert(stream, answer);
        true
    }

    fn dribble(
        &mut self,
        at_ns: u64,
        bytes: Vec<u8>,
        start: Option<u64>,
        every_ns: u64,
        acts: &mut Vec<Act>,
    ) {
        let last = bytes.len().saturating_sub(1);
        self.busy_until_ns = self.busy_until_ns.max(at_ns);
        for (nth, byte) in bytes.into_iter().enumerate() {
            self.busy_until_ns += every_ns;
            self.send(at_ns, vec![byte], start.filter(|_| nth == last), acts);
        }
    }

    /// Writes a frame that has no effect on requests.
    fn write_beside(&mut self, out: &mut Vec<u8>) {
        match self.chance.below(3) {
            0 => {
                self.reader.pings += 1;
                write_ping(out, *b"anything", false);
            }
            1 => frame(out, 2, 0, 5, &[0, 0, 0, 0, 9]),
            _ => frame(out, 99, 255, 3, b"whatever"),
        }
    }

    /// Writes a header block, in one frame or in several.
    pub(super) fn write_fields(
        &mut self,
        stream: u32,
        fields: &[(String, String)],
        end: bool,
        out: &mut Vec<u8>,
    ) {
        let varied = self.manner.http2.varied;
        let mut block = Vec::new();
        self.encoder.begin_block(&mut block);
        for (name, value) in fields {
            let ways = [Indexing::Insert, Indexing::Without, Indexing::Never];
            let indexing = if varied { self.chance.pick(&ways) } else { Indexing::Insert };
            self.encoder.field(&mut block, name.as_bytes(), value.as_bytes(), indexing);
        }
        let end_stream = if end { flags::END_STREAM } else { 0 };
        match self.chance.below(if varied { 6 } else { 1 }) {
            1 => {
                let least = block.len() as u64 / 20 + 1;
                let part = self.chance.between(least, least + 9) as u32;
                write_block(out, stream, &block, end, part);
            }
            2 => {
                let padding = self.chance.below(30) as u8;
                let padded = padded(&block, padding);
                let flags = flags::PADDED | flags::END_HEADERS | end_stream;
                frame(out, 1, flags, stream, &padded);
            }
            _ => write_block(out, stream, &block, end, FRAME_BYTES_MOST as u32),
        }
    }

    /// Writes as much of a body as there is room for. Returns the rest, or none if all was written.
    fn write_body(
        &mut self,
        stream: u32,
        body: Vec<u8>,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Option<Vec<u8>> {
        let room = self.reader.room(stream).min(FRAME_BYTES_MOST);
        let len = body.len() as i64;
        let padding = if self.manner.http2.varied { self.chance.below(40) } else { 0 };
        if padding > 20 && len + 1 + padding as i64 <= room {
            let padded = padded(&body, padding as u8);
            let end_stream = if end { flags::END_STREAM } else { 0 };
            frame(out, 0, flags::PADDED | end_stream, stream, &padded);
            self.reader.spend(stream, padded.len());
            return None;
        }
        if len <= room.max(0) {
            write_data(out, stream, &body, end);
            self.reader.spend(stream, body.len());
            return None;
        }
        if room > 0 {
            let (part, left) = body.split_at(room as usize);
            write_data(out, stream, part, false);
            self.reader.spend(stream, part.len());
            return Some(left.to_vec());
        }
        Some(body)
    }
}

/// The pieces of a site's answer.
fn of_reply(reply: &Reply) -> VecDeque<Piece> {
    let mut fields = vec![(":status".to_owned(), reply.status.to_string())];
    fields.extend(reply.fields.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
    if reply.parts.is_none() {
        fields.push(("content-length".to_owned(), reply.len().to_string()));
    }
    let bare = reply.head || reply.body.is_empty();
    let mut pieces = VecDeque::from([Piece::Fields(fields, bare)]);
    if bare {
        return pieces;
    }
    let last = reply.body.len() - 1;
    for (nth, Part { gap_ns, bytes }) in reply.body.iter().enumerate() {
        if *gap_ns > 0 {
            pieces.push_back(Piece::Pause(*gap_ns));
        }
        pieces.push_back(Piece::Data(bytes.clone(), nth == last));
    }
    pieces
}

fn padded(bytes: &[u8], padding: u8) -> Vec<u8> {
    let mut padded = vec![padding];
    padded.extend_from_slice(bytes);
    padded.resize(padded.len() + usize::from(padding), 0);
    padded
}

/// Appends a frame of any type.
pub(super) fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let kind = Kind(kind);
    Header { len: payload.len() as u32, kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}
