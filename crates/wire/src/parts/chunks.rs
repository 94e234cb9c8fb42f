//! Parts that are chunks of HTTP/1.1, or DATA frames of HTTP/2.

use super::Rule;
use super::matching::Matching;

/// The chunk in progress.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pub(super) within: bool,
    content: Matching,
}

impl Chunks {
    #[inline]
    pub(super) fn take(&mut self, slice: &[u8], rule: &Rule) {
        self.within |= !slice.is_empty();
        self.content.add(slice, rule.end_content());
    }

    /// Ends the chunk; returns whether it was the expected end, or none if it is empty.
    #[inline]
    pub(super) fn end(&mut self, rule: &Rule) -> Option<bool> {
        std::mem::take(&mut self.within).then(|| self.content.finish(rule.end_content()))
    }
}
