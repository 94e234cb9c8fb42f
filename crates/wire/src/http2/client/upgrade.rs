//! The upgrade of a connection that begins with HTTP/1.1 (RFC 7540 §3.2; RFC 9113 only keeps the
//! name).
//!
//! How it works: an HTTP/1.1 request asks for the upgrade and carries our SETTINGS. After a 101 the
//! connection is HTTP/2, as if it had begun so, and stream 1 answers that request. That answer is
//! not used: only flow control takes note of it. The connection is usable when it has ended.
//!
//! Must not know: what the request is for, and who counts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::flow::Terms;
use super::input::Reading;
use super::{Client, Fault, Stage};
use crate::exchange::Ending;
use crate::http1::template::{Template, Texts};
use crate::http1::upgrade::{OpeningError, Upgrade};
use crate::http1::{Limits, ParseError};
use crate::http2::frame::ErrorCode;
use crate::http2::request::is_left_out;
use crate::http2::settings;

/// The stream that answers the request.
const ANSWER: u32 = 1;

/// The request that asks for the upgrade, the same on all connections.
#[derive(Clone, Debug)]
pub struct UpgradeRequest {
    bytes: Box<[u8]>,
    terms: Terms,
}

impl UpgradeRequest {
    /// Creates a request for the upgrade from another request, as HEAD without a body. Placeholders
    /// are filled with 0.
    #[must_use]
    pub fn new(texts: &Texts<'_>, with_places: bool, terms: impl Into<Terms>) -> Self {
        let terms = terms.into();
        let kept = texts.headers.iter().filter(|(name, value)| {
            let name = name.to_ascii_lowercase();
            name == "host" || !(is_left_out(&name, value) || is_about_a_body(&name))
        });
        let payload = URL_SAFE_NO_PAD.encode(settings::payload(&terms.parameters()));
        let own = [
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", &payload),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<_> = kept.cloned().chain(own).collect();
        let texts = Texts { method: "HEAD", path: texts.path, headers: &headers, body: None };
        let make = if with_places { Template::filled } else { Template::plain };
        let mut bytes = Vec::new();
        make(&texts).write(&(), &mut |part| bytes.extend_from_slice(part.bytes()));
        UpgradeRequest { bytes: bytes.into(), terms }
    }
}

/// Whether a field describes content, which this request does not have.
fn is_about_a_body(name: &str) -> bool {
    name.starts_with("content-") || matches!(name, "expect" | "http2-settings")
}

/// The state of the answer to the request, on stream 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FirstStream {
    /// There is none: the connection began with HTTP/2.
    #[default]
    None,
    Awaited,
    Ended,
}

/// An upgrade in progress.
#[derive(Debug)]
pub(super) struct Upgrading {
    answer: Upgrade,
    terms: Terms,
    why_not: Option<OpeningError>,
}

impl<T: Copy> Client<T> {
    /// Begins a fresh connection by asking for the upgrade. It is usable when the peer has agreed,
    /// sent its SETTINGS, and answered.
    pub fn upgrade(&mut self, request: &UpgradeRequest, output: &mut Vec<u8>) {
        let (answer, terms, why_not) = (Upgrade::default(), request.terms, None);
        self.stage = Stage::Upgrading;
        self.upgrading = Some(Box::new(Upgrading { answer, terms, why_not }));
        output.extend_from_slice(&request.bytes);
    }

    /// The reason why the connection was not upgraded, if that is why it is unusable.
    #[must_use]
    pub fn why_not_upgraded(&self) -> Option<OpeningError> {
        self.upgrading.as_ref()?.why_not
    }

    /// Handles input before the upgrade. Once the upgrade is done, returns the rest, which is
    /// HTTP/2.
    pub(super) fn read_upgrade<'a, R, F>(
        &mut self,
        bytes: &'a [u8],
        reading: &mut Reading<'_, R, F>,
    ) -> Result<Option<&'a [u8]>, Fault> {
        let Some(upgrading) = self.upgrading.as_deref_mut() else { return Ok(Some(bytes)) };
        let outcome = upgrading.answer.feed(bytes, &Limits::default()).and_then(|taken| {
            if taken.is_some() {
                upgrading.answer.leads_to("h2c", "does not upgrade to h2c")?;
            }
            Ok(taken)
        });
        match outcome {
            Ok(None) => Ok(None),
            Ok(Some(taken)) => {
                let terms = upgrading.terms;
                self.upgrading = None;
                self.stage = Stage::Opening { like_http1: 0 };
                self.first = FirstStream::Awaited;
                self.streams.skip_first();
                self.open(terms, reading.output);
                Ok(Some(&bytes[taken..]))
            }
            Err(why) => {
                upgrading.why_not = Some(why);
                let endless = matches!(why, OpeningError::Http(ParseError::Limit(_)));
                let ending = if endless { Ending::Limit } else { Ending::H2Protocol };
                let why = "the connection was not upgraded";
                Err(Fault { ending: Some(ending), code: ErrorCode::ProtocolError, why })
            }
        }
    }

    /// Whether a stream is the one that answers the upgrade request and has not ended.
    #[inline]
    pub(super) fn answers_upgrade(&self, stream: u32) -> bool {
        stream == ANSWER && self.first == FirstStream::Awaited
    }

    /// Notes the end of the answer to the upgrade, if this is its stream.
    pub(super) fn end_of_upgrade(&mut self, stream: u32) {
        if self.answers_upgrade(stream) {
            self.first = FirstStream::Ended;
            if self.stage == Stage::Answering {
                self.stage = Stage::Open;
            }
        }
    }
}
