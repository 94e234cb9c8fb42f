//! The kernel's description of datagrams: addresses and control messages, written and read as
//! bytes.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use socket2::SockAddr;

use super::{Datagrams, Path};

/// Bytes of a control message before its data.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
/// Room for the control messages of a block to send: segment size, ECN, source address.
const CONTROL_BYTES: usize = 96;
/// Room for the control messages of a received block: segment size, ECN, local address, arrival
/// time.
pub(crate) const CONTROL_IN_BYTES: usize = 256;
/// Room for a peer's address, rounded up so that what follows it is aligned.
pub(crate) const NAME_BYTES: usize = 32;
/// The two lowest bits of the traffic class (RFC 3168 §5).
const ECN_BITS: u8 = 3;

/// Control messages to send, with the kernel's alignment.
#[derive(Debug)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// One block for `sendmsg`, without its bytes. It must not move while in use: its header points
/// into itself.
#[derive(Debug)]
pub(crate) struct Message {
    header: libc::msghdr,
    part: libc::iovec,
    name: Option<SockAddr>,
    control: Control,
    used: usize,
}

// SAFETY: the pointers of a header point into the message itself, or to the bytes given to
// `header`. Code that has moved the message calls `header` again before they are used.
#[allow(unsafe_code)]
unsafe impl Send for Message {}

impl Message {
    /// The message for one block of these datagrams, of `len` bytes.
    pub(crate) fn about(datagrams: &Datagrams<'_>, len: usize) -> Self {
        // SAFETY: zeroes are a valid header, and a valid part: null pointers and no length.
        #[allow(unsafe_code)]
        let (header, part) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let name = datagrams.path.map(|path| SockAddr::from(path.peer));
        let control = Control([0; CONTROL_BYTES]);
        let mut message = Message { header, part, name, control, used: 0 };
        if len > datagrams.segment_bytes {
            let segment = u16::try_from(datagrams.segment_bytes).unwrap_or(u16::MAX);
            message.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        if let Some(path) = datagrams.path {
            message.push_local(path);
        }
        if datagrams.ecn & ECN_BITS != 0 {
            message.push_ecn(datagrams);
        }
        message
    }

    /// Whether the kernel is asked to split the block into datagrams.
    pub(crate) fn is_segmented(&self) -> bool {
        let asked = [libc::SOL_UDP, libc::UDP_SEGMENT].map(i32::to_ne_bytes).concat();
        let at = size_of::<usize>();
        self.used > 0 && self.control.0[at..at + 8] == asked
    }

    /// The header for these bytes. It points to them and into the message: neither may move while
    /// it is used.
    pub(crate) fn header(&mut self, bytes: &[u8]) -> *const libc::msghdr {
        self.part.iov_base = bytes.as_ptr().cast_mut().cast();
        self.part.iov_len = bytes.len();
        self.header.msg_iov = &raw mut self.part;
        self.header.msg_iovlen = 1;
        if let Some(name) = &self.name {
            self.header.msg_name = name.as_ptr().cast_mut().cast();
            self.header.msg_namelen = name.len();
        }
        if self.used > 0 {
            self.header.msg_control = self.control.0.as_mut_ptr().cast();
            self.header.msg_controllen = self.used as _;
        }
        &raw const self.header
    }

    /// Adds the source address of the block.
    fn push_local(&mut self, path: Path) {
        match (path.local, path.peer) {
            (Some(IpAddr::V4(local)), SocketAddr::V4(_)) => {
                // struct in_pktinfo: interface, source address, a field for received messages only.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&local.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            (Some(IpAddr::V6(local)), SocketAddr::V6(peer)) => {
                // struct in6_pktinfo: address, interface; a link-local address needs its interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&local.octets());
                info[16..].copy_from_slice(&peer.scope_id().to_ne_bytes());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            _ => {}
        }
    }

    /// Adds ECN. A connected socket does not tell its address family here, so both options are
    /// sent; the kernel ignores the one of the other family.
    fn push_ecn(&mut self, datagrams: &Datagrams<'_>) {
        let ecn = i32::from(datagrams.ecn & ECN_BITS).to_ne_bytes();
        let (four, six) = match datagrams.path.map(|path| path.peer) {
            None => (true, true),
            Some(SocketAddr::V4(_)) => (true, false),
            Some(SocketAddr::V6(peer)) => {
                let mapped = peer.ip().to_ipv4_mapped().is_some();
                (mapped, !mapped)
            }
        };
        if four {
            self.push(libc::IPPROTO_IP, libc::IP_TOS, &ecn);
        }
        if six {
            self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &ecn);
        }
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let len = HEADER_BYTES + data.len();
        let space = aligned(len);
        let Some(place) = self.control.0.get_mut(self.used..self.used + space) else { return };
        let (before, rest) = place.split_at_mut(size_of::<usize>());
        before.copy_from_slice(&len.to_ne_bytes());
        rest[..4].copy_from_slice(&level.to_ne_bytes());
        rest[4..8].copy_from_slice(&kind.to_ne_bytes());
        rest[8..8 + data.len()].copy_from_slice(data);
        self.used += space;
    }
}

/// The kernel's report about a received block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ancillary {
    /// Bytes of each datagram of a block; none for a single one.
    pub(crate) segment_bytes: Option<usize>,
    pub(crate) ecn: u8,
    pub(crate) local: Option<IpAddr>,
    /// Datagrams that the socket's queue has had no room for before this block, since the socket
    /// was opened.
    pub(crate) overflowed: u32,
    /// Arrival time by the wall clock, in ns; only for a watched socket
    /// ([`crate::arrivals::watch`]).
    pub(crate) stamp_ns: Option<u64>,
}

