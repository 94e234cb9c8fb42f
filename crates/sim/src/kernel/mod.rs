//! The simulated kernel, network and clock of one thread.
//!
//! Everything that crosses the wire is an event with a time. A thread runs in batches, as real
//! drivers do. At the start of a batch it reads the clock once and is told of all events up to
//! then. Its clock advances while it works, and later events wait for the next batch. Must not
//! know: what the generator does with its input.

mod datagrams;
mod net;
mod peers;
mod proxy;
mod secure;
mod socket;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use trueload_drive::{Address, Coalescing, ConnectError, Net, PeerClose, Program, Token};
use trueload_wire::tls::server;

use crate::chance::Chance;
use crate::history::{Event, History, readable};
use crate::peers::{Peers, Versions, What};
use crate::scenario::{BEGIN_NS, KernelPlan, Scenario, US};
pub use secure::Setups;
pub(crate) use secure::UNIX_NS;
use socket::Socket;

/// Maximum number of batches at the same clock reading. A generator that exceeds it asks to be
/// woken again and again, and would never come to rest.
const BATCHES_AT_ONCE_MOST: u32 = 10_000;
/// The time that one clock reading takes.
const CLOCK_COST_NS: u64 = 30;
/// A socket that accepted only a part of a send can accept more after this time.
const WRITABLE_NS: u64 = 5_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Connected,
    Refused,
    Writable,
    AtPeer(Vec<u8>),
    FinAtPeer,
    GoneAtPeer,
    PeerActs(What),
    Bytes(Vec<u8>, Option<u64>),
    DatagramAtPeer(Vec<u8>, u64),
    Datagram(Vec<u8>, u64),
    Fin,
    Reset,
}

/// A scheduled event: time, sequence number, connection, event. The heap yields the earliest first.
type Due = Reverse<(u64, u64, u32, Happening)>;

/// Observations of a kernel during a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// The least that each service time can have been, in ns: from the hand-over of a request to
    /// the batch that read its right answer.
    pub service_ns: Vec<u64>,
    /// For each answer on a watched connection, in ns: the time from the hand-over of its request
    /// to its arrival, and the time that it then waited to be read.
    pub watched_ns: Vec<(u64, u64)>,
    /// The duration of the longest batch.
    pub batch_most_ns: u64,
    /// The longest time that handing over sends took.
    pub hand_over_most_ns: u64,
    /// The longest time from the arrival of bytes to the batch that read them.
    pub receive_most_ns: u64,
    /// Most bytes ever copied into the send queue of one connection.
    pub copied_most: usize,
    /// Most requests on one connection that its peer had received but not yet answered rightly.
    pub requests_open_most: u64,
    /// Connections that the program has reset.
    pub resets: u64,
    /// Bytes that the program has read.
    pub bytes_read: u64,
    /// Bytes that it has sent or queued.
    pub bytes_sent: u64,
    /// Each send: the time at which the program asked for it, its slot, and its length in bytes.
    pub sends: Vec<(u64, u32, usize)>,
    /// The times at which prompt waking was switched on or off.
    pub prompt: Vec<(u64, bool)>,
    /// The times at which the program asked the thread to stay awake, and until when.
    pub awake: Vec<(u64, u64)>,
    /// Datagrams that the peers received.
    pub datagrams_at_peers: u64,
    /// Datagrams that came back twice.
    pub datagrams_twice: u64,
    /// Attempts to connect.
    pub attempts: u64,
    /// Maximum number of connections open at once.
    pub open_most: u32,
    /// The reason why the run was given up, if it was.
    pub stuck: Option<String>,
    /// The first protocol violation by the program that the peers saw.
    pub mistake: Option<String>,
    /// Answers that the peers sent whole. Known only for some peers.
    pub whole: Option<u64>,
    /// The most times that any one request reached the peers of all threads.
    pub repeats_most: u32,
    /// The connections by version, as the peers know them. Known only for some peers.
    pub versions: Option<Versions>,
}

