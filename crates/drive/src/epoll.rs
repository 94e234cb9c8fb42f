//! The epoll driver: edge-triggered, each socket registered once.
//!
//! The driver reads, lets the program act, and sends at once. A request costs one `recv`, one
//! `send` and its share of an `epoll_wait`. A short read has emptied the socket, so nothing is read
//! twice. Because sockets are edge-triggered, the kernel looks at one once per event, and not again
//! to find it quiet. Code that stops before the socket is empty must arm it again. The clock is
//! read once per batch, or more often in a long one.

mod accepting;
mod calls;
mod datagrams;
mod receiving;
mod sending;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType};

use crate::arrivals::{Stamps, least_rtt_ns, unacknowledged_bytes, watch};
use crate::datagram::Datagrams;
use crate::datagram::receive::Inbox;
use crate::glance::Glance;
use crate::host::run_in_short_slices;
use crate::kernel::Linux;
use crate::listener::Listener;
use crate::net::{Conn, ConnectError, HandOver, Net, PeerClose, Program, Token};
use crate::outbox::Outbox;
use crate::pace::{Direction, Slow};
use crate::self_connect::TargetPorts;
use crate::settings::Settings;
use crate::socket::{
    OUTBOX_MOST, Waker, connect_error, earlier, end_with_reset, prepare, refusal_of, shrink,
};
use crate::spin::Spin;
use crate::{Address, Clock, Remote, Transport};
pub(crate) use calls::Calls;

/// Bytes taken from a socket in one read.
const READ_BYTES: usize = 64 * 1024;
/// Reads from one socket before the others have their turn, so that a flooding peer starves nobody.
const READS_PER_TURN: usize = 16;
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
    /// The connection was accepted: its peer decides how much is to be sent.
    accepted: bool,
    /// Our side is to be ended once everything is sent.
    ending: bool,
    finishing: bool,
    failed: Option<PeerClose>,
    reading_paused: bool,
    /// Nothing is read until everything is sent.
    held: bool,
    /// Its bytes are received with their arrival times.
    watched: bool,
    outbox: Option<Box<Outbox>>,
    /// The peer's end is known to come behind what a slow connection has not read yet.
    closing: bool,
    /// State of a datagram socket; none for a stream.
    datagrams: Option<Box<datagrams::Side>>,
}

impl Socket {
    fn nothing_to_send(&self) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| outbox.is_empty())
    }
}

/// The driver.
#[derive(Debug)]
pub struct Epoll<K: Calls = Linux> {
    calls: K,
    clock: Clock,
    now_ns: u64,
    epoll: OwnedFd,
    wake_fd: Arc<OwnedFd>,
    listener: Option<OwnedFd>,
    accept_again_ns: Option<u64>,
    sockets: Vec<Socket>,
    free: Vec<u32>,
    target_ports: TargetPorts,
    buffer: Box<[u8]>,
    stamps: Stamps,
    /// The arrival time of the bytes that are being handled.
    arrived_ns: Option<u64>,
    /// The time before the first send of the batch, or since the program last asked for it.
    sending_since_ns: Option<u64>,
    /// The bound datagram socket that the driver was given, until it runs.
    bound: Option<OwnedFd>,
    /// Created for the first datagram socket.
    inbox: Option<Box<Inbox>>,
    /// Datagrams dropped for lack of room.
    dropped: u64,
    /// Datagrams that a socket's receive queue had no room for.
    overflowed: u64,
    spin: Spin,
    glance: Glance,
    /// Connections of ours that are slow on purpose.
    slow: Option<Box<Slow>>,
}

impl Epoll {
    /// Creates a driver, which accepts connections if given a listening socket.
    pub fn new(clock: Clock, listener: Option<Listener>, settings: &Settings) -> io::Result<Self> {
        Epoll::over(Linux, clock, listener, settings)
    }
}

impl<K: Calls> Epoll<K> {
    /// Creates the same driver over these kernel calls.
    pub(crate) fn over(
        calls: K,
        clock: Clock,
        listener: Option<Listener>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        calls.watch(&epoll, &wake_fd, readable(WAKER))?;
        let (listener, bound) = Listener::split(listener);
        if let Some(fd) = &listener {
            calls.watch(&epoll, fd, readable(LISTENER))?;
        }
        Ok(Epoll {
            calls,
            now_ns: clock.now_ns(),
            clock,
            epoll,
            wake_fd: Arc::new(wake_fd),
            listener,
            accept_again_ns: None,
            sockets: Vec::new(),
            free: Vec::new(),
            target_ports: TargetPorts::default(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            stamps: Stamps::default(),
            arrived_ns: None,
            sending_since_ns: None,
            bound,
            inbox: None,
            dropped: 0,
            overflowed: 0,
            spin: Spin::up_to(settings.spin_ns),
            glance: Glance::default(),
            slow: Slow::new(settings.rates),
        })
    }

    /// A waker that other threads use to wake this driver.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake_fd))
    }

