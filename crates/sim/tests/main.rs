//! The simulation: its seeds, its laws, and what the generator makes of faulty peers.

#![allow(unreachable_pub, clippy::unwrap_used)]

mod broadcast;
mod faults;
mod found;
mod http2;
mod laws;
mod seeds;
mod truth;
