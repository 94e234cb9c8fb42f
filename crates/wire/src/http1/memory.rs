//! The last complete final head, with its interpretation. Most servers repeat the same bytes except
//! for a Date or a request id, and comparing them costs a fraction of parsing them.
//!
//! How it works: if two consecutive heads differ only in values that frame nothing, those values
//! are varying. From then on, a head matches if it has the same bytes outside the varying values
//! and any text within them. The parser would find the same lines and the same facts. Every other
//! head is parsed.
//!
//! Must not know: the body, and which connection a head came on.

use std::ops::Range;

use super::fields::Facts;
use super::status_line::StatusLine;
use super::text::text_end;
use crate::coding::CONTENT_ENCODING;
use crate::message::Limits;

/// A longer head is rare and changes more often.
const HEAD_BYTES_MAX: usize = 1024;
/// The maximum number of varying values; a head with more is parsed.
const VARYING_MAX: usize = 8;
/// Fields whose values frame the body or the connection, or that the parser looks into.
const FRAMING: [&[u8]; 5] =
    [b"content-length", b"transfer-encoding", b"connection", b"expect", CONTENT_ENCODING];

/// The memory for one kind of answer on all connections of a thread.
#[derive(Debug, Default)]
pub struct HeadMemory {
    head: Vec<u8>,
    /// The values that may be any text of the same length, in order.
    varying: Vec<Range<usize>>,
    line: StatusLine,
    facts: Facts,
    /// The caps under which the head was accepted.
    caps: (usize, usize),
}

impl HeadMemory {
    /// The Location of the remembered head, if that is a redirect (RFC 9110 §15.4) and the Location
    /// is visible ASCII.
    pub fn redirect(&self) -> Option<&str> {
        if !matches!(self.line.status, 300..=399) {
            return None;
        }
        let lines = self.head.split(|&byte| byte == b'\n').skip(1);
        let mut locations = lines.filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let visible = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
            (visible && name.eq_ignore_ascii_case(b"location")).then_some(value)
        });
        locations.next().and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The length and interpretation of the head at the start of `bytes`, if it matches the
    /// remembered one.
    #[inline]
    pub(super) fn recognise(
        &self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Option<(usize, StatusLine, Facts)> {
        let start = bytes.get(..self.head.len()).filter(|start| !start.is_empty())?;
        let same_caps = self.caps == (limits.head_bytes, limits.header_count);
        (same_caps && self.is_like(start)).then_some((start.len(), self.line, self.facts))
    }

    /// Whether a head of the same length matches the remembered one, except for text in varying
    /// values.
    #[inline]
    fn is_like(&self, head: &[u8]) -> bool {
        let mut from = 0;
        for Range { start, end } in self.varying.iter().cloned() {
            let as_before = head[from..start] == self.head[from..start];
            if !as_before || text_end(&head[..end], start) != end {
                return false;
            }
            from = end;
        }
        head[from..] == self.head[from..]
    }

    /// Remembers a complete head that was parsed.
    pub(super) fn remember(
        &mut self,
        head: &[u8],
        line: StatusLine,
        facts: Facts,
        limits: &Limits,
    ) {
        self.learn(head);
        self.head.clear();
        if head.len() <= HEAD_BYTES_MAX {
            self.head.extend_from_slice(head);
            self.line = line;
            self.facts = facts;
            self.caps = (limits.head_bytes, limits.header_count);
        } else {
            self.varying.clear();
        }
    }
}

impl HeadMemory {
    /// Adds the values in which `head` differs from the remembered head to the varying values.
    fn learn(&mut self, head: &[u8]) {
        match differing_values(&self.head, head) {
            Some(differing) => self.varying.extend(differing),
            None => self.varying.clear(),
        }
        self.varying.sort_unstable_by_key(|value| value.start);
        self.varying.dedup();
        if self.varying.len() > VARYING_MAX {
            self.varying.clear();
        }
    }
}

/// The values in which two legal heads differ. None if they differ in anything else.
fn differing_values(one: &[u8], two: &[u8]) -> Option<Vec<Range<usize>>> {
    if one.len() != two.len() {
        return None;
    }
    let mut varying = Vec::new();
    let mut from = 0;
    while from < one.len() {
        let end = line_end(one, from)?;
        if line_end(two, from)? != end {
            return None;
        }
        if one[from..end] != two[from..end] {
            varying.push(varying_value(one, two, from..end)?);
        }
        from = end + 2;
    }
    Some(varying)
}

/// The value of a line, if both heads have it under the same name and it frames nothing. A folded
/// line (obs-fold) has its name on an earlier line; its value never varies.
fn varying_value(one: &[u8], two: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    let name_len = one[line.clone()].iter().position(|&byte| byte == b':')?;
    let value = line.start + name_len + 1..line.end;
    let name = &one[line.start..line.start + name_len];
    // A status line has a space before its first colon, if it has a colon; a folded line begins
    // with a space or a tab.
    let nameless = name.iter().any(|byte| matches!(byte, b' ' | b'\t'));
    let framing = nameless || FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known));
    let same_name = one[line.start..value.start] == two[line.start..value.start];
    (same_name && !framing).then_some(value)
}

