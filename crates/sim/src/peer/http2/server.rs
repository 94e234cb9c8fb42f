//! What a peer does on one connection, whatever version it speaks.

use std::fmt;

use crate::peer::Act;
use crate::scenario::Version;

/// The peer of one connection.
pub(super) trait Server: fmt::Debug {
    fn connected(&mut self, at_ns: u64, acts: &mut Vec<Act>);

    fn receive(&mut self, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>);

    fn ended(&mut self, at_ns: u64, acts: &mut Vec<Act>);

    fn go_on(&mut self, _at_ns: u64, _acts: &mut Vec<Act>) {}

    fn gone(&mut self) {}

    fn reads(&self) -> bool {
        true
    }

    /// The version that it speaks; none if it only replies with something of its own.
    fn version(&self) -> Option<Version>;

    /// Requests of which at least a part has come.
    fn requests(&self) -> u64 {
        0
    }

    /// The number of these requests that the peer has to answer.
    fn permitted(&self) -> u64 {
        self.requests()
    }

    /// Numbers of the requests that have come since the last call, as far as they carry one.
    fn take_numbers(&mut self) -> Vec<u64> {
        Vec::new()
    }

    fn mistake(&self) -> Option<&str> {
        None
    }

    /// Answers that were sent whole; none if that is not known.
    fn whole(&self) -> Option<u64> {
        Some(0)
    }
}