impl Ancillary {
    /// Reads control messages, and skips those that were not asked for.
    pub(crate) fn read(mut control: &[u8]) -> Self {
        let mut ancillary = Ancillary::default();
        while let Some((level, kind, data, rest)) = next(control) {
            ancillary.note(level, kind, data);
            control = rest;
        }
        ancillary
    }

    fn note(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let size = data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
                self.segment_bytes = size.and_then(|size| usize::try_from(size).ok());
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                let count = data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
                self.overflowed = count.unwrap_or(0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => self.stamp_ns = stamp_ns(data),
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                self.ecn = data.first().map_or(0, |class| class & ECN_BITS);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                let class = data.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                self.ecn = class as u8 & ECN_BITS;
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // struct in_pktinfo: interface, the local address to answer from, the address
                // written to.
                let local = data.get(4..).and_then(|rest| rest.first_chunk::<4>());
                self.local = local.map(|octets| Ipv4Addr::from(*octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let local = data.first_chunk::<16>();
                self.local = local.map(|octets| Ipv6Addr::from(*octets).into());
            }
            _ => {}
        }
    }

    /// The datagrams of the block that this report describes.
    pub(crate) fn datagrams<'a>(&self, bytes: &'a [u8], peer: Option<SocketAddr>) -> Datagrams<'a> {
        let segment_bytes = self.segment_bytes.filter(|size| *size > 0).unwrap_or(bytes.len());
        let path = peer.map(|peer| Path { peer, local: self.local });
        Datagrams { bytes, segment_bytes, ecn: self.ecn, path }
    }
}

/// The software stamp, which is the first in a `struct scm_timestamping`; none if the kernel had
/// none.
fn stamp_ns(stamps: &[u8]) -> Option<u64> {
    const WORD: usize = size_of::<libc::c_long>();
    let seconds = libc::c_long::from_ne_bytes(*stamps.first_chunk::<WORD>()?);
    let ns = libc::c_long::from_ne_bytes(*stamps.get(WORD..)?.first_chunk::<WORD>()?);
    let stamp_ns = u64::try_from(seconds).ok()? * 1_000_000_000 + u64::try_from(ns).ok()?;
    Some(stamp_ns).filter(|ns| *ns > 0)
}

