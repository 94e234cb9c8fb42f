//! What carries the requests of a slot to its peer: the socket, with TLS in between if there is any.

use std::ops::Range;
use std::sync::Arc;

use trueload_drive::{Net, Token};
use trueload_wire::tls::client::Client;

/// One slot's way out.
#[derive(Debug)]
pub struct Carrier<'a, N> {
    pub(super) net: &'a mut N,
    pub(super) token: Token,
    pub(super) tls: Option<&'a mut Client>,
    /// Where TLS seals, for all slots of the thread.
    pub(super) sealed: &'a mut Vec<u8>,
}

impl<N: Net> Carrier<'_, N> {
    /// Sends; what the kernel does not take now is kept.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            None => self.net.send(self.token, bytes),
            Some(_) => self.seal(bytes),
        }
    }

    /// Sends a part of shared bytes, which are copied only to be sealed.
    #[inline]
    pub fn send_shared(&mut self, bytes: &Arc<[u8]>, range: Range<usize>) {
        match &mut self.tls {
            None => self.net.send_shared(self.token, bytes, range),
            Some(_) => self.seal(&bytes[range]),
        }
    }

    /// Ends our side when everything has been sent. Under TLS it stays open.
    pub fn end_sending(&mut self) {
        if self.tls.is_none() {
            self.net.end_sending(self.token);
        }
    }

    fn seal(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.tls {
            self.sealed.clear();
            session.seal(bytes, self.sealed);
            self.net.send(self.token, self.sealed);
        }
    }
}
