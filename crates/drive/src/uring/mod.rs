//! The io_uring driver: what is asked goes to the kernel in batches, what happened comes back in batches.
//!
//! Strategy: one multishot receive per socket fills shared buffers; sends are queued and
//! handed over by the same system call that waits for what comes next, at most one in flight
//! per socket. A ring belongs to one thread (`SINGLE_ISSUER`, `DEFER_TASKRUN`): completions
//! arrive only while it waits. A socket's place is used again when nothing of it is in flight
//! any more. Descriptors that come near the limit of open files move into a table of the ring;
//! each full table begins another ring. Sockets that send more than once are in the first table as
//! well as open files, because operations find them there for less. The clock is read once per batch,
//! or more often in a long one.

mod buffers;
mod ring;
mod sending;
mod sockets;
mod tables;
mod waiting;

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use io_uring::cqueue::{self, more};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit};
use socket2::SockAddr;

use crate::driver::Settings;
use crate::glance::{Glance, keep_time};
use crate::host::run_in_short_slices;
use crate::net::{Coalescing, Ended, Net, Program, Refusal, Token};
use crate::outbox::Segment;
use crate::socket::{
    ACCEPT_PAUSE_NS, Listener, OUTBOX_MOST, Waker, earlier, end_with_reset, prepare, refusal,
};
use crate::spin::Spin;
use crate::{Address, Clock};
use ring::{Handle, Op, Ring};
use sockets::{Made, Sockets};

/// The driver.
#[derive(Debug)]
pub struct Uring {
    clock: Clock,
    now_ns: u64,
    /// The first is waited for; the others ring `stir` when they have something.
    rings: Vec<Ring>,
    stir: OwnedFd,
    bell: Arc<OwnedFd>,
    /// Sends handed over since the last wait: most are done within the call that waits for the next event.
    fresh_sends: usize,
    /// What comes after a send hangs on its end: it is an event like any other.
    awaits_send: bool,
    /// How the program has events coalesced.
    coalescing: Coalescing,
    listener: Option<OwnedFd>,
    accept_again_ns: Option<u64>,
    sockets: Sockets,
    /// Whose receive found no buffer, or was ended by the kernel.
    to_hear: Vec<u32>,
    /// Where connections have been made to: the kernel reads them later.
    peers: Vec<Arc<SockAddr>>,
    /// Buffers of sends that are done.
    spare: Vec<Vec<u8>>,
    /// The limit of open files.
    fds_most: u64,
    /// Sockets with lower numbers may get a place in the first ring's table.
    known_most: u32,
    spin: Spin,
    glance: Glance,
}

impl Uring {
    /// A driver, with a listening socket if it is to accept.
    ///
    /// # Errors
    /// When the kernel has no rings, forbids them, or lacks what this driver builds on (Linux 6.1);
    /// the listener comes back for another driver.
    pub fn new(
        clock: Clock,
        listener: Option<Listener>,
        settings: &Settings,
    ) -> Result<Self, (io::Error, Option<Listener>)> {
        let made = Ring::new().and_then(|ring| {
            let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
            let (bell, stir) = (eventfd(0, flags)?, eventfd(0, flags)?);
            // Last: a listener that comes back must be as it was.
            listener.as_ref().map_or(Ok(()), Listener::block)?;
            Ok((ring, bell, stir))
        });
        let (first, bell, stir) = match made {
            Ok(made) => made,
            Err(error) => return Err((error, listener)),
        };
        let listener = listener.map(|listener| listener.fd);
        let fds_most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Ok(Uring {
            now_ns: clock.now_ns(),
            clock,
            rings: vec![first],
            stir,
            bell: Arc::new(bell),
            fresh_sends: 0,
            awaits_send: false,
            coalescing: Coalescing::default(),
            listener,
            accept_again_ns: None,
            sockets: Sockets::default(),
            to_hear: Vec::new(),
            peers: Vec::new(),
            spare: Vec::new(),
            spin: Spin::up_to(settings.spin_ns),
            glance: Glance::default(),
            fds_most,
            known_most: 0,
        })
    }

