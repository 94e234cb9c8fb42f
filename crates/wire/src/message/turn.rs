//! The place of a request among those of a session.

/// Which request of which session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The number of the session: `{counter}`.
    pub session: u64,
    /// The number of the virtual user: `{vu}`.
    pub user: u32,
    /// The index of the step.
    pub step: u32,
    /// The number of the step's repetition, from 1: `{repeat}`.
    pub repeat: u32,
    /// The number of the request within the session, from 0.
    pub request: u32,
}
