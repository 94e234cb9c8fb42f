//! The trueload engine: a JSON plan in, JSON lines out.
//!
//! `control` talks to the front and commands the threads. `generator` and `server` are the programs
//! that the threads run. `protocol` has the messages, `data` the rows that requests take, and
//! `secrets` the TLS setup.

mod blobs;
pub mod control;
pub mod data;
mod exchange;
pub mod failure;
mod follow;
pub mod generate;
pub mod generator;
mod limits;
pub mod lines;
mod loading;
mod lock;
mod machine;
mod origins;
pub mod outlet;
mod plan;
pub mod protocol;
pub mod recorded;
mod replay;
mod request;
pub mod role;
mod scenario;
mod secrets;
pub mod serve;
pub mod server;
mod sums;
mod threads;
mod throttling;
mod tracks;
mod unread;
