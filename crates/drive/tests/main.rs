//! The drivers against the kernel.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

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
mod resets;
mod self_connect;
mod times;
mod tokens;
