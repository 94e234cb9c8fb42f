//! The ledger of broadcasts.

mod foreign;
mod ledger;
mod support;
