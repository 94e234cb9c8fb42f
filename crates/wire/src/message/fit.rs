//! How a value is written where it goes: in a path, a header, a form, a JSON text or elsewhere.
//!
//! `{name}` is written so that it stays one value there; `{+name}` keeps what has a meaning in a
//! path (RFC 6570). `{name|raw}` is the value as it is, and `{name|json}` is the value as JSON.
//!
//! Must not know: where values come from, and what else is in a text.

use std::borrow::Cow;
use std::fmt;

use serde::de::IgnoredAny;

/// Where the next placeholder of a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// In a path or a query.
    Path,
    /// In a form (`application/x-www-form-urlencoded`).
    Form,
    Json(InJson),
    /// In a header, or in a body of any other kind.
    Other,
}

/// Where in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InJson {
    in_text: bool,
    is_escaped: bool,
}

impl Spot {
    /// Passes a byte of the text.
    pub(crate) fn pass(&mut self, byte: u8) {
        let Spot::Json(json) = self else { return };
        if json.is_escaped {
            json.is_escaped = false;
        } else if byte == b'"' {
            json.in_text = !json.in_text;
        } else if byte == b'\\' {
            json.is_escaped = json.in_text;
        }
    }
}

/// The kind of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Json,
    Form,
    /// Its Content-Type says something else.
    Other,
    /// It has no Content-Type.
    Unnamed,
}

impl Body {
    /// The kind of a body with this Content-Type.
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        let Some(value) = content_type else { return Body::Unnamed };
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let sub = essence.split_once('/').map_or("", |(_, sub)| sub);
        let is_json = |sub: &str| sub == "json" || sub.ends_with("json") || sub.ends_with("jsonl");
        match sub {
            "x-www-form-urlencoded" => Body::Form,
            sub if is_json(sub) => Body::Json,
            _ => Body::Other,
        }
    }
}

/// What is done to a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    /// It becomes JSON first.
    json: bool,
    kept: Kept,
}

/// The characters of a value that are sent as they are; the others are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    All,
    /// All of them, as the value of a member of JSON.
    Value,
    /// All of them, as a part of JSON.
    Raw,
    /// Letters, digits and `-._~`.
    Unreserved,
    /// These and what has a meaning in a path: `:/?[]@!$&'()*+,;=`, and `%` before two hex digits.
    Reserved,
    /// All that may be in a path or a query.
    Legal,
    /// What needs no backslash in a JSON text.
    Text,
}

impl fmt::Debug for Fit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}{}", self.kept, if self.json { ", json" } else { "" })
    }
}

/// The name and the fit of what stands in braces.
pub(crate) fn named(inside: &[u8], spot: Spot) -> (&[u8], Fit) {
    let (inside, is_raw, json) = match inside {
        [name @ .., b'|', b'r', b'a', b'w'] => (name, true, false),
        [name @ .., b'|', b'j', b's', b'o', b'n'] => (name, false, true),
        name => (name, false, false),
    };
    let (name, plus) = inside.strip_prefix(b"+").map_or((inside, false), |name| (name, true));
    let kept = match spot {
        Spot::Path if is_raw => Kept::Legal,
        Spot::Path | Spot::Form if plus => Kept::Reserved,
        Spot::Path => Kept::Unreserved,
        Spot::Json(_) if is_raw => Kept::Raw,
        _ if is_raw => Kept::All,
        Spot::Form => Kept::Unreserved,
        Spot::Json(InJson { in_text: true, .. }) => Kept::Text,
        Spot::Json(_) if !json => Kept::Value,
        Spot::Json(_) | Spot::Other => Kept::All,
    };
    (name, Fit { json, kept })
}

impl Fit {
    #[cfg(test)]
    pub(crate) const TEXT: Fit = Fit { json: false, kept: Kept::Text };

    /// Whether the value must be JSON where it goes.
    pub(crate) fn must_be_json(self) -> bool {
        self.kept == Kept::Value
    }

    /// Whether the value may make its body no JSON.
    pub(crate) fn may_break_json(self) -> bool {
        self.kept == Kept::Raw
    }

    /// The same for a value that is always a text: in JSON it becomes one.
    pub(crate) fn of_text(self) -> Self {
        Fit { json: self.json || self.must_be_json(), ..self }
    }

    /// The value as it is written.
    pub(crate) fn written(self, value: &[u8]) -> Vec<u8> {
        let value = if self.json { as_json(value) } else { Cow::Borrowed(value) };
        self.kept.escaped(&value).unwrap_or_else(|| value.into_owned())
    }

    /// Whether the value is written as it is.
    #[inline]
    pub(crate) fn keeps(self, value: &[u8]) -> bool {
        !self.json && self.kept.keeps(value)
    }

    /// The most bytes that a value of `value_most` bytes takes.
    pub(crate) fn len_most(self, value_most: usize) -> usize {
        let len = if self.json { (6 * value_most).saturating_add(2) } else { value_most };
        len.saturating_mul(match self.kept {
            Kept::All | Kept::Value | Kept::Raw => 1,
            Kept::Text => 6,
            _ => 3,
        })
    }
}

impl Kept {
    fn keeps(self, value: &[u8]) -> bool {
        match self {
            Kept::All | Kept::Value | Kept::Raw => true,
            Kept::Text => !value.iter().any(|byte| is_escaped_in_json(*byte)),
            _ => value.iter().all(|byte| is_unreserved(*byte)),
        }
    }

