//! Parts that are chunks of HTTP/1.1, or DATA frames of HTTP/2.

use super::End;
use super::matching::Matching;

/// The chunk in progress.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    within: bool,
    content: Matching,
}

impl Chunks {
    #[inline]
    pub(super) fn take(&mut self, slice: &[u8], end: &End) {
        self.within |= !slice.is_empty();
        self.content.add(slice, expected(end));
    }

    /// Ends the chunk; returns whether it was the expected end, or none if it is empty.
    #[inline]
    pub(super) fn end(&mut self, end: &End) -> Option<bool> {
        std::mem::take(&mut self.within).then(|| self.content.finish(expected(end)))
    }

    pub(super) fn is_within_chunk(&self) -> bool {
        self.within
    }
}

fn expected(end: &End) -> Option<&[u8]> {
    if let End::Content(content) = end { Some(content) } else { None }
}
