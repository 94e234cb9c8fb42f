//! Rails' Action Cable (subprotocol `actioncable-v1-json`). The server sends a welcome, the client
//! subscribes to a channel, and every message to and from the channel names it. A client's request
//! is JSON within a JSON string.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stamp::Padding;
use super::{Asked, Due, Key, Parsed, Wrong, payload};

const CHANNEL: &str = "BenchmarkChannel";
/// The identifier of the channel in every message: JSON within a string.
const IDENTIFIER: &str = r#"{"channel":"BenchmarkChannel"}"#;

/// A message from the server.
#[derive(Deserialize)]
struct FromServer<'a> {
    #[serde(borrow)]
    identifier: Option<Cow<'a, str>>,
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

/// A message broadcast on the channel: the hash that the action was called with.
#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(rename = "listenerCount")]
    listener_count: Option<u64>,
}

/// A message from the client.
#[derive(Deserialize)]
struct Command<'a> {
    #[serde(borrow)]
    command: Cow<'a, str>,
    #[serde(borrow)]
    identifier: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Identifier<'a> {
    #[serde(borrow)]
    channel: Cow<'a, str>,
}

pub(super) fn write_subscribe(out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"command":"subscribe","identifier":"#);
    payload::write_text(IDENTIFIER, out);
    out.push(b'}');
}

pub(super) fn write(action: &str, key: Key, padding: &[u8], out: &mut Vec<u8>) {
    let mut data = Vec::with_capacity(padding.len() + 80);
    let _ = write!(data, r#"{{"action":"{action}","payload":"#);
    payload::write(key, padding, &mut data);
    data.push(b'}');
    out.extend_from_slice(br#"{"command":"message","identifier":"#);
    payload::write_text(IDENTIFIER, out);
    out.extend_from_slice(br#","data":"#);
    payload::write_text(&String::from_utf8_lossy(&data), out);
    out.push(b'}');
}

pub(super) fn parse(message: &[u8], padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let FromServer { identifier, kind, message } = payload::parse(message)?;
    match (kind.as_deref(), message) {
        (Some("welcome"), _) => Ok(Parsed::Welcome),
        (Some("ping"), _) => Ok(Parsed::Ping),
        (Some("disconnect"), _) => Err(Wrong::Closing),
        (None, None) => Err(Wrong::Malformed),
        // Messages of other channels do not concern us.
        _ if !identifier.is_some_and(|identifier| is_ours(&identifier)) => Ok(Parsed::Other),
        (Some("confirm_subscription"), _) => Ok(Parsed::Joined),
        (Some("reject_subscription"), _) => Err(Wrong::Refused),
        (Some(_), _) => Ok(Parsed::Other),
        (None, Some(message)) => parse_channel(message, padding),
    }
}

fn is_ours(identifier: &str) -> bool {
    let channel = || payload::parse::<Identifier<'_>>(identifier.as_bytes());
    identifier == IDENTIFIER || channel().is_ok_and(|identifier| identifier.channel == CHANNEL)
}

fn parse_channel(message: &RawValue, padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let Ok(Data { action, payload, listener_count }) = payload::parse(message.get().as_bytes())
    else {
        return Ok(Parsed::Other);
    };
    Ok(match &*action {
        "echo" => Parsed::Echo(payload::key(payload, padding)?),
        "broadcast" => payload::stamped(payload, padding)?.into(),
        "broadcastResult" => Parsed::Result(payload::stamped(payload, padding)?.0, listener_count),
        _ => Parsed::Other,
    })
}

pub(super) fn write_welcome(out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":"welcome"}"#);
}

pub(super) fn write_ping(unix_s: u64, out: &mut Vec<u8>) {
    let _ = write!(out, r#"{{"type":"ping","message":{unix_s}}}"#);
}

pub(super) fn answer(message: &[u8], due: &mut Due) -> Result<Asked, Wrong> {
    let Command { command, identifier, data } = payload::parse(message)?;
    let ours = is_ours(&identifier);
    match &*command {
        "subscribe" => {
            let kind = if ours { "confirm_subscription" } else { "reject_subscription" };
            due.to_sender.extend_from_slice(br#"{"identifier":"#);
            payload::write_text(&identifier, &mut due.to_sender);
            let _ = write!(due.to_sender, r#","type":"{kind}"}}"#);
            Ok(if ours { Asked::Join } else { Asked::Other })
        }
        "unsubscribe" if ours => Ok(Asked::Leave),
        "message" if ours => act(&identifier, &data.ok_or(Wrong::Malformed)?, due),
        _ => Ok(Asked::Other),
    }
}

/// Calls the action of the channel that `data` names.
fn act(identifier: &str, data: &str, due: &mut Due) -> Result<Asked, Wrong> {
    let Data { action, payload, .. } = payload::parse(data.as_bytes())?;
    let payload = payload::raw(payload);
    Ok(match &*action {
        "echo" => {
            write_raw(identifier, "echo", payload, &mut due.to_sender);
            Asked::Echo
        }
        "broadcast" => {
            write_raw(identifier, "broadcast", payload, &mut due.to_all);
            write_raw(identifier, "broadcastResult", payload, &mut due.to_sender);
            Asked::Broadcast
        }
        _ => Asked::Other,
    })
}

fn write_raw(identifier: &str, action: &str, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"identifier":"#);
    payload::write_text(identifier, out);
    let _ = write!(out, r#","message":{{"action":"{action}","payload":"#);
    out.extend_from_slice(payload);
    out.extend_from_slice(b"}}");
}
