//! The epoll driver: edge-triggered, each socket registered once.
//!
//! Strategy: read, let the program act, send at once. A request costs one `recv`, one
//! `send` and its part of an `epoll_wait`; a short read has emptied the socket, so
//! that nothing is read twice. Edge-triggered, the kernel looks at a socket once per
//! event and not a second time to find that it is quiet; whoever stops before the
//! socket is empty arms it again. The clock is read once per batch, or more often in a long one.

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::driver::Settings;
use crate::glance::{Glance, keep_time};
use crate::host::run_in_short_slices;
use crate::net::{Ended, Net, Program, Refusal, Token};
use crate::outbox::Outbox;
use crate::socket::{
    ACCEPT_PAUSE_NS, Listener, OUTBOX_MOST, Waker, earlier, end_with_reset, prepare, refusal,
};
use crate::spin::Spin;
use crate::{Address, Clock};

/// Bytes taken from a socket in one read.
const READ_BYTES: usize = 64 * 1024;
/// Reads from one socket before the others have their turn: a peer that floods starves nobody.
const READS_PER_TURN: usize = 16;
/// Connections accepted before the others have their turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Events taken in one wait.
const EVENTS: usize = 1024;

const WAKER: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

#[derive(Debug, Default)]
struct Socket {
    fd: Option<OwnedFd>,
    generation: u32,
    key: u32,
    connecting: bool,
    /// It was accepted: its peer decides how much is to be sent.
    accepted: bool,
    /// Our side ends when everything is sent.
    ending: bool,
    finishing: bool,
    failed: Option<Ended>,
    deaf: bool,
    outbox: Option<Box<Outbox>>,
}

impl Socket {
    /// Everything is sent: ends our side, if that was asked for.
    fn end_if_asked(&mut self) {
        if let (true, Some(fd)) = (std::mem::take(&mut self.ending), &self.fd) {
            // Of a connection that is gone the next read tells.
            let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
        }
    }
}

/// The driver.
#[derive(Debug)]
pub struct Epoll {
    clock: Clock,
    now_ns: u64,
    epoll: OwnedFd,
    bell: Arc<OwnedFd>,
    listener: Option<OwnedFd>,
    accept_again_ns: Option<u64>,
    sockets: Vec<Socket>,
    free: Vec<u32>,
    buffer: Box<[u8]>,
    spin: Spin,
    glance: Glance,
}