/// The kernel of one thread.
#[derive(Debug)]
pub struct Kernel {
    plan: KernelPlan,
    scenario: Arc<Scenario>,
    thread: u32,
    chance: Chance,
    /// The current time, and the thread's last clock reading.
    clock_ns: u64,
    read_ns: u64,
    order: u64,
    due: BinaryHeap<Due>,
    sockets: Vec<Socket>,
    /// Sockets with events for the program, and the time since when there is one.
    ready: Vec<u32>,
    ready_since_ns: u64,
    /// The time of the next wake-up from another thread.
    rung_ns: Option<u64>,
    /// Sockets with sends that have not been handed over.
    unhanded: Vec<u32>,
    /// The time before the first send of this batch that left at once, since the program last
    /// called [`Net::hand_over`].
    sending_since_ns: Option<u64>,
    /// The dead address, and that of each origin.
    addresses: &'static [Address],
    peers: Box<dyn Peers>,
    /// The TLS setup of the peers, if they speak TLS.
    tls: Option<server::Setup>,
    open: u32,
    batches_at_once: u32,
    /// The time that the thread has worked, and the time that it waited for a CPU.
    busy_ns: u64,
    waited_ns: u64,
    /// The limits on event coalescing that the program asked for.
    coalescing: Coalescing,
    /// The arrival time of the bytes being delivered, if the program asked for it.
    arrived_ns: Option<u64>,
    /// The events of the run.
    pub history: History,
    /// The observations of the run.
    pub seen: Seen,
}

impl Kernel {
    /// Creates the kernel of a thread. Its clock starts at [`BEGIN_NS`]. `peers` answer at every
    /// address except the first.
    #[must_use]
    pub fn new(
        scenario: &Arc<Scenario>,
        thread: u32,
        peers: Box<dyn Peers>,
        addresses: &'static [Address],
        tls: Option<server::Setup>,
        trace: bool,
    ) -> Self {
        Kernel {
            plan: scenario.kernel.clone(),
            scenario: Arc::clone(scenario),
            thread,
            chance: Chance::part(scenario.seed, u64::from(thread) + 1),
            clock_ns: BEGIN_NS,
            read_ns: BEGIN_NS,
            order: 0,
            due: BinaryHeap::new(),
            sockets: Vec::new(),
            ready: Vec::new(),
            ready_since_ns: 0,
            rung_ns: None,
            unhanded: Vec::new(),
            sending_since_ns: None,
            addresses,
            peers,
            tls,
            open: 0,
            batches_at_once: 0,
            busy_ns: 0,
            waited_ns: 0,
            coalescing: Coalescing::default(),
            arrived_ns: None,
            history: History::new(trace),
            seen: Seen::default(),
        }
    }

