//! The WebSocket machine: frames and opening handshakes, whole, byte by byte and in any split.

mod common;
mod compressed;
mod conversation;
mod dialects;
mod echoes;
mod frames;
mod openings;
mod properties;
mod talk;
