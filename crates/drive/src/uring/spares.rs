//! Buffers of sends that have ended, kept for later ones.

/// Small buffers kept.
const SMALL_MOST: usize = 4096;
/// A buffer larger than this is a large one.
const SMALL_BYTES: usize = 16 * 1024;
/// All large buffers that are kept. Without them each large send maps fresh pages, which costs far
/// more than the copy.
const LARGE_TOTAL_BYTES: usize = 8 * 1024 * 1024;

/// Empty buffers.
#[derive(Debug, Default)]
pub(super) struct Spares {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    large_bytes: usize,
}

impl Spares {
    /// Takes out an empty buffer for `len` bytes, or more. It may have to grow.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        if len <= SMALL_BYTES {
            return self.small.pop().unwrap_or_default();
        }
        self.take_large().unwrap_or_default()
    }

    /// Takes out an empty buffer to which more and more is added: a large one, if there is one.
    #[inline]
    pub(super) fn take_to_fill(&mut self) -> Vec<u8> {
        self.take_large().or_else(|| self.small.pop()).unwrap_or_default()
    }

    fn take_large(&mut self) -> Option<Vec<u8>> {
        let found = self.large.pop()?;
        self.large_bytes -= found.capacity();
        Some(found)
    }

    /// Keeps a buffer, unless there are enough.
    #[inline]
    pub(super) fn keep(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        buffer.clear();
        if bytes <= SMALL_BYTES {
            if self.small.len() < SMALL_MOST {
                self.small.push(buffer);
            }
        } else if self.large_bytes + bytes <= LARGE_TOTAL_BYTES {
            self.large_bytes += bytes;
            self.large.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_is_for_a_large_send() {
        let mut spares = Spares::default();
        spares.keep(vec![1; 100_000]);
        spares.keep(vec![1; 100]);
        assert_eq!(spares.take(100).capacity(), 100);
        let large = spares.take(50_000);
        assert!(large.is_empty() && large.capacity() == 100_000);
        assert_eq!(spares.take(50_000).capacity(), 0);
        spares.keep(vec![1; 100]);
        spares.keep(large);
        assert_eq!(
            [spares.take_to_fill(), spares.take_to_fill()].map(|b| b.capacity()),
            [100_000, 100]
        );
    }

    #[test]
    fn no_more_is_kept_than_the_limits() {
        let mut spares = Spares::default();
        for _ in 0..SMALL_MOST + 10 {
            spares.keep(vec![1; 10]);
        }
        for _ in 0..100 {
            spares.keep(vec![1; LARGE_TOTAL_BYTES / 4]);
        }
        assert_eq!((spares.small.len(), spares.large.len()), (SMALL_MOST, 4));
        for _ in 0..4 {
            drop(spares.take(SMALL_BYTES + 1));
        }
        assert_eq!(spares.large_bytes, 0);
    }
}