    /// Runs until the program is done. An error means that waiting itself failed; nothing a peer
    /// does can cause that.
    pub fn run<P: Program>(&mut self, program: &mut P) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        self.bound(program)?;
        while !program.is_done() {
            let wake_at_ns = earlier(program.wake_at_ns(), self.accept_again_ns);
            let slow_ns = self.slow.as_ref().and_then(|slow| slow.next_ns());
            let wake_at_ns = earlier(wake_at_ns, slow_ns);
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
            self.sending_since_ns = None;
            for event in &events {
                self.dispatch(program, event.data.u64(), event.flags);
            }
            self.go_on(program);
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
        match self.calls.wait(&self.epoll, events, timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            // Timeouts finer than a millisecond need Linux 5.11 (`epoll_pwait2`).
            Err(Errno::NOSYS) => Err(io::Error::other("needs Linux 5.11 or newer")),
            Err(errno) => Err(errno.into()),
        }
    }

    fn dispatch<P: Program>(&mut self, program: &mut P, data: u64, flags: EventFlags) {
        match data {
            WAKER => {
                let mut count = [0; 8];
                let _ = rustix::io::read(&*self.wake_fd, &mut count);
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
        let Some(socket) = self.live(token) else { return };
        let conn = Conn { key: socket.key, token };
        if socket.connecting {
            self.connected(program, token);
        }
        if self.live(token).is_some_and(|socket| socket.datagrams.is_some()) {
            return self.datagrams_ready(program, token, flags);
        }
        let closing = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(EventFlags::IN | closing) {
            self.readable(program, token, flags.intersects(closing));
        }
        if flags.contains(EventFlags::OUT) && self.flush(token) {
            program.handle_drained(self, conn);
        }
    }

    /// Goes on with the slow connections whose time has come.
    fn go_on<P: Program>(&mut self, program: &mut P) {
        while let Some(slow) = &mut self.slow
            && let Some((token, direction)) = slow.next_to_go_on(self.now_ns)
        {
            let Some(socket) = live(&mut self.sockets, token) else { continue };
            let (conn, closing) = (Conn { key: socket.key, token }, socket.closing);
            match direction {
                Direction::Read => self.readable(program, token, closing),
                Direction::Write if self.flush(token) => program.handle_drained(self, conn),
                Direction::Write => {}
            }
        }
    }

    fn connected<P: Program>(&mut self, program: &mut P, token: Token) {
        let Some(socket) = live(&mut self.sockets, token) else { return };
        socket.connecting = false;
        let conn = Conn { key: socket.key, token };
        match socket.fd.as_ref().map(|fd| self.calls.connected(fd)) {
            // An established connection gets a reset (a refused one gets another error). So the
            // peer accepted, and reset the connection before we looked.
            Some(Err(Errno::CONNRESET | Errno::PIPE)) => socket.failed = Some(PeerClose::Reset),
            Some(Err(errno)) => {
                self.close(token);
                program.handle_connect_error(self, conn, connect_error(errno));
                return;
            }
            Some(Ok(())) | None => {}
        }
        let fd = self.sockets[token.index as usize].fd.as_ref();
        if fd.is_some_and(|fd| self.target_ports.is_own_peer(fd)) {
            self.reset(token);
            program.handle_connect_error(self, conn, ConnectError::Refused);
            return;
        }
        program.handle_connected(self, conn);
        self.end_if_asked(token);
    }

    fn live(&mut self, token: Token) -> Option<&mut Socket> {
        live(&mut self.sockets, token)
    }

    /// Ends our side if that was asked for, everything is sent and the connection is established.
    /// Ending a connection during its setup would abort it (`inet_shutdown` in `SYN_SENT`).
    fn end_if_asked(&mut self, token: Token) {
        let Some(socket) = live(&mut self.sockets, token) else { return };
        if !socket.ending || !socket.nothing_to_send() || socket.connecting {
            return;
        }
        socket.ending = false;
        if let Some(fd) = &socket.fd {
            self.calls.end_sending(fd);
        }
    }

    fn add(&mut self, fd: OwnedFd, key: u32, connecting: bool) -> Result<Token, Errno> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(Socket::default());
            (self.sockets.len() - 1) as u32
        });
        let socket = &mut self.sockets[index as usize];
        let token = Token { index, generation: socket.generation };
        if let Err(errno) = self.calls.watch(&self.epoll, &fd, interest(token, false)) {
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
        if let Some(slow) = self.slow.as_mut().filter(|_| connecting) {
            slow.begin(token);
        }
        Ok(token)
    }

    /// Stops reading from a peer that sends requests and takes no answers, and resumes when it
    /// takes them. A peer that we ask is always read. It may answer before it has taken the whole
    /// request, and take no more until its answer is read.
    fn set_interest(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        let pending = socket.outbox.as_ref().map_or(0, |outbox| outbox.len());
        let takes_nothing = socket.held || (socket.accepted && pending > OUTBOX_MOST);
        let reading_paused = socket.finishing || takes_nothing;
        if reading_paused != socket.reading_paused {
            socket.reading_paused = reading_paused;
            self.arm_again(token);
        }
    }

