//! The load generator of one thread, as a program without socket or clock.
//!
//! Slots hold the machines; the book holds the phases and settles each request once;
//! timers say when to look at a slot again. Everything comes in through [`Program`]
//! and goes out through [`Net`] and `reports`, so that a test can play the kernel,
//! the peer and the clock.

mod book;
mod broadcast;
mod carrier;
mod coalescing;
mod connecting;
mod echo;
mod endings;
mod http;
mod messages;
mod opening;
mod per_origin;
mod phase;
mod phases;
mod protocol;
mod requests;
mod securing;
mod sending;
mod settling;
mod slot;
mod timers;
mod turns;
mod websocket;
mod ws_echo;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;

use trueload_drive::{Address, Ended, Net, Program, Refusal, Token};
use trueload_load::{Places, dealt_slot};
use trueload_meter::Class;
use trueload_wire::exchange::{self, End, Exchange};
use trueload_wire::tls::{self, Buffers};

use crate::outlet::Outlet;
use book::{Book, Row, class_of};
pub use broadcast::{Broadcast, Sent, UnderWay};
pub use carrier::Carrier;
use connecting::Pace;
pub use echo::TcpEcho;
use endings::Endings;
pub use http::Http;
pub use messages::{Command, Connected, DoneReport, Report, TickReport};
pub use per_origin::PerOrigin;
pub use phase::PhaseShare;
pub(crate) use phase::START_LEAD_NS;
pub use protocol::{Input, Over, Protocol, Refused};
pub use requests::{Requests, Target};
pub use slot::Tag;
use slot::{Link, NEVER, Slot};
use timers::Timers;
use turns::Turns;
pub use ws_echo::WsEcho;

/// Bytes that come this long after an announced close are still looked at (design §7).
const CLOSING_NS: u64 = phase::RESIDUAL_NS;

/// What does not change while a generator runs.
#[derive(Debug)]
pub struct Config {
    /// Where to connect, in the order to try.
    pub addresses: Vec<Address>,
    /// Where to connect from, in turn.
    pub local_addresses: Vec<IpAddr>,
    /// Requests in flight per connection.
    pub depth: usize,
    /// Free places from which on a connection is filled again.
    pub refill: usize,
    /// A connection per request.
    pub close: bool,
    /// What TLS is set up with, for all connections of this thread; none without TLS.
    pub tls: Option<tls::client::Setup>,
    /// Actual send to last byte.
    pub timeout_ns: u64,
    /// Attempt to established connection.
    pub connect_timeout_ns: u64,
    /// Between two attempts of this thread, while connections are set up.
    pub connect_interval_ns: u64,
    /// Under an open loop: not woken again for a send sooner than this after the last.
    pub send_quantum_ns: u64,
    /// Under a closed loop answers wait for each other no longer than this, in ns; 0 for not at all.
    pub coalesce_ns: u64,
    /// This thread's number.
    pub thread: u32,
    /// Threads in all.
    pub threads: u32,
    /// Of one of several origins: which of all turns are its own.
    pub places: Option<Places>,
}

impl Config {
    /// Requests in flight per connection, as they are sent: a connection of its own takes one.
    #[inline]
    fn depth_used(&self) -> usize {
        if self.close { 1 } else { self.depth }
    }

    /// When an attempt to connect is given up.
    fn deadline_ns(&self, attempted_ns: u64) -> u64 {
        attempted_ns.saturating_add(self.connect_timeout_ns)
    }

    /// A slot's number over all threads.
    #[inline]
    fn global(&self, key: u32) -> u32 {
        dealt_slot(key, self.threads, self.thread)
    }
}