    /// A bell to ring from other threads.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.bell))
    }

    /// Runs until the program is done; the calling thread owns the rings from now on.
    ///
    /// # Errors
    /// When waiting itself fails; nothing a peer does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        self.rings[0].enable()?;
        self.make_first_table();
        let first = &mut self.rings[0];
        first.watch(&self.bell, Op::Bell);
        if let Some(listener) = &self.listener {
            first.accept(listener);
        }
        let mut batch = Vec::new();
        while !program.is_done() {
            let wake_at_ns = earlier(program.wake_at_ns(), self.accept_again_ns);
            self.wait(wake_at_ns)?;
            (self.fresh_sends, self.awaits_send) = (0, false);
            self.now_ns = self.clock.now_ns();
            for ring in 0..self.rings.len() {
                self.take_over(program, ring, &mut batch);
            }
            if program.wake_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
                program.handle_time(self);
            }
            self.listen_again();
            self.hear_again();
            program.handle_batch_end(self);
        }
        self.end_flights()
    }

    /// What was asked last still leaves; the kernel lets go of the listener, and of bytes to send.
    fn end_flights(&mut self) -> io::Result<()> {
        self.rings.iter().try_for_each(Ring::poll)?;
        self.rings[0].cancel(Op::Accept, 0);
        for (index, ring) in self.sockets.in_flight() {
            self.rings[usize::from(ring)].cancel(Op::Send, index);
        }
        self.rings.iter().try_for_each(Ring::poll)
    }

    /// Takes over what one ring has completed.
    fn take_over<P: Program>(
        &mut self,
        program: &mut P,
        ring: usize,
        batch: &mut Vec<cqueue::Entry>,
    ) {
        batch.clear();
        self.rings[ring].drain(batch);
        for (at, entry) in batch.iter().enumerate() {
            self.sockets.note_latest(entry, at as u16);
        }
        for (at, entry) in batch.iter().enumerate() {
            let (op, index) = Op::of(entry.user_data());
            match op {
                Op::Recv => {
                    self.received(program, ring, index, entry, at as u16);
                    if self.glance.is_due(usize::try_from(entry.result()).unwrap_or(0)) {
                        keep_time(self, program);
                    }
                }
                Op::Send => {
                    if let Some((key, token)) = self.sent(index, entry.result()) {
                        program.handle_drained(self, key, token);
                    }
                }
                Op::Connect => self.connected(program, index, entry.result()),
                Op::Accept => self.accepted(program, entry),
                Op::Bell => {
                    self.rung(Op::Bell, entry);
                    program.handle_wake(self);
                }
                Op::Stir => self.rung(Op::Stir, entry),
                Op::Ignored => {}
            }
        }
        self.rings[ring].buffers.grow_if_short();
    }

    #[inline]
    fn received<P: Program>(
        &mut self,
        program: &mut P,
        ring: usize,
        index: u32,
        entry: &cqueue::Entry,
        at: u16,
    ) {
        let filled = self.rings[ring].buffers.take(entry);
        let goes_on = more(entry.flags());
        let socket = self.sockets.at(index);
        socket.hearing = goes_on;
        let (key, token, closed) = (socket.key, socket.token(index), socket.closed);
        let followed = socket.latest > at;
        if let Some(filled) = filled {
            if !closed && filled.end > filled.start {
                let bytes = &filled.block[filled.start..filled.end];
                program.handle_input(self, key, token, bytes, followed);
            }
            self.rings[ring].buffers.put_back(filled);
        }
        if goes_on {
            return;
        }
        let outcome = outcome(entry.result());
        if closed || !matches!(outcome, Ok(0) | Err(_)) {
            self.hear_or_release(index);
            return;
        }
        let ended = match outcome {
            Ok(_) => self.sockets.at(index).failed.unwrap_or(Ended::Fin),
            Err(Errno::CANCELED) => return self.hear_or_release(index),
            Err(Errno::NOBUFS) => {
                self.rings[ring].buffers.ran_out = true;
                return self.hear_or_release(index);
            }
            // After a FIN the peer's reset arrives as EPIPE: the orderly close came first.
            Err(Errno::PIPE) => Ended::Fin,
            Err(_) => Ended::Reset,
        };
        self.end(program, key, token, ended);
    }

    fn end<P: Program>(&mut self, program: &mut P, key: u32, token: Token, ended: Ended) {
        program.handle_end(self, key, token, ended);
        // A program that keeps a half-closed socket has output to finish; it hears no more input.
        if let Some(socket) = self.sockets.live(token) {
            socket.ended = true;
            if socket.nothing_to_send() || ended == Ended::Reset {
                self.close(token);
            } else {
                socket.finishing = true;
                self.awaits_send = true;
            }
        }
    }

    /// A socket whose receive is over: it is heard again after the batch, or its place becomes free.
    fn hear_or_release(&mut self, index: u32) {
        if self.sockets.at(index).closed {
            self.release(index);
        } else {
            self.to_hear.push(index);
        }
    }

    fn hear_again(&mut self) {
        let mut to_hear = std::mem::take(&mut self.to_hear);
        for index in to_hear.drain(..) {
            let socket = self.sockets.at(index);
            if socket.may_hear()
                && let Some(handle) = &socket.handle
            {
                socket.hearing = true;
                self.rings[usize::from(socket.ring)].recv(handle, index);
            }
        }
        self.to_hear = to_hear;
    }

    fn connected<P: Program>(&mut self, program: &mut P, index: u32, result: i32) {
        let socket = self.sockets.at(index);
        socket.made = Made::Connected;
        if socket.closed {
            self.release(index);
            return;
        }
        let (key, token) = (socket.key, socket.token(index));
        match outcome(result) {
            Ok(_) => {}
            // A reset is what an established connection gets (one that is refused says so):
            // the peer accepted, and reset before this was looked at.
            Err(Errno::CONNRESET | Errno::PIPE) => socket.failed = Some(Ended::Reset),
            Err(errno) => {
                self.close(token);
                program.handle_refused(self, key, token, refusal(errno));
                return;
            }
        }
        self.to_hear.push(index);
        program.handle_connected(self, key, token);
    }

    fn accepted<P: Program>(&mut self, program: &mut P, entry: &cqueue::Entry) {
        if entry.result() >= 0 {
            let fd = ring::received_fd(entry.result());
            let index = self.add(fd, 0, Made::Accepted);
            let token = self.sockets.at(index).token(index);
            let key = program.handle_accepted(self, token);
            if let Some(socket) = self.sockets.live(token) {
                socket.key = key;
                self.to_hear.push(index);
            }
        }
        if !more(entry.flags()) {
            // Out of descriptors or memory, the full backlog would spin: let it rest a little.
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

    /// An event descriptor was written to: it is silenced, and watched on.
    fn rung(&mut self, op: Op, entry: &cqueue::Entry) {
        let fd = if op == Op::Bell { &*self.bell } else { &self.stir };
        let mut count = [0; 8];
        let _ = rustix::io::read(fd, &mut count);
        if !more(entry.flags()) {
            self.rings[0].watch(fd, op);
        }
    }

    /// Frees the place of a closed socket once nothing of it is in flight.
    fn release(&mut self, index: u32) {
        if let Some((ring, handle)) = self.sockets.release(index) {
            self.rings[usize::from(ring)].close(handle, index);
        }
    }

    /// Stops hearing a peer that asks and takes nothing, and hears it again when it does. One that we ask is always
    /// heard: it may answer before it has taken all, and take no more before it is heard.
    fn set_interest(&mut self, token: Token) {
        let Some(socket) = self.sockets.live(token) else { return };
        let pending = socket.outbox.as_ref().map_or(0, |outbox| outbox.len());
        let deaf = socket.finishing || (socket.made == Made::Accepted && pending > OUTBOX_MOST);
        if deaf == socket.deaf {
            return;
        }
        socket.deaf = deaf;
        if !deaf {
            self.to_hear.push(token.index);
        } else if socket.hearing {
            self.rings[usize::from(socket.ring)].cancel(Op::Recv, token.index);
        }
    }
}

impl Net for Uring {
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
        self.rings[0].has_patience
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        self.coalescing = coalescing;
    }

    fn connect(&mut self, key: u32, to: &Address, from: Option<IpAddr>) -> Result<Token, Refusal> {
        // Blocking for the ring: it waits for the socket itself, and takes O_NONBLOCK as "do not".
        let flags = SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(to.socket_family(), SocketType::STREAM, flags, None)
            .map_err(refusal)?;
        let peer = match to {
            Address::Ip(to) => {
                prepare(&fd, from)?;
                SockAddr::from(*to)
            }
            Address::Unix(path) => SockAddr::unix(path).map_err(|_| Refusal::Unreachable)?,
        };
        let peer = self.peer(peer);
        let index = self.add(fd, key, Made::Connecting);
        let socket = self.sockets.at(index);
        let token = socket.token(index);
        if let Some(handle) = &socket.handle {
            self.rings[usize::from(socket.ring)].connect(handle, index, &self.peers[peer]);
        }
        Ok(token)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) {
        match self.has_to_queue(token) {
            Some(false) if !bytes.is_empty() => {
                let mut copy = self.spare.pop().unwrap_or_default();
                copy.extend_from_slice(bytes);
                self.fly(token.index, Segment::Copied(copy, 0));
            }
            Some(true) => {
                let socket = self.sockets.at(token.index);
                socket.outbox.get_or_insert_default().push(bytes);
                self.set_interest(token);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        match self.has_to_queue(token) {
            Some(false) if !range.is_empty() => {
                self.fly(token.index, Segment::Shared(Arc::clone(bytes), range));
            }
            Some(true) => {
                let socket = self.sockets.at(token.index);
                socket.outbox.get_or_insert_default().push_shared(bytes, range);
                self.set_interest(token);
            }
            _ => {}
        }
    }

    fn hand_over(&mut self) {
        // What fails here is told by the next wait.
        self.rings.iter().for_each(|ring| drop(ring.submit()));
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        self.sockets.unsent_bytes(token)
    }

    fn queued_bytes(&self, token: Token) -> usize {
        self.sockets.queued_bytes(token)
    }

    fn close(&mut self, token: Token) {
        let Some(socket) = self.sockets.live(token) else { return };
        socket.closed = true;
        socket.outbox = None;
        self.awaits_send |= socket.flight.is_some();
        let ring = &mut self.rings[usize::from(socket.ring)];
        let in_flight = [
            (socket.hearing, Op::Recv),
            (socket.is_connecting(), Op::Connect),
            (socket.flight.is_some(), Op::Send),
        ];
        for (_, op) in in_flight.iter().filter(|(flies, _)| *flies) {
            ring.cancel(*op, token.index);
        }
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

impl Uring {
    /// Where an address is kept for the kernel.
    fn peer(&mut self, to: SockAddr) -> usize {
        let known = self.peers.iter().position(|peer| **peer == to);
        known.unwrap_or_else(|| {
            self.peers.push(Arc::new(to));
            self.peers.len() - 1
        })
    }
}

/// What an operation came to: a count, or an error.
fn outcome(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}