    /// Registers the socket again: whatever is ready now is reported in the next batch.
    fn arm_again(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        let wanted = interest(token, socket.reading_paused);
        if let Some(fd) = &self.sockets[token.index as usize].fd {
            let _ = self.calls.watch_anew(&self.epoll, fd, wanted);
        }
    }
}

impl<K: Calls> Net for Epoll<K> {
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

    fn connect(&mut self, key: u32, to: Remote<'_>) -> Result<Token, ConnectError> {
        if to.transport == Transport::Datagram {
            return self.connect_datagrams(key, to);
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd =
            rustix::net::socket_with(to.address.socket_family(), SocketType::STREAM, flags, None)
                .map_err(connect_error)?;
        let connected = match to.address {
            Address::Ip(ip) => {
                prepare(&fd, to.from)?;
                shrink(&fd, self.slow.as_ref().and_then(|slow| slow.receive_buffer()));
                self.target_ports.note(ip.port());
                self.calls.connect(&fd, ip)
            }
            Address::Unix(path) => {
                SocketAddrUnix::new(&**path).and_then(|to| rustix::net::connect(&fd, &to))
            }
        };
        match connected {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(Errno::AGAIN) if matches!(to.address, Address::Unix(_)) => {
                return Err(ConnectError::Busy);
            }
            Err(errno) => return Err(refusal_of(errno, to.address)),
        }
        self.add(fd, key, true).map_err(connect_error)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) {
        if let Some(count) = self.send_now(token, bytes)
            && count < bytes.len()
            && let Some(outbox) = self.outbox(token)
        {
            outbox.push(&bytes[count..]);
            self.set_interest(token);
        }
    }

    #[inline]
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        if let Some(count) = self.send_now(token, &bytes[range.clone()])
            && count < range.len()
            && let Some(outbox) = self.outbox(token)
        {
            outbox.push_shared(bytes, range.start + count..range.end);
            self.set_interest(token);
        }
    }

    fn hand_over(&mut self) -> HandOver {
        // Everything that could be sent has been sent.
        let ended_ns = self.clock.now_ns();
        HandOver { began_ns: self.sending_since_ns.take().unwrap_or(ended_ns), ended_ns }
    }

    fn watch_arrivals(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        socket.fd.iter().for_each(watch);
        socket.watched = true;
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.arrived_ns
    }

    fn unacknowledged_bytes(&mut self, token: Token) -> Option<u64> {
        unacknowledged_bytes(self.live(token)?.fd.as_ref()?)
    }

    fn least_rtt_ns(&mut self, token: Token) -> Option<u64> {
        least_rtt_ns(self.live(token)?.fd.as_ref()?)
    }

    fn end_sending(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        socket.ending = true;
        self.end_if_asked(token);
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        let socket = self.sockets.get(token.index as usize);
        let socket = socket.filter(|socket| socket.generation == token.generation);
        socket.and_then(|socket| socket.outbox.as_ref()).map_or(0, |outbox| outbox.len())
    }

    fn queued_bytes(&self, token: Token) -> usize {
        self.unsent_bytes(token)
    }

    fn hold_reading(&mut self, token: Token) -> bool {
        let Some(socket) = self.live(token).filter(|socket| !socket.nothing_to_send()) else {
            return false;
        };
        socket.held = true;
        self.set_interest(token);
        true
    }

    fn send_datagrams(&mut self, token: Token, datagrams: Datagrams<'_>) {
        self.send_blocks(token, datagrams);
    }

    fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn overflowed_datagrams(&self) -> u64 {
        self.overflowed
    }

    fn close(&mut self, token: Token) {
        if let Some(socket) = self.live(token) {
            // Closing the descriptor takes it out of the epoll set.
            socket.fd = None;
            (socket.outbox, socket.datagrams) = (None, None);
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
        let Some(socket) = self.live(token) else { return };
        if socket.nothing_to_send() {
            self.close(token);
        } else {
            socket.finishing = true;
            self.set_interest(token);
        }
    }
}

#[inline]
fn live(sockets: &mut [Socket], token: Token) -> Option<&mut Socket> {
    let socket = sockets.get_mut(token.index as usize)?;
    (socket.generation == token.generation && socket.fd.is_some()).then_some(socket)
}

/// The event that something can be read.
fn readable(data: u64) -> Event {
    Event { flags: EventFlags::IN, data: EventData::new_u64(data) }
}

/// The events that a socket is registered for; errors and hang-ups are always reported.
fn interest(token: Token, reading_paused: bool) -> Event {
    let mut flags = EventFlags::OUT | EventFlags::ET;
    flags.set(EventFlags::IN | EventFlags::RDHUP, !reading_paused);
    let data = u64::from(token.index) | u64::from(token.generation) << 32;
    Event { flags, data: EventData::new_u64(data) }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}
