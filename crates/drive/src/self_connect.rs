//! Recognizes a TCP connection from a port to itself.
//!
//! If nobody listens on a port in the kernel's range of local ports, the kernel may choose that
//! very port for a connection to it. The two handshakes cross (RFC 9293 §3.5, simultaneous open),
//! and the socket is its own peer. It echoes whatever it is sent, so a server that does not exist
//! looks perfect.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The ports to which a driver has connected.
///
/// Only a socket whose own port is one of them can be its own peer, so every other socket costs one
/// system call.
#[derive(Debug, Default)]
pub(crate) struct TargetPorts(Vec<u16>);

impl TargetPorts {
    #[inline]
    pub(crate) fn note(&mut self, port: u16) {
        if !self.0.contains(&port) {
            self.0.push(port);
        }
    }

    /// True if the socket, which must be connected, is its own peer.
    pub(crate) fn is_own_peer(&self, fd: &OwnedFd) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Some(local) = rustix::net::getsockname(fd).ok().and_then(ip) else { return false };
        let peer = || rustix::net::getpeername(fd).ok().flatten().and_then(ip);
        self.0.contains(&local.port()) && peer() == Some(local)
    }
}

/// The IP address; none for the name of a Unix socket.
fn ip(address: rustix::net::SocketAddrAny) -> Option<SocketAddr> {
    address.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn bound() -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
        let at = socket.local_addr().ok().and_then(|at| at.as_socket()).expect("an address");
        (socket, at)
    }

    #[test]
    fn a_socket_that_is_its_own_peer_is_recognized_and_no_other() {
        let mut ports = TargetPorts::default();
        let (own, at) = bound();
        own.connect(&at.into()).expect("both handshakes cross");
        let own = OwnedFd::from(own);
        assert!(!ports.is_own_peer(&own), "nobody has connected to its port");
        ports.note(at.port());
        assert!(ports.is_own_peer(&own));

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let to = listener.local_addr().expect("an address");
        ports.note(to.port());
        let (other, at) = bound();
        // The port alone proves nothing: somebody may have connected to the same port of another
        // address.
        ports.note(at.port());
        other.connect(&to.into()).expect("it listens");
        assert!(!ports.is_own_peer(&OwnedFd::from(other)));
    }
}
