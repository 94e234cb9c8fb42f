//! The messages of the contract `ws-shootout`, in its four dialects, for client and server. Bytes
//! of whole WebSocket messages are turned into meanings, and the other way round.
//!
//! How it works: each dialect has a file; [`Dialect`] is the only interface to them. Client
//! messages carry a [`Key`] (sender, sequence) and padding, and so does everything that a server
//! makes of them. Times are recorded by key. Only engines that share a broadcast read a time that
//! a server returns: the [`Stamp`], which its checksum protects.
//!
//! A client begins with [`Joining::start`] and continues with [`Joining::handle_message`] until it
//! is [`Joining::Done`]. From then on it writes with [`Dialect::write_broadcast`] and reads with
//! [`Dialect::parse`]. [`Memory`] recognises a broadcast by its bytes, without parsing. A server
//! sends [`Dialect::write_welcome`] and passes each client message to [`Dialect::answer`], which
//! writes what is due to the sender and to all.
//!
//! Tolerated: any order of members and any white space in JSON, unknown members (which a server may
//! add), and text in a binary frame. Not tolerated: a message of a known kind without what that
//! kind must carry.
//!
//! Must not know: frames, sockets, clocks, and which messages are in flight.

mod actioncable;
mod binary;
mod joining;
mod json;
mod memory;
mod payload;
mod phoenix;
mod stamp;

pub use joining::Joining;
pub use memory::Memory;
pub use stamp::{STAMP_BYTES, Stamp};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stamp::Padding;

/// How the messages of the contract `ws-shootout` are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DialectPlan")]
pub enum Dialect {
    /// Objects with `type` and `payload`.
    #[default]
    Json,
    /// A type byte, a length, a time, padding.
    Binary,
    /// Rails' Action Cable.
    ActionCable,
    /// Phoenix channels.
    Phoenix,
}

/// Identifies a message within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The client that sent the message.
    pub sender: u32,
    /// The number of the message among that client's messages.
    pub sequence: u32,
}

/// A parsed server message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The server is ready to be joined.
    Welcome,
    /// The join is confirmed.
    Joined,
    /// An echo of one of our messages.
    Echo(Key),
    /// A broadcast, perhaps one of ours.
    Broadcast(Key),
    /// A broadcast of several engines, with its stamp, which may be another message's.
    Stamped(Key, Stamp),
    /// The receipt for our broadcast, with the number of listeners if the dialect reports it.
    Result(Key, Option<u64>),
    /// A keep-alive that needs no answer.
    Ping,
    /// A message of the dialect that does not matter here.
    Other,
    /// The server violates the contract or will not continue.
    Error(Wrong),
}

impl From<(Key, Option<Stamp>)> for Parsed {
    fn from((key, stamp): (Key, Option<Stamp>)) -> Self {
        stamp.map_or(Parsed::Broadcast(key), |stamp| Parsed::Stamped(key, stamp))
    }
}

/// Why a message is refused.
#[allow(missing_docs)] // The texts say what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("a message that is not in the dialect")]
    Malformed,
    #[error("a payload that is none of ours")]
    Foreign,
    #[error("a payload that has been altered")]
    Altered,
    #[error("the server refused")]
    Refused,
    #[error("the server announced its end")]
    Closing,
}

/// A parsed client message, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The client wants to be a listener from now on.
    Join,
    /// The client no longer wants to be a listener.
    Leave,
    /// An echo, due to the sender.
    Echo,
    /// A broadcast, due to all listeners, followed by a receipt to the sender.
    Broadcast,
    /// A keep-alive.
    Heartbeat,
    /// Something that this server does not offer, and refuses if the dialect has a message for
    /// that.
    Other,
    /// A message that is not in the dialect: the connection is to be closed.
    Error(Wrong),
}

/// The messages due after a client's message: whole messages, empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Sent first, to every listener.
    pub to_all: Vec<u8>,
    /// Sent afterwards, to the client that asked.
    pub to_sender: Vec<u8>,
}

