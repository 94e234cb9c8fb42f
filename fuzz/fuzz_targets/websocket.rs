//! Any bytes at a receiver of frames, in one read, byte by byte and in any split; the first byte chooses the end, and
//! whether it has agreed to compression, the next four where the rest is cut. Then the same bytes as an answer to an opening handshake, and as a request for one.

#![no_main]

#[path = "../../crates/wire/tests/websocket/common.rs"]
mod common;

use common::{SMALL, cut, receive_by};
use libfuzzer_sys::fuzz_target;
use trueload_wire::message;
use trueload_wire::websocket::{OpeningError, Receiver, Role, client, server};

/// What a client makes of an answer; `None` while it wants more.
fn answered(pieces: &[&[u8]]) -> Option<Result<(), OpeningError>> {
    let opening = client::Opening::new("/", &[]).expect("an opening").deflating(true);
    let mut awaited = opening.write(*b"the sample nonce", &mut Vec::new());
    let limits = message::Limits { head_bytes: 200, ..message::Limits::default() };
    let fed = pieces.iter().find_map(|piece| awaited.feed(&opening, piece, &limits).transpose());
    fed.map(|fed| fed.map(|_| ()))
}

/// What a server makes of a request.
fn asked(pieces: &[&[u8]]) -> String {
    let mut opening = server::Opening::default();
    let limits = message::Limits { head_bytes: 200, ..message::Limits::default() };
    let fed = pieces.iter().find_map(|piece| opening.feed(piece, &limits).transpose());
    fed.map_or("more".into(), |fed| match fed {
        Ok(_) => format!("{} {} {:?}", opening.method(), opening.path(), opening.judge()),
        Err(error) => error.to_string(),
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((places, bytes)) = data.split_first_chunk::<5>() else {
        return;
    };
    let role = if places[0] & 1 == 0 { Role::Client } else { Role::Server };
    let cuts: Vec<usize> = places[1..].iter().map(|&place| usize::from(place)).collect();
    let receiver = || Receiver::new(role).deflating(places[0] & 2 != 0);
    let whole = receive_by(receiver(), [bytes], &SMALL);
    let slow = receive_by(receiver(), bytes.chunks(1), &SMALL);
    assert_eq!(slow.lines, whole.lines, "byte by byte");
    let split = receive_by(receiver(), cut(bytes, &cuts), &SMALL);
    assert_eq!(split.lines, whole.lines, "in pieces");
    assert!(split.held_bytes_max <= 8 * 1024, "memory stays bounded");
    assert_eq!(answered(&cut(bytes, &cuts)), answered(&[bytes]), "an answer");
    assert_eq!(asked(&cut(bytes, &cuts)), asked(&[bytes]), "a request");
});
