//! Extractors: how a session takes a value from an answer. The set is small and fixed, and each
//! takes time linear in the answer.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::answer::Answer;
use crate::message::cookies;

/// Longest body that a value is taken from.
pub const BODY_BYTES_MOST: usize = 1 << 20;
/// Longest value.
pub const VALUE_BYTES_MOST: usize = 64 << 10;
/// Largest compiled regular expression.
pub const REGEX_BYTES_MOST: usize = 1 << 20;
/// Most parts of a JSON pointer: each is a level of the reader's stack.
const POINTER_PARTS_MOST: usize = 64;

/// Where a value is taken from.
#[derive(Clone, Debug)]
pub enum Extractor {
    /// The member of a JSON body at this pointer (RFC 6901), by its parts.
    Json(Vec<String>),
    /// The first header of this name.
    Header(String),
    /// The cookie of this name that the answer sets.
    Cookie(String),
    /// The first group of the first match in the body.
    Regex(Box<Regex>),
}

impl Extractor {
    /// Takes the member of a JSON body at a pointer.
    pub fn json(pointer: &str) -> Result<Self, String> {
        if pointer.is_empty() {
            return Ok(Extractor::Json(Vec::new()));
        }
        let parts = pointer.strip_prefix('/').ok_or("a JSON pointer begins with /")?;
        let parts: Vec<_> = parts
            .split('/')
            .map(unescaped)
            .collect::<Option<_>>()
            .ok_or("in a JSON pointer, ~ is written ~0, and / is written ~1")?;
        if parts.len() > POINTER_PARTS_MOST {
            return Err(format!("a JSON pointer has at most {POINTER_PARTS_MOST} parts"));
        }
        Ok(Extractor::Json(parts))
    }

    /// Takes the first group of a regular expression. It must have a group, and must not be too
    /// large.
    pub fn regex(pattern: &str) -> Result<Self, String> {
        // Over bytes: `\w`, `\d` and `(?i)` mean ASCII. Tables for Unicode, and the automata that
        // are built ahead, would make the engine a fifth larger.
        let built = RegexBuilder::new(pattern)
            .unicode(false)
            .size_limit(REGEX_BYTES_MOST)
            .dfa_size_limit(REGEX_BYTES_MOST)
            .build();
        let regex = built.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
            // The last line is the reason; those before it show the place.
            error => {
                let text = error.to_string();
                let why = text.lines().last().unwrap_or_default();
                why.trim_start_matches("error: ").to_owned()
            }
        })?;
        if regex.captures_len() < 2 {
            return Err("the regular expression has no group: put ( ) around the value".to_owned());
        }
        Ok(Extractor::Regex(Box::new(regex)))
    }

    /// Whether it reads the body.
    pub fn needs_body(&self) -> bool {
        matches!(self, Extractor::Json(_) | Extractor::Regex(_))
    }

    /// Puts the value into `out`; false if nothing matches.
    pub(super) fn find(&self, answer: &Answer, out: &mut Vec<u8>) -> bool {
        out.clear();
        let member;
        let found = match self {
            Extractor::Json(parts) => {
                member = json_member(&answer.body, parts);
                member.as_deref().map(str::as_bytes)
            }
            Extractor::Header(name) => answer.header(name),
            Extractor::Cookie(name) => cookies::of_head(answer.headers(), name),
            Extractor::Regex(regex) => {
                let groups = regex.captures(&answer.body);
                groups.and_then(|groups| groups.get(1)).map(|group| group.as_bytes())
            }
        };
        out.extend_from_slice(found.unwrap_or_default());
        found.is_some() && out.len() <= VALUE_BYTES_MOST
    }
}

