//! Datagrams: several of one size pass between program and kernel in one block, and keep their
//! boundaries.
//!
//! The kernel joins received datagrams of one flow (`UDP_GRO`) and splits a block that is sent
//! (`UDP_SEGMENT`), so one system call carries up to 64 of them. A socket is either connected to
//! one peer, or bound and open to all peers, as a QUIC server needs it. On a bound socket, every
//! block names its [`Path`]. A block that the kernel has no room for waits whole, up to a limit;
//! beyond the limit it is dropped and counted.

pub(crate) mod message;
pub(crate) mod receive;

use std::net::{IpAddr, SocketAddr};

/// Datagrams that the kernel takes or gives in one block (`UDP_MAX_SEGMENTS` before Linux 6.9; 128
/// since).
const SEGMENTS_MOST: usize = 64;
/// Largest block, and largest datagram over IPv4, in bytes: 65,535 less the headers of IPv4 and
/// UDP.
pub(crate) const BLOCK_BYTES_MOST: usize = 65_507;

/// The two ends between which datagrams of an unconnected socket travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The peer.
    pub peer: SocketAddr,
    /// Our own address, if the kernel reported it. An answer must leave from there, or the peer
    /// does not recognize it.
    pub local: Option<IpAddr>,
}

/// Datagrams of one flow, stored one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams<'a> {
    /// The bytes of all datagrams; no bytes mean one empty datagram.
    pub bytes: &'a [u8],
    /// Bytes of each datagram; the last may have fewer.
    pub segment_bytes: usize,
    /// Explicit congestion notification, 0 to 3 (RFC 3168 §5).
    pub ecn: u8,
    /// None over a connected socket.
    pub path: Option<Path>,
}

impl<'a> Datagrams<'a> {
    /// One datagram over a connected socket.
    pub fn one(bytes: &'a [u8]) -> Self {
        Datagrams { bytes, segment_bytes: bytes.len(), ecn: 0, path: None }
    }

    /// Iterates over the datagrams one by one.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        pieces(self.bytes, self.segment_bytes)
    }

    /// The number of datagrams.
    pub fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_bytes.max(1)).max(1)
    }

    /// The blocks that the kernel takes in one call; single datagrams if it cannot segment.
    pub(crate) fn blocks(&self, segmented: bool) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let segment = self.segment_bytes.max(1);
        let together =
            if segmented { SEGMENTS_MOST.min(BLOCK_BYTES_MOST / segment).max(1) } else { 1 };
        pieces(self.bytes, segment * together)
    }
}

/// Datagrams that wait to be sent.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    segment_bytes: usize,
    ecn: u8,
    path: Option<Path>,
}

impl Block {
    /// Copies datagrams to an empty buffer.
    pub(crate) fn of(datagrams: &Datagrams<'_>, mut buffer: Vec<u8>) -> Self {
        let Datagrams { bytes, segment_bytes, ecn, path } = *datagrams;
        buffer.extend_from_slice(bytes);
        Block { bytes: buffer, segment_bytes, ecn, path }
    }

    pub(crate) fn datagrams(&self) -> Datagrams<'_> {
        let Block { bytes, segment_bytes, ecn, path } = self;
        Datagrams { bytes, segment_bytes: *segment_bytes, ecn: *ecn, path: *path }
    }
}

/// Cuts bytes into pieces of one size; no bytes give one empty piece.
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
