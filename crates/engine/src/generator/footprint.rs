//! How much memory a conversation takes: for simulations, which hold it against a bound. The engine
//! never asks.

/// What is kept for one slot between two inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Requests that a slot knows something about besides those on its connection: those that were
    /// redirected, and those that wait for its next connection.
    pub requests: usize,
    /// Bytes of the texts that a slot keeps: requests behind redirects, cookies, values, and the
    /// answer that is arriving.
    pub bytes: usize,
}

impl Footprint {
    /// The larger of each.
    pub fn max(self, other: Footprint) -> Footprint {
        Footprint {
            requests: self.requests.max(other.requests),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// A program that knows how much its conversations keep.
pub trait Measured {
    /// The most that is kept for any slot now.
    fn footprint(&self) -> Footprint;
}
