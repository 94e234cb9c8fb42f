//! Output of the client: the preface, requests as far as the peer permits streams, and bodies as
//! far as the windows allow.

use super::flow::Flow;
use super::{Client, State, Terms};
use crate::exchange::Exchange;
use crate::http2::frame::{
    FRAME_BYTES_LEAST, HEADER_BYTES, Header, Kind, PREFACE, flags, write_block, write_window_update,
};
use crate::http2::hpack;
use crate::http2::settings::{self, parameter};
use crate::http2::window::WINDOW_FIRST;
use crate::message::{Book, Head, Limits};

impl Terms {
    /// The parameters that SETTINGS announce.
    fn parameters(self) -> Vec<(u16, u32)> {
        let list_bytes = u32::try_from(Limits::default().head_bytes).unwrap_or(u32::MAX);
        let mut parameters = vec![
            (parameter::ENABLE_PUSH, 0),
            (parameter::INITIAL_WINDOW_SIZE, self.windows.stream),
            (parameter::MAX_HEADER_LIST_SIZE, list_bytes),
        ];
        if self.table_bytes != hpack::TABLE_BYTES {
            parameters.insert(0, (parameter::HEADER_TABLE_SIZE, self.table_bytes));
        }
        parameters
    }
}

/// The start of the first block: our encoder has no dynamic table (RFC 7541 §6.3). A peer that
/// permits none expects to be told so.
const NO_TABLE: u8 = 0x20;

impl<T: Copy> Client<T> {
    /// Begins a fresh connection with everything that precedes requests. It is usable once the peer
    /// has sent its SETTINGS. All outstanding requests must have been ended before.
    pub fn open(&mut self, terms: impl Into<Terms>, output: &mut Vec<u8>) {
        let terms = terms.into();
        debug_assert_eq!(self.outstanding(), 0);
        let mut streams = std::mem::take(&mut self.streams);
        streams.reset();
        let mut accounting = std::mem::take(&mut self.accounting);
        accounting.reopen();
        *self = Client { streams, accounting, ..Client::default() };
        let Terms { windows, table_bytes } = terms;
        self.flow = Flow::new(windows);
        self.blocks.announce(table_bytes);
        output.extend_from_slice(PREFACE);
        settings::write(output, &terms.parameters());
        if windows.connection > WINDOW_FIRST {
            write_window_update(output, 0, windows.connection - WINDOW_FIRST);
        }
    }

    /// Whether anything can be written now.
    #[inline]
    pub fn waits_to_write(&self) -> bool {
        self.may_begin() || (self.flow.send.room() > 0 && !self.flow.ready.is_empty())
    }

    /// Whether the peer permits one more stream.
    #[inline]
    pub(super) fn permits_more(&self) -> bool {
        self.peer.streams.is_none_or(|most| self.streams.open() < most as usize)
    }

    #[inline]
    fn may_begin(&self) -> bool {
        self.streams.waiting() > 0
            && self.permits_more()
            && self.state == State::Open
            && !self.streams.exhausted()
    }

    /// Writes waiting requests in order, and bodies, until `out` has about `bytes_most` bytes.
    #[inline]
    pub fn write(&mut self, book: &impl Book<T>, bytes_most: usize, out: &mut Vec<u8>) {
        while out.len() < bytes_most && self.may_begin() {
            self.begin(book, bytes_most, out);
        }
        while out.len() < bytes_most
            && self.flow.send.room() > 0
            && let Some(nth) = self.flow.ready.pop_front()
        {
            self.write_body(nth, book, bytes_most, out);
        }
    }

    #[inline]
    fn begin(&mut self, book: &impl Book<T>, bytes_most: usize, out: &mut Vec<u8>) {
        let Some(tag) = self.streams.next_waiting() else { return };
        let at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        if !self.streams.was_opened(0) {
            out.push(NO_TABLE);
        }
        let Head { plain_bytes, body_bytes: body } = book.write_block(&tag, out);
        let nth = self.streams.begin(tag, self.peer.window, self.flow.of_stream, body);
        let len = (out.len() - at - HEADER_BYTES) as u32;
        self.accounting.account.headers_out.note(plain_bytes, len.into());
        let end_stream = if body == 0 { flags::END_STREAM } else { 0 };
        let stream = 2 * nth + 1;
        if len > FRAME_BYTES_LEAST {
            let block = out.split_off(at + HEADER_BYTES);
            out.truncate(at);
            write_block(out, stream, &block, body == 0, FRAME_BYTES_LEAST);
        } else {
            let flags = flags::END_HEADERS | end_stream;
            let header = Header { len, kind: Kind::HEADERS, flags, stream };
            out[at..at + HEADER_BYTES].copy_from_slice(&header.bytes());
        }
        if body > 0 {
            self.flow.uploading += 1;
            // Bodies that wait for the connection's window go first. Otherwise a steady flow of new
            // requests would take all of it, and they would time out.
            if self.flow.ready.is_empty() {
                self.write_body(nth, book, bytes_most, out);
            } else {
                self.flow.ready.push_back(nth);
            }
        }
    }

    /// Writes as much of a stream's body as the windows and `bytes_most` allow.
    fn write_body(&mut self, nth: u32, book: &impl Book<T>, bytes_most: usize, out: &mut Vec<u8>) {
        // If SETTINGS close and reopen a window, its stream is in the queue twice.
        let uploading = self.streams.get_mut(nth).filter(|stream| stream.unsent > 0);
        let Some(stream) = uploading else { return };
        while stream.unsent > 0 && stream.send.room() > 0 {
            let room = stream.send.room().min(self.flow.send.room());
            if room == 0 || out.len() >= bytes_most {
                self.flow.ready.push_front(nth);
                return;
            }
            let room = room.min(FRAME_BYTES_LEAST as usize) as u64;
            let len = stream.unsent.min(room);
            let flags = if len == stream.unsent { flags::END_STREAM } else { 0 };
            let number = 2 * nth + 1;
            Header { len: len as u32, kind: Kind::DATA, flags, stream: number }.write(out);
            book.write_body(&stream.tag, stream.sent..stream.sent + len, out);
            stream.send.spend(len as usize);
            self.flow.send.spend(len as usize);
            (stream.sent, stream.unsent) = (stream.sent + len, stream.unsent - len);
        }
        self.flow.uploading -= u32::from(stream.unsent == 0);
    }
}
