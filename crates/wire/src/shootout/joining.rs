//! The steps in which a client becomes a listener: what it waits for and what it sends next.
//!
//! A server that confirms a join may do so before the listener is on its list. The last step in
//! every dialect is therefore an echo: a client that gets it back is connected in both directions.

use super::{Dialect, Key, Parsed, Wrong};

/// The message that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The server's welcome.
    Welcome,
    /// The confirmation of the join.
    Confirmation,
    /// The echo.
    Echo,
    /// Nothing: the client is a listener.
    Done,
}

impl Joining {
    /// Starts after the upgrade. Appends what is to be sent now to `out`: one message or none.
    /// `echo` is the key of the echo that must come back.
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

    /// Handles a server message. Returns what is waited for next and appends what is to be sent, as
    /// in [`Joining::start`]. Broadcasts of other clients are ignored. It is an error if the server
    /// refuses, or sends a message that is not in the dialect.
    pub fn handle_message(
        self,
        dialect: Dialect,
        parsed: Parsed,
        echo: Key,
        padding: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Wrong> {
        match (self, parsed) {
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
