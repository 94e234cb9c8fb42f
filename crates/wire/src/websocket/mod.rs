//! WebSocket, RFC 6455, both ends of it, without extensions.
//!
//! How it works, in the order of a connection:
//!
//! 1. The opening handshake. A client has one [`client::Opening`] for all its connections; it writes a request from 16
//!    random bytes, and what comes back is fed to the [`client::Awaited`] that it gave out. A server feeds a
//!    [`server::Opening`] and asks the request that it holds what it is, and what to answer. Both say how many
//!    bytes belong to the head: those behind it are frames.
//! 2. Frames. Each end has a [`Receiver`]; what is fed to it is heard as [`Event`]s at once. A connection on which
//!    no message is partial holds no memory. A refusal is final; [`Error::close_code`] is what to tell the peer.
//! 3. Sending needs no state: [`send`] writes messages, fragments and control frames behind what is there already. A
//!    client passes a masking key for each frame, a server none. To write a payload in place: [`send::header`], the
//!    payload, and for a client [`mask::apply`].
//!
//! ```
//! use trueload_wire::websocket::{Event, Kind, Limits, Receiver, Role, Scratch, send};
//!
//! let mut wire = Vec::new();
//! send::message(&mut wire, Kind::Text, b"hello", Some([1, 2, 3, 4]));
//! let mut server = Receiver::new(Role::Server);
//! let mut answer = Vec::new();
//! let heard = server.feed(&wire, &Limits::default(), &mut Scratch::default(), &mut |event| match event {
//!     Event::Message { kind, payload } => send::message(&mut answer, kind, payload, None),
//!     Event::Ping(payload) => send::pong(&mut answer, payload, None),
//!     Event::Pong(_) => {}
//!     Event::Close { code, .. } => send::close(&mut answer, code, "", None),
//! });
//! assert_eq!((heard, answer), (Ok(()), b"\x81\x05hello".to_vec()));
//! ```
//!
//! The rule behind every decision is that of `http1`: what RFC 6455 forbids a sender is refused, also where other
//! implementations repair it (a length in more bytes than it needs, a close code that must not be sent).
//!
//! What it must not know: sockets, clocks, where randomness comes from, and what messages mean.

pub mod client;
pub mod echo;
pub mod mask;
pub mod send;
pub mod server;

mod accept;
mod fault;
mod frame;
mod partial;
mod receive;
mod utf8;

pub use client::OpeningError;
pub use fault::{Fault, HandshakeError};
pub use frame::{Error, Kind, Limits, Role};
pub use receive::{Event, Receiver, Scratch};