/// A part of a JSON pointer without its escapes; none if one is wrong.
fn unescaped(part: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), part.chars());
    while let Some(each) = chars.next() {
        text.push(match each {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

/// The member at a pointer: a string without its quotes, anything else as it is written. None if
/// there is none, if it is null, or if the body is not JSON.
fn json_member(body: &[u8], parts: &[String]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let found = At(parts).deserialize(&mut reader).ok()??;
    reader.end().ok()?;
    match found.as_bytes().first() {
        Some(b'"') => serde_json::from_str(&found).ok(),
        Some(b'n') => None,
        _ => Some(found),
    }
}

/// What a [`Visitor`] makes of values that have no members.
macro_rules! no_members {
    ($($visit:ident: $of:ty),*) => {
        $(fn $visit<E: Error>(self, _: $of) -> Result<Self::Value, E> {
            Ok(None)
        })*
    };
}

/// Reads a JSON value, and returns the text of the member at the rest of a pointer.
struct At<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            let raw = <&RawValue as serde::Deserialize>::deserialize(reader)?;
            return Ok(Some(raw.get().to_owned()));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if name == first.as_str() && found.is_none() {
                found = Some(map.next_value_seed(At(rest))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        // RFC 6901 §4: no leading zeros.
        let is_index = first == "0" || !first.starts_with('0');
        let wanted = first.parse::<usize>().ok().filter(|_| is_index && !first.starts_with('+'));
        let (mut found, mut at) = (None, 0);
        loop {
            if Some(at) == wanted {
                let Some(value) = list.next_element_seed(At(rest))? else { return Ok(found) };
                found = value;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }

    no_members! { visit_str: &str, visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64 }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(extractor: &Extractor, body: &str) -> Option<String> {
        let mut answer = Answer::default();
        answer.body.extend_from_slice(body.as_bytes());
        for (name, value) in [("X-Id", "7"), ("Set-Cookie", "s=1; Path=/"), ("set-cookie", "t=2")] {
            answer.add(name.as_bytes(), value.as_bytes());
        }
        let mut out = Vec::new();
        let matched = extractor.find(&answer, &mut out);
        matched.then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn a_json_pointer_takes_a_member_as_it_is_written() {
        let body = r#"{"a":{"b":["x",{"c/d~":12.50}]},"t":"q\"\u00e9","n":null,"a2":true}"#;
        for (pointer, value) in [
            ("/a/b/0", Some("x")),
            ("/a/b/1/c~1d~0", Some("12.50")),
            ("/t", Some("q\"é")),
            ("/a2", Some("true")),
            ("/a/b/1", Some(r#"{"c/d~":12.50}"#)),
            ("/n", None),
            ("/a/b/2", None),
            ("/a/b/00", None),
            ("/a/b/-", None),
            ("/t/x", None),
            ("/missing", None),
        ] {
            let json = Extractor::json(pointer).expect("a pointer");
            assert_eq!(found(&json, body).as_deref(), value, "{pointer}");
        }
        let whole = Extractor::json("").expect("a pointer");
        assert_eq!(found(&whole, "5").as_deref(), Some("5"));
        for broken in ["", "{", r#"{"a":1"#, r#"{"a":1} x"#, "<html>"] {
            let json = Extractor::json("/a").expect("a pointer");
            assert_eq!(found(&json, broken), None, "{broken}");
        }
        for wrong in ["a", "/a~", "/~2"] {
            assert!(Extractor::json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_cookies_and_the_first_group_of_a_match_are_taken() {
        let regex = |pattern| Extractor::regex(pattern).expect("a regular expression");
        for (extractor, value) in [
            (Extractor::Header("x-id".to_owned()), Some("7")),
            (Extractor::Header("x-no".to_owned()), None),
            (Extractor::Cookie("t".to_owned()), Some("2")),
            (Extractor::Cookie("u".to_owned()), None),
            (regex(r#"name="csrf" value="([^"]+)""#), Some("abc")),
            (regex("(x)?csrf"), None),
            (regex("(zzz)"), None),
        ] {
            let body = r#"<input name="csrf" value="abc">"#;
            assert_eq!(found(&extractor, body).as_deref(), value, "{extractor:?}");
        }
    }

    #[test]
    fn a_regular_expression_needs_a_group_and_has_a_size_limit() {
        for (pattern, why) in [
            ("abc", "no group"),
            ("(?:abc)", "no group"),
            ("(abc", "unclosed group"),
            (r"(\w{99999})", "too large"),
            ("(?=a)(b)", "look-around"),
        ] {
            let error = Extractor::regex(pattern).expect_err(pattern);
            assert!(error.contains(why), "{pattern}: {error}");
        }
    }

    #[test]
    fn a_value_has_a_longest_length() {
        let json = Extractor::json("").expect("a pointer");
        let text = |len: usize| format!("\"{}\"", "a".repeat(len));
        assert!(found(&json, &text(VALUE_BYTES_MOST)).is_some());
        assert!(found(&json, &text(VALUE_BYTES_MOST + 1)).is_none());
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_panic(body in ".{0,200}", pointer in "(/[a-z0-9~]{0,3}){0,4}") {
            if let Ok(json) = Extractor::json(&pointer) {
                found(&json, &body);
            }
        }
    }
}
