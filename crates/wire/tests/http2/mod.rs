//! The client machine of HTTP/2 against a peer that a test plays: how every request ends, and what
//! is sent to the peer.

mod accounts;
mod endings;
mod flow;
mod header_table;
pub(crate) mod peer;
pub(crate) mod play;
mod properties;
mod redirected;
mod streamed;
mod tables;
