//! What both drivers share: the listening socket, the waker, what errors mean, and limits.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::net::ConnectError;
use crate::{Address, Transport, datagram};

/// Nothing more is read from a peer that was accepted and leaves this much unread on its side.
pub(crate) const OUTBOX_MOST: usize = 256 * 1024;
/// After `accept` met a limit the listener rests this long.
pub(crate) const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// Wakes a driver from another thread.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<OwnedFd>);

impl Waker {
    /// Makes `handle_wake` happen soon.
    pub fn wake(&self) {
        // A full counter is a waker that is already set.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// A listening socket: of a stream, or of datagrams from everybody.
#[derive(Debug)]
pub struct Listener {
    pub(crate) fd: OwnedFd,
    address: Address,
    transport: Transport,
}

impl Listener {
    /// Binds and listens; several threads may share a port, but not a socket file. One of those that
    /// nobody listens on any more is replaced.
    ///
    /// # Errors
    /// What the kernel says: the address is in use, not local, or not permitted.
    pub fn bind(address: &Address, shared: bool) -> io::Result<Self> {
        let fd = stream_socket(address)?;
        let address = match address {
            Address::Ip(address) => {
                sockopt::set_socket_reuseaddr(&fd, true)?;
                // What is accepted inherits it: an answer in several pieces must not wait for the
                // peer's acknowledgement of the first, up to 40 ms.
                sockopt::set_tcp_nodelay(&fd, true)?;
                if shared {
                    sockopt::set_socket_reuseport(&fd, true)?;
                }
                rustix::net::bind(&fd, address)?;
                let bound: SocketAddr = rustix::net::getsockname(&fd)?
                    .try_into()
                    .map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
                Address::Ip(bound)
            }
            Address::Unix(path) => {
                let file = SocketAddrUnix::new(&**path)?;
                if is_socket(path) && refuses(address, &file) {
                    std::fs::remove_file(path)?;
                }
                rustix::net::bind(&fd, &file)?;
                address.clone()
            }
        };
        rustix::net::listen(&fd, 65_535)?;
        Ok(Listener { fd, address, transport: Transport::Stream })
    }

    /// Binds a socket of datagrams; several threads may share a port, and the kernel gives each peer to one of them.
    ///
    /// # Errors
    /// What the kernel says: the address is in use, not local, or not permitted; or it is no IP address.
    pub fn bind_datagrams(address: &Address, shared: bool) -> io::Result<Self> {
        let (fd, address) = datagram::socket::bind(address, shared)?;
        Ok(Listener { fd, address, transport: Transport::Datagram })
    }

    /// What to accept from, or what to hear datagrams on.
    pub(crate) fn split(listener: Option<Self>) -> (Option<OwnedFd>, Option<OwnedFd>) {
        match listener {
            Some(Listener { fd, transport: Transport::Stream, .. }) => (Some(fd), None),
            Some(Listener { fd, transport: Transport::Datagram, .. }) => (None, Some(fd)),
            None => (None, None),
        }
    }

    /// Where it listens: with the real port when 0 was asked for.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Lets `accept` wait: a ring takes a socket that must not block as "do not wait for it".
    pub(crate) fn block(&self) -> Result<(), Errno> {
        let flags = rustix::fs::fcntl_getfl(&self.fd)?;
        rustix::fs::fcntl_setfl(&self.fd, flags - rustix::fs::OFlags::NONBLOCK)
    }
}

fn stream_socket(address: &Address) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(address.socket_family(), SocketType::STREAM, flags, None)
}

/// A file that is no socket refuses, too, and is none of ours.
fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Whether nobody listens there.
fn refuses(address: &Address, file: &SocketAddrUnix) -> bool {
    let caller = stream_socket(address);
    caller.is_ok_and(|fd| rustix::net::connect(&fd, file) == Err(Errno::CONNREFUSED))
}

/// When the socket is closed, its peer gets a reset (a socket file knows none).
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

/// What an errno means for a connection that does not come about.
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

/// What an errno means for a connection to `to` that does not come about.
pub(crate) fn refusal_of(errno: Errno, to: &Address) -> ConnectError {
    match (errno, to) {
        // The kernel has one error for no port and for no address.
        (Errno::ADDRNOTAVAIL, Address::Ip(to)) if !has_source(to) => ConnectError::NoSource,
        (errno, _) => connect_error(errno),
    }
}

/// Whether this machine has an address to reach `to` from. A datagram socket asks, as it is connected without a word to
/// the peer, and has ports of its own.
pub(crate) fn has_source(to: &SocketAddr) -> bool {
    let family = Address::Ip(*to).socket_family();
    let asked = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .and_then(|fd| rustix::net::connect(&fd, to));
    !matches!(asked, Err(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

/// Makes a socket that is to connect ready for it: sends at once, from a port that is quickly found, from this address.
pub(crate) fn prepare(fd: &OwnedFd, from: Option<IpAddr>) -> Result<(), ConnectError> {
    let _ = sockopt::set_tcp_nodelay(fd, true);
    try_all_ports(fd);
    from.map_or(Ok(()), |from| bind_from(fd, from))
}

/// Has the kernel try all ports alike when the socket connects (Linux 6.8).
///
/// By itself it tries every second port, and the others behind all of those: once half of the ports are in use, each
/// further choice looks at that half first, for most of a millisecond. Those of a socket with a range of its own
/// (`IP_LOCAL_PORT_RANGE`) are tried one after the other, and a range of all ports is cut to that of the machine.
fn try_all_ports(fd: &OwnedFd) {
    const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
    // The lowest port in the lower half, the highest in the upper one. Where it cannot be had, ports are found late.
    const ALL_PORTS: u32 = 0xffff_0001;
    set_option(fd, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, ALL_PORTS);
}

/// Lets a socket connect from a local address.
///
/// The port is chosen when it connects (`IP_BIND_ADDRESS_NO_PORT`): chosen here, it could not be
/// used for another peer at the same time, and each choice would look at all ports in use.
pub(crate) fn bind_from(fd: &OwnedFd, from: IpAddr) -> Result<(), ConnectError> {
    const IP_BIND_ADDRESS_NO_PORT: libc::c_int = 24;
    // Where it cannot be had, the port is chosen here.
    set_option(fd, libc::IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    let bound = rustix::net::bind(fd, &SocketAddr::new(from, 0));
    // A local address that is not ours is no lack of ports.
    bound.map_err(|errno| match errno {
        Errno::ADDRINUSE => ConnectError::Ports,
        _ => ConnectError::Unreachable,
    })
}

/// Sets an option of four bytes (those of IP are there for IPv6, too); what the kernel does not know stays as it is.
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
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_connection_that_does_not_come_about_is_told_by_whose_it_is() {
        for (errno, told) in [
            (Errno::CONNREFUSED, ConnectError::Refused),
            (Errno::NOENT, ConnectError::Refused),
            (Errno::ACCESS, ConnectError::Unreachable),
            (Errno::HOSTUNREACH, ConnectError::Unreachable),
            (Errno::TIMEDOUT, ConnectError::Timeout),
            (Errno::MFILE, ConnectError::Fds),
            (Errno::ADDRNOTAVAIL, ConnectError::Ports),
            (Errno::AFNOSUPPORT, ConnectError::NoSource),
        ] {
            assert_eq!(connect_error(errno), told, "{errno}");
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

    /// Whether this kernel tries the ports of a socket with a range of its own one after the other.
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

    #[test]
    fn what_is_accepted_sends_at_once() {
        let any = Address::Ip(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = Listener::bind(&any, false).expect("a free port");
        let Address::Ip(at) = listener.address() else {
            panic!("it was bound to a port");
        };
        let _client = TcpStream::connect(at).expect("it listens");
        let accepted = rustix::net::accept(&listener.fd).expect("one waits");
        assert!(sockopt::tcp_nodelay(&accepted).expect("an option of TCP"));
    }
}
