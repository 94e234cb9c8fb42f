//! The messages of the contract `ws-shootout`, in its four dialects, for both sides: bytes of whole WebSocket messages
//! in, meanings out, and the other way round.
//!
//! How it works: each dialect has a file; [`Dialect`] is the one door to them. What clients send carries a [`Key`]
//! (sender, sequence) and padding, and so does everything that a server makes of it: whoever keeps times keeps them by
//! the key, and believes no time that comes back.
//!
//! A client opens with [`Joining::start`] and goes on with [`Joining::heard`] until it is [`Joining::Done`]; from then on
//! it writes with [`Dialect::write_broadcast`] and reads with [`Dialect::hear`]. [`Memory`] knows a broadcast again by
//! its bytes, without parsing. A server says [`Dialect::write_welcome`], and gives what it hears to
//! [`Dialect::answer`], which writes what is due to the sender and to all.
//!
//! What is forgiven: the order of members and white space in JSON, members that nobody knows (as a server may add),
//! text in a binary frame. What is not: a message of a known kind that does not carry what that kind must.
//!
//! What it must not know: frames, sockets, clocks, and which messages are under way.

mod actioncable;
mod binary;
mod joining;
mod json;
mod memory;
mod payload;
mod phoenix;

pub use joining::Joining;
pub use memory::Memory;

/// How a server puts the contract's messages into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `{"type":"echo","payload":…}`.
    Json,
    /// A type byte, a length, eight bytes for the key, padding.
    Binary,
    /// Rails' Action Cable: a channel `BenchmarkChannel`, subprotocol `actioncable-v1-json`.
    ActionCable,
    /// Phoenix' channels, their first serializer (objects): a topic `room:lobby`.
    Phoenix,
}

/// Which message it is: unique within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The client that sent it.
    pub sender: u32,
    /// Counts that client's messages.
    pub sequence: u32,
}

/// A message of a server, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The server is ready to be joined.
    Welcome,
    /// The join is confirmed.
    Joined,
    /// An echo of our own.
    Echo(Key),
    /// Somebody's broadcast, perhaps our own.
    Broadcast(Key),
    /// The receipt for our broadcast, with the number of listeners where the dialect tells it.
    Result(Key, Option<u64>),
    /// A sign of life that wants no answer.
    Ping,
    /// Something of the dialect that is of no concern here.
    Other,
    /// The server does not keep to the contract, or will not go on.
    Error(Wrong),
}

/// Why a message cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It is not in the dialect.
    #[error("a message that is not in the dialect")]
    Malformed,
    /// It is in the dialect, but its payload is not one of ours.
    #[error("a payload that is none of ours")]
    Foreign,
    /// It carries one of our keys, and other padding than was sent.
    #[error("a payload that has been altered")]
    Altered,
    /// The server refuses the join, or what was asked.
    #[error("the server refused")]
    Refused,
    /// The server announces that it ends the connection.
    #[error("the server announced its end")]
    Closing,
}

/// What a server was asked by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To be a listener from now on.
    Join,
    /// To be a listener no longer.
    Leave,
    /// An echo: due to the sender.
    Echo,
    /// A broadcast: due to all listeners, and then a receipt to the sender.
    Broadcast,
    /// A sign of life.
    Heartbeat,
    /// Something that this server does not offer, and refuses where the dialect has words for that.
    Other,
    /// Something that is not in the dialect: the connection is to be closed.
    Error(Wrong),
}

/// What is due after a client's message: whole messages, empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// To every listener, first.
    pub to_all: Vec<u8>,
    /// To the one who asked, after that.
    pub to_sender: Vec<u8>,
}

