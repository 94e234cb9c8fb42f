//! Output of the server: answers, as far as the windows allow.

use super::Server;
use super::core::Core;
use super::streams::Phase;
use crate::http2::frame::{ErrorCode, write_block, write_data, write_reset};

impl<M: Copy> Server<M> {
    /// Answers a request with a block of fields and a body. Without a body the stream ends with the
    /// block. False if the request is gone.
    #[inline]
    pub fn answer(&mut self, stream: u32, block: &[u8], body: &[u8], out: &mut Vec<u8>) -> bool {
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
        self.head(stream, block, body.is_empty(), out)
            && (body.is_empty() || self.answer_body(stream, body, true, out))
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
        let Some(open) = core.streams.open.get_mut(&stream) else { return false };
        if open.phase != Phase::Answering || open.rest_ends {
            return false;
        }
        open.rest_ends = last;
        let mut part = part;
        // What there is room for is sent from where it is: a copy of a large body maps fresh pages.
        while open.rest.is_empty() {
            let room = core.send.room().min(open.send.room()).min(core.peer.frame_bytes as usize);
            let len = part.len().min(room);
            let ends = last && len == part.len();
            if len == 0 && !ends {
                break;
            }
            write_data(out, stream, &part[..len], ends);
            open.send.spend(len);
            core.send.spend(len);
            part = &part[len..];
            if ends {
                core.streams.open.remove(&stream);
                return true;
            }
        }
        open.rest.extend(part);
        true
    }
}

impl<M: Copy> Core<M> {
    /// Sends one frame of the pending output of a stream. False if nothing is pending or there is
    /// no room.
    fn send_frame(&mut self, stream: u32, out: &mut Vec<u8>) -> bool {
        let Some(open) = self.streams.open.get_mut(&stream) else { return false };
        let room = self.send.room().min(open.send.room()).min(self.peer.frame_bytes as usize);
        let len = open.rest.len().min(room);
        let ends = open.rest_ends && len == open.rest.len();
        if len == 0 && !ends {
            return false;
        }
        write_data(out, stream, &open.rest.make_contiguous()[..len], ends);
        open.rest.drain(..len);
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
