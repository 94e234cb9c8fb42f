//! The seam between the epoll driver and the kernel: the system calls that carry streams.
//!
//! The driver is compiled for each implementation, so the seam costs nothing. One implementation
//! makes the kernel's own calls; another simulates the kernel from a seed (`crate::fake`).

use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::kernel::Linux;

/// System calls of a stream; none waits except [`Calls::wait`].
pub trait Calls: Debug {
    /// Registers a descriptor with an epoll, which reports these events with their data.
    fn watch(&self, epoll: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno>;

    /// Registers a descriptor again: whatever is ready now is reported by the next wait.
    fn watch_anew(&self, epoll: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno>;

    /// Waits until a descriptor is ready or the timeout is over, and fills the spare room among the
    /// events.
    fn wait(
        &self,
        epoll: &OwnedFd,
        events: &mut Vec<Event>,
        timeout: Option<&Timespec>,
    ) -> Result<usize, Errno>;

    /// Begins to connect.
    fn connect(&self, fd: &OwnedFd, to: &SocketAddr) -> Result<(), Errno>;

    /// The outcome of the connect.
    fn connected(&self, fd: &OwnedFd) -> Result<(), Errno>;

    /// Sends as many bytes as find room.
    fn send(&self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno>;

    /// Receives what has come; 0 bytes at the end.
    fn receive(&self, fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// Ends our side of a connection (`shutdown(2)`).
    fn end_sending(&self, fd: &OwnedFd);
}

impl Calls for Linux {
    fn watch(&self, epoll: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno> {
        epoll::add(epoll, fd, wanted.data, wanted.flags)
    }

    fn watch_anew(&self, epoll: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno> {
        epoll::modify(epoll, fd, wanted.data, wanted.flags)
    }

    fn wait(
        &self,
        epoll: &OwnedFd,
        events: &mut Vec<Event>,
        timeout: Option<&Timespec>,
    ) -> Result<usize, Errno> {
        epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout)
    }

    fn connect(&self, fd: &OwnedFd, to: &SocketAddr) -> Result<(), Errno> {
        rustix::net::connect(fd, to)
    }

    fn connected(&self, fd: &OwnedFd) -> Result<(), Errno> {
        sockopt::socket_error(fd)?
    }

    #[inline]
    fn send(&self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::net::send(fd, bytes, SendFlags::NOSIGNAL)
    }

    #[inline]
    fn receive(&self, fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(fd, buffer, RecvFlags::empty()).map(|(_, count)| count)
    }

    fn end_sending(&self, fd: &OwnedFd) {
        // If the connection is gone, the next read reports it.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
    }
}
