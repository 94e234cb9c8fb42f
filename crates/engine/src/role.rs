//! What an engine does: the events that it gets, and how it answers them.

use crate::failure::Failure;
use crate::lines::Input;
use crate::protocol::ToEngine;
use crate::{generator, server};

/// Everything that can happen to an engine.
#[derive(Debug)]
pub enum Event {
    /// The front said something, or is gone.
    Input(Input),
    /// SIGTERM, SIGINT or SIGHUP.
    Signal,
    /// A generator thread reports.
    Generator(u32, generator::Report),
    /// A server thread reports.
    Server(server::Report),
    /// A thread ended in a way that it should not.
    Died(String),
}

/// One role of the engine: threads at work, and how their reports become lines.
pub trait Role {
    /// The front has one more phase, or a body.
    ///
    /// # Errors
    /// When it does not fit this role or what came before.
    fn handle_message(&mut self, message: ToEngine) -> Result<(), Failure>;

    /// A thread reports.
    ///
    /// # Errors
    /// When stdout is gone.
    fn handle_event(&mut self, event: Event) -> Result<(), Failure>;

    /// Tells every thread to end.
    fn stop(&mut self);

    /// Every thread has ended.
    fn ended(&self) -> bool;

    /// Nothing was left to do.
    fn idle(&self) -> bool;
}
