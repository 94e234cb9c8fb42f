//! The answer of a WebSocket server before there are frames: the upgrade, or the reason why there
//! is none.

use trueload_wire::message::Limits;
use trueload_wire::shootout::Dialect;
use trueload_wire::websocket::server::{Acceptance, Opening, Rejection};

use super::super::response::Responses;

/// The limit of a head: a handshake is short, and thousands of clients may be in one at once.
const HEAD_BYTES: usize = 16 * 1024;

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Every message comes back as it came.
    Echo,
    /// The contract `ws-shootout`, in the server's dialect.
    Shootout,
}

/// The outcome of feeding bytes of a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// More bytes are needed.
    Not,
    /// This many bytes belong to the head; frames follow.
    At(Place, usize),
    /// There is no upgrade; the answer is written, and the connection is to be ended.
    Refused,
}

/// Reads a head, and writes the answer once it is complete.
pub(super) fn open(
    opening: &mut Opening,
    bytes: &[u8],
    dialect: Dialect,
    responses: &Responses,
    out: &mut Vec<u8>,
) -> Opened {
    let limits = Limits { head_bytes: HEAD_BYTES, ..Limits::default() };
    let head_len = match opening.feed(bytes, &limits) {
        Ok(None) => return Opened::Not,
        Ok(Some(len)) => len,
        Err(_) => {
            responses.malformed(out);
            return Opened::Refused;
        }
    };
    match judge(opening) {
        Ok((place, acceptance)) => {
            let protocol = dialect.subprotocol().filter(|_| place == Place::Shootout);
            let offered = |one: &&str| opening.protocols().any(|other| other == one.as_bytes());
            acceptance.write(protocol.filter(offered), out);
            Opened::At(place, head_len)
        }
        Err((status, fields, why)) => {
            let fields = format!("{fields}Connection: close\r\n");
            let body = format!("{why}\n");
            responses.plain(out, status, &fields, &body, opening.method() == "HEAD");
            Opened::Refused
        }
    }
}

/// The target of the request, or the status, fields and text of its refusal.
fn judge(opening: &Opening) -> Result<(Place, Acceptance), (&'static str, &'static str, String)> {
    let place = match opening.path() {
        "/echo" => Place::Echo,
        "/ws" => Place::Shootout,
        _ => return Err(("404 Not Found", "", "here are /ws and /echo".into())),
    };
    let refuse = |rejection: Rejection| {
        let (status, fields) = rejection.status();
        (status, fields, rejection.to_string())
    };
    opening.judge().map(|acceptance| (place, acceptance)).map_err(refuse)
}
