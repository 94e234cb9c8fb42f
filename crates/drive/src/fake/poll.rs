//! The system calls of epoll in a world: edge-triggered, as the kernel reports sockets.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;

use rustix::event::Timespec;
use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::io::Errno;

use super::World;
use super::world::{Edge, SocketId};
use crate::epoll::Calls;

/// A registered descriptor.
#[derive(Clone, Copy, Debug)]
struct Watched {
    socket: SocketId,
    fd: RawFd,
    data: u64,
    flags: EventFlags,
    /// It has become ready since it was last reported.
    pending: bool,
}

impl Watched {
    /// Whether its socket has been closed, which ends the registration.
    fn is_closed(&self) -> bool {
        // SAFETY: the borrowed descriptor is only asked which socket it is, if any.
        #[allow(unsafe_code)]
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        SocketId::of(fd) != Some(self.socket)
    }
}

/// A kernel that is simulated in a world.
#[derive(Debug)]
pub(super) struct Played {
    world: Rc<RefCell<World>>,
    /// The registrations, in their order.
    watched: RefCell<Vec<Watched>>,
    /// The data of the waker, which rings once, at the start. The waker is registered first.
    wake_fd: Cell<Option<u64>>,
}

impl Played {
    pub(super) fn new(world: &Rc<RefCell<World>>) -> Self {
        let (watched, wake_fd) = (RefCell::default(), Cell::new(None));
        Played { world: Rc::clone(world), watched, wake_fd }
    }

    /// The events that a socket is ready for.
    fn ready(&self, socket: SocketId) -> EventFlags {
        let world = self.world.borrow();
        let (ended, reset) = world.ending(socket);
        let mut ready = EventFlags::empty();
        ready.set(EventFlags::IN, world.is_readable(socket) || ended);
        ready.set(EventFlags::OUT, world.is_writable(socket) || reset);
        ready.set(EventFlags::RDHUP, ended);
        ready.set(EventFlags::HUP | EventFlags::ERR, reset);
        ready
    }

    fn register(&self, fd: &OwnedFd, wanted: Event) {
        let (data, flags) = (wanted.data.u64(), wanted.flags);
        let socket = socket(fd);
        let pending = !self.ready(socket).is_empty();
        let mut watched = self.watched.borrow_mut();
        watched.retain(|watched| watched.socket != socket);
        watched.push(Watched { socket, fd: fd.as_raw_fd(), data, flags, pending });
    }

    /// Lets one thing happen in the network; false if nothing can.
    fn go_on(&self) -> bool {
        let changed = self.world.borrow_mut().go_on();
        if let Some((socket, Edge::Ready)) = changed {
            let mut watched = self.watched.borrow_mut();
            let its = watched.iter_mut().filter(|watched| watched.socket == socket);
            its.for_each(|watched| watched.pending = true);
        }
        changed.is_some()
    }

    /// Reports sockets that have become ready: some of them now, the others in the next wait.
    fn report(&self, events: &mut Vec<Event>) {
        let mut watched = self.watched.borrow_mut();
        watched.retain(|watched| !watched.is_closed());
        for watched in watched.iter_mut().filter(|watched| watched.pending) {
            if !events.is_empty() && self.world.borrow_mut().rng.one_in(2) {
                continue;
            }
            watched.pending = false;
            let always = EventFlags::HUP | EventFlags::ERR;
            let flags = self.ready(watched.socket) & (watched.flags | always);
            if !flags.is_empty() {
                events.push(Event { flags, data: EventData::new_u64(watched.data) });
            }
        }
    }
}

/// The socket that the driver means.
fn socket(fd: &OwnedFd) -> SocketId {
    SocketId::of(fd).expect("who owns a descriptor has not closed it")
}

impl Calls for Played {
    fn watch(&self, _: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno> {
        if self.watched.borrow().is_empty() {
            self.wake_fd.set(Some(wanted.data.u64()));
        }
        self.register(fd, wanted);
        Ok(())
    }

    fn watch_anew(&self, _: &OwnedFd, fd: &OwnedFd, wanted: Event) -> Result<(), Errno> {
        self.register(fd, wanted);
        Ok(())
    }

    fn wait(
        &self,
        _: &OwnedFd,
        events: &mut Vec<Event>,
        timeout: Option<&Timespec>,
    ) -> Result<usize, Errno> {
        if let Some(data) = self.wake_fd.take() {
            events.push(Event { flags: EventFlags::IN, data: EventData::new_u64(data) });
            return Ok(1);
        }
        let steps = self.world.borrow_mut().rng.below(20);
        for _ in 0..steps {
            self.go_on();
        }
        self.report(events);
        while events.is_empty() {
            if !self.go_on() {
                // Nothing can happen any more: the driver would wait for ever.
                return if timeout.is_some() { Ok(0) } else { Err(Errno::DEADLK) };
            }
            self.report(events);
        }
        Ok(events.len())
    }

    fn connect(&self, fd: &OwnedFd, to: &SocketAddr) -> Result<(), Errno> {
        self.world.borrow_mut().connect(socket(fd), to.port());
        Err(Errno::INPROGRESS)
    }

    fn connected(&self, fd: &OwnedFd) -> Result<(), Errno> {
        self.world.borrow().connected(socket(fd)).unwrap_or(Ok(()))
    }

    fn send(&self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        self.world.borrow_mut().send(socket(fd), bytes)
    }

    fn receive(&self, fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.world.borrow_mut().receive(socket(fd), buffer)
    }

    fn end_sending(&self, fd: &OwnedFd) {
        self.world.borrow_mut().end_sending(socket(fd));
    }
}