/// The position of the CR of the line that begins at `from`, in a legal head.
fn line_end(head: &[u8], from: usize) -> Option<usize> {
    let len = head[from..].windows(2).position(|pair| pair == b"\r\n")?;
    Some(from + len)
}

#[cfg(test)]
mod tests {
    use super::super::response::ResponseParser;
    use super::*;

    fn head(lines: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
    }

    #[test]
    fn a_redirect_says_where_it_leads() {
        let limits = Limits::default();
        for (status, lines, leads) in [
            (301, "Date: now\r\nLocation: /login\r\nContent-Length: 0\r\n", Some("/login")),
            (302, "location:https://h/a?b=c\r\n", Some("https://h/a?b=c")),
            (302, "Location: \t/a \r\nLocation: /b\r\n", Some("/a")),
            (304, "ETag: x\r\n", None),
            (302, "Location: \r\n", None),
            (302, "Location: /a b\r\n", None),
            (302, "Location: /\u{e9}\r\n", None),
            (302, "X-Location: /a\r\n", None),
            (200, "Location: /a\r\n", None),
            (201, "Location: /a\r\n", None),
        ] {
            let mut memory = HeadMemory::default();
            let head = format!("HTTP/1.1 {status} X\r\n{lines}\r\n");
            let (parser, body) = (&mut ResponseParser::default(), &mut |_: &[u8]| {});
            let fed =
                parser.feed_remembering(head.as_bytes(), false, &limits, Some(&mut memory), body);
            assert!(fed.is_ok(), "{fed:?}");
            assert_eq!(memory.redirect(), leads, "{status} {lines:?}");
        }
        assert_eq!(HeadMemory::default().redirect(), None, "nothing has come");
    }

    #[test]
    fn values_that_frame_nothing_may_vary() {
        let first = "Date: Mon\r\nContent-Length: 5\r\nX-Id: abc\r\n";
        for (sentence, second, varying) in [
            ("nothing differs", first, Some(vec![])),
            ("a date", "Date: Tue\r\nContent-Length: 5\r\nX-Id: abc\r\n", Some(vec!["Mon"])),
            ("two", "Date: Tue\r\nContent-Length: 5\r\nX-Id: xyz\r\n", Some(vec!["Mon", "abc"])),
            ("a length", "Date: Mon\r\nContent-Length: 6\r\nX-Id: abc\r\n", None),
            ("a name", "Date: Mon\r\nContent-Length: 5\r\nX-Ix: abc\r\n", None),
            ("the case of a name", "date: Mon\r\nContent-Length: 5\r\nX-Id: abc\r\n", None),
            ("a longer value", "Date: Mond\r\nContent-Length: 5\r\nX-Id: abc\r\n", None),
            ("lines cut elsewhere", "Date: M\r\nC: onte\r\nC-Length: 5\r\nX-Id: abc\r\n", None),
        ] {
            let (one, two) = (head(first), head(second));
            let texts = differing_values(&one, &two).map(|ranges| {
                let text = |range| String::from_utf8_lossy(&one[range]).trim().to_owned();
                ranges.into_iter().map(text).collect::<Vec<_>>()
            });
            let expected = varying.map(|all| all.into_iter().map(str::to_owned).collect());
            assert_eq!(texts, expected, "{sentence}");
        }
    }

    #[test]
    fn what_has_varied_once_may_vary_again() {
        let mut memory = HeadMemory::default();
        let limits = Limits::default();
        for (head_lines, known) in [
            ("Date: Mon\r\nX-Id: abc\r\n", false),
            ("Date: Mon\r\nX-Id: abc\r\n", true),
            ("Date: Tue\r\nX-Id: abc\r\n", false),
            ("Date: Wed\r\nX-Id: abc\r\n", true),
            ("Date: Wed\r\nX-Id: xyz\r\n", false),
            ("Date: Thu\r\nX-Id: 123\r\n", true),
            ("Date: T\0u\r\nX-Id: 123\r\n", false),
            ("Date: Thu!\r\nX-Id: 12\r\n", false),
        ] {
            let head = head(head_lines);
            let recognised = memory.recognise(&head, &limits);
            assert_eq!(recognised.is_some(), known, "{head_lines:?}");
            if recognised.is_none() && !head.contains(&0) {
                memory.remember(&head, StatusLine::default(), Facts::default(), &limits);
            }
        }
    }

    #[test]
    fn a_folded_line_has_no_name_of_its_own() {
        for fold in [" ", "\t"] {
            let lines = |value| head(&format!("X: y\r\n{fold}a:{value}\r\n"));
            assert_eq!(differing_values(&lines("b"), &lines("c")), None, "{fold:?}");
            let lines = |value| head(&format!("X: {value}\r\n{fold}a:b\r\n"));
            let varying = differing_values(&lines("y"), &lines("z")).map(|values| values.len());
            assert_eq!(varying, Some(1), "{fold:?}");
        }
    }

    #[test]
    fn a_reason_is_not_a_value() {
        let (one, two) = (b"HTTP/1.1 200 O:K\r\n\r\n", b"HTTP/1.1 200 O:O\r\n\r\n");
        assert_eq!(differing_values(one, two), None);
    }
}
