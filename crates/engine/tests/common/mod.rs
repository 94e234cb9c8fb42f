//! What the tests that play a generator by hand share.

mod wire;

use trueload_drive::Token;
use trueload_engine::generator::Config;

pub use wire::{Sent, Wire};

/// The settings of a generator that has one thread, and one request on each connection.
pub fn config(timeout_ns: u64) -> Config {
    Config {
        addresses: vec!["127.0.0.1:80".parse().expect("an address")],
        local_addresses: Vec::new(),
        depth: 1,
        refill: 1,
        close: false,
        connect_open: false,
        timeout_ns,
        connect_timeout_ns: timeout_ns,
        connect_interval_ns: 10_000,
        tls: None,
        send_quantum_ns: 0,
        coalesce_ns: 0,
        seed: 0,
        thread: 0,
        threads: 1,
        places: None,
        turns: None,
    }
}

/// The connection with this index.
pub fn token(index: u32) -> Token {
    Token { index, generation: 0 }
}
