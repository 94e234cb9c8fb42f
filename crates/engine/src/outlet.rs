//! The destination of a program's reports: a channel in the engine, a list in a test.

use std::fmt;
use std::sync::mpsc::Sender;

/// A sink for values of one kind.
pub struct Outlet<T>(Box<dyn Fn(T) + Send>);

impl<T: Send + 'static> Outlet<T> {
    /// Sends every value, converted by `wrap`, to a channel.
    pub fn to<E: Send + 'static>(
        channel: Sender<E>,
        wrap: impl Fn(T) -> E + Send + 'static,
    ) -> Self {
        // The receiver is gone only when the whole engine ends.
        Outlet(Box::new(move |value| drop(channel.send(wrap(value)))))
    }

    /// Hands over a value.
    pub fn send(&self, value: T) {
        (self.0)(value);
    }
}

impl<T> fmt::Debug for Outlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outlet")
    }
}
