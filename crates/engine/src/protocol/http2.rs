//! The protocol's counts of HTTP/2 connections beside the endings of requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_wire::http2::client;
use trueload_wire::http2::settings::Settings;

use super::sum;

/// What the connections of a phase counted. Times are those of the window, requests times nanoseconds; counts are also of the
/// drain, and those of the first phase also of the set-up before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http2 {
    /// Connections on which requests were made over HTTP/2.
    pub connections: u64,
    /// Connections whose peer answered in HTTP/1; where it could choose, those on which requests were made over it.
    pub http1: u64,
    /// Connections whose end the peer has announced (GOAWAY).
    pub goaways: u64,
    /// Requests that the peer gave back undone (GOAWAY, REFUSED_STREAM) and that may be sent again.
    pub returned: u64,
    /// Streams that we have reset: of requests that timed out, or whose answers were malformed.
    pub resets: u64,
    /// Open streams, times nanoseconds: over the length of the window it is the mean number of streams in flight.
    #[serde(deserialize_with = "sum::read")]
    pub streams_ns: u128,
    /// What requests in flight waited for.
    pub waits_ns: Waits,
    /// Header fields of requests.
    pub headers_out: HeaderBytes,
    /// Header fields of answers.
    pub headers_in: HeaderBytes,
    /// MAX_CONCURRENT_STREAMS as the peers announced it.
    pub max_concurrent_streams: Announced,
    /// INITIAL_WINDOW_SIZE.
    pub initial_window_size: Announced,
    /// MAX_FRAME_SIZE.
    pub max_frame_size: Announced,
    /// HEADER_TABLE_SIZE.
    pub header_table_size: Announced,
}

/// Time that requests in flight waited, times their number. The time in flight is `queued` and `streams_ns` together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waits {
    /// Not sent yet, for whatever reason.
    #[serde(deserialize_with = "sum::read")]
    pub queued: u128,
    /// The part of `queued` in which the peer permitted no more streams.
    #[serde(deserialize_with = "sum::read")]
    pub stream: u128,
    /// A request's body: the window that the peer gives the connection is used up.
    #[serde(deserialize_with = "sum::read")]
    pub send_connection: u128,
    /// A request's body: the window that the peer gives its stream is used up.
    #[serde(deserialize_with = "sum::read")]
    pub send_stream: u128,
    /// An answer: the window that we give the connection is used up. An upper bound: all streams that it could hold up count.
    #[serde(deserialize_with = "sum::read")]
    pub receive_connection: u128,
    /// An answer: the window that we give its stream is used up.
    #[serde(deserialize_with = "sum::read")]
    pub receive_stream: u128,
}

/// Bytes of header fields in one direction, all of one connection in its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderBytes {
    /// Names and values.
    pub plain: u64,
    /// The same as they were sent.
    pub coded: u64,
}

/// A parameter of SETTINGS as the peers announced it, or as it is without that. Null stands for no limit, or where nothing was
/// heard of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// The least of all connections and times.
    pub least: Option<u32>,
    /// The most.
    pub most: Option<u32>,
}

impl From<&client::Account> for Http2 {
    fn from(found: &client::Account) -> Self {
        let announced = |of: fn(&Settings) -> Option<u32>| {
            found.announced.map_or(Announced::default(), |client::Announced { least, most }| {
                Announced { least: of(&least), most: of(&most) }
            })
        };
        Http2 {
            connections: found.connections,
            http1: found.http1 + found.chose_http1,
            goaways: found.goaways,
            returned: found.returned,
            resets: found.resets,
            streams_ns: found.open_ns,
            waits_ns: found.waits_ns.into(),
            headers_out: found.headers_out.into(),
            headers_in: found.headers_in.into(),
            max_concurrent_streams: announced(|settings| settings.streams),
            initial_window_size: announced(|settings| Some(settings.window)),
            max_frame_size: announced(|settings| Some(settings.frame_bytes)),
            header_table_size: announced(|settings| Some(settings.table_bytes)),
        }
    }
}

impl From<client::Waits<u128>> for Waits {
    fn from(found: client::Waits<u128>) -> Self {
        Waits {
            queued: found.queued,
            stream: found.stream,
            send_connection: found.send_connection,
            send_stream: found.send_stream,
            receive_connection: found.receive_connection,
            receive_stream: found.receive_stream,
        }
    }
}

impl From<client::HeaderBytes> for HeaderBytes {
    fn from(found: client::HeaderBytes) -> Self {
        HeaderBytes { plain: found.plain, coded: found.coded }
    }
}
