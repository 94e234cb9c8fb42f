//! HTTP/2 (RFC 9113): frames, header compression, and the machines of both ends of a connection.

pub mod block;
pub mod client;
pub mod frame;
pub mod hpack;
pub mod read;
pub mod request;
pub mod server;
pub mod settings;
pub mod violation;
pub mod window;