/// The first control message as level, kind and data, and the bytes behind it.
fn next(control: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let (len, rest) = control.split_first_chunk::<{ size_of::<usize>() }>()?;
    let len = usize::from_ne_bytes(*len);
    let (level, rest) = rest.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<4>()?;
    let data = rest.get(..len.checked_sub(HEADER_BYTES)?)?;
    let behind = control.get(aligned(len)..).unwrap_or_default();
    Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data, behind))
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(size_of::<usize>())
}

/// Reads a peer's address as the kernel writes it (`sockaddr_in`, `sockaddr_in6`).
pub(crate) fn peer(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*name.first_chunk()?);
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets = name.get(4..)?.first_chunk::<4>()?;
            Some(SocketAddr::from((Ipv4Addr::from(*octets), port)))
        }
        libc::AF_INET6 => {
            let flow = u32::from_ne_bytes(*name.get(4..)?.first_chunk()?);
            let octets = name.get(8..)?.first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*name.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(*octets), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(peer: &str, local: &str) -> Option<Path> {
        let peer = peer.parse().expect("an address with a port");
        Some(Path { peer, local: local.parse().ok() })
    }

    #[test]
    fn the_ancillary_data_of_a_block_is_read_back() {
        for (peer, local) in [("127.0.0.1:9", "127.0.0.2"), ("[::1]:9", "::1"), ("[::1]:9", "")] {
            let path = path(peer, local);
            let bytes = [7; 30];
            let datagrams = Datagrams { bytes: &bytes, segment_bytes: 10, ecn: 2, path };
            let message = Message::about(&datagrams, bytes.len());
            let mut ancillary = Ancillary::read(&message.control.0[..message.used]);
            // The segment size has one name for sending (`UDP_SEGMENT`) and another for receiving
            // (`UDP_GRO`).
            assert!(message.is_segmented(), "{peer}");
            assert_eq!(ancillary.segment_bytes.take(), None, "{peer}");
            let expected = Ancillary {
                ecn: 2,
                local: path.and_then(|path| path.local),
                ..Ancillary::default()
            };
            // Over IPv4, the source address is written to the field that the local address is read
            // from.
            assert_eq!(ancillary, expected, "{peer} at {local}");
        }
    }

    #[test]
    fn a_single_datagram_is_not_cut_apart() {
        let datagrams = Datagrams { ecn: 1, ..Datagrams::one(b"abc") };
        assert!(!Message::about(&datagrams, 3).is_segmented());
        assert!(!Message::about(&Datagrams::one(b"abc"), 3).is_segmented());
    }

    #[test]
    fn control_messages_that_are_cut_short_are_passed_over() {
        let path = path("[::1]:9", "::1");
        let datagrams = Datagrams { bytes: &[0; 20], segment_bytes: 10, ecn: 3, path };
        let message = Message::about(&datagrams, 20);
        for end in 0..=message.used {
            let ancillary = Ancillary::read(&message.control.0[..end]);
            assert!(
                end == message.used || ancillary != Ancillary::default() || end < 88,
                "cut at {end}"
            );
        }
        assert_eq!(Ancillary::read(&[0xff; 64]), Ancillary::default());
    }

    #[test]
    fn an_address_is_read_as_the_kernel_writes_it() {
        for text in ["127.0.0.1:80", "[::1]:8080", "[fe80::1%3]:5"] {
            let address: SocketAddr = text.parse().expect(text);
            let name = SockAddr::from(address);
            let len = name.len() as usize;
            let storage = name.as_storage();
            // SAFETY: the storage is plain bytes, at least as many as it says.
            #[allow(unsafe_code)]
            let bytes =
                unsafe { std::slice::from_raw_parts((&raw const storage).cast::<u8>(), len) };
            assert_eq!(peer(bytes), Some(address), "{text}");
            assert_eq!(peer(&bytes[..3]), None, "{text}, cut short");
        }
        assert_eq!(peer(&[]), None);
    }
}
