//! The load generator of one thread, as a program without socket or clock.
//!
//! Its parts own their state: the slots have the machines and the timers, the accounting has the
//! phases and settles each request once, the codec has the protocol and its buffers. The generator
//! joins them. Everything comes in through [`Program`] and goes out through [`Net`] and `reports`,
//! so a test can simulate the kernel, the peer and the clock.

mod accounting;
mod carrier;
mod classes;
mod close_policy;
mod coalescing;
mod codec;
mod config;
mod connect_open;
mod connecting;
mod connection;
mod crossings;
mod datagrams;
mod due;
mod early;
mod ended;
mod footprint;
mod hold_back;
mod lateness;
mod machine;
mod messages;
mod opening;
mod parting;
mod per_origin;
mod phase;
mod phases;
mod protocol;
mod ready;
mod requests;
mod rows;
mod securing;
mod sending;
mod served;
mod sessions;
mod slot;
mod slots;
mod speak;
mod stamps;
mod talk;
mod timers;
mod tunnel;
mod watching;
mod written;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use trueload_drive::{
    Coalescing, Conn, ConnectError, Datagrams, Net, PeerClose, Program, Transport,
};
use trueload_meter::{Answered, Class};
use trueload_wire::exchange::{self, Disposition, Exchange, RequestTimeout};

use crate::outlet::Outlet;
use accounting::{Accounting, Row};
pub use carrier::Carrier;
use classes::class_of_ending;
use close_policy::ClosePolicy;
use codec::Codec;
pub use config::Config;
use connecting::Pace;
use datagrams::{Missed, Touched};
use early::Rtt;
pub use footprint::{Footprint, Measured};
use hold_back::HoldBack;
pub use lateness::{ByLength, Lateness};
pub use machine::Machine;
use messages::Link;
pub use messages::{Command, Connected, DoneReport, NewPart, Report, TickReport};
use parting::Parting;
pub use per_origin::PerOrigin;
pub use phase::PhaseShare;
pub(crate) use phase::START_LEAD_NS;
pub use protocol::{ConnectionEnd, Facts, Input, OpenError, Opened, Protocol, Received};
use ready::Ready;
pub use requests::{ENDLESS, Requests, StepPace, Target, Text};
pub use served::Served;
use sessions::Sessions;
pub use slot::Tag;
use slot::{NEVER, Numbered, Slot};
use slots::Slots;
pub use speak::{
    Broadcast, Broadcasting, Either, Http, Http1, Http2, OverEither, OverHttp1, OverHttp2,
    OverWebSocket, TcpEcho, UdpEcho, Versions, WebSocket, WsEcho,
};
use stamps::Stamps;
pub use talk::{Alike, Dialogue, Hops, Plain, Scenario, Sending, Talking, Users};
use tunnel::Tunnels;

/// Bytes that come this long after an announced close still count (design §7).
const CLOSING_NS: u64 = phase::RESIDUAL_NS;

/// The generator of one thread.
#[derive(Debug)]
pub struct Generator<P: Protocol> {
    config: Arc<Config>,
    codec: Codec<P>,
    slots: Slots<P::Client>,
    accounting: Accounting,
    pace: Pace,
    close_policy: ClosePolicy,
    stamps: Stamps,
    ready: Ready,
    missed: Missed,
    touched: Touched,
    rtt: Rtt,
    hold_back: HoldBack,
    /// The coalescing that this generator has asked for.
    coalescing: Coalescing,
    tunnels: Tunnels,
    sessions: Sessions,
    parting: Parting,
    link: Link,
}

impl<P: Protocol> Generator<P> {
    /// Creates a generator without connections; `served_all` is shared by all threads.
    pub fn new(
        config: Arc<Config>,
        protocol: P,
        served_all: Arc<Served>,
        inbox: Receiver<Command>,
        reports: Outlet<Report>,
    ) -> Self {
        let requests = protocol.requests();
        let paces = requests.as_deref().map(Requests::paces).unwrap_or_default();
        let mut accounting = Accounting::new(served_all, config.close, requests);
        accounting.connect_open = config.connect_open;
        let slots = Slots::new(config.timeout_ns);
        let hold_back = HoldBack::new(config.seed, config.thread);
        let sessions = Sessions::new(paces, config.seed);
        Generator {
            config,
            codec: Codec::new(protocol),
            slots,
            accounting,
            pace: Pace::default(),
            close_policy: ClosePolicy::default(),
            stamps: Stamps::default(),
            ready: Ready::default(),
            missed: Missed::default(),
            touched: Touched::default(),
            rtt: Rtt::default(),
            hold_back,
            coalescing: Coalescing::default(),
            tunnels: Tunnels::default(),
            sessions,
            parting: Parting::default(),
            link: Link::new(inbox, reports),
        }
    }

