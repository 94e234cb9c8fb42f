//! The io_uring driver: operations go to the kernel in batches, and completions come back in
//! batches.
//!
//! One multishot receive per socket fills shared buffers. Sends are queued, and handed over by the
//! system call that waits for the next event; at most one send per socket is in flight. A ring
//! belongs to one thread (`SINGLE_ISSUER`, `DEFER_TASKRUN`): completions arrive only while it
//! waits. A socket's place is used again once none of its operations is in flight.
//!
//! Descriptors that come near the limit of open files move into a table of the ring, and each full
//! table starts another ring. Sockets that send more than once are both in the first table and open
//! files, because operations find them there at less cost. The clock is read once per batch, or
//! more often in a long one.

mod blocks;
mod buffers;
mod datagrams;
mod memory;
mod provided;
mod queue;
mod receiving;
mod ring;
mod sending;
mod sockets;
mod spares;
mod stamped;
mod tables;
mod waiting;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use io_uring::cqueue::{self, more};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};
use socket2::SockAddr;

use crate::arrivals::{least_rtt_ns, unacknowledged_bytes};
use crate::datagram::Datagrams;
use crate::glance::{Glance, keep_time};
use crate::host::{open_files_limit, run_in_short_slices};
use crate::kernel::Linux;
use crate::listener::Listener;
use crate::net::{Coalescing, ConnectError, HandOver, Net, PeerClose, Program, Token};
use crate::outbox::Segment;
use crate::pace::Slow;
use crate::self_connect::TargetPorts;
use crate::settings::Settings;
use crate::socket::{
    ACCEPT_PAUSE_NS, Waker, connect_error, earlier, end_with_reset, has_source, prepare, shrink,
};
use crate::spin::Spin;
use crate::{Address, Clock, Remote, Transport};
pub(crate) use queue::{Kernel, Queue};
use ring::{Handle, Op, Ring};
use sockets::{Made, Sockets};
use spares::Spares;
use stamped::Arrivals;

/// The driver.
#[derive(Debug)]
pub struct Uring<K: Kernel = Linux> {
    kernel: K,
    clock: Clock,
    now_ns: u64,
    /// The driver waits for the first; the others ring `other_ring` when they have completions.
    rings: Vec<Ring<K>>,
    other_ring: OwnedFd,
    wake_fd: Arc<OwnedFd>,
    /// Sends handed over since the last wait: most complete within the call that waits for the next
    /// event.
    fresh_sends: usize,
    /// The end of a send is an event like any other, because something is to be done after it.
    awaits_send: bool,
    /// The coalescing that the program has requested.
    coalescing: Coalescing,
    listener: Option<OwnedFd>,
    accept_again_ns: Option<u64>,
    sockets: Sockets,
    datagrams: Box<datagrams::Sockets>,
    arrivals: Box<Arrivals>,
    /// Sockets whose receive found no buffer, or was ended by the kernel.
    to_receive: Vec<u32>,
    /// The addresses of connects: the kernel reads them later.
    peers: Vec<Arc<SockAddr>>,
    target_ports: TargetPorts,
    /// Buffers of completed sends.
    spares: Spares,
    /// The limit of open files.
    fds_most: u64,
    /// Sockets with lower numbers may get a place in the first ring's table.
    known_most: u32,
    spin: Spin,
    glance: Glance,
    /// Connections that are slow on purpose.
    slow: Option<Box<Slow>>,
}

impl Uring {
    /// Creates a driver, which accepts connections if given a listening socket. If the kernel has
    /// no rings, forbids them, or lacks what this driver builds on (Linux 6.1), the listener is
    /// returned for another driver.
    pub fn new(
        clock: Clock,
        listener: Option<Listener>,
        settings: &Settings,
    ) -> Result<Self, (io::Error, Option<Listener>)> {
        Uring::over(Linux, clock, listener, settings)
    }
}

impl<K: Kernel> Uring<K> {
    /// Creates the same driver over this kernel.
    pub(crate) fn over(
        kernel: K,
        clock: Clock,
        listener: Option<Listener>,
        settings: &Settings,
    ) -> Result<Self, (io::Error, Option<Listener>)> {
        let made = Ring::new(&kernel).and_then(|ring| {
            let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
            let (wake_fd, other_ring) = (eventfd(0, flags)?, eventfd(0, flags)?);
            // Last, because a listener that is returned must be as it was.
            listener.as_ref().map_or(Ok(()), Listener::block)?;
            Ok((ring, wake_fd, other_ring))
        });
        let (first, wake_fd, other_ring) = match made {
            Ok(made) => made,
            Err(error) => return Err((error, listener)),
        };
        let (listener, bound) = Listener::split(listener);
        let fds_most = open_files_limit();
        Ok(Uring {
            kernel,
            now_ns: clock.now_ns(),
            clock,
            rings: vec![first],
            other_ring,
            wake_fd: Arc::new(wake_fd),
            fresh_sends: 0,
            awaits_send: false,
            coalescing: Coalescing::default(),
            listener,
            accept_again_ns: None,
            sockets: Sockets::default(),
            datagrams: Box::new(datagrams::Sockets::new(bound)),
            arrivals: Box::new(Arrivals::new()),
            to_receive: Vec::new(),
            peers: Vec::new(),
            target_ports: TargetPorts::default(),
            spares: Spares::default(),
            spin: Spin::up_to(settings.spin_ns),
            glance: Glance::default(),
            slow: Slow::new(settings.rates),
            fds_most,
            known_most: 0,
        })
    }

