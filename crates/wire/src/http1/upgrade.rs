//! The answer to a request that asks for another protocol on its connection (RFC 9110 §7.8), up to the head of the final one.
//!
//! How it works: interim answers are passed over as HTTP has it; a 101 is kept to be looked into.
//!
//! What it must not know: which protocol comes next, and what else its 101 has to say.

use super::kept::KeptHead;
use super::limits::{Limits, ParseError};

/// Why a connection was not opened. The text names the reason and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The answer is not HTTP.
    #[error(transparent)]
    Http(#[from] ParseError),
    /// The answer has another status than 101.
    #[error("the server answered {0} instead of 101")]
    Status(u16),
    /// The answer is a 101 that its RFC has the client refuse.
    #[error("the server's 101 {0}")]
    HandshakeError(&'static str),
}

/// An answer as far as it has come.
#[derive(Debug)]
pub(crate) struct Upgrade {
    /// 1xx answers that came before.
    interim: u32,
    head: KeptHead,
}

impl Default for Upgrade {
    fn default() -> Self {
        Upgrade { interim: 0, head: KeptHead::of_upgrade() }
    }
}

impl Upgrade {
    /// Feeds bytes of the answer. `Some`: the head of a 101 is whole, and so many bytes belonged to it; those behind are of
    /// the other protocol. `None`: more are needed, and all were taken.
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

    /// The head of a 101 that is whole.
    pub(crate) fn head(&self) -> &KeptHead {
        &self.head
    }

    /// Whether any byte of the answer has come.
    pub(crate) fn started(&self) -> bool {
        self.interim > 0 || self.head.started()
    }

    /// Whether the 101 says what that of every protocol has to, and upgrades to this one alone; `otherwise` is what it does
    /// if not.
    pub(crate) fn leads_to(
        &self,
        protocol: &str,
        otherwise: &'static str,
    ) -> Result<(), OpeningError> {
        let say = |is: bool, why| if is { Ok(()) } else { Err(OpeningError::HandshakeError(why)) };
        let head = &self.head;
        say(!head.is_http10(), "is HTTP/1.0")?;
        let mut upgrades = head.elements("Upgrade");
        let upgrade =
            upgrades.next().is_some_and(|to| to.eq_ignore_ascii_case(protocol.as_bytes()));
        say(upgrade && upgrades.next().is_none(), otherwise)?;
        let connection = head.has_element("Connection", "upgrade");
        say(connection, "does not say Connection: Upgrade")?;
        // A server must not send Content-Length in a 101 (RFC 9110 §8.6), nor Transfer-Encoding (RFC 9112 §6.1): who
        // goes by them takes the first frames for content. 0 says nothing else than its absence, and many servers
        // have sent it.
        say(!head.has_content(), "says that it has content")
    }
}