    /// The first step when time has come: attempts connections that are due, and runs timers of
    /// slots.
    fn run_due(&mut self, net: &mut impl Net) {
        self.set_up(net);
        self.run_timers(net);
    }

    /// The second step: starts, stops and ends phases, and sends what is due in them.
    fn move_on(&mut self, net: &mut impl Net) {
        self.note_missed_datagrams(net);
        self.advance(net);
        self.start_slots(net);
        self.send_due(net);
    }

    /// The last step: heartbeat and tick.
    fn keep_time(&mut self, net: &mut impl Net) {
        self.beat(net);
        self.tick(net);
    }

    /// Asks the driver for this coalescing from now on.
    fn coalesce(&mut self, net: &mut impl Net, coalescing: Coalescing) {
        self.coalescing = coalescing;
        net.coalesce(coalescing);
    }

    /// Ends a batch of events: sends datagrams, and shares its counts with the other threads.
    #[inline]
    fn end_batch(&mut self, net: &mut impl Net) {
        self.send_touched(net);
        let now_ns = net.now_ns();
        self.accounting.note_flow(now_ns);
        self.accounting.end_batch(now_ns);
        self.note_missed_datagrams(net);
    }

    /// Handles bytes that nobody asked for: the connection cannot be trusted, and one request is
    /// charged.
    fn violated(&mut self, net: &mut impl Net, conn: Conn, class: Class) {
        let now_ns = net.now_ns();
        net.close(conn.token);
        if !self.accounting.can_charge(&self.slots[conn.key].state) {
            // The request that ends now is charged, if one is in flight.
            self.end_all(now_ns, conn.key, exchange::PeerClose::Reset);
        }
        self.accounting.violated(&mut self.slots[conn.key].state, class);
        if self.sessions.are_on() {
            self.note_violated(conn.key);
        }
        self.end_all(now_ns, conn.key, exchange::PeerClose::Reset);
        let state = &mut self.slots[conn.key].state;
        let pause_ns = state.trouble().backoff.pause();
        self.lost(net, conn.key, false, pause_ns);
    }

    /// Handles a peer that keeps sending and takes none of the answers: the outstanding request is
    /// charged, if there is one.
    fn takes_nothing(&mut self, net: &mut impl Net, conn: Conn) {
        let (class, why) = (Class::Limit, "the peer kept sending and read none of the answers");
        if self.slots[conn.key].state.connection.is_opening() {
            // The connection was never open: the attempt fails.
            return self.not_opened(net, conn, &OpenError { class, why: why.into() });
        }
        self.pace.note_reason(class, why);
        if self.slots[conn.key].client.outstanding() == 0 {
            return self.violated(net, conn, class);
        }
        self.fail_all(net.now_ns(), conn.key, class);
        net.close(conn.token);
        let pause_ns = self.slots[conn.key].state.trouble().backoff.pause();
        self.lost(net, conn.key, false, pause_ns);
    }

    /// Counts a request as failed that had ended well.
    fn take_back(&mut self, key: u32, whose: Numbered, answered: &Answered, class: Class) {
        self.accounting.take_back(whose.phase, answered, class);
        if let Some(slot) = self.slots.get_mut(key) {
            slot.state.forget_last(whose);
        }
    }

    /// Fails every outstanding request: the oldest with this class, those behind it because of
    /// their connection.
    fn fail_all(&mut self, now_ns: u64, key: u32, class: Class) {
        let Slot { client, state, .. } = &mut self.slots[key];
        let tags: Vec<_> = client.cancel().collect();
        let classes = std::iter::once(class).chain(std::iter::repeat(Class::ClosedPipelined));
        for (tag, class) in tags.into_iter().zip(classes) {
            self.accounting.fail(state, now_ns, tag, class);
        }
    }

