//! The events of an engine, and the interface of the roles that handle them.

use std::time::Duration;

use crate::data::Rows;
use crate::failure::Failure;
use crate::lines::Input;
use crate::protocol::ToEngine;
use crate::recorded::Replay;
use crate::{generator, server};

/// Everything that can happen to an engine.
#[derive(Debug)]
pub enum Event {
    /// The front sent something, or is gone.
    Input(Input),
    /// SIGTERM, SIGINT or SIGHUP.
    Signal,
    /// A generator thread reports.
    Generator(u32, generator::Report),
    /// A server thread reports.
    Server(server::Report),
    /// Processes below an aggregator do something, in this order.
    Children(Vec<(u32, Said)>),
    /// Some time has passed, for an aggregator.
    Beat,
    /// The data of a plan has been read, or cannot be.
    Data(Result<Rows, Failure>),
    /// The recorded traffic of a plan has been read, or cannot be.
    Replay(Result<Replay, Failure>),
    /// A thread ended unexpectedly.
    Died(String),
}

/// What a process below an aggregator does.
#[derive(Debug)]
pub enum Said {
    /// It wrote a line, which came at this time.
    Line(u64, String),
    /// It has closed its output, or has written a line that is too long.
    Closed,
}

/// If the front is silent for this long, the engine ends (design §5).
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// The time that threads have to end, once they are told to.
const FAREWELL: Duration = Duration::from_millis(900);

/// One role of the engine: its running threads, and the conversion of their reports to lines.
pub trait Role {
    /// Handles a message of the front: one more phase, or a body.
    ///
    /// # Errors
    /// When it does not fit this role or the earlier messages.
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure>;

    /// Handles a report of a thread.
    ///
    /// # Errors
    /// When stdout is gone.
    fn handle_event(&mut self, event: Event) -> Result<(), Failure>;

    /// Tells every thread to end.
    fn stop(&mut self);

    /// Whether every thread has ended.
    fn ended(&self) -> bool;

    /// Whether nothing is left to do.
    fn idle(&self) -> bool;

    /// If the front is silent for this long, the engine ends.
    fn lease(&self) -> Duration {
        LEASE
    }

    /// The time that it has to end, once it is told to.
    fn farewell(&self) -> Duration {
        FAREWELL
    }
}
