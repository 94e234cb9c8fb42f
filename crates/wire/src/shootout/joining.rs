//! How a client becomes a listener: what it waits for, and what it says next.
//!
//! Where a server confirms a join it may do so before the listener is on its list. So the last step in every dialect is
//! an echo: whoever has it back has been heard and is connected both ways.

use super::{Dialect, Key, Parsed, Wrong};

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The server's welcome.
    Welcome,
    /// The confirmation of the join.
    Confirmation,
    /// The echo.
    Echo,
    /// Nothing: it is a listener.
    Done,
}

impl Joining {
    /// The upgrade is done: what is to be said now is written to `out`, as one message or none.
    /// `echo` is the key of the echo that is to come back.
    pub fn start(dialect: Dialect, echo: Key, padding: &[u8], out: &mut Vec<u8>) -> Self {
        match dialect {
            Dialect::Json | Dialect::Binary => {
                dialect.write_echo(echo, padding, out);
                Joining::Echo
            }
            Dialect::ActionCable => Joining::Welcome,
            Dialect::Phoenix => {
                dialect.write_join(out);
                Joining::Confirmation
            }
        }
    }

    /// Something was heard: what is waited for next, and what is to be said, as in [`Joining::start`].
    /// What others broadcast meanwhile is nothing to wait for.
    ///
    /// # Errors
    /// When the server refuses, or says what is not in the dialect.
    pub fn heard(
        self,
        dialect: Dialect,
        heard: Parsed,
        echo: Key,
        padding: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Wrong> {
        match (self, heard) {
            (_, Parsed::Error(wrong)) => Err(wrong),
            (Joining::Welcome, Parsed::Welcome) => {
                dialect.write_join(out);
                Ok(Joining::Confirmation)
            }
            (Joining::Confirmation, Parsed::Joined) => {
                dialect.write_echo(echo, padding, out);
                Ok(Joining::Echo)
            }
            (Joining::Echo, Parsed::Echo(key)) if key == echo => Ok(Joining::Done),
            (waiting, _) => Ok(waiting),
        }
    }
}
