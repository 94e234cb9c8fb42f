//! One end of one TLS connection.
//!
//! How it works: the unbuffered interface of rustls is called until it has no more output. Bytes
//! that end in the middle of a record are stored here. Everything else is in [`Buffers`], which all
//! connections of a thread share, so an idle connection holds no buffer.

use std::fmt;
use std::ops::Deref;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::{Failure, Kind};

/// The maximum number of bytes that a connection stores until they can be read: one handshake
/// message (64 KiB at most) and the records that carry it. More than this is not TLS.
const REST_BYTES_MOST: usize = 128 * 1024;
/// The maximum that a record adds to its plaintext: a header, an explicit nonce, a content type, a
/// tag.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// The maximum plaintext of one record.
const RECORD_BYTES: usize = 16 * 1024;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Plaintext cannot be sent yet.
    Handshaking,
    /// Plaintext can be sent and received.
    Open,
    /// The peer has announced that nothing more will come.
    Closed,
}

/// The buffers shared by the sessions of a thread. The caller must take their contents before the
/// next call.
#[derive(Debug, Default)]
pub struct Buffers {
    /// The plaintext that was received.
    pub plain: Vec<u8>,
    /// The bytes for the socket.
    pub sealed: Vec<u8>,
    incoming: Vec<u8>,
}

impl Buffers {
    /// Empties both sides.
    #[inline]
    pub fn clear(&mut self) {
        self.plain.clear();
        self.sealed.clear();
    }
}

/// The result of a TLS handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub struct Secured {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The registered name of the cipher suite.
    pub cipher: String,
    /// The application protocol; null if the server chose none.
    pub alpn: Option<String>,
    /// Whether an earlier session was resumed.
    #[serde(skip)]
    pub resumed: bool,
}

/// Either end of a rustls connection.
pub trait Endpoint: Deref<Target = UnbufferedConnectionCommon<Self::Data>> {
    /// The data type that distinguishes the two ends.
    type Data;

    /// Reads records; see [`UnbufferedStatus`].
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Endpoint for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    #[inline]
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
}

impl Endpoint for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    #[inline]
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
}

/// One end of one connection.
pub struct Session<E> {
    endpoint: E,
    state: State,
    alpn_required: bool,
    /// Whether it has failed: nothing more is received or sent.
    failed: bool,
    /// The bytes that came and cannot be read yet.
    rest: Vec<u8>,
}