    /// A waker that other threads use to wake this driver.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake_fd))
    }

    /// Runs until the program is done; the calling thread owns the rings from now on. An error
    /// means that waiting itself failed, or that the kernel has lost completions; nothing a peer
    /// does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        self.rings[0].queue.enable()?;
        self.make_first_table();
        let first = &mut self.rings[0];
        first.watch(&self.wake_fd, Op::Waker);
        if let Some(listener) = &self.listener {
            first.accept(listener);
        }
        self.bound(program)?;
        let mut batch = Vec::new();
        while !program.is_done() {
            let wake_at_ns = earlier(program.wake_at_ns(), self.accept_again_ns);
            let slow_ns = self.slow.as_ref().and_then(|slow| slow.next_ns());
            let wake_at_ns = earlier(wake_at_ns, slow_ns);
            if self.take_over_early(&mut batch) {
                self.rings.iter_mut().try_for_each(Ring::poll)?;
            } else {
                self.wait(wake_at_ns)?;
            }
            self.rings.iter_mut().try_for_each(Ring::check_losses)?;
            (self.fresh_sends, self.awaits_send) = (0, false);
            self.now_ns = self.clock.now_ns();
            for ring in 0..self.rings.len() {
                self.take_over(program, ring, &mut batch);
            }
            if program.wake_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
                program.handle_time(self);
            }
            self.listen_again();
            self.go_on();
            self.receive_again();
            self.receive_datagrams_again();
            program.handle_batch_end(self);
        }
        self.end_submissions()
    }

    /// Submits the last operations, and makes the kernel let go of the listener and of bytes to
    /// send.
    fn end_submissions(&mut self) -> io::Result<()> {
        self.rings.iter_mut().try_for_each(Ring::poll)?;
        self.rings[0].cancel(Op::Accept, 0);
        for (index, ring) in self.sockets.in_flight() {
            self.rings[usize::from(ring)].cancel(Op::Send, index);
        }
        for place in self.datagrams.in_flight() {
            self.rings[0].cancel(Op::SendDatagrams, place);
        }
        self.rings.iter_mut().try_for_each(Ring::poll)
    }

    /// Handles the completions of one ring, after those that `batch` already has.
    fn take_over<P: Program>(
        &mut self,
        program: &mut P,
        ring: usize,
        batch: &mut Vec<cqueue::Entry>,
    ) {
        self.rings[ring].drain(batch);
        for (at, entry) in batch.iter().enumerate() {
            self.sockets.note_latest(entry, at as u16);
        }
        for (at, entry) in batch.iter().enumerate() {
            let (op, index) = Op::of(entry.user_data());
            match op {
                Op::Recv => {
                    self.received(program, ring, index, entry, at as u16);
                    self.look_at_clock(program, entry);
                }
                Op::RecvStamped => {
                    self.received_stamped(program, index, entry, at as u16);
                    self.look_at_clock(program, entry);
                }
                Op::Send => {
                    if let Some(conn) = self.sent(index, entry.result()) {
                        program.handle_drained(self, conn);
                    }
                }
                Op::Connect => self.connected(program, index, entry.result()),
                Op::Accept => self.accepted(program, entry),
                Op::Waker => {
                    self.rung(Op::Waker, entry);
                    program.handle_wake(self);
                }
                Op::OtherRing => self.rung(Op::OtherRing, entry),
                Op::Datagrams => self.datagrams_came(program, index, entry),
                Op::SendDatagrams => self.datagrams_sent(program, index, entry.result()),
                Op::Ready => self.datagrams_connected(program, index),
                Op::Ignored => {}
            }
        }
        batch.clear();
        self.rings[ring].buffers.grow_if_short();
        self.arrivals.grow_if_short();
    }

    /// Reads the clock in a long batch, and lets the program do what is due by then.
    #[inline]
    fn look_at_clock<P: Program>(&mut self, program: &mut P, entry: &cqueue::Entry) {
        if self.glance.is_due(usize::try_from(entry.result()).unwrap_or(0)) {
            keep_time(self, program);
        }
    }

    fn connected<P: Program>(&mut self, program: &mut P, index: u32, result: i32) {
        let socket = self.sockets.at(index);
        socket.made = Made::Connected;
        if socket.closed {
            self.release(index);
            return;
        }
        let conn = socket.conn(index);
        match outcome(result) {
            Ok(_) => {}
            // An established connection gets a reset (a refused one gets another error). So the
            // peer accepted, and reset the connection before we looked.
            Err(Errno::CONNRESET | Errno::PIPE) => socket.failed = Some(PeerClose::Reset),
            Err(errno) => {
                self.close(conn.token);
                program.handle_connect_error(self, conn, connect_error(errno));
                return;
            }
        }
        let fd = self.sockets.at(index).handle.as_ref().and_then(Handle::own);
        if fd.is_some_and(|fd| self.target_ports.is_own_peer(fd)) {
            self.reset(conn.token);
            program.handle_connect_error(self, conn, ConnectError::Refused);
            return;
        }
        self.to_receive.push(index);
        // Bytes that wait leave before those that the program sends now.
        self.send_next(index);
        program.handle_connected(self, conn);
        if self.sent_what_waited(conn.token) {
            program.handle_drained(self, conn);
        }
    }

    fn accepted<P: Program>(&mut self, program: &mut P, entry: &cqueue::Entry) {
        if entry.result() >= 0 {
            let fd = ring::received_fd(entry.result());
            let index = self.add(fd, 0, Made::Accepted);
            let token = self.sockets.at(index).token(index);
            let key = program.handle_accepted(self, token);
            if let Some(socket) = self.sockets.live(token) {
                socket.key = key;
                self.to_receive.push(index);
            }
        }
        if !more(entry.flags()) {
            // Without descriptors or memory, a waiting connection would make the loop spin: pause a
            // little.
            let pause_ns = if entry.result() < 0 { ACCEPT_PAUSE_NS } else { 0 };
            self.accept_again_ns = Some(self.now_ns + pause_ns);
        }
    }

    fn listen_again(&mut self) {
        if self.accept_again_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.accept_again_ns = None;
            if let Some(listener) = &self.listener {
                self.rings[0].accept(listener);
            }
        }
    }

    /// Resets an event descriptor that was written to, and keeps watching it.
    fn rung(&mut self, op: Op, entry: &cqueue::Entry) {
        let fd = if op == Op::Waker { &*self.wake_fd } else { &self.other_ring };
        let mut count = [0; 8];
        let _ = rustix::io::read(fd, &mut count);
        if !more(entry.flags()) {
            self.rings[0].watch(fd, op);
        }
    }

    /// Frees the place of a closed socket once none of its operations is in flight.
    fn release(&mut self, index: u32) {
        if let Some((ring, handle)) = self.sockets.release(index) {
            self.arrivals.forget(index);
            self.rings[usize::from(ring)].close(handle, index);
        }
    }
}

