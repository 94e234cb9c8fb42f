//! The answer to a request for another protocol on the same connection (RFC 9110 §7.8), up to the
//! head of the final answer.
//!
//! How it works: interim answers are skipped as in HTTP; the head of a 101 is kept for inspection.
//!
//! Must not know: which protocol follows, and what else its 101 must say.

use super::kept::KeptHead;
use super::limits::{Limits, ParseError};

/// The reason why a connection was not opened. The text names the reason and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The answer is not HTTP.
    #[error(transparent)]
    Http(#[from] ParseError),
    /// The answer has another status than 101.
    #[error("the server answered {0} instead of 101")]
    Status(u16),
    /// The answer is a 101 that the client must refuse according to its RFC.
    #[error("the server's 101 {0}")]
    HandshakeError(&'static str),
}

/// The part of an answer that has come so far.
#[derive(Debug)]
pub(crate) struct Upgrade {
    /// The number of 1xx answers before this one.
    interim: u32,
    head: KeptHead,
}

impl Default for Upgrade {
    fn default() -> Self {
        Upgrade { interim: 0, head: KeptHead::of_upgrade() }
    }
}

impl Upgrade {
    /// Feeds bytes of the answer. `Some(n)`: the head of a 101 is complete, and `n` of the bytes
    /// belong to it; the bytes after it are in the other protocol. `None`: all bytes were taken and
    /// more are needed.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, OpeningError> {
        let mut at = 0;
        loop {
            let Some(taken) = self.head.feed(&bytes[at..], limits)? else {
                return Ok(None);
            };
            at += taken;
            match self.head.status() {
                101 => return Ok(Some(at)),
                100..=199 if self.interim < limits.informational => {
                    self.interim += 1;
                    self.head = KeptHead::of_upgrade();
                }
                100..=199 => return Err(ParseError::Limit("too many 1xx responses").into()),
                status => return Err(OpeningError::Status(status)),
            }
        }
    }

    /// The complete head of a 101.
    pub(crate) fn head(&self) -> &KeptHead {
        &self.head
    }

    /// Whether any byte of the answer has come.
    pub(crate) fn started(&self) -> bool {
        self.interim > 0 || self.head.started()
    }

    /// Checks what the 101 of every protocol must say, and that it upgrades to `protocol` alone.
    /// `otherwise` is the error text if it does not.
    pub(crate) fn leads_to(
        &self,
        protocol: &str,
        otherwise: &'static str,
    ) -> Result<(), OpeningError> {
        let require =
            |is: bool, why| if is { Ok(()) } else { Err(OpeningError::HandshakeError(why)) };
        let head = &self.head;
        require(!head.is_http10(), "is HTTP/1.0")?;
        let mut upgrades = head.elements("Upgrade");
        let upgrade =
            upgrades.next().is_some_and(|to| to.eq_ignore_ascii_case(protocol.as_bytes()));
        require(upgrade && upgrades.next().is_none(), otherwise)?;
        let connection = head.has_element("Connection", "upgrade");
        require(connection, "does not say Connection: Upgrade")?;
        // A server must not send Content-Length in a 101 (RFC 9110 §8.6), nor Transfer-Encoding
        // (RFC 9112 §6.1). A recipient that obeys them takes the first frames for content. A
        // Content-Length of 0 means the same as none, and many servers have sent it.
        require(!head.has_content(), "says that it has content")
    }
}
