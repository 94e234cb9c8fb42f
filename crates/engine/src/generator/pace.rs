//! The pace of a session.

/// How one step follows the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepPace {
    /// How often it is sent in a row.
    pub repeat: u32,
    /// The shortest pause before each of its requests, in ns.
    pub think_least_ns: u64,
    /// The longest.
    pub think_most_ns: u64,
}
