//! The answer to a session's request, as far as the session has a use for it.

use super::extract::{BODY_BYTES_MOST, Extractor};
use super::script::{Script, Step};
use super::state::Session;
use crate::message::Location;
use crate::message::cookies::SET_COOKIE;

/// A larger buffer is given back after each answer.
const KEPT_BYTES: usize = 64 << 10;

/// The fields, the Location and the body of an answer that a session uses.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// A line for each field: name, colon, space and value.
    lines: Vec<u8>,
    pub(super) location: Location,
    pub(super) body: Vec<u8>,
    /// The body is longer than what values are taken from.
    pub(super) is_too_long: bool,
}

impl Answer {
    /// Adds a field. A value that is folded over several lines becomes one line (RFC 9112 §5.2).
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.lines.extend_from_slice(name);
        self.lines.extend_from_slice(b": ");
        let unfolded =
            value.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte });
        self.lines.extend(unfolded);
        self.lines.push(b'\n');
    }

    /// Names and values of the fields, in order.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.lines.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The value of the first field of this name.
    pub(super) fn header(&self, name: &str) -> Option<&[u8]> {
        let mut named = self.headers().filter(|(one, _)| one.eq_ignore_ascii_case(name.as_bytes()));
        named.next().map(|(_, value)| value)
    }

    fn clear(&mut self) {
        (self.location, self.is_too_long) = (Location::Missing, false);
        for buffer in [&mut self.lines, &mut self.body] {
            buffer.clear();
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

/// Whether a field is used: it sets a cookie, or the step takes its value.
fn is_used(step: &Step, name: &[u8]) -> bool {
    let is = |other: &[u8]| name.len() == other.len() && name.eq_ignore_ascii_case(other);
    let takes = |from: &Extractor| matches!(from, Extractor::Header(one) if is(one.as_bytes()));
    is(SET_COOKIE) || step.takes.iter().any(|(_, from)| takes(from))
}

impl Session {
    /// Begins the head of an answer; an interim one before it is forgotten.
    pub fn note_head(&mut self) {
        self.answer.clear();
    }

    /// Notes a field of the head.
    pub fn note_field(&mut self, script: &Script, name: &[u8], value: &[u8]) {
        if script.follows && name.eq_ignore_ascii_case(b"location") {
            self.answer.location.add(value);
        }
        if self.step(script).is_some_and(|step| is_used(step, name)) {
            self.answer.add(name, value);
        }
    }

    /// Notes a part of the body, as far as the script needs it.
    pub fn note_body(&mut self, script: &Script, bytes: &[u8]) {
        if !self.step(script).is_some_and(|step| step.needs_body) {
            return;
        }
        let Answer { body, is_too_long, .. } = &mut self.answer;
        *is_too_long |= body.len() + bytes.len() > BODY_BYTES_MOST;
        if !*is_too_long {
            body.extend_from_slice(bytes);
        }
    }

    /// Forgets the part of an answer that has come: its connection is gone.
    pub fn forget_answer(&mut self) {
        self.answer.clear();
    }
}
