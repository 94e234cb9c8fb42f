//! Output of the server: answers, as far as the windows allow.
//!
//! What waits for a window is not copied if it is a whole body: that stays where it is, and a stream
//! that its client never reads takes no memory for it.

use std::borrow::Cow;

use super::Server;
use super::core::Core;
use super::streams::Phase;
use crate::http2::frame::{ErrorCode, write_block, write_data, write_reset};

impl<M: Copy> Server<M> {
    /// Answers a request with a block of fields and a body. Without a body the stream ends with the
    /// block. False if the request is gone.
    #[inline]
    pub fn answer(
        &mut self,
        stream: u32,
        block: &[u8],
        body: &'static [u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let core = &mut self.core;
        let most = core.peer.frame_bytes as usize;
        let room = core.send.room().min(core.peer.window as usize).min(most);
        let fits = body.len() <= room && block.len() <= most && !core.resized;
        if fits && core.current.take_if(|current| current.0 == stream).is_some() {
            // Answered at once and completely, so the stream is never stored.
            core.resets = core.resets.saturating_sub(1);
            write_block(out, stream, block, body.is_empty(), core.peer.frame_bytes);
            if !body.is_empty() {
                write_data(out, stream, body, true);
                core.send.spend(body.len());
            }
            return true;
        }
        if !self.head(stream, block, body.is_empty(), out) {
            return false;
        }
        let rest = self.core.send_part(stream, body, true, out);
        self.core.keep_rest(stream, rest.map(Cow::Borrowed));
        true
    }

    /// Begins an answer whose body follows in parts. False if the request is gone.
    pub fn answer_head(&mut self, stream: u32, block: &[u8], out: &mut Vec<u8>) -> bool {
        self.head(stream, block, false, out)
    }

    fn head(&mut self, stream: u32, block: &[u8], ends: bool, out: &mut Vec<u8>) -> bool {
        let core = &mut self.core;
        core.keep_current();
        let Some(open) = core.streams.open.get_mut(&stream) else { return false };
        if open.phase != Phase::Waiting {
            return false;
        }
        open.phase = Phase::Answering;
        core.resets = core.resets.saturating_sub(1);
        core.waiting -= 1;
        if std::mem::take(&mut core.resized) {
            // The peer has made its table smaller; our encoder uses none (RFC 7541 §4.2).
            let block = [&[0x20], block].concat();
            write_block(out, stream, &block, ends, core.peer.frame_bytes);
        } else {
            write_block(out, stream, block, ends, core.peer.frame_bytes);
        }
        if ends {
            core.streams.open.remove(&stream);
        }
        true
    }

    /// Sends the next part of a body; `last` says whether it is the last. False if the request is
    /// gone.
    pub fn answer_body(&mut self, stream: u32, part: &[u8], last: bool, out: &mut Vec<u8>) -> bool {
        let core = &mut self.core;
        let open = core.streams.open.get(&stream);
        if open.is_none_or(|open| open.phase != Phase::Answering || open.rest_ends) {
            return false;
        }
        let rest = core.send_part(stream, part, last, out);
        core.keep_rest(stream, rest.map(|rest| Cow::Owned(rest.to_vec())));
        true
    }

    /// Whether output of a stream waits for a window, or for room: a further part would only wait
    /// behind it.
    pub fn is_waiting_to_send(&self, stream: u32) -> bool {
        self.core.streams.open.get(&stream).is_some_and(|open| !open.rest.is_empty())
    }

    /// Sets how many bytes there is room for in the output; bodies that wait for their windows wait
    /// for it, too. What is answered now is not held up: the caller looks before it answers.
    pub fn set_room(&mut self, bytes: usize) {
        self.core.room = bytes;
    }

    /// Whether bodies wait for room in the output: [`Server::go_on`] sends them.
    pub fn is_full(&self) -> bool {
        self.core.is_full
    }

    /// Sends what has waited for room.
    pub fn go_on(&mut self, out: &mut Vec<u8>) {
        self.core.is_full = false;
        self.core.send_what_waits(out);
    }
}

impl<M: Copy> Core<M> {
    /// Sends a part of a body as far as there is room, from where it is: a copy of a large body maps
    /// fresh pages. Returns the rest of it, unless the stream has ended.
    fn send_part<'a>(
        &mut self,
        stream: u32,
        mut part: &'a [u8],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let open = self.streams.open.get_mut(&stream)?;
        open.rest_ends = last;
        while open.rest.is_empty() {
            let room = self.send.room().min(open.send.room()).min(self.peer.frame_bytes as usize);
            let len = part.len().min(room);
            let ends = last && len == part.len();
            if len == 0 && !ends {
                break;
            }
            write_data(out, stream, &part[..len], ends);
            open.send.spend(len);
            self.send.spend(len);
            part = &part[len..];
            if ends {
                self.streams.open.remove(&stream);
                return None;
            }
        }
        Some(part)
    }

    /// Keeps what a stream could not send, behind what waits already.
    fn keep_rest(&mut self, stream: u32, rest: Option<Cow<'static, [u8]>>) {
        let (Some(rest), Some(open)) = (rest, self.streams.open.get_mut(&stream)) else { return };
        if open.rest.is_empty() {
            open.rest = rest;
        } else {
            open.rest.to_mut().extend_from_slice(&rest);
        }
    }

    /// Sends one frame of the pending output of a stream. False if nothing is pending or there is
    /// no room.
    fn send_frame(&mut self, stream: u32, out: &mut Vec<u8>) -> bool {
        let Some(open) = self.streams.open.get_mut(&stream) else { return false };
        if out.len() >= self.room && !open.rest.is_empty() {
            self.is_full = true;
            return false;
        }
        let room = self.send.room().min(open.send.room()).min(self.peer.frame_bytes as usize);
        let len = open.rest.len().min(room);
        let ends = open.rest_ends && len == open.rest.len();
        if len == 0 && !ends {
            return false;
        }
        write_data(out, stream, &open.rest[..len], ends);
        open.advance(len);
        open.send.spend(len);
        self.send.spend(len);
        if ends {
            self.streams.open.remove(&stream);
        }
        true
    }

    /// Sends pending output after windows have opened: one frame of each stream in turn, as long as
    /// there is room. Returns whether anything was sent.
    pub(super) fn send_what_waits(&mut self, out: &mut Vec<u8>) -> bool {
        let waits =
            |open: &&u32| self.streams.open.get(*open).is_some_and(|open| !open.rest.is_empty());
        let mut streams: Vec<u32> = self.streams.open.keys().filter(waits).copied().collect();
        streams.sort_unstable();
        let mut sent = false;
        while !streams.is_empty() {
            streams.retain(|stream| self.send_frame(*stream, out));
            sent |= !streams.is_empty();
        }
        sent
    }

    /// Sends the pending output of one stream, as far as there is room. Returns whether anything
    /// was sent.
    pub(super) fn send_what_waits_on(&mut self, stream: u32, out: &mut Vec<u8>) -> bool {
        let mut sent = false;
        while self.send_frame(stream, out) {
            sent = true;
        }
        sent
    }

    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        self.keep_current();
        let Some(open) = self.streams.open.remove(&stream) else { return false };
        self.waiting -= usize::from(open.phase == Phase::Waiting);
        self.streams.note_reset(stream);
        write_reset(out, stream, code);
        true
    }
}
