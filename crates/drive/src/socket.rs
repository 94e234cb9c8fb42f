//! Code that both drivers share: the waker, the meaning of errors, and limits.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, sockopt};

use crate::Address;
use crate::net::ConnectError;

/// An accepted peer is not read while more than this many bytes for it are unsent.
pub(crate) const OUTBOX_MOST: usize = 256 * 1024;
/// The time for which the listener rests after `accept` has met a limit, in ns.
pub(crate) const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Wakes a driver from another thread.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<OwnedFd>);

impl Waker {
    /// Makes `handle_wake` happen soon.
    pub fn wake(&self) {
        // A full counter means that the waker is already set.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Makes the close of the socket send its peer a reset (a Unix socket has none).
pub(crate) fn end_with_reset(fd: &OwnedFd) {
    let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
}

/// The earlier of two times that may never come.
pub(crate) fn earlier(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// The meaning of an errno for a connection that is not established.
pub(crate) fn connect_error(errno: Errno) -> ConnectError {
    match errno {
        Errno::MFILE | Errno::NFILE => ConnectError::Fds,
        Errno::AFNOSUPPORT => ConnectError::NoSource,
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::AGAIN => ConnectError::Ports,
        Errno::TIMEDOUT => ConnectError::Timeout,
        Errno::CONNRESET | Errno::PIPE => ConnectError::Reset,
        // No socket file, or one that nobody listens on.
        Errno::CONNREFUSED | Errno::NOENT => ConnectError::Refused,
        _ => ConnectError::Unreachable,
    }
}

/// The meaning of an errno for a connection to `to` that is not established.
pub(crate) fn refusal_of(errno: Errno, to: &Address) -> ConnectError {
    match (errno, to) {
        // The kernel has the same error for a lack of ports and a lack of addresses.
        (Errno::ADDRNOTAVAIL, Address::Ip(to)) if !has_source(to) => ConnectError::NoSource,
        (errno, _) => connect_error(errno),
    }
}

/// Whether this machine has an address to reach `to` from. A datagram socket is used to find out:
/// connecting it sends nothing to the peer, and it has ports of its own.
pub(crate) fn has_source(to: &SocketAddr) -> bool {
    let family = Address::Ip(*to).socket_family();
    let asked = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .and_then(|fd| rustix::net::connect(&fd, to));
    !matches!(asked, Err(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

/// Prepares a socket for its connect: it sends at once, finds a port quickly, and uses this
/// address.
pub(crate) fn prepare(fd: &OwnedFd, from: Option<IpAddr>) -> Result<(), ConnectError> {
    let _ = sockopt::set_tcp_nodelay(fd, true);
    try_all_ports(fd);
    from.map_or(Ok(()), |from| bind_from(fd, from))
}

/// Limits what a socket receives before it is read, if to anything: its peer is told of a small
/// window from the first packet on.
pub(crate) fn shrink(fd: &OwnedFd, bytes: Option<u32>) {
    if let Some(bytes) = bytes {
        let _ = sockopt::set_socket_recv_buffer_size(fd, bytes as usize);
    }
}

/// Makes the kernel try all ports alike when the socket connects (Linux 6.8).
///
/// By default the kernel tries every second port first, and the others after all of those. Once
/// half of the ports are in use, each further choice looks at that half first, for most of a
/// millisecond. For a socket with a range of its own (`IP_LOCAL_PORT_RANGE`), ports are tried one
/// after the other. A range of all ports is cut to that of the machine.
fn try_all_ports(fd: &OwnedFd) {
    const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
    // The lowest port is in the lower half, the highest in the upper one. Without this option,
    // ports are found late.
    const ALL_PORTS: u32 = 0xffff_0001;
    set_option(fd, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, ALL_PORTS);
}

/// Lets a socket connect from a local address.
///
/// The port is chosen when it connects (`IP_BIND_ADDRESS_NO_PORT`). If it were chosen here, it
/// could not be used for another peer at the same time, and each choice would look at all ports in
/// use.
pub(crate) fn bind_from(fd: &OwnedFd, from: IpAddr) -> Result<(), ConnectError> {
    const IP_BIND_ADDRESS_NO_PORT: libc::c_int = 24;
    // If the kernel does not have this option, the port is chosen here.
    set_option(fd, libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    let bound = rustix::net::bind(fd, &SocketAddr::new(from, 0));
    // An address that is not local is not a lack of ports.
    bound.map_err(|errno| match errno {
        Errno::ADDRINUSE => ConnectError::Ports,
        _ => ConnectError::Unreachable,
    })
}

/// Sets an option of four bytes (those of IP exist for IPv6, too); an option that the kernel does
/// not know is ignored.
pub(crate) fn set_option(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: u32) {
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` has `len` bytes and outlives the call; the kernel only reads it.
    #[allow(unsafe_code)]
    unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listener;

    #[test]
    fn a_failure_to_connect_is_classified_by_whose_it_is() {
        for (errno, expected) in [
            (Errno::CONNREFUSED, ConnectError::Refused),
            (Errno::NOENT, ConnectError::Refused),
            (Errno::ACCESS, ConnectError::Unreachable),
            (Errno::HOSTUNREACH, ConnectError::Unreachable),
            (Errno::TIMEDOUT, ConnectError::Timeout),
            (Errno::MFILE, ConnectError::Fds),
            (Errno::ADDRNOTAVAIL, ConnectError::Ports),
            (Errno::AFNOSUPPORT, ConnectError::NoSource),
        ] {
            assert_eq!(connect_error(errno), expected, "{errno}");
        }
    }

    #[test]
    fn no_address_to_be_had_is_a_lack_of_ports_where_the_machine_has_a_source() {
        let to = Address::Ip(SocketAddr::from(([127, 0, 0, 1], 9)));
        assert_eq!(refusal_of(Errno::ADDRNOTAVAIL, &to), ConnectError::Ports);
        assert_eq!(refusal_of(Errno::AFNOSUPPORT, &to), ConnectError::NoSource);
    }

    #[test]
    fn a_socket_that_is_to_connect_from_an_address_has_no_port_before() {
        let from = IpAddr::from([127, 0, 0, 2]);
        let family = rustix::net::AddressFamily::INET;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .expect("a socket");
        assert_eq!(bind_from(&fd, from), Ok(()));
        let bound: SocketAddr =
            rustix::net::getsockname(&fd).expect("bound").try_into().expect("an IP address");
        assert_eq!(bound, SocketAddr::new(from, 0));
    }

    /// Whether this kernel tries the ports of a socket with its own range one after the other.
    fn kernel_tries_each_port() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(8))
    }

    #[test]
    fn ports_are_taken_one_after_the_other_and_not_every_second_one_first() {
        let any = Address::Ip(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = Listener::bind(&any, false).expect("a free port");
        let Address::Ip(at) = listener.address() else {
            panic!("it was bound to a port");
        };
        let connected = |from: Option<IpAddr>| {
            let family = rustix::net::AddressFamily::INET;
            let fd =
                rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                    .expect("a socket");
            prepare(&fd, from).expect("an address of this machine");
            rustix::net::connect(&fd, at).expect("it listens");
            fd
        };
        for from in [None, Some(IpAddr::from([127, 0, 0, 3]))] {
            let sockets: Vec<OwnedFd> = (0..64).map(|_| connected(from)).collect();
            let port = |fd: &OwnedFd| -> u16 {
                let bound = rustix::net::getsockname(fd).expect("bound");
                SocketAddr::try_from(bound).expect("an IP address").port()
            };
            let odd = sockets.iter().filter(|fd| port(fd) % 2 == 1).count();
            let both = (8..=56).contains(&odd);
            assert!(both || !kernel_tries_each_port(), "{odd} of 64 are odd, from {from:?}");
        }
    }
}
