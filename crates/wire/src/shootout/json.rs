//! The plain dialect: one JSON object per message, with `type` and `payload`.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stamp::Padding;
use super::{Asked, Due, Key, Parsed, Wrong, payload};

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(rename = "listenerCount")]
    listener_count: Option<u64>,
}

pub(super) fn write(kind: &str, key: Key, padding: &[u8], out: &mut Vec<u8>) {
    let _ = write!(out, r#"{{"type":"{kind}","payload":"#);
    payload::write(key, padding, out);
    out.push(b'}');
}

pub(super) fn parse(message: &[u8], padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let Message { kind, payload, listener_count } = payload::parse(message)?;
    Ok(match &*kind {
        "echo" => Parsed::Echo(payload::key(payload, padding)?),
        "broadcast" => payload::stamped(payload, padding)?.into(),
        "broadcastResult" => Parsed::Result(payload::stamped(payload, padding)?.0, listener_count),
        "ping" => Parsed::Ping,
        _ => Parsed::Other,
    })
}

pub(super) fn answer(message: &[u8], listeners: u64, due: &mut Due) -> Result<Asked, Wrong> {
    let Message { kind, payload, .. } = payload::parse(message)?;
    let payload = payload::raw(payload);
    Ok(match &*kind {
        "echo" => {
            write_raw("echo", payload, &mut due.to_sender);
            due.to_sender.push(b'}');
            Asked::Echo
        }
        "broadcast" => {
            write_raw("broadcast", payload, &mut due.to_all);
            due.to_all.push(b'}');
            write_raw("broadcastResult", payload, &mut due.to_sender);
            let _ = write!(due.to_sender, r#","listenerCount":{listeners}}}"#);
            Asked::Broadcast
        }
        _ => Asked::Other,
    })
}

/// Writes a message up to the end of its payload; other members may follow.
fn write_raw(kind: &str, payload: &[u8], out: &mut Vec<u8>) {
    let _ = write!(out, r#"{{"type":"{kind}","payload":"#);
    out.extend_from_slice(payload);
}
