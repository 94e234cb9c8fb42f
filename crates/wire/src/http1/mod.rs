//! HTTP/1.0 and HTTP/1.1, read strictly.
//!
//! How it works: `response` and `request` each read a start line of their own and share the rest: `fields` reads header
//! and trailer lines, `head` decides what they mean for the body, `body` reads it. Every part is a small automaton
//! that stops anywhere and goes on with the next byte, so a split never changes what is heard, and a head that is
//! spread over many reads needs no buffer.
//!
//! The rule behind every decision: what RFC 9112 forbids a sender to generate is refused, even where a recipient is
//! allowed to repair it (a bare LF, obs-fold, a repeated Content-Length, whitespace in a chunk-size line, a missing
//! space after the status code). A tool that vouches for a server has no reason to repair its messages. Two things are
//! no repair, and accepted: fields that frame a body on a message that cannot have one (RFC 9112 §6.3 has it end with
//! its head whatever they say), and empty elements in a `Connection` list.
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

pub use limits::{Limits, ParseError};