impl<K: Kernel> Net for Uring<K> {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {
        self.now_ns = self.clock.now_ns();
    }

    fn spun_ns(&self) -> u64 {
        self.spin.spun_ns()
    }

    fn wake_promptly(&mut self, promptly: bool) {
        run_in_short_slices(promptly);
    }

    fn stay_awake_until(&mut self, at_ns: u64) {
        self.spin.stay_awake_until(at_ns);
    }

    fn can_coalesce(&self) -> bool {
        self.rings[0].has_min_wait
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        self.coalescing = coalescing;
    }

    fn connect(&mut self, key: u32, to: Remote<'_>) -> Result<Token, ConnectError> {
        if to.transport == Transport::Datagram {
            return self.connect_datagrams(key, to);
        }
        // The socket is blocking: the ring waits for it by itself, and takes O_NONBLOCK as "do not
        // wait".
        let flags = SocketFlags::CLOEXEC;
        let fd =
            rustix::net::socket_with(to.address.socket_family(), SocketType::STREAM, flags, None)
                .map_err(connect_error)?;
        let peer = match to.address {
            Address::Ip(ip) => {
                prepare(&fd, to.from)?;
                shrink(&fd, self.slow.as_ref().and_then(|slow| slow.receive_buffer()));
                self.target_ports.note(ip.port());
                // The kernel's later error for the connection could also mean that no port is left.
                if !self.peers.iter().any(|peer| peer.as_socket() == Some(*ip)) && !has_source(ip) {
                    return Err(ConnectError::NoSource);
                }
                SockAddr::from(*ip)
            }
            Address::Unix(path) => SockAddr::unix(path).map_err(|_| ConnectError::Unreachable)?,
        };
        let peer = self.peer(peer);
        let index = self.add(fd, key, Made::Connecting);
        let socket = self.sockets.at(index);
        let token = socket.token(index);
        if let Some(slow) = &mut self.slow {
            slow.begin(token);
        }
        if let Some(handle) = &socket.handle {
            self.rings[usize::from(socket.ring)].connect(handle, index, &self.peers[peer]);
        }
        Ok(token)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) {
        match self.has_to_queue(token) {
            Some(false) if !bytes.is_empty() => {
                let mut copy = self.spares.take(bytes.len());
                copy.extend_from_slice(bytes);
                self.submit_fresh(token.index, Segment::Copied(copy, 0));
            }
            Some(true) => {
                let socket = self.sockets.at(token.index);
                let spares = &mut self.spares;
                let outbox = socket.outbox.get_or_insert_default();
                outbox.push_in(bytes, || spares.take_to_fill());
                self.set_interest(token);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        match self.has_to_queue(token) {
            Some(false) if !range.is_empty() => {
                self.submit_fresh(token.index, Segment::Shared(Arc::clone(bytes), range));
            }
            Some(true) => {
                let socket = self.sockets.at(token.index);
                socket.outbox.get_or_insert_default().push_shared(bytes, range);
                self.set_interest(token);
            }
            _ => {}
        }
    }

    fn hand_over(&mut self) -> HandOver {
        let began_ns = self.clock.now_ns();
        // The next wait reports what fails here.
        self.rings.iter_mut().for_each(|ring| drop(ring.submit()));
        self.fresh_sends = 0;
        HandOver { began_ns, ended_ns: self.clock.now_ns() }
    }

    fn watch_arrivals(&mut self, token: Token) {
        if datagrams::Sockets::has(token) {
            return self.watch_datagrams(token);
        }
        self.watch(token);
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.arrivals.latest_ns()
    }

    fn unacknowledged_bytes(&mut self, token: Token) -> Option<u64> {
        unacknowledged_bytes(self.sockets.live(token)?.handle.as_ref()?.own()?)
    }

    fn least_rtt_ns(&mut self, token: Token) -> Option<u64> {
        least_rtt_ns(self.sockets.live(token)?.handle.as_ref()?.own()?)
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        self.sockets.unsent_bytes(token)
    }

    fn queued_bytes(&self, token: Token) -> usize {
        self.sockets.queued_bytes(token)
    }

    fn hold_reading(&mut self, token: Token) -> bool {
        self.hold(token)
    }

    fn send_datagrams(&mut self, token: Token, datagrams: Datagrams<'_>) {
        self.send_blocks(token, datagrams);
    }

    fn dropped_datagrams(&self) -> u64 {
        self.datagrams.dropped
    }

    fn overflowed_datagrams(&self) -> u64 {
        self.datagrams.overflowed
    }

    fn close(&mut self, token: Token) {
        if datagrams::Sockets::has(token) {
            return self.close_datagrams(token);
        }
        let Some(socket) = self.sockets.live(token) else { return };
        socket.closed = true;
        socket.outbox = None;
        self.awaits_send |= socket.in_flight_send.is_some();
        let ring = &mut self.rings[usize::from(socket.ring)];
        let in_flight =
            [(socket.is_connecting(), Op::Connect), (socket.in_flight_send.is_some(), Op::Send)];
        for (_, op) in in_flight.iter().filter(|(is_busy, _)| *is_busy) {
            ring.cancel(*op, token.index);
        }
        self.end_receive(token.index);
        self.release(token.index);
    }

    fn end_sending(&mut self, token: Token) {
        let Some(socket) = self.sockets.live(token) else { return };
        socket.ending = true;
        if socket.nothing_to_send() && !socket.is_connecting() {
            self.end_now(token.index);
        } else {
            self.awaits_send = true;
        }
    }

    fn reset(&mut self, token: Token) {
        let handle = self.sockets.live(token).and_then(|socket| socket.handle.as_ref());
        if let Some(fd) = handle.and_then(Handle::own) {
            end_with_reset(fd);
        }
        self.close(token);
    }

    fn finish(&mut self, token: Token) {
        if datagrams::Sockets::has(token) {
            return self.close_datagrams(token);
        }
        let Some(socket) = self.sockets.live(token) else { return };
        if socket.nothing_to_send() {
            self.close(token);
        } else {
            socket.finishing = true;
            self.awaits_send = true;
            self.set_interest(token);
        }
    }
}

impl<K: Kernel> Uring<K> {
    /// The place at which an address is kept for the kernel.
    fn peer(&mut self, to: SockAddr) -> usize {
        let known = self.peers.iter().position(|peer| **peer == to);
        known.unwrap_or_else(|| {
            self.peers.push(Arc::new(to));
            self.peers.len() - 1
        })
    }
}

/// The outcome of an operation: a count, or an error.
fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}
