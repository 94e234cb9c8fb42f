//! WebSocket (RFC 6455), client and server. A client may offer permessage-deflate (RFC 7692).
//!
//! How it works, in the order of a connection:
//!
//! 1. The opening handshake. A client has one [`client::Opening`] for all its connections. It
//!    writes a request from 16 random bytes and returns a [`client::Awaited`], which is fed the
//!    answer. A server feeds a [`server::Opening`] and asks it what the request is and what to
//!    answer. Both return how many bytes belong to the head; the bytes after it are frames.
//! 2. Frames. Each end has a [`Receiver`], which turns input into [`Event`]s at once. A connection
//!    without an incomplete message holds no memory. A refusal is final; [`Error::close_code`] is
//!    the code to send to the peer.
//! 3. Sending needs no state: [`send`] appends messages and control frames to the output. A client
//!    passes a masking key for each frame, a server none.
//!
//! ```
//! use trueload_wire::websocket::{Event, Kind, Limits, Receiver, Role, Scratch, send};
//!
//! let mut wire = Vec::new();
//! send::message(&mut wire, Kind::Text, b"hello", Some([1, 2, 3, 4]));
//! let mut server = Receiver::new(Role::Server);
//! let mut answer = Vec::new();
//! let fed = server.feed(
//!     &wire,
//!     &Limits::default(),
//!     &mut Scratch::default(),
//!     &mut |event| match event {
//!         Event::Message { kind, payload } => send::message(&mut answer, kind, payload, None),
//!         Event::Ping(payload) => send::pong(&mut answer, payload, None),
//!         Event::Pong(_) => {}
//!         Event::Close { code, .. } => send::close(&mut answer, code, "", None),
//!     },
//! );
//! assert_eq!((fed, answer), (Ok(()), b"\x81\x05hello".to_vec()));
//! ```
//!
//! The rule behind every decision is that of `http1`: what RFC 6455 forbids a sender is refused,
//! even where other implementations repair it. Examples are a length in more bytes than needed and
//! a close code that must not be sent.
//!
//! Must not know: sockets, clocks, where randomness comes from, and what messages mean.

pub mod client;
pub mod conversation;
pub mod echo;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod mask;
pub mod send;
pub mod server;

mod accept;
mod deflate;
mod early;
mod event;
mod extension;
mod fault;
mod frame;
mod mismatch;
mod partial;
mod receive;
mod scratch;
mod utf8;

pub use client::OpeningError;
pub use deflate::{Deflated, Deflater, Sizes};
pub use event::Event;
pub use fault::{Fault, HandshakeError};
pub use frame::{Error, Kind, Limits, Role};
pub use mismatch::Mismatch;
pub use receive::Receiver;
pub use scratch::Scratch;
