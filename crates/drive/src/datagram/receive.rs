//! The buffers that `recvmmsg` fills: several blocks, each with what the kernel reports about it.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::message::{Ancillary, CONTROL_IN_BYTES, NAME_BYTES, peer};
use super::{BLOCK_BYTES_MOST, Datagrams};

/// Blocks received in one call.
pub(crate) const BLOCKS: usize = 16;
/// Room for one block: no datagram is larger, not even over IPv6.
const ROOM_BYTES: usize = 64 * 1024;
const _: () = assert!(ROOM_BYTES > BLOCK_BYTES_MOST);

/// Control messages and peer address of one block, with the kernel's alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct Envelope {
    control: [u8; CONTROL_IN_BYTES],
    name: [u8; NAME_BYTES],
}

/// The buffers for the blocks of one call.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    envelopes: Box<[Envelope; BLOCKS]>,
    headers: Box<[libc::mmsghdr; BLOCKS]>,
}

// SAFETY: the pointers of its headers point into its own memory, and are rewritten before each use.
#[allow(unsafe_code)]
unsafe impl Send for Inbox {}

impl Inbox {
    pub(crate) fn new() -> Self {
        let empty = Envelope { control: [0; CONTROL_IN_BYTES], name: [0; NAME_BYTES] };
        // SAFETY: zeroes are a valid header: null pointers and no lengths.
        #[allow(unsafe_code)]
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Inbox {
            bytes: vec![0; BLOCKS * ROOM_BYTES].into_boxed_slice(),
            envelopes: Box::new([empty; BLOCKS]),
            headers: Box::new([header; BLOCKS]),
        }
    }

    /// Receives what has come, without waiting, and returns the number of blocks. Fewer than
    /// [`BLOCKS`] mean that the socket is empty now.
    pub(crate) fn receive(&mut self, fd: &OwnedFd) -> Result<usize, Errno> {
        let mut parts: [libc::iovec; BLOCKS] = std::array::from_fn(|at| libc::iovec {
            iov_base: self.bytes[at * ROOM_BYTES..].as_mut_ptr().cast(),
            iov_len: ROOM_BYTES,
        });
        let envelopes = self.envelopes.iter_mut().zip(&mut parts);
        for (header, (envelope, part)) in self.headers.iter_mut().zip(envelopes) {
            let header = &mut header.msg_hdr;
            header.msg_name = envelope.name.as_mut_ptr().cast();
            header.msg_namelen = NAME_BYTES as libc::socklen_t;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_control = envelope.control.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_IN_BYTES as _;
        }
        let (flags, forever) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
        // SAFETY: each header points to its own part, name and control buffer, as long as it
        // states; all of them live through the call.
        #[allow(unsafe_code)]
        let count = unsafe {
            let headers = self.headers.as_mut_ptr();
            libc::recvmmsg(fd.as_raw_fd(), headers, BLOCKS as u32, flags as _, forever)
        };
        usize::try_from(count).map_err(|_| last_error())
    }

    /// One of the blocks received last, and the kernel's report about it. `named`: the socket
    /// receives from several peers, and the block carries the address of its own.
    pub(crate) fn datagrams(&self, at: usize, named: bool) -> (Datagrams<'_>, Ancillary) {
        let (header, envelope) = (&self.headers[at], &self.envelopes[at]);
        let len = (header.msg_len as usize).min(ROOM_BYTES);
        let bytes = &self.bytes[at * ROOM_BYTES..][..len];
        let controls = header.msg_hdr.msg_controllen.min(CONTROL_IN_BYTES);
        let ancillary = Ancillary::read(&envelope.control[..controls]);
        let name = (header.msg_hdr.msg_namelen as usize).min(NAME_BYTES);
        let peer = peer(&envelope.name[..name]).filter(|_| named);
        (ancillary.datagrams(bytes, peer), ancillary)
    }
}

/// The error of the last system call of this thread.
pub(crate) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
