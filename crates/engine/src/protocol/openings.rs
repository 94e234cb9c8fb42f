//! The protocol's connections that are opened when their requests are due.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps of these connections, each from when its request was due: HdrHistogram V2 compressed, base64; null when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Openings {
    /// To the established connection, before any TLS.
    pub connect: Option<String>,
    /// To the end of a full TLS handshake.
    pub full_handshake: Option<String>,
    /// To the end of a TLS handshake that took up an earlier session.
    pub resumed_handshake: Option<String>,
    /// To the first byte of an answer that ended its request well.
    pub first_byte: Option<String>,
}

impl From<&trueload_meter::Openings> for Openings {
    fn from(seen: &trueload_meter::Openings) -> Self {
        let encoded = seen.encoded();
        Openings {
            connect: encoded.connect,
            full_handshake: encoded.full_handshake,
            resumed_handshake: encoded.resumed_handshake,
            first_byte: encoded.first_byte,
        }
    }
}
