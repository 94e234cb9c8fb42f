//! Faults that end the connection of a client that knows which messages to expect, echoes or
//! broadcasts. Also the reasons why a connection did not become usable.
//!
//! Must not know: what is outstanding.

use super::{Error, Kind, OpeningError};
use crate::exchange::Ending;
use crate::shootout::{Dialect, Wrong};

/// The cause for the end of a connection.
#[allow(missing_docs)] // The texts say what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Frames(#[from] Error),
    #[error(transparent)]
    Dialect(#[from] Wrong),
    #[error("a message that nobody asked for")]
    Unsolicited,
    #[error("the server closed the WebSocket")]
    Closed,
}

impl Fault {
    /// The fault of a message of this kind in a dialect, if any. Text is accepted in binary frames.
    /// Binary content must not come in text frames, because most of it is not valid text.
    pub fn of_kind(kind: Kind, dialect: Dialect) -> Option<Self> {
        let wrong = kind == Kind::Text && !dialect.is_text();
        wrong.then_some(Fault::Dialect(Wrong::Malformed))
    }

    /// Whether the peer announced the end of the connection. With nothing outstanding, this is not
    /// counted as a fault.
    pub fn is_close(self) -> bool {
        matches!(self, Fault::Closed | Fault::Dialect(Wrong::Closing))
    }

    /// The ending of the request that waits for what came instead; none if what came settles
    /// nothing.
    pub fn ending(self) -> Option<Ending> {
        match self {
            Fault::Frames(Error::Protocol(_)) => Some(Ending::WsProtocol),
            Fault::Frames(Error::Payload(_)) | Fault::Dialect(Wrong::Malformed) => {
                Some(Ending::WsPayload)
            }
            Fault::Frames(Error::Limit(_)) => Some(Ending::Limit),
            Fault::Dialect(Wrong::Foreign | Wrong::Altered) => Some(Ending::Mismatch),
            Fault::Dialect(Wrong::Refused) => Some(Ending::Status),
            Fault::Dialect(Wrong::Closing) | Fault::Closed => Some(Ending::WsClosed),
            Fault::Unsolicited => None,
        }
    }
}

/// The reason why a connection did not become usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// It was not upgraded.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// After the upgrade, the join failed.
    #[error("the server did not let a client join: {0}")]
    Join(Fault),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_binary_dialect_minds_the_kind_of_a_frame() {
        for dialect in Dialect::ALL {
            let malformed = Some(Fault::Dialect(Wrong::Malformed));
            let as_text = if dialect == Dialect::Binary { malformed } else { None };
            assert_eq!(Fault::of_kind(Kind::Text, dialect), as_text, "{}", dialect.name());
            assert_eq!(Fault::of_kind(Kind::Binary, dialect), None, "{}", dialect.name());
        }
    }

    #[test]
    fn each_fault_ends_its_request_in_its_own_way() {
        for (fault, ending, is_close) in [
            (Fault::Frames(Error::Protocol("")), Some(Ending::WsProtocol), false),
            (Fault::Frames(Error::Payload("")), Some(Ending::WsPayload), false),
            (Fault::Frames(Error::Limit("")), Some(Ending::Limit), false),
            (Fault::Dialect(Wrong::Malformed), Some(Ending::WsPayload), false),
            (Fault::Dialect(Wrong::Foreign), Some(Ending::Mismatch), false),
            (Fault::Dialect(Wrong::Altered), Some(Ending::Mismatch), false),
            (Fault::Dialect(Wrong::Refused), Some(Ending::Status), false),
            (Fault::Dialect(Wrong::Closing), Some(Ending::WsClosed), true),
            (Fault::Closed, Some(Ending::WsClosed), true),
            (Fault::Unsolicited, None, false),
        ] {
            assert_eq!((fault.ending(), fault.is_close()), (ending, is_close), "{fault:?}");
        }
    }
}
