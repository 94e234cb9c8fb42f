//! The opening handshake of a client (RFC 6455 §4.1): the request, and whether the answer opens the
//! connection.
//!
//! How it works: an [`Opening`] is the request without its key, shared by all connections. An
//! [`Awaited`] is what one connection waits for. Interim answers are skipped as in HTTP, and the
//! final answer is judged when its head is complete.
//!
//! Must not know: sockets, and where the 16 bytes come from.

use super::accept::{self, ACCEPT, Accept, EXTENSIONS, KEY, PROTOCOL, VERSION};
use super::extension::{self, NOT_ASKED, OFFER};
use crate::http1::ParseError;
use crate::http1::kept::KeptHead;
use crate::message::Limits;

/// The fields that the handshake writes itself.
const OWN: [&str; 6] = ["Upgrade", "Connection", KEY, VERSION, ACCEPT, EXTENSIONS];

/// The lines that the handshake adds, up to its key.
const OWN_LINES: &str =
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ";

/// The reason why a connection was not opened. The text names the reason and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The answer is not HTTP.
    #[error(transparent)]
    Http(#[from] ParseError),
    /// The answer has another status than 101.
    #[error("the server answered {0} instead of 101")]
    Status(u16),
    /// The answer is a 101 that RFC 6455 tells the client to refuse.
    #[error("the server's 101 {0}")]
    HandshakeError(&'static str),
}

/// The error for a header that may not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is set by the opening handshake itself")]
pub struct OwnHeader(pub String);

/// The request of all connections.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Everything before the key.
    prefix: Box<[u8]>,
    /// The subprotocols asked for.
    protocols: Box<[Box<str>]>,
    /// The server has to choose one of them, as browsers want it.
    must_choose: bool,
    /// Messages may be compressed, if the server agrees.
    offers_deflate: bool,
}