    /// Keeps the reason why the peer's bytes were refused, for the user.
    fn note_why(&mut self, key: u32) {
        let why = self.slots[key].client.standing().broken;
        if let Some((ending, why)) = why
            && let Some(class) = class_of_ending(ending)
        {
            self.pace.note_reason(class, why);
        }
    }

    /// Handles a connection that was broken by the peer or given up by us.
    fn broken(&mut self, net: &mut impl Net, conn: Conn) {
        net.close(conn.token);
        let pause_ns = self.slots[conn.key].state.fruitless_pause_ns();
        self.lost(net, conn.key, false, pause_ns);
    }

    /// Handles input of the protocol, unsealed.
    #[inline]
    fn handle_plain(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        received: Received<'_>,
        ending: bool,
    ) {
        let now_ns = net.now_ns();
        let (slot, accounting) = (&mut self.slots[conn.key], &mut self.accounting);
        let (queued_bytes, depth) = (net.queued_bytes(conn.token), self.config.depth_used());
        if !self.codec.note_unsent(slot, queued_bytes, accounting.drawn, depth) {
            return self.takes_nothing(net, conn);
        }
        let Slot { client, state, .. } = slot;
        if let Some(phase) = accounting.current_mut() {
            phase.meter.bytes_in += received.len() as u64;
        }
        let arrived_ns = net.arrived_ns();
        let input = Input { now_ns, arrived_ns, key: conn.key, drawn: accounting.drawn, received };
        self.codec.output.clear();
        let asked = client.outstanding() > 0;
        // Each datagram is an arrival of its own; bytes of a stream are one together.
        let apart = matches!(received, Received::Datagrams(_));
        let (mut row, at_ns) = (Row::default(), (now_ns, arrived_ns.filter(|_| apart)));
        let mut on_outcome = |outcome| {
            if apart || !row.takes(&outcome) {
                accounting.begin_row(&mut row, state, at_ns, outcome);
            }
        };
        let disposition = self.codec.protocol.handle_input(
            client,
            input,
            &mut self.codec.output,
            &mut on_outcome,
        );
        let last = row.rest();
        accounting.note_arrival(now_ns, arrived_ns, last);
        if let Some(last) = last {
            accounting.settle(state, now_ns, last);
        }
        let closes = disposition == Disposition::Closing;
        if closes && !asked && client.standing().request_timeout == RequestTimeout::None {
            let reconnects = self.codec.protocol.reconnects();
            accounting.note_unasked_end(now_ns, state, client.standing().answered, reconnects);
        }
        if let Some(last) = last {
            self.note_early(net, conn, last);
        }
        self.codec.send_output(net, &mut self.slots[conn.key], conn.token);
        if !ending {
            self.codec.protocol.note_sent(&mut self.slots[conn.key].client);
        }
        if self.codec.protocol.hastens_deadlines() {
            self.slots.arm(conn.key);
        }
        if self.slots[conn.key].state.connection.is_opening()
            && !self.is_agreed(net, conn, disposition)
        {
            return;
        }
        self.go_on(net, conn, disposition, asked, ending);
    }

    /// Continues with a connection as the disposition says. `asked`: something was outstanding
    /// before; `ending`: more is known to follow at once.
    #[inline]
    fn go_on(
        &mut self,
        net: &mut impl Net,
        conn: Conn,
        disposition: Disposition,
        asked: bool,
        ending: bool,
    ) {
        let slot = &mut self.slots[conn.key];
        let idle = slot.client.outstanding() == 0;
        let at_once = self.codec.protocol.transport() == Transport::Stream;
        if at_once && self.codec.protocol.waits_to_write(&slot.client) {
            self.send_waiting(net, conn);
        }
        match disposition {
            Disposition::Open if self.config.close && asked && idle => {
                self.answered_alone(net, conn, ending)
            }
            Disposition::Open if ending => {}
            Disposition::Open => self.fill(net, conn.key),
            Disposition::Draining if !idle => self.fill(net, conn.key),
            Disposition::Draining | Disposition::Closing => {
                match self.slots[conn.key].client.standing().request_timeout {
                    RequestTimeout::None => self.closing(net, conn, ending),
                    request_timeout => self.heed(net, conn.key, request_timeout),
                }
            }
            Disposition::Broken => {
                self.note_why(conn.key);
                self.broken(net, conn);
            }
            Disposition::Unsolicited => {
                let class = self.codec.protocol.facts(&self.slots[conn.key].client).violation;
                self.violated(net, conn, class);
            }
            Disposition::Opening | Disposition::Refused => {}
        }
    }

