//! Phoenix channels with the first serializer (`vsn=1.0.0`, the default for a client that asks for
//! none). Every message is an object with topic, event, payload and ref. A reply is a `phx_reply`
//! with the ref of the message that it answers.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stamp::Padding;
use super::{Asked, Due, Key, Parsed, Wrong, payload};

const TOPIC: &str = "room:lobby";
/// The topic of the connection itself.
const SOCKET_TOPIC: &str = "phoenix";

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    topic: Cow<'a, str>,
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(rename = "ref", borrow)]
    reference: Option<&'a RawValue>,
}

/// The payload of a reply.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

/// The contents that the contract puts into payloads and responses.
#[derive(Default, Deserialize)]
struct Content<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(rename = "listenerCount")]
    listener_count: Option<u64>,
}

/// The contents of a payload, or empty ones if it cannot be read: any reply to a join is legal.
fn content(raw: Option<&RawValue>) -> Content<'_> {
    raw.and_then(|raw| payload::parse(raw.get().as_bytes()).ok()).unwrap_or_default()
}

pub(super) fn write_join(out: &mut Vec<u8>) {
    write_message(TOPIC, "phx_join", b"{}", br#""join""#, out);
}

pub(super) fn write_heartbeat(out: &mut Vec<u8>) {
    write_message(SOCKET_TOPIC, "heartbeat", b"{}", br#""heartbeat""#, out);
}

pub(super) fn write(event: &str, key: Key, padding: &[u8], out: &mut Vec<u8>) {
    let mut message = Vec::with_capacity(padding.len() + 80);
    message.extend_from_slice(br#"{"body":"#);
    payload::write(key, padding, &mut message);
    message.push(b'}');
    let reference = format!(r#""{}""#, key.sequence);
    write_message(TOPIC, event, &message, reference.as_bytes(), out);
}

fn write_message(topic: &str, event: &str, payload: &[u8], reference: &[u8], out: &mut Vec<u8>) {
    let _ = write!(out, r#"{{"topic":"{topic}","event":"{event}","payload":"#);
    out.extend_from_slice(payload);
    out.extend_from_slice(br#","ref":"#);
    out.extend_from_slice(reference);
    out.push(b'}');
}

pub(super) fn parse(message: &[u8], padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let Message { topic, event, payload, .. } = payload::parse(message)?;
    if topic != TOPIC {
        return Ok(Parsed::Other);
    }
    match &*event {
        "phx_reply" => parse_reply(payload.ok_or(Wrong::Malformed)?, padding),
        "broadcast" => Ok(payload::stamped(content(payload).body, padding)?.into()),
        "phx_error" | "phx_close" => Err(Wrong::Closing),
        _ => Ok(Parsed::Other),
    }
}

fn parse_reply(reply: &RawValue, padding: Padding<'_>) -> Result<Parsed, Wrong> {
    let Reply { status, response } = payload::parse(reply.get().as_bytes())?;
    if status != "ok" {
        return Err(Wrong::Refused);
    }
    let Content { kind, body, listener_count } = content(response);
    Ok(match kind.as_deref() {
        Some("echo") => Parsed::Echo(payload::key(body, padding)?),
        Some("broadcastResult") => {
            Parsed::Result(payload::stamped(body, padding)?.0, listener_count)
        }
        Some(_) => Parsed::Other,
        None => Parsed::Joined,
    })
}

pub(super) fn answer(message: &[u8], due: &mut Due) -> Result<Asked, Wrong> {
    let Message { topic, event, payload, reference } = payload::parse(message)?;
    let reference = payload::raw(reference);
    let Due { to_all, to_sender } = due;
    if topic == SOCKET_TOPIC && event == "heartbeat" {
        write_reply(SOCKET_TOPIC, "ok", b"{}", reference, to_sender);
        return Ok(Asked::Heartbeat);
    }
    if topic != TOPIC {
        let no = br#"{"reason":"unmatched topic"}"#;
        write_reply("phoenix", "error", no, reference, to_sender);
        return Ok(Asked::Other);
    }
    let body = payload::raw(content(payload).body);
    match &*event {
        "phx_join" => {
            write_reply(TOPIC, "ok", b"{}", reference, to_sender);
            Ok(Asked::Join)
        }
        "phx_leave" => {
            write_reply(TOPIC, "ok", b"{}", reference, to_sender);
            Ok(Asked::Leave)
        }
        "echo" => {
            write_reply(TOPIC, "ok", &with_type("echo", body), reference, to_sender);
            Ok(Asked::Echo)
        }
        "broadcast" => {
            write_message(TOPIC, "broadcast", &with_type("broadcast", body), b"null", to_all);
            let receipt = with_type("broadcastResult", body);
            write_reply(TOPIC, "ok", &receipt, reference, to_sender);
            Ok(Asked::Broadcast)
        }
        _ => Ok(Asked::Other),
    }
}

fn with_type(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(body.len() + 40);
    let _ = write!(content, r#"{{"type":"{kind}","body":"#);
    content.extend_from_slice(body);
    content.push(b'}');
    content
}

fn write_reply(topic: &str, status: &str, response: &[u8], reference: &[u8], out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(response.len() + 40);
    let _ = write!(payload, r#"{{"status":"{status}","response":"#);
    payload.extend_from_slice(response);
    payload.push(b'}');
    write_message(topic, "phx_reply", &payload, reference, out);
}
