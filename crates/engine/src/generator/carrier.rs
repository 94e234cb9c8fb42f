//! The path of a slot's requests to its peer: the socket, with TLS in between if there is any.
//!
//! Bytes copied for one connection alone, as all that TLS seals, are copied only as far as the
//! socket may soon take them. The rest waits shared by all connections until the earlier copies
//! have left.

use std::ops::Range;
use std::sync::Arc;

use trueload_drive::{Datagrams, Net, Token};

use super::slot::Secure;

/// Most bytes that TLS seals at once, in whole records.
const SEALED_AT_ONCE_BYTES: usize = 64 * 1024;
/// Nothing more is sealed, or copied otherwise, while this many bytes wait for the socket.
const COPIED_BYTES_MOST: usize = 128 * 1024;

/// The sending side of one slot.
#[derive(Debug)]
pub struct Carrier<'a, N> {
    pub(super) net: &'a mut N,
    pub(super) token: Token,
    pub(super) tls: Option<&'a mut Secure>,
    /// The buffer that TLS seals into, for all slots of the thread.
    pub(super) sealed: &'a mut Vec<u8>,
}

impl<N: Net> Carrier<'_, N> {
    /// Sends bytes; what the kernel does not take now is kept.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) {
        let Some(secure) = &mut self.tls else { return self.net.send(self.token, bytes) };
        if let Some(queued_bytes) = room_to_seal(secure, self.net, self.token, bytes.len()) {
            self.seal(bytes, queued_bytes);
        } else {
            secure.waiting.push(bytes);
            self.seal_waiting();
        }
    }

    /// Sends a part of shared bytes, which are copied only to be sealed.
    #[inline]
    pub fn send_shared(&mut self, bytes: &Arc<[u8]>, range: Range<usize>) {
        let Some(secure) = &mut self.tls else {
            return self.net.send_shared(self.token, bytes, range);
        };
        if let Some(queued_bytes) = room_to_seal(secure, self.net, self.token, range.len()) {
            self.seal(&bytes[range], queued_bytes);
        } else {
            secure.waiting.push_shared(bytes, range);
            self.seal_waiting();
        }
    }

    /// Sends datagrams of `segment_bytes` each; the last may have fewer.
    pub fn send_datagrams(&mut self, bytes: &[u8], segment_bytes: usize) {
        let datagrams = Datagrams { segment_bytes, ..Datagrams::one(bytes) };
        self.net.send_datagrams(self.token, datagrams);
    }

    /// Whether more may be copied for this connection alone; if not, `Protocol::send` is
    /// called again.
    #[inline]
    pub fn has_room(&self) -> bool {
        let unsealed = self.tls.as_ref().map_or(0, |secure| secure.waiting.len());
        unsealed + self.net.queued_bytes(self.token) < COPIED_BYTES_MOST
    }

    /// Ends our side when everything has been sent. Under TLS it stays open.
    pub fn end_sending(&mut self) {
        if self.tls.is_none() {
            self.net.end_sending(self.token);
        }
    }

    /// Ends our side when everything has been sent, once nothing more is awaited: TLS stacks take
    /// it as the end of both sides.
    pub(super) fn take_leave(&mut self) {
        if let Some(secure) = &mut self.tls {
            if !secure.waiting.is_empty() {
                return;
            }
            self.sealed.clear();
            secure.session.close(self.sealed);
            self.net.send(self.token, self.sealed);
        }
        self.net.end_sending(self.token);
    }

    /// Seals waiting bytes, as far as the socket has room; it is called again when those have left.
    pub(super) fn seal_waiting(&mut self) {
        while let Some(secure) = &mut self.tls
            && let Some(front) = secure.waiting.front()
        {
            let queued_bytes = self.net.queued_bytes(self.token);
            if queued_bytes >= COPIED_BYTES_MOST {
                return;
            }
            let len = front.len().min(SEALED_AT_ONCE_BYTES);
            self.sealed.clear();
            secure.session.seal(&front[..len], self.sealed);
            secure.waiting.advance(len);
            secure.sealed.push(queued_bytes, len, self.sealed.len());
            self.net.send(self.token, self.sealed);
        }
    }

    fn seal(&mut self, bytes: &[u8], queued_bytes: usize) {
        if let Some(secure) = &mut self.tls {
            self.sealed.clear();
            secure.session.seal(bytes, self.sealed);
            secure.sealed.push(queued_bytes, bytes.len(), self.sealed.len());
            self.net.send(self.token, self.sealed);
        }
    }
}

/// Returns the number of bytes that wait for the socket, if new bytes are to be sealed now. That is
/// so if they are few, no others wait to be sealed before them, and the socket has room.
#[inline]
fn room_to_seal(secure: &Secure, net: &impl Net, token: Token, len: usize) -> Option<usize> {
    if len > SEALED_AT_ONCE_BYTES || !secure.waiting.is_empty() {
        return None;
    }
    Some(net.queued_bytes(token)).filter(|queued_bytes| *queued_bytes < COPIED_BYTES_MOST)
}
