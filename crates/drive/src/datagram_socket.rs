//! Datagram sockets: created, bound and connected in the same way for both drivers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::net::{Conn, ConnectError, Net, PeerClose, Program};
use crate::socket::{bind_from, connect_error, set_option};
use crate::{Address, Remote};

/// The receive queue requested from the kernel, in bytes: a burst waits there while the thread is
/// busy. The kernel grants at most `net.core.rmem_max`.
const QUEUE_BYTES: usize = 4 << 20;

/// Creates a socket that sends to one peer and receives from no other.
pub(crate) fn connect(to: Remote<'_>, flags: SocketFlags) -> Result<OwnedFd, ConnectError> {
    let Address::Ip(peer) = to.address else { return Err(ConnectError::Unreachable) };
    let fd = make(to.address, flags).map_err(connect_error)?;
    to.from.map_or(Ok(()), |from| bind_from(&fd, from))?;
    rustix::net::connect(&fd, peer).map_err(connect_error)?;
    if is_connected_to_itself(&fd, peer).map_err(connect_error)? {
        return Err(ConnectError::Refused);
    }
    Ok(fd)
}

/// Whether the kernel has chosen the peer's own port for us, which it may do where nobody listens.
/// Everything we send would then come back to us.
fn is_connected_to_itself(fd: &OwnedFd, peer: &SocketAddr) -> Result<bool, Errno> {
    let local = rustix::net::getsockname(fd)?;
    Ok(SocketAddr::try_from(local).is_ok_and(|local| local == *peer))
}

/// Creates a socket that receives from every peer at an address. `shared`: several threads bind to
/// it.
pub(crate) fn bind(address: &Address, shared: bool) -> io::Result<(OwnedFd, Address)> {
    let Address::Ip(at) = address else { return Err(io::ErrorKind::Unsupported.into()) };
    let fd = make(address, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    if shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    // An answer can leave from the right address only if the kernel reports where its question
    // arrived.
    match at {
        SocketAddr::V4(_) => set_option(&fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        SocketAddr::V6(_) => set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
    rustix::net::bind(&fd, at)?;
    let bound: SocketAddr = rustix::net::getsockname(&fd)?
        .try_into()
        .map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
    Ok((fd, Address::Ip(bound)))
}

fn make(address: &Address, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = address.socket_family();
    let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    // Without these options, datagrams come one by one, without ECN, or without the overflow count.
    // That is slower, but not wrong.
    set_option(&fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    set_option(&fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    if family == rustix::net::AddressFamily::INET6 {
        set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
    }
    set_option(&fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    let _ = sockopt::set_socket_recv_buffer_size(&fd, QUEUE_BYTES);
    Ok(fd)
}

/// The fate of a block that the kernel did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// There is no room now: try again later.
    Later,
    /// The kernel cannot segment it here: send its datagrams one by one.
    OneByOne,
    /// The peer is gone.
    PeerClose(PeerClose),
    /// It is lost, as any datagram may be on its way.
    Dropped,
}

impl NotSent {
    /// The meaning of an error for a block; `segmented`: the kernel was to segment it.
    pub(crate) fn of(errno: Errno, segmented: bool) -> Self {
        match errno {
            Errno::AGAIN | Errno::INTR => NotSent::Later,
            // A datagram is larger than the path's MTU, or no device computes the checksums.
            Errno::INVAL | Errno::IO | Errno::MSGSIZE if segmented => NotSent::OneByOne,
            Errno::CONNREFUSED => NotSent::PeerClose(PeerClose::Refused),
            _ => NotSent::Dropped,
        }
    }
}

/// The meaning of a receive error; none for one that only interrupts the receive.
pub(crate) fn ended(errno: Errno) -> Option<PeerClose> {
    match errno {
        Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::CANCELED => None,
        Errno::CONNREFUSED => Some(PeerClose::Refused),
        _ => Some(PeerClose::Reset),
    }
}

/// Tells the program of an end, and closes the socket unless it can go on ([`PeerClose::Refused`]).
pub(crate) fn end(net: &mut impl Net, program: &mut impl Program, conn: Conn, ended: PeerClose) {
    program.handle_end(net, conn, ended);
    if ended != PeerClose::Refused {
        net.close(conn.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transport;

    #[test]
    fn what_an_error_means_for_a_block_depends_on_how_it_was_to_leave() {
        for (errno, segmented, expected) in [
            (Errno::AGAIN, true, NotSent::Later),
            (Errno::INVAL, true, NotSent::OneByOne),
            (Errno::INVAL, false, NotSent::Dropped),
            (Errno::MSGSIZE, false, NotSent::Dropped),
            (Errno::NOBUFS, true, NotSent::Dropped),
            (Errno::CONNREFUSED, true, NotSent::PeerClose(PeerClose::Refused)),
        ] {
            assert_eq!(NotSent::of(errno, segmented), expected, "{errno}, {segmented}");
        }
    }

    #[test]
    fn a_socket_that_is_connected_to_itself_is_found_out() {
        let any = Address::Ip(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (bound, address) = bind(&any, false).expect("a free port");
        let Address::Ip(own) = &address else { panic!("it was bound to a port") };
        rustix::net::connect(&bound, own).expect("a datagram socket connects to anything");
        assert_eq!(is_connected_to_itself(&bound, own), Ok(true));
        let other =
            connect(address.over(Transport::Datagram), SocketFlags::CLOEXEC).expect("another port");
        assert_eq!(is_connected_to_itself(&other, own), Ok(false));
    }
}
