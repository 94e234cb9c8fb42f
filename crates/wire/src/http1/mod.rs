//! HTTP/1.0 and HTTP/1.1, read strictly.
//!
//! How it works: `response` and `request` each read a start line of their own and share the rest: `fields` reads header
//! and trailer lines, `head` decides what they mean for the body, `body` reads it. Every part is a small automaton
//! that stops anywhere and goes on with the next byte, so a split never changes what is heard, and a head that is
//! spread over many reads needs no buffer.
//!
//! The rule behind every decision: what RFC 9112 forbids a sender to generate is refused where a recipient may refuse it
//! (a bare LF, whitespace in a chunk-size line, a missing space after the status code). What the RFCs ask a client to
//! take all the same is taken: a folded field, equal Content-Lengths, a status above 599, a later minor version, fields
//! that frame a body on a message that cannot have one, empty elements in a `Connection` list. The table in
//! `docs/method.md`, under *HTTP/1, read strictly*, has each decision with its section, for answers and for requests.
//!
//! What it must not know: sockets, clocks, and how many requests are outstanding.

pub mod client;
pub mod limits;
mod memory;
pub mod repeat;
pub mod request;
pub mod response;
pub mod template;

mod body;
mod fields;
mod head;
pub(crate) mod kept;
mod text;
pub(crate) mod upgrade;

pub use limits::{Limits, ParseError};