impl Epoll {
    /// A driver, with a listening socket if it is to accept.
    ///
    /// # Errors
    /// When the kernel grants no epoll or event descriptor.
    pub fn new(clock: Clock, listener: Option<Listener>, settings: &Settings) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, EventData::new_u64(WAKER), EventFlags::IN)?;
        let listener = listener.map(|listener| listener.fd);
        if let Some(fd) = &listener {
            epoll::add(&epoll, fd, EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        Ok(Epoll {
            now_ns: clock.now_ns(),
            clock,
            epoll,
            bell: Arc::new(bell),
            listener,
            accept_again_ns: None,
            sockets: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            spin: Spin::up_to(settings.spin_ns),
            glance: Glance::default(),
        })
    }

    /// A bell to ring from other threads.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.bell))
    }

    /// Runs until the program is done.
    ///
    /// # Errors
    /// When waiting itself fails; nothing a peer does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        while !program.is_done() {
            let wake_at_ns = earlier(program.wake_at_ns(), self.accept_again_ns);
            events.clear();
            let mut spin = self.spin;
            let spared = spin.spares_sleep(self.clock, wake_at_ns, || {
                self.take_events(&mut events, Some(&timespec(0)))?;
                Ok(!events.is_empty())
            })?;
            self.spin = spin;
            if !spared {
                self.wait(&mut events, wake_at_ns)?;
            }
            self.now_ns = self.clock.now_ns();
            for event in &events {
                self.dispatch(program, event.data.u64(), event.flags);
            }
            if program.wake_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
                program.handle_time(self);
            }
            self.listen_again();
            program.handle_batch_end(self);
        }
        Ok(())
    }

    /// Sleeps until something happens or `wake_at_ns` has come.
    fn wait(&self, events: &mut Vec<Event>, wake_at_ns: Option<u64>) -> io::Result<()> {
        let left_ns = |at_ns: u64| timespec(at_ns.saturating_sub(self.clock.now_ns()));
        self.take_events(events, wake_at_ns.map(left_ns).as_ref())
    }

    fn take_events(&self, events: &mut Vec<Event>, timeout: Option<&Timespec>) -> io::Result<()> {
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            // Timeouts finer than a millisecond came with Linux 5.11 (`epoll_pwait2`).
            Err(Errno::NOSYS) => Err(io::Error::other("needs Linux 5.11 or newer")),
            Err(errno) => Err(errno.into()),
        }
    }

    fn dispatch<P: Program>(&mut self, program: &mut P, data: u64, flags: EventFlags) {
        match data {
            WAKER => {
                let mut count = [0; 8];
                let _ = rustix::io::read(&*self.bell, &mut count);
                program.handle_wake(self);
            }
            LISTENER => self.accept(program),
            _ => {
                let token = Token { index: data as u32, generation: (data >> 32) as u32 };
                self.handle_socket(program, token, flags);
            }
        }
    }

    fn handle_socket<P: Program>(&mut self, program: &mut P, token: Token, flags: EventFlags) {
        let Some(socket) = self.live(token) else {
            return;
        };
        let key = socket.key;
        if socket.connecting {
            self.connected(program, key, token);
        }
        let closing = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(EventFlags::IN | closing) {
            self.readable(program, key, token, flags.intersects(closing));
        }
        if flags.contains(EventFlags::OUT) && self.flush(token) {
            program.handle_drained(self, key, token);
        }
    }

    fn connected<P: Program>(&mut self, program: &mut P, key: u32, token: Token) {
        let Some(socket) = self.live(token) else {
            return;
        };
        socket.connecting = false;
        match socket.fd.as_ref().map(sockopt::socket_error) {
            // A reset is what an established connection gets (one that is refused says so):
            // the peer accepted, and reset before this was looked at.
            Some(Ok(Err(Errno::CONNRESET | Errno::PIPE))) => socket.failed = Some(Ended::Reset),
            Some(Ok(Err(errno)) | Err(errno)) => {
                self.close(token);
                program.handle_refused(self, key, token, refusal(errno));
                return;
            }
            Some(Ok(Ok(()))) | None => {}
        }
        program.handle_connected(self, key, token);
    }

    fn readable<P: Program>(&mut self, program: &mut P, key: u32, token: Token, closing: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reads = 0;
        while self.read(program, key, token, closing, &mut buffer) {
            reads += 1;
            if reads == READS_PER_TURN {
                self.arm_again(token);
                break;
            }
        }
        self.buffer = buffer;
    }

    /// One read; whether there may be more to read now.
    #[inline]
    fn read<P: Program>(
        &mut self,
        program: &mut P,
        key: u32,
        token: Token,
        closing: bool,
        buffer: &mut [u8],
    ) -> bool {
        let Some(socket) = self.live(token) else { return false };
        let Some(fd) = &socket.fd else { return false };
        let ended = match rustix::net::recv(fd, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => socket.failed.unwrap_or(Ended::Fin),
            Ok((_, count)) => {
                program.handle_input(self, key, token, &buffer[..count], closing);
                if self.glance.is_due(count) {
                    keep_time(self, program);
                }
                // A short read has emptied the socket; a close that is known is read out now.
                return count == buffer.len() || closing;
            }
            Err(Errno::AGAIN) => return false,
            Err(Errno::INTR) => return true,
            // After a FIN the peer's reset arrives as EPIPE: the orderly close came first.
            Err(Errno::PIPE) => Ended::Fin,
            Err(_) => Ended::Reset,
        };
        self.end(program, key, token, ended);
        false
    }

    fn end<P: Program>(&mut self, program: &mut P, key: u32, token: Token, ended: Ended) {
        program.handle_end(self, key, token, ended);
        // A program that keeps a half-closed socket has output to finish; it hears no more input.
        if let Some(socket) = self.live(token) {
            if socket.outbox.as_ref().is_none_or(|outbox| outbox.is_empty())
                || ended == Ended::Reset
            {
                self.close(token);
            } else {
                socket.finishing = true;
                self.set_interest(token);
            }
        }
    }

    fn accept<P: Program>(&mut self, program: &mut P) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.listener else {
                return;
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(listener, flags) {
                Ok(fd) => {
                    let Ok(token) = self.add(fd, 0, false) else {
                        continue;
                    };
                    let key = program.handle_accepted(self, token);
                    if let Some(socket) = self.live(token) {
                        socket.key = key;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // Level-triggered, the full backlog would spin: let it rest a little.
                    let _ = epoll::delete(&self.epoll, listener);
                    self.accept_again_ns = Some(self.now_ns + ACCEPT_PAUSE_NS);
                    return;
                }
                Err(_) => {}
            }
        }
    }

    fn listen_again(&mut self) {
        if self.accept_again_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.accept_again_ns = None;
            if let Some(listener) = &self.listener {
                let data = EventData::new_u64(LISTENER);
                let _ = epoll::add(&self.epoll, listener, data, EventFlags::IN);
            }
        }
    }

    fn live(&mut self, token: Token) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(token.index as usize)?;
        (socket.generation == token.generation && socket.fd.is_some()).then_some(socket)
    }

    fn add(&mut self, fd: OwnedFd, key: u32, connecting: bool) -> Result<Token, Errno> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(Socket::default());
            (self.sockets.len() - 1) as u32
        });
        let socket = &mut self.sockets[index as usize];
        let token = Token { index, generation: socket.generation };
        let data = EventData::new_u64(u64::from(index) | (u64::from(token.generation) << 32));
        if let Err(errno) = epoll::add(&self.epoll, &fd, data, interest(false)) {
            self.free.push(index);
            return Err(errno);
        }
        *socket = Socket {
            fd: Some(fd),
            generation: token.generation,
            key,
            connecting,
            accepted: !connecting,
            ..Socket::default()
        };
        Ok(token)
    }

    /// Stops hearing a peer that asks and takes nothing, and hears it again when it does. One that we ask is always
    /// heard: it may answer before it has taken all, and take no more before it is heard.
    fn set_interest(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        let pending = socket.outbox.as_ref().map_or(0, |outbox| outbox.len());
        let deaf = socket.finishing || (socket.accepted && pending > OUTBOX_MOST);
        if deaf != socket.deaf {
            socket.deaf = deaf;
            self.arm_again(token);
        }
    }

    /// Registers the socket anew: what is ready by now is told in the next batch.
    fn arm_again(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        let flags = interest(socket.deaf);
        let generation = u64::from(token.generation) << 32;
        let data = EventData::new_u64(u64::from(token.index) | generation);
        let socket = &self.sockets[token.index as usize];
        if let Some(fd) = &socket.fd {
            let _ = epoll::modify(&self.epoll, fd, data, flags);
        }
    }

    /// Sends what waits; true if something did, and none of it does any more.
    fn flush(&mut self, token: Token) -> bool {
        loop {
            let Some(socket) = self.live(token) else {
                return false;
            };
            let Some(outbox) = &mut socket.outbox else {
                return false;
            };
            let (Some(front), Some(fd)) = (outbox.front(), &socket.fd) else {
                break;
            };
            match rustix::net::send(fd, front, SendFlags::NOSIGNAL) {
                Ok(count) => outbox.advance(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => {
                    self.send_failed(token, errno);
                    return false;
                }
            }
        }
        let Some(socket) = self.live(token) else {
            return false;
        };
        let drained = socket.outbox.as_ref().is_some_and(|outbox| outbox.is_empty());
        if drained {
            socket.outbox = None;
            if socket.finishing {
                self.close(token);
                return false;
            }
            socket.end_if_asked();
        }
        self.set_interest(token);
        drained
    }

    /// A send failed: what the peer said before is still to be read, so the end is left to the next read.
    fn send_failed(&mut self, token: Token, errno: Errno) {
        let Some(socket) = self.live(token) else {
            return;
        };
        socket.outbox = None;
        if socket.finishing {
            self.close(token);
            return;
        }
        let ended = if errno == Errno::PIPE { Ended::Fin } else { Ended::Reset };
        socket.failed.get_or_insert(ended);
        self.set_interest(token);
    }

    /// Sends what the kernel takes; returns how much that is, none when the socket has failed.
    #[inline]
    fn send_now(&mut self, token: Token, bytes: &[u8]) -> Option<usize> {
        let socket = self.live(token)?;
        if socket.failed.is_some() {
            return None;
        }
        if socket.outbox.is_some() || socket.connecting {
            return Some(0);
        }
        let fd = socket.fd.as_ref()?;
        match rustix::net::send(fd, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => Some(count),
            Err(Errno::AGAIN | Errno::INTR) => Some(0),
            Err(errno) => {
                self.send_failed(token, errno);
                None
            }
        }
    }

    fn outbox(&mut self, token: Token) -> Option<&mut Outbox> {
        Some(self.live(token)?.outbox.get_or_insert_default())
    }
}

