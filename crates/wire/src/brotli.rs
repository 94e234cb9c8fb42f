//! Brotli (RFC 7932), decoded as its bytes come. It takes no more memory than a window of 16 MiB:
//! larger ones, which the RFC does not have, are refused.

use std::fmt::{self, Formatter};
use std::io::{self, ErrorKind};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

/// The most content that is decoded before it is passed on.
const PIECE_BYTES: usize = 16 << 10;

pub(crate) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    has_ended: bool,
}

impl fmt::Debug for Brotli {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Brotli").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

impl Brotli {
    pub(crate) fn new() -> Self {
        let alloc = StandardAlloc::default;
        let state = BrotliState::new_strict(alloc(), alloc(), alloc());
        Brotli { state: Box::new(state), has_ended: false }
    }

    /// Whether the content is complete.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Decodes the next bytes, and passes on all content that they bring. Nothing may follow its end.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut left, mut read, mut decoded) = (bytes.len(), 0, 0);
        let mut piece = [0; PIECE_BYTES];
        loop {
            let (mut room, mut len) = (PIECE_BYTES, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut read,
                bytes,
                &mut room,
                &mut len,
                &mut piece,
                &mut decoded,
                &mut self.state,
            );
            take(&piece[..len])?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess if left == 0 => {
                    self.has_ended = true;
                    return Ok(());
                }
                BrotliResult::ResultSuccess | BrotliResult::ResultFailure => {
                    return Err(ErrorKind::InvalidData.into());
                }
            }
        }
    }
}
