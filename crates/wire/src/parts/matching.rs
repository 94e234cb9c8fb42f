//! Compares the content of a part with the one expected at the end, as its slices arrive.

/// The comparison of one part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Matching {
    matched: usize,
    differs: bool,
}

impl Matching {
    #[inline]
    pub(super) fn add(&mut self, slice: &[u8], expected: Option<&[u8]>) {
        let Some(expected) = expected else { return };
        let end = self.matched.saturating_add(slice.len());
        self.differs = self.differs || expected.get(self.matched..end) != Some(slice);
        self.matched = end;
    }

    /// Whether the part was the one expected. Resets for the next.
    #[inline]
    pub(super) fn finish(&mut self, expected: Option<&[u8]>) -> bool {
        let Matching { matched, differs } = std::mem::take(self);
        expected.is_some_and(|expected| !differs && matched == expected.len())
    }
}
