//! Parts that are lines, as in JSON Lines (jsonlines.org): each ends with LF or CRLF, the last one
//! also with the body. An empty line is no part.

use super::Rule;
use super::matching::Matching;

/// The line in progress.
#[derive(Debug, Default)]
pub(super) struct Lines {
    within: bool,
    /// The last byte was a CR, which may belong to the end of the line.
    after_cr: bool,
    content: Matching,
}

impl Lines {
    pub(super) fn take(&mut self, mut slice: &[u8], rule: &Rule, on_part: &mut impl FnMut(bool)) {
        while !slice.is_empty() {
            let Some(at) = slice.iter().position(|byte| *byte == b'\n') else {
                return self.content(slice, rule);
            };
            self.content(&slice[..at], rule);
            slice = &slice[at + 1..];
            self.after_cr = false;
            if let Some(is_end) = self.end_line(rule) {
                on_part(is_end);
            }
        }
    }

    fn content(&mut self, slice: &[u8], rule: &Rule) {
        let Some(last) = slice.last() else { return };
        if std::mem::take(&mut self.after_cr) {
            self.add(b"\r", rule);
        }
        self.after_cr = *last == b'\r';
        self.add(&slice[..slice.len() - usize::from(self.after_cr)], rule);
    }

    fn add(&mut self, slice: &[u8], rule: &Rule) {
        self.within |= !slice.is_empty();
        self.content.add(slice, rule.end_content());
    }

    fn end_line(&mut self, rule: &Rule) -> Option<bool> {
        std::mem::take(&mut self.within).then(|| self.content.finish(rule.end_content()))
    }

    /// Ends the line with the body; returns whether it was the expected end, or none if it is
    /// empty.
    pub(super) fn end(&mut self, rule: &Rule) -> Option<bool> {
        self.after_cr = false;
        self.end_line(rule)
    }
}
