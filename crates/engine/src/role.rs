//! The events of an engine, and the interface of the roles that handle them.

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
    /// The data of a plan has been read, or cannot be.
    Data(Result<Rows, Failure>),
    /// The recorded traffic of a plan has been read, or cannot be.
    Replay(Result<Replay, Failure>),
    /// A thread ended unexpectedly.
    Died(String),
}

/// One role of the engine: its running threads, and the conversion of their reports to lines.
pub trait Role {
    /// Handles a message of the front: one more phase, or a body. A failure means that it does not
    /// fit this role or the earlier messages.
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure>;

    /// Handles a report of a thread. It fails when stdout is gone.
    fn handle_event(&mut self, event: Event) -> Result<(), Failure>;

    /// Tells every thread to end.
    fn stop(&mut self);

    /// Whether every thread has ended.
    fn ended(&self) -> bool;

    /// Whether nothing is left to do.
    fn idle(&self) -> bool;
}
