//! Parts that are events of an event stream, as WHATWG HTML defines it in 9.2.5 and 9.2.6: lines
//! end with CR, LF or CRLF, comments and unknown fields are ignored, and a blank line dispatches
//! the event if it has data.
//!
//! An event is complete with the first byte of its blank line's end. At the end of the body, an
//! event without that blank line is incomplete and is not dispatched.

use super::matching::Matching;
use super::{End, Rule};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The bytes of a field's name that are kept: one more than the longest that is known.
const NAME_BYTES: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    /// A comment, or a field that does not matter here.
    Ignored,
}

/// A position in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Within the name of a field, before its colon.
    Name,
    /// Behind the colon: one space is not part of the value.
    Colon(Field),
    Value(Field),
}

/// The event in progress.
#[derive(Debug)]
pub(super) struct Events {
    line: Line,
    name: [u8; NAME_BYTES],
    /// The bytes of the name so far; no more are counted than are kept.
    name_len: u8,
    /// The bytes of the byte order mark so far; none if the stream is behind its first line's
    /// start.
    mark: Option<u8>,
    /// The last byte was a CR: an LF behind it belongs to the same end of line.
    after_cr: bool,
    has_data: bool,
    data: Matching,
    kind: Matching,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            line: Line::Name,
            name: [0; NAME_BYTES],
            name_len: 0,
            mark: Some(0),
            after_cr: false,
            has_data: false,
            data: Matching::default(),
            kind: Matching::default(),
        }
    }
}

impl Events {
    /// Reads a slice. `on_part` is called for each event; its argument says whether it is the
    /// expected end.
    pub(super) fn take(&mut self, slice: &[u8], rule: &Rule, on_part: &mut impl FnMut(bool)) {
        let mut at = 0;
        while let Some(&byte) = slice.get(at) {
            if self.mark.is_some() && self.is_marked(byte) {
                at += 1;
                continue;
            }
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                continue;
            }
            if let Line::Value(field) | Line::Colon(field) = self.line {
                at += self.value(&slice[at..], field, rule);
                if at == slice.len() {
                    return;
                }
            }
            match slice[at] {
                byte @ (b'\r' | b'\n') => {
                    self.after_cr = byte == b'\r';
                    self.end_line(rule, on_part);
                }
                b':' => self.colon(rule),
                byte => self.name_byte(byte),
            }
            at += 1;
        }
    }

    /// Whether an event has begun and is not complete. Half a name tells so only `behind` other
    /// events: else it may be any text.
    pub(super) fn is_within_event(&self, behind: bool) -> bool {
        self.has_data || (behind && self.line == Line::Name && self.name_len > 0)
    }

    /// Whether a byte belongs to the byte order mark that a stream may begin with.
    #[cold]
    fn is_marked(&mut self, byte: u8) -> bool {
        let Some(before) = self.mark.take() else { return false };
        if byte == BYTE_ORDER_MARK[usize::from(before)] {
            let all = usize::from(before) + 1 == BYTE_ORDER_MARK.len();
            self.mark = (!all).then_some(before + 1);
            return true;
        }
        // Its first bytes begin a name, which is not one that is known.
        (0..before).for_each(|at| self.name_byte(BYTE_ORDER_MARK[usize::from(at)]));
        false
    }

    fn name_byte(&mut self, byte: u8) {
        if let Some(place) = self.name.get_mut(usize::from(self.name_len)) {
            *place = byte;
            self.name_len += 1;
        }
    }

    fn field(&self) -> Field {
        match &self.name[..usize::from(self.name_len)] {
            b"data" => Field::Data,
            b"event" => Field::Event,
            _ => Field::Ignored,
        }
    }

    fn colon(&mut self, rule: &Rule) {
        let field = self.field();
        self.begin(field, rule);
        self.line = Line::Colon(field);
    }

    fn begin(&mut self, field: Field, rule: &Rule) {
        match field {
            Field::Data => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.add(b"\n", rule.end_content());
                }
            }
            Field::Event => self.kind = Matching::default(),
            Field::Ignored => {}
        }
    }

    /// Reads the next bytes of a value up to the end of its line; returns their number.
    #[inline]
    fn value(&mut self, slice: &[u8], field: Field, rule: &Rule) -> usize {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let len = slice.iter().position(is_end).unwrap_or(slice.len());
        let skipped = usize::from(self.line == Line::Colon(field) && slice.first() == Some(&b' '));
        self.line = Line::Value(field);
        let value = &slice[skipped..len];
        match field {
            Field::Data => self.data.add(value, rule.end_content()),
            Field::Event => self.kind.add(value, rule.end_event()),
            Field::Ignored => {}
        }
        len
    }

    fn end_line(&mut self, rule: &Rule, on_part: &mut impl FnMut(bool)) {
        let is_name = std::mem::replace(&mut self.line, Line::Name) == Line::Name;
        if is_name && self.name_len > 0 {
            // A line without a colon is a field with an empty value.
            self.begin(self.field(), rule);
        } else if is_name {
            self.dispatch(rule, on_part);
        }
        self.name_len = 0;
    }

    fn dispatch(&mut self, rule: &Rule, on_part: &mut impl FnMut(bool)) {
        let is_end = match &rule.end {
            None => false,
            Some(End::Content { .. }) => self.data.finish(rule.end_content()),
            Some(End::Event { .. }) => self.kind.finish(rule.end_event()),
        };
        (self.data, self.kind) = Default::default();
        if std::mem::take(&mut self.has_data) {
            on_part(is_end);
        }
    }
}