/// The generator of one thread.
#[derive(Debug)]
pub struct Generator<P: Protocol> {
    config: Arc<Config>,
    protocol: P,
    slots: Vec<Slot<P::Client>>,
    timers: Timers,
    book: Book,
    pace: Pace,
    endings: Endings,
    /// What the protocol says out of turn.
    said: Vec<u8>,
    open: u32,
    /// Slots that the phase has not started yet.
    starting: Range<u32>,
    /// Under an open loop: slots that can take a request, the longest idle first.
    ready: VecDeque<u32>,
    /// When requests were last sent because their time had come.
    sent_due_ns: u64,
    /// Under turns: whose it is.
    turns: Turns,
    /// For how long the driver had polled in vain when the phases were last looked at.
    spun_ns: u64,
    /// Bytes of the longest request sent so far.
    longest: usize,
    /// What TLS reads and writes in.
    buffers: Buffers,
    sealed: Vec<u8>,
    inbox: Receiver<Command>,
    reports: Outlet<Report>,
    finished: bool,
}

impl<P: Protocol> Generator<P> {
    /// A generator without connections; `settled_all` is shared by all threads.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        protocol: P,
        settled_all: Arc<AtomicU64>,
        inbox: Receiver<Command>,
        reports: Outlet<Report>,
    ) -> Self {
        let book = Book::new(settled_all, config.close, protocol.requests());
        Generator {
            config,
            protocol,
            slots: Vec::new(),
            timers: Timers::default(),
            book,
            pace: Pace::default(),
            endings: Endings::default(),
            said: Vec::new(),
            open: 0,
            starting: 0..0,
            ready: VecDeque::new(),
            sent_due_ns: 0,
            turns: Turns::default(),
            spun_ns: 0,
            longest: 0,
            buffers: Buffers::default(),
            sealed: Vec::new(),
            inbox,
            reports,
            finished: false,
        }
    }

    fn report(&self, report: Report) {
        self.reports.send(report);
    }

    #[inline]
    fn arm(&mut self, key: u32) {
        let slot = &mut self.slots[key as usize];
        let due_ns = slot.due_ns(self.config.timeout_ns);
        self.timers.arm(&mut slot.state.armed_ns, due_ns, key);
    }

    /// Bytes that nobody asked for: the connection cannot be trusted, one request pays.
    fn violated(&mut self, net: &mut impl Net, key: u32, token: Token, class: Class) {
        let now_ns = net.now_ns();
        net.close(token);
        self.book.violated(&mut self.slots[key as usize].state, class);
        self.end_all(now_ns, key, End::Reset);
        let state = &mut self.slots[key as usize].state;
        let pause_ns = state.trouble().backoff.pause();
        self.lost(net, key, false, pause_ns);
    }

    /// The peer says ever more and takes none of the answers: the request that is outstanding pays, if there is one.
    fn takes_nothing(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let class = self.protocol.violation();
        if self.slots[key as usize].client.outstanding() == 0 {
            return self.violated(net, key, token, class);
        }
        self.fail_all(net.now_ns(), key, class);
        net.close(token);
        let pause_ns = self.slots[key as usize].state.trouble().backoff.pause();
        self.lost(net, key, false, pause_ns);
    }

    /// Every request outstanding has failed: the oldest so, those behind it with their connection.
    fn fail_all(&mut self, now_ns: u64, key: u32, class: Class) {
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let tags: Vec<_> = client.cancel().collect();
        let classes = std::iter::once(class).chain(std::iter::repeat(Class::ClosedPipelined));
        for (tag, class) in tags.into_iter().zip(classes) {
            self.book.fail(state, now_ns, tag, class);
        }
    }

    /// The peer's side has ended, and with it every request outstanding.
    fn end_all(&mut self, now_ns: u64, key: u32, end: End) {
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let book = &mut self.book;
        let over = Over { now_ns, drawn: book.drawn, end };
        self.protocol.handle_end(client, over, &mut |heard| book.settle(state, now_ns, heard));
    }

    /// Keeps why the peer's bytes were refused, for the user.
    fn note_why(&mut self, key: u32) {
        let why = self.slots[key as usize].client.why_broken();
        if let Some((ending, why)) = why
            && let Some(class) = class_of(ending)
        {
            self.pace.note_reason(class, why);
        }
    }

    /// Nothing more can come of this connection, which was broken by the peer or given up by us.
    fn broken(&mut self, net: &mut impl Net, key: u32, token: Token) {
        net.close(token);
        let pause_ns = self.slots[key as usize].state.fruitless_pause_ns();
        self.lost(net, key, false, pause_ns);
    }

    /// Bytes of the protocol have come.
    #[inline]
    fn handle_plain(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        bytes: &[u8],
        ending: bool,
    ) {
        let now_ns = net.now_ns();
        if !self.hold_back(net, key, token) {
            return self.takes_nothing(net, key, token);
        }
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let book = &mut self.book;
        if let Some(phase) = book.current_mut() {
            phase.meter.bytes_in += bytes.len() as u64;
        }
        let input = Input { now_ns, key, drawn: book.drawn, bytes };
        self.said.clear();
        let asked = client.outstanding() > 0;
        let mut row = Row::default();
        let mut hear = |heard| {
            if let Some(before) = row.add(heard) {
                book.settle(state, now_ns, before);
            }
        };
        let link = self.protocol.handle_input(client, input, &mut self.said, &mut hear);
        if let Some(last) = row.end() {
            book.settle(state, now_ns, last);
        }
        let idle = client.outstanding() == 0;
        if link == exchange::Link::Closing && !asked && !client.has_answered() {
            book.note_dropped(state, now_ns);
        }
        self.say(net, key, token);
        if let Link::Opening { .. } = self.slots[key as usize].state.link
            && !self.is_agreed(net, key, token, link)
        {
            return;
        }
        match link {
            exchange::Link::Open if self.config.close && idle => {
                self.answered_alone(net, key, token, ending)
            }
            exchange::Link::Open if ending => {}
            exchange::Link::Open => self.fill(net, key),
            exchange::Link::Closing => self.closing(net, key, token, ending),
            exchange::Link::Broken => {
                self.note_why(key);
                self.broken(net, key, token);
            }
            exchange::Link::Unsolicited => {
                let class = self.protocol.violation();
                self.violated(net, key, token, class);
            }
            exchange::Link::Opening | exchange::Link::Refused => {}
        }
    }

    /// The one request of this connection is answered.
    fn answered_alone(&mut self, net: &mut impl Net, key: u32, token: Token, ending: bool) {
        if self.protocol.peer_closes() {
            self.closing(net, key, token, ending);
        } else {
            net.close(token);
            self.lost(net, key, true, 0);
        }
    }

    /// The peer's side has ended; `end` is what that means for an answer that lasts until then.
    fn ended(&mut self, net: &mut impl Net, key: u32, token: Token, ended: Ended, end: End) {
        let now_ns = net.now_ns();
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        if let Link::Opening { heard, .. } = state.link {
            return self.opening_ended(net, key, token, ended, heard);
        }
        let idle = client.outstanding() == 0;
        let announced = matches!(state.link, Link::Closing { .. });
        let polite = ended == Ended::Fin || announced;
        if let Link::Closing { told, .. } = state.link {
            self.endings.ended(told);
        }
        self.end_all(now_ns, key, end);
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let answered = client.has_answered();
        // What does not count as established was not dropped either.
        if idle && !announced && !answered && state.ever_established {
            self.book.note_dropped(state, now_ns);
        }
        let stale = state.waiting_again() > 0;
        // Who closes each connection, asked or not, is not stormed, whatever it has answered on others.
        let fruitful = answered && (idle || stale || ended == Ended::Fin);
        let pause_ns = if fruitful { 0 } else { state.fruitless_pause_ns() };
        net.close(token);
        self.lost(net, key, polite && (idle || stale), pause_ns);
    }

    fn handle_due(&mut self, net: &mut impl Net, key: u32) {
        match self.slots[key as usize].state.link {
            Link::Down | Link::Busy => self.attempt(net, key),
            Link::Connecting { token } => {
                net.close(token);
                self.refused(net, key, Refusal::Timeout);
            }
            Link::Handshaking { token } => {
                let why = "the handshake was not done in time";
                self.not_secured(net, key, token, Class::TimeoutTls, why);
            }
            Link::Opening { token, heard } => self.opening_late(net, key, token, heard),
            Link::Closing { token, told } => self.ended_by_nobody(net, key, token, told),
            Link::Open { token } => self.out_of_time(net, key, token),
        }
    }

    /// The oldest request of an open connection has not been answered in time.
    fn out_of_time(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let now_ns = net.now_ns();
        let in_record = self.is_in_record(key);
        self.abandon(key);
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        let book = &mut self.book;
        client.handle_timeout(now_ns, in_record, &mut |heard| book.settle(state, now_ns, heard));
        self.broken(net, key, token);
    }

    fn run_timers(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        while let Some((at_ns, key)) = self.timers.pop(now_ns) {
            let Some(slot) = self.slots.get_mut(key as usize) else {
                continue;
            };
            if slot.state.armed_ns != at_ns {
                continue;
            }
            slot.state.armed_ns = NEVER;
            if slot.due_ns(self.config.timeout_ns) <= now_ns {
                self.handle_due(net, key);
            }
            self.arm(key);
        }
    }
}

