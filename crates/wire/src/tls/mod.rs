//! TLS 1.2 and 1.3 as a machine between a socket and a protocol: the protocol itself is rustls's.
//!
//! How it works: a [`Session`] is one end of one connection. Bytes from the socket go in, plaintext and bytes for the
//! socket come out; plaintext goes in, bytes for the socket come out. `client` and `server` say how an end is set up,
//! `trust` whose certificates are accepted, `tickets` how sessions are resumed, `failure` what a mistake is called.
//!
//! What it must not know: sockets and files, HTTP, and what is counted. The wall clock, which certificates are held
//! against, is passed in; nothing here reads it.

pub mod client;
pub mod server;

mod failure;
mod pem;
mod session;
mod tickets;
mod trust;

pub use failure::{Failure, Kind};
pub use pem::{Identity, SetupError, certificates};
pub use rustls::pki_types::{CertificateDer, UnixTime};
pub use rustls::time_provider::TimeProvider;
pub use session::{Buffers, Secured, Session, Stage};