/// Phoenix drops a client that is silent for 60 s; its own clients send a heartbeat every 30 s.
const PHOENIX_HEARTBEAT_NS: u64 = 30_000_000_000;

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 4] =
        [Dialect::Json, Dialect::Binary, Dialect::ActionCable, Dialect::Phoenix];

    /// The name of the dialect in plans.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Json => "json",
            Dialect::Binary => "binary",
            Dialect::ActionCable => "actioncable",
            Dialect::Phoenix => "phoenix",
        }
    }

    /// The value for `Sec-WebSocket-Protocol`, if the dialect has one.
    pub fn subprotocol(self) -> Option<&'static str> {
        (self == Dialect::ActionCable).then_some("actioncable-v1-json")
    }

    /// Whether messages are text; otherwise they are binary.
    pub fn is_text(self) -> bool {
        self != Dialect::Binary
    }

    /// Whether a client has to join before it is a listener; otherwise it is one from the upgrade
    /// on.
    pub fn is_joined(self) -> bool {
        matches!(self, Dialect::ActionCable | Dialect::Phoenix)
    }

    /// The silence after which a client has to send [`Dialect::write_heartbeat`], in ns.
    pub fn heartbeat_ns(self) -> Option<u64> {
        (self == Dialect::Phoenix).then_some(PHOENIX_HEARTBEAT_NS)
    }

    /// Writes a client's request for an echo. `padding` must be UTF-8 except for
    /// [`Dialect::Binary`]; what is not UTF-8 is replaced.
    pub fn write_echo(self, key: Key, padding: &[u8], out: &mut Vec<u8>) {
        self.write("echo", binary::ECHO, key, padding, out);
    }

    /// Writes a client's request for a broadcast. `padding` as in [`Dialect::write_echo`].
    pub fn write_broadcast(self, key: Key, padding: &[u8], out: &mut Vec<u8>) {
        self.write("broadcast", binary::BROADCAST, key, padding, out);
    }

    fn write(self, name: &str, code: u8, key: Key, padding: &[u8], out: &mut Vec<u8>) {
        match self {
            Dialect::Json => json::write(name, key, padding, out),
            Dialect::Binary => binary::write(code, key, padding, out),
            Dialect::ActionCable => actioncable::write(name, key, padding, out),
            Dialect::Phoenix => phoenix::write(name, key, padding, out),
        }
    }

    /// Writes a client's request to become a listener, if the dialect has one.
    pub fn write_join(self, out: &mut Vec<u8>) {
        match self {
            Dialect::Json | Dialect::Binary => {}
            Dialect::ActionCable => actioncable::write_subscribe(out),
            Dialect::Phoenix => phoenix::write_join(out),
        }
    }

    /// Writes a client's heartbeat, if the dialect has one.
    pub fn write_heartbeat(self, out: &mut Vec<u8>) {
        if self == Dialect::Phoenix {
            phoenix::write_heartbeat(out);
        }
    }

    /// Parses a server's message, for the client. `padding` is what all our messages are padded
    /// with.
    pub fn parse(self, message: &[u8], padding: &[u8]) -> Parsed {
        self.parse_padded(message, Padding { bytes: padding, stamped: false })
    }

    /// Does the same where each broadcast has a [`Stamp`] in front of its padding.
    pub fn parse_stamped(self, message: &[u8], padding: &[u8]) -> Parsed {
        self.parse_padded(message, Padding { bytes: padding, stamped: true })
    }

    fn parse_padded(self, message: &[u8], padding: Padding<'_>) -> Parsed {
        let parsed = match self {
            Dialect::Json => json::parse(message, padding),
            Dialect::Binary => binary::parse(message, padding),
            Dialect::ActionCable => actioncable::parse(message, padding),
            Dialect::Phoenix => phoenix::parse(message, padding),
        };
        parsed.unwrap_or_else(Parsed::Error)
    }

    /// Writes the first message of a server after the upgrade, if the dialect has one.
    pub fn write_welcome(self, out: &mut Vec<u8>) {
        if self == Dialect::ActionCable {
            actioncable::write_welcome(out);
        }
    }

    /// Writes a server's keep-alive, due every 3 s, if the dialect has one.
    pub fn write_ping(self, unix_s: u64, out: &mut Vec<u8>) {
        if self == Dialect::ActionCable {
            actioncable::write_ping(unix_s, out);
        }
    }

    /// Parses a client's message, for the server, and writes what is due to `due`, which is cleared
    /// first. `listeners` is the number of listeners. A payload may be any JSON and is forwarded
    /// unchanged.
    pub fn answer(self, message: &[u8], listeners: u64, due: &mut Due) -> Asked {
        due.to_all.clear();
        due.to_sender.clear();
        let asked = match self {
            Dialect::Json => json::answer(message, listeners, due),
            Dialect::Binary => binary::answer(message, due),
            Dialect::ActionCable => actioncable::answer(message, due),
            Dialect::Phoenix => phoenix::answer(message, due),
        };
        asked.unwrap_or_else(Asked::Error)
    }
}
