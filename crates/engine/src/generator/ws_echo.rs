//! Echo over WebSocket as a generator's protocol.

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::chance::Chance;
use trueload_wire::exchange::{Heard, Link};
use trueload_wire::http1::ParseError;
use trueload_wire::shootout::Wrong;
use trueload_wire::websocket::client::{Opening, OpeningError};
use trueload_wire::websocket::echo::{self, Client, Shared, Words};
use trueload_wire::websocket::{Error, Limits};

use super::carrier::Carrier;
use super::protocol::{Input, Over, Protocol, Refused};
use super::slot::Tag;

/// Echo over WebSocket, as the connections of one thread speak it.
#[derive(Debug)]
pub struct WsEcho {
    shared: Shared,
    /// Room to write messages.
    frames: Vec<u8>,
}

impl WsEcho {
    /// Connections that open with `opening` and say these words; `seed` decides keys and masks.
    #[must_use]
    pub fn new(opening: Opening, words: Words, seed: u64) -> Self {
        let shared = Shared::new(opening, words, Limits::default(), Chance::new(seed));
        WsEcho { shared, frames: Vec::new() }
    }
}

/// How it is called that a connection did not become usable.
fn refused(why: echo::Refused) -> Refused {
    let (class, why) = match why {
        echo::Refused::Opening(error @ OpeningError::Http(ParseError::Limit(_))) => {
            (Class::Limit, error.to_string())
        }
        echo::Refused::Opening(error) => (Class::WsHandshake, error.to_string()),
        echo::Refused::Frames(error) => (class_of(error), error.to_string()),
        echo::Refused::Join(Wrong::Malformed) => (Class::WsPayload, Wrong::Malformed.to_string()),
        echo::Refused::Join(wrong) => (Class::WsHandshake, wrong.to_string()),
        echo::Refused::Closed => {
            (Class::WsClosed, "the server closed the WebSocket at once".to_owned())
        }
    };
    Refused { class, why }
}

fn class_of(error: Error) -> Class {
    match error {
        Error::Protocol(_) => Class::WsProtocol,
        Error::Payload(_) => Class::WsPayload,
        Error::Limit(_) => Class::Limit,
    }
}

impl Protocol for WsEcho {
    type Client = Client<Tag>;

    fn peer_closes(&self) -> bool {
        false
    }

    fn open(&mut self, client: &mut Client<Tag>, key: u32, said: &mut Vec<u8>) -> bool {
        client.open(&mut self.shared, key, said);
        true
    }

    fn refusal(&mut self) -> Refused {
        // It is asked for only behind a refusal, which leaves its reason.
        self.shared.refusal().map_or_else(|| refused(echo::Refused::Closed), refused)
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        said: &mut Vec<u8>,
        hear: &mut impl FnMut(Heard<Tag>),
    ) -> Link {
        client.handle_input(input.now_ns, input.bytes, &mut self.shared, said, hear)
    }

    fn handle_end(
        &mut self,
        client: &mut Client<Tag>,
        over: Over,
        hear: &mut impl FnMut(Heard<Tag>),
    ) {
        client.handle_end(over.now_ns, over.end, hear);
    }

    fn send(
        &mut self,
        client: &mut Client<Tag>,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.frames.clear();
        client.write(&mut self.shared, count, &mut self.frames);
        carrier.send(&self.frames);
        self.frames.len()
    }
}
