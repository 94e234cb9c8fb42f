//! HTTP/1.0 and HTTP/1.1, read strictly.
//!
//! How it works: `response` and `request` each read their own start line and share the rest.
//! `fields` reads header and trailer lines, `head` decides what they mean for the body, and `body`
//! reads it. Every part is a small automaton that can stop at any byte and continue with the next.
//! A split therefore never changes the result, and a head spread over many reads needs no buffer
//! unless its fields are wanted (`heard`).
//!
//! The rule behind every decision: what RFC 9112 forbids a sender to generate is refused wherever a
//! recipient may refuse it. Examples are a bare LF, whitespace in a chunk-size line, and a missing
//! space after the status code. What the RFCs ask a client to accept anyway is accepted: a folded
//! field, equal Content-Lengths, a status above 599, a later minor version, fields that frame a
//! body on a message that cannot have one, and empty elements in a `Connection` list. The table in
//! `docs/method.md`, under *HTTP/1, read strictly*, lists each decision with its section, for
//! answers and for requests.
//!
//! Must not know: sockets, clocks, and how many requests are outstanding.

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
mod heard;
pub(crate) mod kept;
mod status_line;
mod text;

pub use limits::ParseError;
