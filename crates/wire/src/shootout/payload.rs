//! The payload of our messages in the JSON dialects: `{"sender":7,"sequence":3,"padding":"xx"}`.
//!
//! The key comes first, so that different messages differ early. A stamp, if there is one, is the
//! beginning of the padding.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stamp::Padding;
use super::{Key, Stamp, Wrong};

#[derive(Deserialize)]
struct Payload<'a> {
    sender: u32,
    sequence: u32,
    #[serde(borrow)]
    padding: Cow<'a, str>,
}

/// Parses a JSON object. Anything of another form is not in the dialect.
pub(super) fn parse<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T, Wrong> {
    // serde would also accept an array of the members for a struct; no dialect has one.
    if message.trim_ascii_start().first() != Some(&b'{') {
        return Err(Wrong::Malformed);
    }
    serde_json::from_slice(message).map_err(|_| Wrong::Malformed)
}

/// Writes `text` as a JSON string.
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    // Cannot fail: a Vec takes any amount, and every text can be written as JSON.
    let _ = serde_json::to_writer(out, text);
}

pub(super) fn write(key: Key, padding: &[u8], out: &mut Vec<u8>) {
    let Key { sender, sequence } = key;
    let _ = write!(out, r#"{{"sender":{sender},"sequence":{sequence},"padding":"#);
    write_text(&String::from_utf8_lossy(padding), out);
    out.push(b'}');
}

/// The key of an echo's payload, which must be one of ours with this padding.
pub(super) fn key(payload: Option<&RawValue>, padding: Padding<'_>) -> Result<Key, Wrong> {
    stamped(payload, Padding { stamped: false, ..padding }).map(|(key, _)| key)
}

/// The key and the stamp of a broadcast's payload, likewise, or of its receipt.
pub(super) fn stamped(
    payload: Option<&RawValue>,
    padding: Padding<'_>,
) -> Result<(Key, Option<Stamp>), Wrong> {
    let payload = payload.ok_or(Wrong::Foreign)?;
    let Payload { sender, sequence, padding: found } =
        parse(payload.get().as_bytes()).map_err(|_| Wrong::Foreign)?;
    let (stamp, rest) = padding.split(found.as_bytes())?;
    let sent = padding.bytes;
    let as_sent = rest == sent || rest == String::from_utf8_lossy(sent).as_bytes();
    if as_sent { Ok((Key { sender, sequence }, stamp)) } else { Err(Wrong::Altered) }
}

/// The payload as received; `null` for none.
pub(super) fn raw(payload: Option<&RawValue>) -> &[u8] {
    payload.map_or("null", RawValue::get).as_bytes()
}