    fn send_waiting(&mut self, net: &mut impl Net, conn: Conn) {
        let (slot, drawn) = (&mut self.slots[conn.key], self.accounting.drawn);
        let bytes = self.codec.send_waiting(net, slot, conn.token, drawn);
        if let Some(phase) = self.accounting.current_mut() {
            phase.meter.bytes_out += bytes as u64;
        }
    }

    /// Handles the answer to the only request of a connection.
    fn answered_alone(&mut self, net: &mut impl Net, conn: Conn, ending: bool) {
        if self.codec.protocol.facts(&self.slots[conn.key].client).peer_closes {
            self.closing(net, conn, ending);
        } else {
            net.close(conn.token);
            self.lost(net, conn.key, true, 0);
        }
    }
}

impl<P: Protocol> Measured for Generator<P> {
    fn footprint(&self) -> Footprint {
        let of_slots = self.slots.iter().map(|slot| {
            let kept = self.codec.protocol.footprint(&slot.client);
            let waiting = slot.state.waiting_again();
            Footprint { requests: kept.requests.max(waiting), ..kept }
        });
        of_slots.fold(Footprint::default(), Footprint::max)
    }
}

impl<P: Protocol> Program for Generator<P> {
    fn handle_wake(&mut self, net: &mut impl Net) {
        while let Some(command) = self.link.next_command() {
            match command {
                Command::Connections(total) => self.resize(net, total),
                Command::Phase(share) => {
                    self.add_phase(share, false);
                    self.advance(net);
                }
                Command::Part(part) => self.take_part(part),
                // These are for a wrapper; a generator alone has nothing to settle.
                Command::Clock(_) | Command::Settle(..) | Command::Charge(..) => {}
                Command::Stop => self.stop(net),
            }
        }
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.connected(net, conn);
    }

    fn handle_connect_error(&mut self, net: &mut impl Net, conn: Conn, why: ConnectError) {
        self.refused(net, conn.key, why);
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], ending: bool) {
        self.accounting.wakings.note_input();
        match self.slots[conn.key].tls {
            None if self.config.tls.is_some() => self.handle_tunnel(net, conn, bytes, ending),
            None => self.handle_plain(net, conn, Received::Bytes(bytes), ending),
            Some(_) => self.handle_sealed(net, conn, bytes, ending),
        }
    }

    #[inline]
    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, datagrams: Datagrams<'_>) {
        self.receive_datagrams(net, conn, datagrams);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        if self.slots[conn.key].state.connection.is_open_on(conn.token) {
            self.send_waiting(net, conn);
            self.note_drained(conn.key);
        }
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        match self.slots[conn.key].tls {
            None if self.config.tls.is_some() => {
                let why = "the proxy ended the connection before it answered CONNECT";
                self.not_tunnelled(net, conn, why);
            }
            None => self.ended(net, conn, ended, None),
            Some(_) => self.sealed_ended(net, conn, ended),
        }
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        // The stop came in this very batch: a phase that is due now does not begin any more.
        if self.link.finished {
            return;
        }
        self.run_due(net);
        self.move_on(net);
        self.keep_time(net);
    }

    #[inline]
    fn handle_batch_end(&mut self, net: &mut impl Net) {
        if self.link.finished {
            return;
        }
        self.end_batch(net);
        if self.accounting.take_look() {
            self.advance(net);
        }
        self.stamp_written(net);
        self.watch(net);
    }

    fn wake_at_ns(&self) -> Option<u64> {
        if self.link.finished {
            return None;
        }
        let phases = self.next_phase_event_ns();
        let timers = self.slots.next_timer_ns();
        let at_ns = phases
            .min(timers)
            .min(self.pace.next_ns())
            .min(self.ready.wake_ns(&self.accounting, self.config.send_quantum_ns));
        (at_ns != NEVER).then_some(at_ns)
    }

    fn is_done(&self) -> bool {
        self.link.finished
    }
}
