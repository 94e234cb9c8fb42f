//! The address of a peer: an IP address with its port, or the path of a Unix socket.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketAddrUnix};

/// The prefix that marks the path of a Unix socket in a written address.
const UNIX: &str = "unix:";

/// Where to connect to; written `127.0.0.1:80`, `[::1]:80` or `unix:/run/app.sock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP or UDP.
    Ip(SocketAddr),
    /// A stream socket in the file system.
    Unix(Arc<Path>),
}

/// The kind of socket over which a peer is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A connection that carries a stream of bytes: TCP, or a stream socket in the file system.
    #[default]
    Stream,
    /// Datagrams, each of which arrives whole or not at all: UDP.
    Datagram,
}

/// A peer to connect to, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote<'a> {
    /// Where it is.
    pub address: &'a Address,
    /// The kind of socket over which it is reached.
    pub transport: Transport,
    /// The local address to connect from; none if any will do.
    pub from: Option<IpAddr>,
}

impl Address {
    /// The peer at this address, for connecting from any local one.
    pub fn over(&self, transport: Transport) -> Remote<'_> {
        Remote { address: self, transport, from: None }
    }

    /// The address family of the sockets that reach it.
    pub fn socket_family(&self) -> AddressFamily {
        match self {
            Address::Ip(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Ip(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "{UNIX}{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(path) = text.strip_prefix(UNIX) else {
            return text.parse().map(Address::Ip).map_err(|_| "not an IP address with a port");
        };
        // The kernel allows at most 108 bytes and no NUL.
        match SocketAddrUnix::new(path) {
            Ok(_) if !path.is_empty() => Ok(Address::Unix(Arc::from(Path::new(path)))),
            _ => Err("not the path of a socket, of at most 108 bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/app.sock", "unix:app.sock"] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_cannot_be_connected_to_is_no_address() {
        let long = format!("unix:/{}", "a".repeat(108));
        for text in ["", "127.0.0.1", "localhost:80", "unix:", "unix:/a\0b", long.as_str()] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}