    /// The value with its escapes; none if it is sent as it is.
    fn escaped(self, value: &[u8]) -> Option<Vec<u8>> {
        if self.keeps(value) {
            return None;
        }
        let mut out = Vec::with_capacity(3 * value.len());
        for (at, byte) in value.iter().enumerate() {
            let is_kept = is_unreserved(*byte)
                || match self {
                    Kept::Reserved => {
                        b":/?[]@!$&'()*+,;=".contains(byte) || is_encoded(&value[at..])
                    }
                    Kept::Legal => is_legal(*byte),
                    Kept::Text => !is_escaped_in_json(*byte),
                    _ => false,
                };
            match self {
                _ if is_kept => out.push(*byte),
                Kept::Text => escape_in_json(*byte, &mut out),
                _ => out.extend(percent_encoded(*byte)),
            }
        }
        Some(out)
    }
}

/// Whether a byte may stand in a path or a query (RFC 3986 §3.3, §3.4).
pub(super) fn is_legal(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte)
}

pub(super) fn percent_encoded(byte: u8) -> [u8; 3] {
    let [high, low] = [byte >> 4, byte & 15].map(|half| b"0123456789ABCDEF"[usize::from(half)]);
    [b'%', high, low]
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether these bytes begin with a percent-encoded byte.
fn is_encoded(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn is_escaped_in_json(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\')
}

fn escape_in_json(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        b'"' | b'\\' => byte,
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend([b'\\', short]);
}

/// A value as JSON: a text in quotes, and what is JSON without being a text as it is.
fn as_json(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.trim_ascii_start().starts_with(b"\"") && is_json_value(value) {
        return Cow::Borrowed(value);
    }
    let text = Kept::Text.escaped(value).unwrap_or_else(|| value.to_vec());
    Cow::Owned([b"\"", &text[..], b"\""].concat())
}

/// Whether a text is one value of JSON.
pub fn is_json_value(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Whether a text is values of JSON, one or, as in JSON lines, several.
pub(super) fn is_json(text: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    values.next().is_some_and(|first| first.is_ok()) && values.all(|value| value.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_one_value_wherever_it_goes() {
        let value = "a/b c?&=\"\\<>^|%41é\n{x}";
        let (in_text, json) = (InJson { in_text: true, is_escaped: false }, InJson::default());
        for (inside, spot, written) in [
            ("v", Spot::Path, "a%2Fb%20c%3F%26%3D%22%5C%3C%3E%5E%7C%2541%C3%A9%0A%7Bx%7D"),
            ("+v", Spot::Path, "a/b%20c?&=%22%5C%3C%3E%5E%7C%41%C3%A9%0A%7Bx%7D"),
            ("v|raw", Spot::Path, "a/b%20c?&=%22%5C%3C%3E%5E%7C%41%C3%A9%0A%7Bx%7D"),
            ("v", Spot::Form, "a%2Fb%20c%3F%26%3D%22%5C%3C%3E%5E%7C%2541%C3%A9%0A%7Bx%7D"),
            ("v|raw", Spot::Form, value),
            ("v", Spot::Other, value),
            ("v", Spot::Json(in_text), "a/b c?&=\\\"\\\\<>^|%41é\\n{x}"),
            ("v|raw", Spot::Json(in_text), value),
            ("v", Spot::Json(json), value),
            ("v|json", Spot::Json(json), "\"a/b c?&=\\\"\\\\<>^|%41é\\n{x}\""),
        ] {
            let (name, fit) = named(inside.as_bytes(), spot);
            assert_eq!(name, b"v");
            let found = fit.written(value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), written, "{inside} {spot:?}");
            assert!(found.len() <= fit.len_most(value.len()), "{inside} {spot:?}");
        }
    }

    #[test]
    fn as_json_a_text_has_quotes_and_what_is_json_stays() {
        for (value, written) in [
            ("anna", "\"anna\""),
            ("", "\"\""),
            ("\"quoted\"", "\"\\\"quoted\\\"\""),
            ("\u{1}", "\"\\u0001\""),
            ("7", "7"),
            ("007", "\"007\""),
            ("true", "true"),
            ("[{\"a\":1}]", "[{\"a\":1}]"),
            ("[{\"a\":1}", "\"[{\\\"a\\\":1}\""),
        ] {
            let (_, fit) = named(b"v|json", Spot::Other);
            assert_eq!(String::from_utf8_lossy(&fit.written(value.as_bytes())), written);
        }
    }

    #[test]
    fn the_content_type_says_what_a_body_is() {
        for (value, kind) in [
            (Some("application/json"), Body::Json),
            (Some("Application/JSON; charset=utf-8"), Body::Json),
            (Some("application/vnd.api+json"), Body::Json),
            (Some("application/x-ndjson"), Body::Json),
            (Some("application/x-www-form-urlencoded;charset=utf-8"), Body::Form),
            (Some("multipart/form-data; boundary=json"), Body::Other),
            (Some("text/plain"), Body::Other),
            (Some(""), Body::Other),
            (None, Body::Unnamed),
        ] {
            assert_eq!(Body::of(value), kind, "{value:?}");
        }
    }
}
