//! The seam between this driver and the kernel: the system calls by which streams are carried.
//!
//! The driver is compiled for each kind, so that the seam costs nothing. Beside the kernel's own calls there are some that
//! play the kernel from a seed (`crate::fake`).

use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::kernel::Linux;

/// System calls of a stream, none of which waits but [`Calls::wait`].
pub trait Calls: Debug {
    /// Registers a descriptor with an epoll.
    ///
    /// # Errors
    /// As all of those below: what the kernel says.
    fn watch(
        &self,
        epoll: &OwnedFd,
        fd: &OwnedFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), Errno>;

    /// Registers it anew: what is ready by now is told in the next wait.
    fn watch_anew(
        &self,
        epoll: &OwnedFd,
        fd: &OwnedFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), Errno>;

    /// Waits until a descriptor is ready, or for so long; fills what room there is among the events.
    fn wait(
        &self,
        epoll: &OwnedFd,
        events: &mut Vec<Event>,
        timeout: Option<&Timespec>,
    ) -> Result<usize, Errno>;

    /// Begins to connect.
    fn connect(&self, fd: &OwnedFd, to: &SocketAddr) -> Result<(), Errno>;

    /// What became of it.
    fn connected(&self, fd: &OwnedFd) -> Result<(), Errno>;

    /// Sends what finds room.
    fn send(&self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno>;

    /// Receives what has come; nothing at the end.
    fn receive(&self, fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// Ends our side of a connection (`shutdown(2)`).
    fn end_sending(&self, fd: &OwnedFd);
}

impl Calls for Linux {
    fn watch(
        &self,
        epoll: &OwnedFd,
        fd: &OwnedFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), Errno> {
        epoll::add(epoll, fd, EventData::new_u64(data), flags)
    }

    fn watch_anew(
        &self,
        epoll: &OwnedFd,
        fd: &OwnedFd,
        data: u64,
        flags: EventFlags,
    ) -> Result<(), Errno> {
        epoll::modify(epoll, fd, EventData::new_u64(data), flags)
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
        // Of a connection that is gone the next read tells.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
    }
}
