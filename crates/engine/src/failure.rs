//! The failures of an engine, and the class that the front is told.

use std::fmt::Display;
use std::io;

/// A failure of an engine.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The plan cannot be carried out; nothing was sent.
    #[error("{0}")]
    Plan(String),
    /// The data cannot be used; nothing was sent.
    #[error("{0}")]
    Data(String),
    /// This machine lacks some resource for the plan; nothing was sent.
    #[error("{message}")]
    Short {
        /// The failure class that the run would have met.
        class: &'static str,
        /// One line.
        message: String,
    },
    /// This machine, or a limit or sandbox on it, refused what the engine itself needs.
    #[error("{0}")]
    Machine(String),
    /// The engine cannot listen on the address.
    #[error("{0}")]
    Listen(String),
    /// The engine itself failed.
    #[error("{0}")]
    Engine(String),
    /// Stdout is gone.
    #[error("stdout: {0}")]
    Stdout(#[from] io::Error),
}

impl Failure {
    /// Its class in messages to the front.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Failure::Short { class, .. } => class,
            Failure::Plan(_) => "plan",
            Failure::Data(_) => "data",
            Failure::Listen(_) => "listen",
            Failure::Machine(_) => "machine",
            Failure::Engine(_) | Failure::Stdout(_) => "engine",
        }
    }
}

/// Refuses a plan.
pub(crate) fn refused<T>(what: impl Display) -> Result<T, Failure> {
    Err(Failure::Plan(what.to_string()))
}

/// Refuses a plan under a condition: leaves the function with a failure of this text.
macro_rules! refuse_if {
    ($condition:expr, $($what:tt)+) => {
        if $condition {
            return $crate::failure::refused(format_args!($($what)+));
        }
    };
}
pub(crate) use refuse_if;
