//! Parts that are lines, as in JSON Lines (jsonlines.org): each ends with LF or CRLF, the last one
//! also with the body. An empty line is no part.

use super::End;
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
    pub(super) fn take(&mut self, mut slice: &[u8], end: &End, on_part: &mut impl FnMut(bool)) {
        while !slice.is_empty() {
            let Some(at) = slice.iter().position(|byte| *byte == b'\n') else {
                return self.content(slice, end);
            };
            self.content(&slice[..at], end);
            slice = &slice[at + 1..];
            self.after_cr = false;
            if let Some(is_end) = self.end_line(end) {
                on_part(is_end);
            }
        }
    }

    fn content(&mut self, slice: &[u8], end: &End) {
        let Some(last) = slice.last() else { return };
        if std::mem::take(&mut self.after_cr) {
            self.add(b"\r", end);
        }
        self.after_cr = *last == b'\r';
        self.add(&slice[..slice.len() - usize::from(self.after_cr)], end);
    }

    fn add(&mut self, slice: &[u8], end: &End) {
        self.within |= !slice.is_empty();
        self.content.add(slice, expected(end));
    }

    fn end_line(&mut self, end: &End) -> Option<bool> {
        std::mem::take(&mut self.within).then(|| self.content.finish(expected(end)))
    }

    /// Ends the line with the body; returns whether it was the expected end, or none if it is
    /// empty.
    pub(super) fn end(&mut self, end: &End) -> Option<bool> {
        self.after_cr = false;
        self.end_line(end)
    }
}

fn expected(end: &End) -> Option<&[u8]> {
    if let End::Content(content) = end { Some(content) } else { None }
}
