//! Feeds pieces to a receiver and writes down what was received, a line each; the last line says
//! how it ended.

#![allow(dead_code, reason = "the fuzz target uses its part")]

use trueload_wire::websocket::{Event, Kind, Limits, Receiver, Role, Scratch};

/// Caps that short inputs meet.
pub(crate) const SMALL: Limits = Limits { message_bytes: 1000 };

/// What was received, and the most bytes that the receiver held meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) lines: Vec<String>,
    pub(crate) held_bytes_max: usize,
}

/// Feeds the pieces and then the peer's FIN.
pub(crate) fn receive<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    role: Role,
    limits: &Limits,
) -> Outcome {
    receive_by(Receiver::new(role), pieces, limits)
}

/// The same for a receiver that may have agreed to compression.
pub(crate) fn receive_by<'a>(
    mut receiver: Receiver,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Outcome {
    let mut scratch = Scratch::default();
    let mut outcome = Outcome::default();
    for piece in pieces {
        let mut lines = Vec::new();
        let fed = receiver.feed(piece, limits, &mut scratch, &mut |event| lines.push(line(event)));
        outcome.lines.append(&mut lines);
        outcome.held_bytes_max = outcome.held_bytes_max.max(receiver.buffered_bytes());
        if let Err(error) = fed {
            let again = receiver.feed(b"\x81\0", limits, &mut scratch, &mut |event| {
                panic!("{event:?} after a refusal");
            });
            assert_eq!(again, Err(error), "a refusal stays");
            assert!(receiver.started() && !receiver.in_message(), "a refusal is no message");
            outcome.lines.push(error.to_string());
            return outcome;
        }
    }
    assert_eq!(receiver.started(), receiver.buffered_bytes() > 0, "what is whole holds nothing");
    outcome.lines.push(match (receiver.is_closed(), receiver.started()) {
        (true, _) => "closed".into(),
        (false, true) => "truncated".into(),
        (false, false) => "done".into(),
    });
    outcome
}

fn line(event: Event<'_>) -> String {
    match event {
        Event::Message { kind: Kind::Text, payload } => {
            format!("text {:?}", str::from_utf8(payload).expect("a text is UTF-8"))
        }
        Event::Message { kind: Kind::Binary, payload } => format!("binary {payload:02x?}"),
        Event::Ping(payload) => format!("ping {payload:02x?}"),
        Event::Pong(payload) => format!("pong {payload:02x?}"),
        Event::Close { code, reason } => format!("close {code:?} {reason:?}"),
    }
}

/// Cuts `bytes` at every place in `cuts` (each modulo the length).
pub(crate) fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}