impl<P: Protocol> Program for Generator<P> {
    fn handle_wake(&mut self, net: &mut impl Net) {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Connections(total) => self.resize(net, total),
                Command::Phase(share) => self.add_phase(net, share),
                Command::Settle(index, sent, until_ns) => {
                    self.settle_with_others(net, index, sent, until_ns);
                }
                Command::Charge(index, failed) => self.charge_failed(net, index, &failed),
                Command::Stop => self.stop(net),
            }
        }
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        net.close(token);
        u32::MAX
    }

    fn handle_connected(&mut self, net: &mut impl Net, key: u32, token: Token) {
        self.connected(net, key, token);
    }

    fn handle_refused(&mut self, net: &mut impl Net, key: u32, _token: Token, why: Refusal) {
        self.refused(net, key, why);
    }

    #[inline]
    fn handle_input(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        bytes: &[u8],
        ending: bool,
    ) {
        self.book.wakings.hear();
        if self.protocol.under_way().is_some() && self.turns.is_clock_due() {
            net.read_clock();
        }
        match self.slots[key as usize].tls {
            None => self.handle_plain(net, key, token, bytes, ending),
            Some(_) => self.handle_sealed(net, key, token, bytes, ending),
        }
    }

    fn handle_drained(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let Slot { client, state, tls } = &mut self.slots[key as usize];
        if state.link.is_open_on(token) {
            let tls = tls.as_deref_mut();
            let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
            carrier.seal_waiting();
            let bytes = self.protocol.send_waiting(client, &mut carrier);
            if let Some(phase) = self.book.current_mut() {
                phase.meter.bytes_out += bytes as u64;
            }
        }
    }

    fn handle_end(&mut self, net: &mut impl Net, key: u32, token: Token, ended: Ended) {
        let end = match ended {
            Ended::Fin => End::Fin,
            Ended::Reset => End::Reset,
        };
        match self.slots[key as usize].tls {
            None => self.ended(net, key, token, ended, end),
            Some(_) => self.sealed_ended(net, key, token, ended),
        }
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.set_up(net);
        self.run_timers(net);
        self.run_turns(net);
        self.advance(net);
        self.start_slots(net);
        self.send_due(net);
        self.take_turns(net);
        self.beat(net);
        self.tick(net.now_ns());
    }

    #[inline]
    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.book.end_batch();
        self.end_turns(net);
        if self.book.look {
            self.book.look = false;
            self.advance(net);
        }
    }

    fn wake_at_ns(&self) -> Option<u64> {
        let phases = self.next_phase_event_ns();
        let timers = self.timers.next_ns().unwrap_or(NEVER);
        let heartbeat_ns = self.turns.heartbeat_ns(self.protocol.heartbeat_ns());
        let own_ns = self.protocol.next_ns().min(heartbeat_ns);
        let at_ns =
            phases.min(timers).min(self.pace.next_ns()).min(self.send_wake_ns()).min(own_ns);
        (at_ns != NEVER).then_some(at_ns)
    }

    fn is_done(&self) -> bool {
        self.finished
    }
}