impl Opening {
    /// Creates a request for `path` with these headers, which include Host, followed by those of
    /// the handshake. None of them may be one of the handshake's own.
    pub fn new(path: &str, headers: &[(String, String)]) -> Result<Self, OwnHeader> {
        let own = |name: &str| OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
        if let Some((name, _)) = headers.iter().find(|(name, _)| own(name)) {
            return Err(OwnHeader(name.clone()));
        }
        let mut prefix = format!("GET {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            prefix.push_str(&format!("{name}: {value}\r\n"));
        }
        prefix.push_str(OWN_LINES);
        let protocols = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(PROTOCOL));
        let protocols = protocols.flat_map(|(_, value)| value.split(','));
        let protocols = protocols.map(|protocol| protocol.trim().into()).collect();
        let prefix = prefix.into_bytes().into();
        Ok(Opening { prefix, protocols, must_choose: false, offers_deflate: false })
    }

    /// Creates the request from a text of HTTP/1 that is complete but for the handshake's headers.
    pub(super) fn of_request(text: &[u8]) -> Self {
        let head = text.strip_suffix(b"\r\n").unwrap_or(text);
        let fields = head.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        });
        let asked = fields.filter(|(name, _)| name.eq_ignore_ascii_case(PROTOCOL.as_bytes()));
        let protocols = asked.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        let protocols = protocols.map(|one| String::from_utf8_lossy(one.trim_ascii()).into());
        let (protocols, prefix) =
            (protocols.collect::<Box<[Box<str>]>>(), [head, OWN_LINES.as_bytes()]);
        let must_choose = !protocols.is_empty();
        let prefix = prefix.concat().into();
        Opening { must_choose, prefix, protocols, offers_deflate: false }
    }

    /// Offers permessage-deflate (RFC 7692), or does not.
    pub fn deflating(mut self, offers: bool) -> Self {
        self.offers_deflate = offers;
        self
    }

    /// Whether permessage-deflate is offered.
    pub fn offers_deflate(&self) -> bool {
        self.offers_deflate
    }

    /// Appends the request; its key is made from 16 random bytes.
    pub fn write(&self, random: [u8; 16], out: &mut Vec<u8>) -> Awaited {
        let key = accept::key(random);
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(&key);
        out.extend_from_slice(b"\r\n");
        if self.offers_deflate {
            out.extend_from_slice(OFFER);
        }
        out.extend_from_slice(b"\r\n");
        let (accept, head) = (accept::accept(&key), KeptHead::of_upgrade());
        Awaited { accept, interim: 0, head, deflates: false }
    }

    /// Gives back the memory of the request, which is written once: only the answer is judged by it.
    pub(super) fn forget_request(&mut self) {
        self.prefix = Box::default();
    }

    /// Decides whether a 101 opens the connection (RFC 6455 §4.1, the list at its end). Returns
    /// whether messages may be compressed.
    fn judge(&self, head: &KeptHead, accept: &Accept) -> Result<bool, &'static str> {
        let require = |is: bool, why| if is { Ok(()) } else { Err(why) };
        require(!head.is_http10(), "is HTTP/1.0")?;
        let mut upgrades = head.elements("Upgrade");
        let upgrade = upgrades.next().is_some_and(|to| to.eq_ignore_ascii_case(b"websocket"));
        require(upgrade && upgrades.next().is_none(), "does not upgrade to websocket")?;
        let connection = head.has_element("Connection", "upgrade");
        require(connection, "does not say Connection: Upgrade")?;
        // A server must not send Content-Length in a 101 (RFC 9110 §8.6), nor Transfer-Encoding
        // (RFC 9112 §6.1). A recipient that obeys them takes the first frames for content. A
        // Content-Length of 0 means the same as none, and many servers have sent it.
        require(!head.has_content(), "says that it has content")?;
        let mut accepts = head.values(ACCEPT);
        let accepted = accepts.next().ok_or("has no Sec-WebSocket-Accept")?;
        require(accepts.next().is_none(), "has a second Sec-WebSocket-Accept")?;
        require(accepted == accept, "has a Sec-WebSocket-Accept that does not fit the key")?;
        let mut extensions = head.elements(EXTENSIONS);
        let deflates = self.offers_deflate && extension::agreed(&mut extensions)?;
        require(extensions.next().is_none(), NOT_ASKED)?;
        let mut protocols = head.values(PROTOCOL);
        let asked = |one: &[u8]| self.protocols.iter().any(|asked| asked.as_bytes() == one);
        let chosen = protocols.next();
        let chooses = !self.must_choose || chosen.is_some();
        require(chooses, "chooses none of the subprotocols that were asked for")?;
        require(chosen.is_none_or(asked), "has a subprotocol that was not asked for")?;
        require(protocols.next().is_none(), "has a second subprotocol")?;
        Ok(deflates)
    }
}

/// The answer that one connection waits for.
#[derive(Debug)]
pub struct Awaited {
    accept: Accept,
    /// The number of 1xx answers before this one.
    interim: u32,
    head: KeptHead,
    deflates: bool,
}

impl Awaited {
    /// Feeds bytes of the answer to `opening`. `Some(n)`: the connection is open, and `n` of the
    /// bytes belonged to the answer; the bytes after it are frames. `None`: all bytes were taken
    /// and more are needed. After an error, neither the connection nor this value can be used.
    pub fn feed(
        &mut self,
        opening: &Opening,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, OpeningError> {
        let mut at = 0;
        loop {
            let Some(taken) = self.head.feed(&bytes[at..], limits)? else { return Ok(None) };
            at += taken;
            match self.head.status() {
                101 => break,
                100..=199 if self.interim < limits.informational => {
                    self.interim += 1;
                    self.head = KeptHead::of_upgrade();
                }
                100..=199 => return Err(ParseError::Limit("too many 1xx responses").into()),
                status => return Err(OpeningError::Status(status)),
            }
        }
        let judged = opening.judge(&self.head, &self.accept);
        self.deflates = judged.map_err(OpeningError::HandshakeError)?;
        Ok(Some(at))
    }

    /// Whether the answer that opened the connection agreed to compress messages.
    pub fn deflates(&self) -> bool {
        self.deflates
    }

    /// Whether any byte of the answer has come.
    pub fn started(&self) -> bool {
        self.interim > 0 || self.head.started()
    }
}
