//! Protocol machines: bytes in, bytes and events out.
//!
//! How it works: a parser keeps just enough state to continue where the last read ended, and hands
//! out slices of its input.
//!
//! Must not know: sockets, clocks, threads, what a load is, or how a failure is reported.

pub mod account;
mod brotli;
pub mod chance;
mod coding;
mod content;
pub mod echo;
mod ending;
pub mod exchange;
pub mod http1;
pub mod http2;
pub mod message;
pub mod parts;
mod queue;
pub mod session;
pub mod shootout;
pub mod tls;
pub mod udp_echo;
pub mod websocket;