impl<E> fmt::Debug for Session<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys are left out.
        f.debug_struct("Session").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<E: Endpoint> Session<E> {
    pub(super) fn new(endpoint: E, state: State, alpn_required: bool) -> Self {
        Session { endpoint, state, alpn_required, failed: false, rest: Vec::new() }
    }

    /// The state of the session.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether part of a record has come that cannot be read yet.
    #[inline]
    pub fn is_in_record(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The result of the handshake; none before it is done.
    pub fn secured(&self) -> Option<Secured> {
        let common: &CommonState = &self.endpoint;
        let suite = common.negotiated_cipher_suite()?.suite();
        let name = suite.as_str()?;
        Some(Secured {
            version: match common.protocol_version()? {
                ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
                _ => "TLSv1.2".to_owned(),
            },
            // The names that rustls uses for the suites of TLS 1.3 are not the registered ones.
            cipher: name.replacen("TLS13_", "TLS_", 1),
            alpn: common.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            resumed: self.is_resumed(),
        })
    }

    /// The application protocol, once the handshake has chosen one.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.endpoint.alpn_protocol()
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.endpoint.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Appends the first bytes that this end sends.
    pub fn start(&mut self, buffers: &mut Buffers) -> Result<(), Failure> {
        let (_, outcome) = pump(&mut self.endpoint, &mut [], buffers);
        outcome.map(|_| ()).map_err(Failure::from)
    }

    /// Handles input. Plaintext and answers are appended to `buffers`, even those before a failure.
    /// After a failure the answers include an alert for the peer. A failure means that the peer
    /// violated the protocol, was not accepted, or gave up.
    #[inline]
    pub fn handle_input(&mut self, bytes: &[u8], buffers: &mut Buffers) -> Result<State, Failure> {
        if self.failed || self.state == State::Closed {
            // RFC 8446 §6.1: data after a close_notify is ignored.
            return Ok(State::Closed);
        }
        let outcome = match self.rest.is_empty() {
            true => self.handle_fresh(bytes, buffers),
            false => self.handle_behind(bytes, buffers),
        };
        let outcome = outcome.map_err(Failure::from).and_then(|closed| self.advance(closed));
        if outcome.is_err() {
            self.failed = true;
            self.rest = Vec::new();
            send_alert(&mut self.endpoint, &mut buffers.sealed);
        }
        outcome
    }

    /// Handles input when no earlier bytes are stored: the bytes are read in the shared buffer.
    #[inline]
    fn handle_fresh(&mut self, bytes: &[u8], buffers: &mut Buffers) -> Result<bool, Error> {
        let mut incoming = std::mem::take(&mut buffers.incoming);
        incoming.clear();
        incoming.extend_from_slice(bytes);
        let (used, outcome) = pump(&mut self.endpoint, &mut incoming, buffers);
        if outcome.is_ok() && used < incoming.len() {
            self.rest.extend_from_slice(&incoming[used..]);
        }
        buffers.incoming = incoming;
        outcome
    }

    /// Handles input that continues stored bytes.
    fn handle_behind(&mut self, bytes: &[u8], buffers: &mut Buffers) -> Result<bool, Error> {
        self.rest.extend_from_slice(bytes);
        let (used, outcome) = pump(&mut self.endpoint, &mut self.rest, buffers);
        self.rest.drain(..used);
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
        outcome
    }

    #[inline]
    fn advance(&mut self, closed: bool) -> Result<State, Failure> {
        if self.state == State::Handshaking {
            self.finish_handshake(closed)?;
        }
        if closed {
            self.state = State::Closed;
            self.rest = Vec::new();
        }
        if self.rest.len() > REST_BYTES_MOST {
            return Err(Failure::new(Kind::Protocol, "the peer sends a record without end"));
        }
        Ok(self.state)
    }

    fn finish_handshake(&mut self, closed: bool) -> Result<(), Failure> {
        let common: &CommonState = &self.endpoint;
        if common.is_handshaking() {
            return if closed { Err(Failure::eof()) } else { Ok(()) };
        }
        if self.alpn_required && common.alpn_protocol().is_none() {
            return Err(Failure::new(Kind::Alpn, "the server chose no application protocol"));
        }
        self.state = State::Open;
        Ok(())
    }

    /// Encrypts plaintext and appends its records to `sealed`. Nothing is sent before the handshake
    /// is done, or after this end was closed or has failed.
    #[inline]
    pub fn seal(&mut self, plain: &[u8], sealed: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        let records = plain.len() / RECORD_BYTES + 1;
        let room = plain.len() + records * RECORD_OVERHEAD_BYTES;
        with_traffic(&mut self.endpoint, &mut self.rest, sealed, |mut traffic, sealed| {
            grow(sealed, room, |room| traffic.encrypt(plain, room).map_err(needed));
        });
    }

    /// Appends the announcement that nothing more will be sent (close_notify).
    pub fn close(&mut self, sealed: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        with_traffic(&mut self.endpoint, &mut self.rest, sealed, |mut traffic, sealed| {
            grow(sealed, RECORD_OVERHEAD_BYTES, |room| {
                traffic.queue_close_notify(room).map_err(needed)
            });
        });
    }
}

/// Lets `write` append to `sealed`, with more room if it asks for it.
#[inline]
fn grow(
    sealed: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) {
    let start = sealed.len();
    sealed.resize(start + room, 0);
    let mut written = write(&mut sealed[start..]);
    if let Err(Some(InsufficientSizeError { required_size })) = written {
        sealed.resize(start + required_size, 0);
        written = write(&mut sealed[start..]);
    }
    sealed.truncate(start + written.unwrap_or(0));
}

/// The room that a write asks for; none if it can never succeed.
fn needed(error: EncryptError) -> Option<InsufficientSizeError> {
    match error {
        EncryptError::InsufficientSize(needed) => Some(needed),
        EncryptError::EncryptExhausted => None,
    }
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, sealed: &mut Vec<u8>) {
    // The size is unknown before the first attempt.
    grow(sealed, 0, |room| match data.encode(room) {
        Ok(written) => Ok(written),
        Err(EncodeError::InsufficientSize(needed)) => Err(Some(needed)),
        Err(EncodeError::AlreadyEncoded) => Err(None),
    });
}

/// Reads `incoming` as far as possible. Returns the number of bytes consumed, and whether the peer
/// has closed.
#[inline]
fn pump<E: Endpoint>(
    endpoint: &mut E,
    incoming: &mut [u8],
    buffers: &mut Buffers,
) -> (usize, Result<bool, Error>) {
    let mut used = 0;
    loop {
        let UnbufferedStatus { mut discard, state } = endpoint.process(&mut incoming[used..]);
        let outcome = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                match traffic.next_record() {
                    Some(Ok(record)) => {
                        discard += record.discard;
                        buffers.plain.extend_from_slice(record.payload);
                    }
                    Some(Err(error)) => break Some(Err(error)),
                    None => break None,
                }
            },
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, &mut buffers.sealed);
                None
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                None
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(Ok(true)),
            // There is nothing more to read, or early data, which our servers never allow.
            Ok(_) => Some(Ok(false)),
            Err(error) => Some(Err(error)),
        };
        used += discard;
        if let Some(outcome) = outcome {
            return (used, outcome);
        }
    }
}

/// Sends what is queued and then calls `write` if this end may send. rustls remembers how far it
/// has read `rest`, and must be given it again.
#[inline]
fn with_traffic<E: Endpoint>(
    endpoint: &mut E,
    rest: &mut Vec<u8>,
    sealed: &mut Vec<u8>,
    write: impl FnOnce(WriteTraffic<'_, E::Data>, &mut Vec<u8>),
) {
    loop {
        let UnbufferedStatus { discard, state } = endpoint.process(rest);
        match state {
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, sealed),
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => {}
            Ok(ConnectionState::WriteTraffic(traffic)) => return write(traffic, sealed),
            _ => return,
        }
        rest.drain(..discard);
    }
}

/// Sends the alert for the peer after a failure.
fn send_alert<E: Endpoint>(endpoint: &mut E, sealed: &mut Vec<u8>) {
    while endpoint.wants_write() {
        // Queued output comes before anything is read.
        let Ok(ConnectionState::EncodeTlsData(data)) = endpoint.process(&mut []).state else {
            return;
        };
        encode(data, sealed);
    }
}
