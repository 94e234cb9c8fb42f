//! The drivers against the kernel.

#![allow(unreachable_pub)]

#[macro_use]
mod shared;

mod arrivals;
mod before_connected;
mod datagrams;
mod draining;
mod drivers;
mod early_answers;
mod floods;
mod handed_over;
mod held;
mod resets;
mod self_connect;
mod times;
mod tokens;
