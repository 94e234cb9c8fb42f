//! The protocol machines: whole, byte by byte and in any split.

#![allow(unreachable_pub, clippy::unwrap_used)]

mod common;
mod compressed;
mod echo;
mod exchange;
mod http2;
mod http_client;
mod request_cases;
mod request_timeout;
mod response_bodies;
mod response_heads;
mod several_rules;
mod shootout;
mod splits;
mod streams;
mod templates;
mod tls;
mod udp_echo;
mod unsent;
mod websocket;