/// Phoenix gives up on a client that is silent for 60 s; its own clients speak every 30 s.
const PHOENIX_HEARTBEAT_NS: u64 = 30_000_000_000;

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] =
        [Dialect::Json, Dialect::Binary, Dialect::ActionCable, Dialect::Phoenix];

    /// As it is called in plans and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Json => "json",
            Dialect::Binary => "binary",
            Dialect::ActionCable => "actioncable",
            Dialect::Phoenix => "phoenix",
        }
    }

    /// What `Sec-WebSocket-Protocol` has to say.
    #[must_use]
    pub fn subprotocol(self) -> Option<&'static str> {
        (self == Dialect::ActionCable).then_some("actioncable-v1-json")
    }

    /// Whether messages are text, or else binary.
    #[must_use]
    pub fn is_text(self) -> bool {
        self != Dialect::Binary
    }

    /// Whether a client has to ask before it is a listener; else it is one from the upgrade on.
    #[must_use]
    pub fn is_joined(self) -> bool {
        matches!(self, Dialect::ActionCable | Dialect::Phoenix)
    }

    /// After how much silence a client has to say [`Dialect::write_heartbeat`], in ns.
    #[must_use]
    pub fn heartbeat_ns(self) -> Option<u64> {
        (self == Dialect::Phoenix).then_some(PHOENIX_HEARTBEAT_NS)
    }

    /// Client: asks for the message to come back. `padding` must be UTF-8 but for [`Dialect::Binary`]: what is not is replaced.
    pub fn write_echo(self, key: Key, padding: &[u8], out: &mut Vec<u8>) {
        match self {
            Dialect::Json => json::write("echo", key, padding, out),
            Dialect::Binary => binary::write(binary::ECHO, key, padding, out),
            Dialect::ActionCable => actioncable::write("echo", key, padding, out),
            Dialect::Phoenix => phoenix::write("echo", key, padding, out),
        }
    }

    /// Client: asks for the message to go to all. `padding` as in [`Dialect::write_echo`].
    pub fn write_broadcast(self, key: Key, padding: &[u8], out: &mut Vec<u8>) {
        match self {
            Dialect::Json => json::write("broadcast", key, padding, out),
            Dialect::Binary => binary::write(binary::BROADCAST, key, padding, out),
            Dialect::ActionCable => actioncable::write("broadcast", key, padding, out),
            Dialect::Phoenix => phoenix::write("broadcast", key, padding, out),
        }
    }

    /// Client: asks to be a listener, where that is asked for.
    pub fn write_join(self, out: &mut Vec<u8>) {
        match self {
            Dialect::Json | Dialect::Binary => {}
            Dialect::ActionCable => actioncable::write_subscribe(out),
            Dialect::Phoenix => phoenix::write_join(out),
        }
    }

    /// Client: a sign of life, where one is asked for.
    pub fn write_heartbeat(self, out: &mut Vec<u8>) {
        if self == Dialect::Phoenix {
            phoenix::write_heartbeat(out);
        }
    }

    /// Client: what a server's message means. `padding` is what all our messages are padded with.
    #[must_use]
    pub fn parse(self, message: &[u8], padding: &[u8]) -> Parsed {
        let heard = match self {
            Dialect::Json => json::parse(message, padding),
            Dialect::Binary => binary::parse(message, padding),
            Dialect::ActionCable => actioncable::parse(message, padding),
            Dialect::Phoenix => phoenix::parse(message, padding),
        };
        heard.unwrap_or_else(Parsed::Error)
    }

    /// Server: what a client hears first after the upgrade, where the dialect has a word for that.
    pub fn write_welcome(self, out: &mut Vec<u8>) {
        if self == Dialect::ActionCable {
            actioncable::write_welcome(out);
        }
    }

    /// Server: a sign of life, every 3 s, where the dialect has one.
    pub fn write_ping(self, unix_s: u64, out: &mut Vec<u8>) {
        if self == Dialect::ActionCable {
            actioncable::write_ping(unix_s, out);
        }
    }

    /// Server: what a client's message asks for; what is due is written to `due`, which is cleared before.
    /// `listeners` is how many there are. A payload may be any JSON, and goes out as it came.
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

impl std::str::FromStr for Dialect {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.ok_or("dialects are json, binary, actioncable and phoenix")
    }
}
