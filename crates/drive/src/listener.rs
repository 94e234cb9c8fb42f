//! The socket on which a driver accepts connections, or receives datagrams.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::{Address, Transport, datagram_socket};

/// A listening socket for streams, or a bound socket for datagrams from every peer.
#[derive(Debug)]
pub struct Listener {
    pub(crate) fd: OwnedFd,
    address: Address,
    transport: Transport,
}

impl Listener {
    /// Binds and listens. Several threads may share a port, but not a Unix socket. A Unix socket
    /// that nobody listens on any more is replaced.
    pub fn bind(address: &Address, shared: bool) -> io::Result<Self> {
        let fd = stream_socket(address)?;
        let address = match address {
            Address::Ip(address) => {
                sockopt::set_socket_reuseaddr(&fd, true)?;
                // Accepted sockets inherit it: an answer in several pieces must not wait for the
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

    /// Binds a datagram socket; several threads may share a port, and the kernel gives each peer to
    /// one of them.
    pub fn bind_datagrams(address: &Address, shared: bool) -> io::Result<Self> {
        let (fd, address) = datagram_socket::bind(address, shared)?;
        Ok(Listener { fd, address, transport: Transport::Datagram })
    }

    /// Splits into the socket to accept from and the socket to receive datagrams on.
    pub(crate) fn split(listener: Option<Self>) -> (Option<OwnedFd>, Option<OwnedFd>) {
        match listener {
            Some(Listener { fd, transport: Transport::Stream, .. }) => (Some(fd), None),
            Some(Listener { fd, transport: Transport::Datagram, .. }) => (None, Some(fd)),
            None => (None, None),
        }
    }

    /// The address that it listens on, with the real port if 0 was requested.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Makes `accept` wait: a ring does not wait for a non-blocking socket.
    pub(crate) fn block(&self) -> Result<(), Errno> {
        let flags = rustix::fs::fcntl_getfl(&self.fd)?;
        rustix::fs::fcntl_setfl(&self.fd, flags - rustix::fs::OFlags::NONBLOCK)
    }
}

fn stream_socket(address: &Address) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(address.socket_family(), SocketType::STREAM, flags, None)
}

/// Whether the path is a socket. Another file refuses connections, too, but is not ours to remove.
fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Whether nobody listens there.
fn refuses(address: &Address, file: &SocketAddrUnix) -> bool {
    let caller = stream_socket(address);
    caller.is_ok_and(|fd| rustix::net::connect(&fd, file) == Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

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
