//! Datagrams: several of one size travel together between a program and the kernel, and never lose their boundaries.
//!
//! Strategy: the kernel joins datagrams of one flow on their way in (`UDP_GRO`) and cuts a block apart on its way out
//! (`UDP_SEGMENT`), so that one system call carries up to 64 of them. A socket is either connected to one peer, or bound
//! and open to all of them, as a QUIC server needs it: then every block names its [`Path`]. What the kernel has no room
//! for waits whole, up to a limit; beyond that it is dropped and counted.

pub(crate) mod message;
pub(crate) mod receive;
pub(crate) mod socket;

use std::net::{IpAddr, SocketAddr};

/// Datagrams that the kernel takes or gives in one block (`UDP_MAX_SEGMENTS` of Linux before 6.9; 128 since).
const SEGMENTS_MOST: usize = 64;
/// Bytes of one block, and of one datagram over IPv4: 65,535 less the headers of IPv4 and UDP.
pub(crate) const BLOCK_BYTES_MOST: usize = 65_507;

/// The two ends between which datagrams of an unconnected socket travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The peer.
    pub peer: SocketAddr,
    /// Our own address, where the kernel told it: an answer must leave from there, or the peer does not know it.
    pub local: Option<IpAddr>,
}

/// Datagrams of one flow, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams<'a> {
    /// All of them; no bytes are one empty datagram.
    pub bytes: &'a [u8],
    /// Bytes of each; the last may have fewer.
    pub segment_bytes: usize,
    /// Explicit congestion notification, 0 to 3 (RFC 3168 §5).
    pub ecn: u8,
    /// None over a connected socket.
    pub path: Option<Path>,
}

impl<'a> Datagrams<'a> {
    /// One datagram over a connected socket.
    #[must_use]
    pub fn one(bytes: &'a [u8]) -> Self {
        Datagrams { bytes, segment_bytes: bytes.len(), ecn: 0, path: None }
    }

    /// Each datagram by itself.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        pieces(self.bytes, self.segment_bytes)
    }

    /// How many they are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_bytes.max(1)).max(1)
    }

    /// Blocks that the kernel takes at once; single datagrams where it cannot cut a block apart.
    pub(crate) fn blocks(&self, segmented: bool) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let segment = self.segment_bytes.max(1);
        let together =
            if segmented { SEGMENTS_MOST.min(BLOCK_BYTES_MOST / segment).max(1) } else { 1 };
        pieces(self.bytes, segment * together)
    }
}

/// Cuts bytes into pieces of one size; no bytes are one empty piece.
fn pieces(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let empty = bytes.is_empty().then_some(bytes);
    empty.into_iter().chain(bytes.chunks(size.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_where_its_datagrams_end() {
        for (bytes, segment_bytes, sizes) in [
            (0, 0, vec![0]),
            (0, 8, vec![0]),
            (5, 8, vec![5]),
            (8, 8, vec![8]),
            (20, 8, vec![8, 8, 4]),
        ] {
            let bytes = vec![7; bytes];
            let datagrams = Datagrams { segment_bytes, ..Datagrams::one(&bytes) };
            let found: Vec<_> = datagrams.iter().map(<[u8]>::len).collect();
            assert_eq!(found, sizes, "{} bytes by {segment_bytes}", bytes.len());
            assert_eq!(datagrams.count(), sizes.len(), "{} bytes by {segment_bytes}", bytes.len());
        }
    }

    #[test]
    fn the_kernel_gets_no_block_that_is_too_large_for_it() {
        for (count, segment_bytes, blocks) in [
            (64, 100, vec![6_400]),
            (65, 100, vec![6_400, 100]),
            (60, 1_400, vec![46 * 1_400, 14 * 1_400]),
            (3, 40_000, vec![40_000; 3]),
        ] {
            let bytes = vec![7; count * segment_bytes];
            let datagrams = Datagrams { segment_bytes, ..Datagrams::one(&bytes) };
            let found: Vec<_> = datagrams.blocks(true).map(<[u8]>::len).collect();
            assert_eq!(found, blocks, "{count} of {segment_bytes} bytes");
            assert_eq!(datagrams.blocks(false).count(), count, "one by one");
        }
    }
}
