//! TLS 1.2 and 1.3 as a machine between a socket and a protocol. The TLS protocol itself is
//! implemented by rustls.
//!
//! How it works: a [`Session`] is one end of one connection. Bytes from the socket go in; plaintext
//! and bytes for the socket come out. Plaintext goes in; bytes for the socket come out. `client`
//! and `server` set up an end, `trust` decides whose certificates are accepted, `tickets` resumes
//! sessions, and `failure` classifies errors.
//!
//! Must not know: sockets and files, HTTP, and what is counted. The wall clock that certificates
//! are checked against is passed in; nothing here reads it.

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
pub use session::{Buffers, Secured, Session, State};