    /// The current time of this thread.
    #[must_use]
    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }

    /// Requests of which the peers have received at least a part.
    pub fn requests_at_peers(&self) -> u64 {
        self.peers.requests() + self.seen.datagrams_at_peers
    }

    /// Wakes the thread at this time, or as soon as it is free.
    pub fn ring(&mut self, at_ns: u64) {
        self.rung_ns = Some(self.rung_ns.map_or(at_ns, |rung_ns| rung_ns.min(at_ns)));
    }

    /// The time of the next event or batch; none if there is none.
    #[must_use]
    pub fn next_ns(&self, program: &impl Program) -> Option<u64> {
        let event_ns = self.due.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let ready_ns = (!self.ready.is_empty()).then(|| self.ready_ns());
        [event_ns, ready_ns, self.rung_ns, program.wake_at_ns()].into_iter().flatten().min()
    }

    /// The time at which the program is told of ready sockets. With coalescing, events wait for
    /// others.
    fn ready_ns(&self) -> u64 {
        let enough = self.ready.len() >= self.coalescing.events as usize;
        let asked_us = if enough { 0 } else { self.coalescing.within_us };
        self.ready_since_ns + self.plan.coalesce_ns.max(u64::from(asked_us) * US)
    }

    /// Does the next thing: an event in the network happens, or the thread runs a batch.
    pub fn step(&mut self, program: &mut impl Program) {
        let Some(next_ns) = self.next_ns(program) else { return };
        let at_ns = next_ns.max(self.clock_ns);
        self.happen(at_ns);
        let is_ready = !self.ready.is_empty() && self.ready_ns() <= at_ns;
        let rung = self.rung_ns.is_some_and(|rung_ns| rung_ns <= at_ns);
        if !is_ready && !rung && !is_due(program, at_ns) {
            return;
        }
        self.batches_at_once = if at_ns > self.read_ns { 0 } else { self.batches_at_once + 1 };
        if self.batches_at_once > BATCHES_AT_ONCE_MOST {
            self.seen.stuck = Some("the clock is paused".to_owned());
        }
        let late_ns = self.chance.below(self.plan.late_ns + 1);
        self.clock_ns = self.unless_stalled(at_ns + late_ns);
        // A stopped thread does not wait for a CPU, so a stall does not count as waiting.
        self.waited_ns += late_ns;
        self.happen(self.clock_ns);
        self.read_ns = self.clock_ns;
        let began_ns = self.clock_ns;
        self.batch(program);
        let took_ns = self.clock_ns - began_ns;
        self.busy_ns += took_ns;
        self.seen.batch_most_ns = self.seen.batch_most_ns.max(took_ns);
    }

    fn unless_stalled(&self, at_ns: u64) -> u64 {
        match self.plan.stalls {
            Some((from, to)) if (BEGIN_NS + from..BEGIN_NS + to).contains(&at_ns) => BEGIN_NS + to,
            _ => at_ns,
        }
    }

    /// Delivers to the peers what is still in flight after the programs have ended.
    pub fn settle(&mut self) {
        while let Some(Reverse((at_ns, _, index, happening))) = self.due.pop() {
            match happening {
                // A peer that has stopped reading has missed bytes before these.
                Happening::AtPeer(bytes) if self.peers.reads(index) => {
                    drop(self.deliver_to_peer(at_ns, index, &bytes));
                }
                Happening::DatagramAtPeer(..) => self.seen.datagrams_at_peers += 1,
                _ => {}
            }
        }
        self.seen.mistake = self.seen.mistake.take().or_else(|| self.peers.mistake());
        self.seen.whole = self.peers.whole();
        self.seen.repeats_most = self.peers.repeats_most();
        self.seen.versions = self.peers.versions();
    }

    fn batch(&mut self, program: &mut impl Program) {
        self.sending_since_ns = None;
        self.clock_ns += self.plan.batch_cost_ns;
        if self.rung_ns.is_some_and(|rung_ns| rung_ns <= self.read_ns) {
            self.rung_ns = None;
            self.note("wake", u64::from(self.thread), b"", || "");
            program.handle_wake(self);
        }
        if self.plan.timers_first {
            self.run_timers(program);
        }
        let mut ready = std::mem::take(&mut self.ready);
        if self.plan.shuffled {
            self.shuffle(&mut ready);
        }
        for index in ready {
            self.sockets[index as usize].is_ready = false;
            self.deliver(program, index);
            if self.sockets[index as usize].has_news() {
                self.is_ready(index, self.clock_ns);
            }
        }
        self.run_timers(program);
        program.handle_batch_end(self);
        self.hand_over_all();
    }

    fn run_timers(&mut self, program: &mut impl Program) {
        if is_due(program, self.read_ns) {
            self.note("time", u64::from(self.thread), b"", || "");
            program.handle_time(self);
        }
    }

    fn shuffle(&mut self, ready: &mut [u32]) {
        for last in (1..ready.len()).rev() {
            let other = self.chance.below(last as u64 + 1) as usize;
            ready.swap(last, other);
        }
    }

    /// Processes all network events that are due by `until_ns`.
    fn happen(&mut self, until_ns: u64) {
        while self.due.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= until_ns) {
            if let Some(Reverse((at_ns, _, index, happening))) = self.due.pop() {
                self.take(at_ns, index, happening);
            }
        }
    }

    fn take(&mut self, at_ns: u64, index: u32, happening: Happening) {
        let socket = &mut self.sockets[index as usize];
        match happening {
            Happening::Connected => {
                (socket.connected, socket.peer_alive) = (true, true);
                if socket.proxy.is_none() {
                    self.meet_peer(at_ns, index);
                }
            }
            Happening::Refused => socket.refused = Some(ConnectError::Refused),
            Happening::Writable => socket.writable = true,
            Happening::AtPeer(bytes) => return self.at_peer(at_ns, index, &bytes),
            Happening::FinAtPeer => {
                let mut acts = Vec::new();
                self.peers.ended(index, at_ns, &mut acts);
                return self.plan_acts(acts);
            }
            Happening::GoneAtPeer => {
                socket.peer_alive = false;
                self.peers.gone(index);
            }
            Happening::PeerActs(what) => return self.act(at_ns, index, what),
            Happening::Bytes(bytes, answered) => {
                socket.came += bytes.len() as u64;
                if let Some(start) = answered {
                    socket.answers.push_back((socket.came, start));
                }
                socket.inbox.extend(bytes);
                socket.arrived_ns = at_ns;
            }
            Happening::DatagramAtPeer(bytes, handed_ns) => {
                return self.datagram_at_peer(at_ns, index, (bytes, handed_ns));
            }
            Happening::Datagram(bytes, handed_ns) => {
                socket.datagrams_in.push_back((bytes, handed_ns));
                socket.arrived_ns = at_ns;
            }
            Happening::Fin => socket.end = socket.end.or(Some(PeerClose::Fin)),
            Happening::Reset => {
                socket.peer_alive = false;
                socket.end = socket.end.or(Some(PeerClose::Reset));
            }
        }
        if self.sockets[index as usize].has_news() {
            self.is_ready(index, at_ns);
        }
    }

    /// Tells the program everything that has happened on a connection.
    fn deliver(&mut self, program: &mut impl Program, index: u32) {
        let socket = &mut self.sockets[index as usize];
        let (key, conn) = (socket.key, socket.conn(index));
        if !socket.open {
            return;
        }
        if socket.refused.take().is_some() {
            self.shut(index);
            self.note("refused", u64::from(index), b"", || format!("#{index}, slot {key}"));
            return program.handle_connect_error(self, conn, ConnectError::Refused);
        }
        if std::mem::take(&mut socket.connected) {
            socket.connecting = false;
            self.note("connected", u64::from(index), b"", || format!("#{index}, slot {key}"));
            program.handle_connected(self, conn);
            self.flush(index);
        }
        let drained_first = self.plan.together && self.chance.one_in(2);
        if drained_first {
            self.drain(program, index);
        }
        while self.read_datagrams(program, index) && self.plan.read_all {}
        while self.read(program, index) && self.plan.read_all {}
        if !drained_first {
            self.drain(program, index);
        }
    }

    /// Does one read, limited as the kernel limits it. Returns false if there was nothing to read.
    fn read(&mut self, program: &mut impl Program, index: u32) -> bool {
        let most = match self.plan.read_random {
            true => self.chance.between(1, self.plan.read_most as u64) as usize,
            false => self.plan.read_most,
        };
        let read_ns = self.read_ns;
        let socket = &mut self.sockets[index as usize];
        let conn = socket.conn(index);
        if !socket.open {
            return false;
        }
        if socket.inbox.is_empty() {
            let Some(ended) = socket.end.take() else { return false };
            self.clock_ns += self.plan.input_cost_ns;
            self.note("ended", u64::from(index), b"", || format!("#{index} {ended:?}"));
            program.handle_end(self, conn, ended);
            self.close(conn.token);
            return false;
        }
        let count = most.min(socket.inbox.len());
        let bytes: Vec<u8> = socket.inbox.drain(..count).collect();
        let ending = self.plan.read_all && (!socket.inbox.is_empty() || socket.end.is_some());
        let arrived_ns = socket.watched.then_some(socket.arrived_ns);
        let waited_ns = read_ns - socket.arrived_ns;
        self.seen.receive_most_ns = self.seen.receive_most_ns.max(waited_ns);
        let Seen { service_ns, watched_ns, .. } = &mut self.seen;
        socket.read_on(count, |handed_ns| {
            service_ns.push(read_ns.saturating_sub(handed_ns));
            if let Some(arrived_ns) = arrived_ns {
                watched_ns.push((arrived_ns.saturating_sub(handed_ns), waited_ns));
            }
        });
        self.clock_ns += self.plan.input_cost_ns;
        self.note("reads", u64::from(index), &bytes, || {
            format!("#{index} {}{}", readable(&bytes), if ending { " (more follows)" } else { "" })
        });
        self.arrived_ns = arrived_ns;
        self.seen.bytes_read += bytes.len() as u64;
        program.handle_input(self, conn, &bytes, ending);
        self.arrived_ns = None;
        true
    }

    /// Sends queued bytes as far as there is room. Tells the program when the queue is empty.
    fn drain(&mut self, program: &mut impl Program, index: u32) {
        let socket = &mut self.sockets[index as usize];
        if !std::mem::take(&mut socket.writable) || socket.outbox.is_empty() || !socket.open {
            return;
        }
        self.flush(index);
        let socket = &self.sockets[index as usize];
        if socket.open && socket.outbox.is_empty() {
            let conn = socket.conn(index);
            self.note("drained", u64::from(index), b"", || format!("#{index}"));
            program.handle_drained(self, conn);
        }
    }

    /// Moves queued bytes to the network, as far as the kernel has room.
    fn flush(&mut self, index: u32) {
        let clock_ns = self.clock_ns;
        let socket = &mut self.sockets[index as usize];
        if !socket.takes() {
            socket.outbox = trueload_drive::Outbox::default();
            return;
        }
        if socket.connecting {
            return;
        }
        socket.hand_over(clock_ns);
        self.flush_datagrams(index);
        let mut left = self.plan.send_most;
        while let Some(front) = self.sockets[index as usize].outbox.front() {
            let room = self.plan.room - self.sockets[index as usize].on_wire;
            let taken = front[..front.len().min(room).min(left)].to_vec();
            if taken.is_empty() {
                break;
            }
            left -= taken.len();
            let way_ns = self.way_ns();
            let socket = &mut self.sockets[index as usize];
            socket.outbox.advance(taken.len());
            socket.copied = socket.copied.saturating_sub(taken.len());
            socket.in_flight = match socket.in_flight.saturating_sub(taken.len()) {
                // The next send begins, with everything queued behind the last one.
                0 => socket.outbox.front().map_or(0, <[u8]>::len),
                left => left,
            };
            socket.on_wire += taken.len();
            socket.last_out_ns = socket.last_out_ns.max(clock_ns + way_ns);
            self.read_slowly(index, &taken);
        }
        if self.sockets[index as usize].outbox.is_empty() {
            self.end_if_asked(index);
        } else if left == 0 {
            self.later(clock_ns + WRITABLE_NS, index, Happening::Writable);
        }
    }

    fn end_if_asked(&mut self, index: u32) {
        let socket = &mut self.sockets[index as usize];
        if std::mem::take(&mut socket.ending) {
            let at_ns = socket.last_out_ns.max(self.clock_ns + self.plan.latency_ns);
            socket.last_out_ns = at_ns;
            self.later(at_ns, index, Happening::FinAtPeer);
        }
    }

    /// Closes the socket for the program. Returns whether it was open.
    fn shut(&mut self, index: u32) -> bool {
        let socket = &mut self.sockets[index as usize];
        let was_open = std::mem::replace(&mut socket.open, false);
        if was_open {
            self.open -= 1;
            socket.inbox.clear();
            socket.outbox = trueload_drive::Outbox::default();
        }
        was_open
    }

    fn hand_over_all(&mut self) {
        for index in std::mem::take(&mut self.unhanded) {
            self.clock_ns += self.plan.send_cost_ns;
            self.flush(index);
        }
    }

    fn way_ns(&mut self) -> u64 {
        self.plan.latency_ns + self.chance.below(self.plan.jitter_ns + 1)
    }

    fn later(&mut self, at_ns: u64, index: u32, happening: Happening) {
        self.order += 1;
        self.due.push(Reverse((at_ns, self.order, index, happening)));
    }

    fn is_ready(&mut self, index: u32, at_ns: u64) {
        if !std::mem::replace(&mut self.sockets[index as usize].is_ready, true) {
            if self.ready.is_empty() {
                self.ready_since_ns = at_ns;
            }
            self.ready.push(index);
        }
    }

    fn note<L: std::fmt::Display>(
        &mut self,
        kind: &'static str,
        about: u64,
        bytes: &[u8],
        line: impl FnOnce() -> L,
    ) {
        // The content of TLS bytes is random but their number is not, so only the number is hashed.
        let mut event = Event::of(kind, about, bytes);
        if self.tls.is_some() {
            self.history.mix(bytes.len() as u64);
            event.bytes = b"";
        }
        self.history.note(self.clock_ns, event, line);
    }
}

fn token(index: u32) -> Token {
    Token { index, generation: 0 }
}

fn is_due(program: &impl Program, now_ns: u64) -> bool {
    program.wake_at_ns().is_some_and(|at_ns| at_ns <= now_ns)
}
