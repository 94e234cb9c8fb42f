//! The ledger of broadcasts.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod foreign;
mod ledger;
mod support;
