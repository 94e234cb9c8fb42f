//! The bytes of requests, which the machines of all versions of HTTP ask for.

use std::ops::Range;
use std::sync::Arc;

use super::places::Part;

/// The bytes to send, by the tag of a request. A version that is not spoken has none.
pub trait Requests<T> {
    /// Over HTTP/1, if all requests are alike: one or more of them in a row, and the length of one.
    #[inline]
    fn burst(&self) -> Option<(&Arc<[u8]>, usize)> {
        None
    }

    /// Passes the parts of a request over HTTP/1 to `put`, in order.
    fn write(&self, _tag: &T, _put: &mut impl FnMut(Part<'_>)) {}

    /// The length of a request over HTTP/1 that is or has been written, in bytes.
    fn bytes_of(&self, tag: &T) -> usize {
        let mut len = 0;
        self.write(tag, &mut |part| len += part.bytes().len());
        len
    }

    /// Appends the header block of a request.
    fn write_block(&self, tag: &T, out: &mut Vec<u8>) -> Head;

    /// Appends a part of the body of a request, given as a range of bytes.
    fn write_body(&self, tag: &T, part: Range<u64>, out: &mut Vec<u8>);
}

/// The sizes of a request whose header block has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The bytes of its names and values before encoding.
    pub plain_bytes: u64,
    /// The length of the body that follows.
    pub body_bytes: u64,
}