impl Net for Epoll {
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

    fn connect(&mut self, key: u32, to: &Address, from: Option<IpAddr>) -> Result<Token, Refusal> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(to.socket_family(), SocketType::STREAM, flags, None)
            .map_err(refusal)?;
        let connected = match to {
            Address::Ip(to) => {
                prepare(&fd, from)?;
                rustix::net::connect(&fd, to)
            }
            Address::Unix(path) => {
                SocketAddrUnix::new(&**path).and_then(|to| rustix::net::connect(&fd, &to))
            }
        };
        match connected {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(Errno::AGAIN) if matches!(to, Address::Unix(_)) => return Err(Refusal::Busy),
            Err(errno) => return Err(refusal(errno)),
        }
        self.add(fd, key, true).map_err(refusal)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) {
        match self.send_now(token, bytes) {
            Some(count) if count < bytes.len() => {
                if let Some(outbox) = self.outbox(token) {
                    outbox.push(&bytes[count..]);
                }
                self.set_interest(token);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        match self.send_now(token, &bytes[range.clone()]) {
            Some(count) if count < range.len() => {
                if let Some(outbox) = self.outbox(token) {
                    outbox.push_shared(bytes, range.start + count..range.end);
                }
                self.set_interest(token);
            }
            _ => {}
        }
    }

    fn end_sending(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        socket.ending = true;
        if socket.outbox.as_ref().is_none_or(|outbox| outbox.is_empty()) {
            socket.end_if_asked();
        }
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        let socket = self.sockets.get(token.index as usize);
        let socket = socket.filter(|socket| socket.generation == token.generation);
        socket.and_then(|socket| socket.outbox.as_ref()).map_or(0, |outbox| outbox.len())
    }

    fn queued_bytes(&self, token: Token) -> usize {
        self.unsent_bytes(token)
    }

    fn close(&mut self, token: Token) {
        if let Some(socket) = self.live(token) {
            // Closing the descriptor takes it out of the epoll set.
            socket.fd = None;
            socket.outbox = None;
            socket.generation = socket.generation.wrapping_add(1) & 0x7fff_ffff;
            self.free.push(token.index);
        }
    }

    fn reset(&mut self, token: Token) {
        if let Some(fd) = self.live(token).and_then(|socket| socket.fd.as_ref()) {
            end_with_reset(fd);
        }
        self.close(token);
    }

    fn finish(&mut self, token: Token) {
        let Some(socket) = self.live(token) else {
            return;
        };
        if socket.outbox.as_ref().is_none_or(|outbox| outbox.is_empty()) {
            self.close(token);
        } else {
            socket.finishing = true;
            self.set_interest(token);
        }
    }
}

/// What a socket is registered for; errors and hang-ups are always told.
fn interest(deaf: bool) -> EventFlags {
    let heard = EventFlags::IN | EventFlags::RDHUP;
    let flags = EventFlags::OUT | EventFlags::ET;
    if deaf { flags } else { flags | heard }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}
