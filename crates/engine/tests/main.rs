//! The engine in virtual time, with a wire that only writes down; and its schemas.

#![allow(unreachable_pub)]

mod combined;
mod common;
mod connect_open;
mod datagram_batches;
mod multiplexed;
mod parting;
mod redirects;
mod schema;
mod server;
mod sessions;
mod streamed;
mod udp_echo;
mod websocket_server;
