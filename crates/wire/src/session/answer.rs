//! The answer to a session's request, as far as the session has a use for it.

use crate::coding::Coding;
use crate::message::Location;

/// A larger buffer is given back after each answer.
const KEPT_BYTES: usize = 64 << 10;

/// The fields, the Location and the body of an answer that a session uses.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// A line for each field: name, colon, space and value.
    lines: Vec<u8>,
    pub(super) location: Location,
    /// The coding of its body, if a value is in that.
    pub(super) coding: Coding,
    pub(super) body: Vec<u8>,
    /// The body is longer than what values are taken from.
    pub(super) is_too_long: bool,
}

impl Answer {
    /// An answer that has only a body.
    pub(super) fn of_body(body: &[u8]) -> Self {
        Answer { body: body.to_vec(), ..Answer::default() }
    }

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

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let location = self.location.value().map_or(0, <[u8]>::len);
        self.lines.capacity() + location + self.body.capacity()
    }

    pub(super) fn clear(&mut self) {
        (self.location, self.is_too_long) = (Location::Missing, false);
        self.coding = Coding::default();
        for buffer in [&mut self.lines, &mut self.body] {
            buffer.clear();
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}
